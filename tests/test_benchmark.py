"""The benchmark: what it reports, not how fast this machine is."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from cpoker_env.train import adapter_costs, benchmark, costs, peers
from cpoker_env.train.timing import Work, measure

from cpoker_env.cli import main
from cpoker_env.errors import ConfigError, RulesError
from cpoker_env.rules import Rules


@pytest.fixture(scope="module")
def report():
    return benchmark.run(benchmark.Config(quick=True))


def test_every_row_has_positive_times_and_its_target(report):
    assert [record["name"] for record in report["costs"]] == [c.name for c in costs.COSTS]
    for record in (*report["costs"], *report["starts"]):
        assert record["cpu_seconds"] == min(record["cpu_samples"]) > 0, record
        assert record["wall_seconds"] > 0
        assert record["spread"] >= 0
        assert math.isclose(record["per_second"] * record["cpu_seconds"], 1)
        if "target_seconds" in record:
            assert record["met"] == (record["cpu_seconds"] <= record["target_seconds"])
    targets = {r["name"] for r in (*report["costs"], *report["starts"]) if "target_seconds" in r}
    assert targets == {
        *("best", "frontier", "settle", "score", "vector-uniform", "vector-greedy"),
        *("equilibrium", "neural", "search", "scalar-greedy", "import"),
    }


def test_import_loads_no_torch_and_machine_is_named(report):
    assert report["starts"][0]["name"] == "import"
    assert report["starts"][0]["torch_imported"] is False
    about = report["machine"]
    assert all(about[key] for key in ("cpu", "cores", "python", "numpy", "numba", "cpoker_env"))


def test_memory_is_measured_for_one_and_many_environments(report):
    assert [record["name"] for record in report["memory"]] == ["memory", "memory", "growth"]
    assert all(record["bytes"] > 0 for record in report["memory"] if record["name"] == "memory")


def test_json_goes_to_stdout_alone_or_to_a_file(capsys, tmp_path):
    words = ["bench", "--quick", "--only", "naturals", "dealt"]
    assert main([*words, "--json", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [record["name"] for record in printed["costs"]] == ["deal", "naturals"]
    assert printed["starts"] == printed["memory"] == printed["scaling"] == printed["peers"] == []
    file = tmp_path / "made" / "bench.json"
    assert main([*words, "--json", str(file), "--markdown"]) == 0
    written = json.loads(file.read_text(encoding="utf-8"))
    assert set(written) == set(printed)
    out = capsys.readouterr().out
    assert "| what | CPU each | a second | target | met | spread |\n| --- | ---: |" in out
    assert "| dealt, 4 seats |" in out


def test_scaling_varies_one_size_at_a_time():
    config = benchmark.Config(quick=True, scaling=True, only=("dealt",))
    records = benchmark.run(config)["scaling"]
    sizes = [(r["axis"], r["batch"], r["num_players"], r["num_threads"]) for r in records]
    assert sizes == [
        *[("batch", batch, 4, 1) for batch in (1, 16)],
        *[("num_players", 16, seats, 1) for seats in (2, 3, 4)],
    ]


def test_slow_work_is_reported_slower_and_failing_work_by_its_error():
    def fails():
        raise ValueError("no such\nthing")

    fast = Work(1000, lambda: sum(range(1000)))
    slow = Work(1000, lambda: sum(range(30_000)))
    timings = measure([lambda: fast, lambda: slow, lambda: Work(1, fails)], 3, 0.002)
    assert timings[1].seconds > 3 * timings[0].seconds > 0
    assert timings[2].to_dict() == {"error": "ValueError: no such"}
    assert [len(timing.cpu) for timing in timings] == [3, 3, 0]


def test_kept_actions_of_the_scalar_environment_are_legal(monkeypatch):
    make = gym.make
    monkeypatch.setattr(costs.gym, "make", lambda *args, **kw: make(*args, strict=True, **kw))
    work = costs.BY_NAME["scalar-uniform"].prepare(costs.Setup(Rules.preset("mandarin"), 64, 3))
    work.call()  # a strict environment raises on a foul


def test_kept_actions_of_adapters_are_legal(monkeypatch):
    parallel = pytest.importorskip("cpoker_env.parallel", exc_type=ImportError)
    make = parallel.parallel_env
    monkeypatch.setattr(parallel, "parallel_env", partial(make, strict=True))
    cost = peers.BY_NAME["parallel"]
    work = cost.prepare(costs.Setup(Rules.preset("mandarin"), 8, 3))
    work.call()
    assert work.items == 8


@pytest.mark.parametrize("stepped", adapter_costs.STEPPED, ids=lambda stepped: stepped.key)
def test_steps_kept_for_stable_baselines_are_legal_in_both(stepped, monkeypatch):
    pytest.importorskip("cpoker_env.sb3", exc_type=ImportError)
    monkeypatch.setattr(adapter_costs, "NUM_TABLES", 3)
    strict = replace(stepped, options=(*stepped.options, ("strict", True)))
    setup = costs.Setup(Rules.preset("mandarin"), 3, 2)
    for prepare in (adapter_costs.native, adapter_costs.dummy):
        work = prepare(strict, setup)
        assert work.items == 3 * stepped.num_steps
        if stepped.key != "sequential":  # whose last card may have to foul
            work.call()


def test_every_step_of_the_vector_environment_settles_all_deals(monkeypatch):
    make, ended = gym.make_vec, []

    def spied(*args, **kw):
        envs = make(*args, **kw)
        step = envs.step
        envs.step = lambda actions: ended.append((found := step(actions))[2]) or found
        return envs

    monkeypatch.setattr(costs.gym, "make_vec", spied)
    setup = costs.Setup(Rules.preset("mandarin"), 64, 2)
    work = costs.BY_NAME["vector-uniform"].prepare(setup)
    ended.clear()
    work.call()
    assert np.sum(ended) == work.items


def test_missing_and_broken_peers_are_listed_and_others_measured():
    def breaks():
        raise ImportError("built for another Python")

    phevaluator = next(peer for peer in peers.PEERS if peer.name == "phevaluator")
    missing = replace(phevaluator, name="missing", pip="not-there", module="no_such_module")
    broken = replace(phevaluator, name="broken", make=breaks)
    records = peers.compare([missing, broken, phevaluator], 64, 2, 1e-3)
    assert [record["status"] for record in records] == ["missing", "failed", "measured"]
    assert records[0]["pip"] == "not-there"
    assert records[1]["error"] == "ImportError: built for another Python"
    assert records[2]["same_order"] is True
    assert math.isclose(
        records[2]["ratio"], records[2]["cpu_seconds"] / records[2]["ours_cpu_seconds"]
    )


def test_order_comparison_sees_swaps_and_broken_ties():
    a = np.array([3, 1, 2, 1])
    assert peers.is_same_order(a, np.array([30, 10, 20, 10]))
    assert not peers.is_same_order(a, np.array([30, 20, 10, 20]))
    assert not peers.is_same_order(a, np.array([30, 10, 20, 11]))


def test_a_failing_process_reports_its_last_line():
    with pytest.raises(RuntimeError, match="KeyError: 'nothing'"):
        costs.run_fresh("nothing")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"repeats": 0}, "repeats 0: give 1 or more"),
        ({"seconds": 0.0}, "seconds 0.0: give more than 0, at most 60"),
        ({"seconds": float("nan")}, "seconds nan"),
        ({"deals": 0}, "deals 0: give 1 or more"),
        ({"only": ("frontier", "dragon")}, "only 'dragon': no row has it; the rows are best, "),
    ],
)
def test_bad_settings_are_refused(changes, says):
    with pytest.raises(ConfigError, match=says.replace(".", r"\.")):
        benchmark.main(benchmark.Config(**changes))


def test_folder_and_unknown_rules_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a folder: give a file, or - to print"):
        benchmark.main(benchmark.Config(json=tmp_path))
    with pytest.raises(RulesError, match="norse"):
        benchmark.main(benchmark.Config(rules="norse"))


def test_benchmark_loads_no_torch_without_need():
    code = (
        "import sys\nfrom cpoker_env.cli import main\n"
        "main(['bench', '--quick', '--only', 'dealt', '--json', '-'])\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0

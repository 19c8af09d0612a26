"""Work in shards: the same results from any workers, shards that fail, partial results."""

import importlib.resources
import json
import sys
from multiprocessing import active_children, get_context
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cpoker_env.train import exploit, fictitious_play
from cpoker_env.train.cluster import import_ray
from cpoker_env.train.evaluate import evaluate
from cpoker_env.train.keep import Keep, _hash, pack, unpack
from cpoker_env.train.shards import Runner, cut, open_runner
from sharing import Fails, Squares

from cpoker_env import extras
from cpoker_env.cli import main
from cpoker_env.errors import CheckpointError, ConfigError, ExtraError, PolicyError, WorkerError
from cpoker_env.policy import register_policy
from cpoker_env.rules import Rules

SHARDS = cut(95, 10)
SUMS = [{"sum": sum(i * i for i in range(*shard))} for shard in SHARDS]
FALLS = "sharing:Fails"


def run(work, keep=None, workers=1):
    with open_runner(workers, keep=keep) as runner:
        return runner.run(work, SHARDS, "adding", "numbers")


def test_shards_are_all_items_once():
    assert [list(shard) for shard in cut(95, 40)] == [[0, 40], [40, 80], [80, 95]]
    assert [*range(95)] == [item for shard in SHARDS for item in range(*shard)]


def test_only_the_shard_of_a_killed_worker_is_done_again(tmp_path):
    work = Squares(tmp_path, falls=(30, 70), raises=(50,))
    assert run(work, workers=2) == SUMS
    calls = {shard.start: work.num_calls(shard.start) for shard in SHARDS}
    assert calls == {shard.start: 2 if shard.start in (30, 50, 70) else 1 for shard in SHARDS}


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_that_fail_twice_are_reported_and_the_others_kept(tmp_path, workers):
    work = Squares(tmp_path, raises=(30, 70), times=2)
    path = tmp_path / "keep.json"
    with pytest.raises(WorkerError) as caught:
        run(work, Keep(path, {}), workers)
    said = str(caught.value)
    assert "2 of 10 shards are missing: numbers 30 to 39 failed twice, " in said
    assert "numbers 70 to 79 failed twice" in said
    assert "call 1" in said
    assert str(path) in said
    # Both work now; of the others nothing is done again.
    assert run(work, Keep(path, {})) == SUMS
    calls = {shard.start: work.num_calls(shard.start) for shard in SHARDS}
    assert calls == {shard.start: 3 if shard.start in (30, 70) else 1 for shard in SHARDS}


def test_a_run_that_gets_nothing_done_ends_with_the_first_error(tmp_path):
    starts = tuple(shard.start for shard in SHARDS)
    work = Squares(tmp_path, raises=starts, times=2, error=PolicyError)
    with pytest.raises(PolicyError, match="call 1"):
        run(work)
    assert sum(map(work.num_calls, starts)) == len(SHARDS) + 1


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    work = Squares(tmp_path, raises=(30,), error=KeyboardInterrupt)
    path = tmp_path / "keep.json"
    with pytest.raises(KeyboardInterrupt):
        run(work, Keep(path, {"seed": 3}))
    assert run(work, Keep(path, {"seed": 3})) == SUMS
    assert [work.num_calls(start) for start in (0, 20, 30, 40)] == [1, 1, 2, 1]
    assert [name for name in path.parent.iterdir() if name.name.startswith(".")] == []


def test_an_interrupt_tells_where_results_are(tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt):
        run(Squares(tmp_path, raises=(30,), error=KeyboardInterrupt), Keep(tmp_path / "kept", {}))
    assert "the same command goes on from there" in capsys.readouterr().err


def test_stages_are_kept_apart(tmp_path):
    path = tmp_path / "keep.json"
    runner = Runner(keep=Keep(path, {}))
    for factor in (1, 2):
        runner.run(lambda shard, f=factor: f * shard.start, cut(3, 1), f"stage {factor}", "items")
    again = Runner(keep=Keep(path, {}))
    assert again.run(None, cut(3, 1), "stage 2", "items") == [0, 2, 4]
    assert again.run(None, cut(3, 1), "stage 1", "items") == [0, 1, 2]


def test_kept_results_that_are_damaged_or_of_other_settings_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "keep.json"
    run(Squares(tmp_path), Keep(path, {"seed": 3}))
    with pytest.raises(CheckpointError, match="seed 3, not 4"):
        Keep(path, {"seed": 4})
    whole = path.read_text(encoding="utf-8")
    foreign = [
        json.dumps({"settings": settings, "done": done, "sha256": _hash(settings, done)})
        for settings, done in (
            ([1], {}), (None, {}), ({}, 3), ({}, {"adding": 3}), ({}, {"adding": {"1": 1}}),
            ({}, {"adding": {"x-y": 1}}),
        )
    ]  # fmt: skip
    changed = whole[:-20], whole.replace("285", "286"), "[]", "{}", "", "[" * 100_000
    for damaged in (*changed, *foreign):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(CheckpointError, match="remove it to start anew"):
            Keep(path, {"seed": 3})
    path.write_text(whole, encoding="utf-8")
    monkeypatch.setattr("cpoker_env.train.keep.__version__", "0.0.9")
    with pytest.raises(CheckpointError, match=r"version '0.1.0', not '0.0.9'"):
        Keep(path, {"seed": 3})
    with pytest.raises(ConfigError, match="a folder you may write to"):
        Keep(tmp_path, {})


def test_results_are_in_the_file_before_the_run_ends(tmp_path, monkeypatch):
    path = tmp_path / "keep.json"
    now = 0.0
    monkeypatch.setattr("cpoker_env.train.keep.time.monotonic", lambda: now)
    keep = Keep(path, {"seed": 3})
    for place, shard in enumerate(SHARDS):
        now += 100
        keep.add("adding", shard, SUMS[place])
        assert Keep(path, {"seed": 3}).results("adding") == dict(
            zip(SHARDS[: place + 1], SUMS, strict=False)
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"agents": "uniform,greedy"}, {"rules": "western"}, {"num_players": 4}, {"num_deals": 41},
        {"seed": 12}, {"tables": False}, {"timeout": 9.0},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_another_evaluation_does_not_go_on_from_what_is_kept(changed, tmp_path):
    settings = {"agents": "greedy,uniform", "num_players": 3, "num_deals": 40}
    keep = tmp_path / "keep.json"
    found = evaluate(**settings, keep=keep)
    assert evaluate(**settings, keep=keep) == found
    with pytest.raises(CheckpointError, match="resume with the same settings"):
        evaluate(**settings | changed, keep=keep)


@pytest.mark.parametrize(
    "changed",
    [
        {"agent": "uniform"}, {"rules": "western"}, {"players": 3}, {"hands": 21},
        {"samples": 31}, {"tables": 9}, {"seed": 4},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_another_best_response_does_not_go_on_from_what_is_kept(changed, tmp_path):
    settings = {"agent": "greedy", "players": 4, "hands": 20, "samples": 30, "tables": 8, "seed": 3}
    keep = tmp_path / "keep.json"
    exploit.main(exploit.Config(**settings, keep=keep))
    with pytest.raises(CheckpointError, match="resume with the same settings"):
        exploit.main(exploit.Config(**settings | changed, keep=keep))
    exploit.main(exploit.Config(**settings, keep=keep, threads=1, worst=0))


def test_an_agent_that_changed_under_its_name_is_another(tmp_path):
    shipped = importlib.resources.files("cpoker_env.checkpoints")
    name, keep = tmp_path / "agent", tmp_path / "keep.json"
    agents = ["greedy", f"checkpoint:{name}"]
    for number, kind in enumerate(("neural-mandarin", "equilibrium-mandarin")):
        for ending in (".json", ".safetensors"):
            name.with_suffix(ending).write_bytes((shipped / (kind + ending)).read_bytes())
        if number == 0:
            evaluate(agents, num_deals=10, keep=keep)
    with pytest.raises(CheckpointError, match="resume with the same settings"):
        evaluate(agents, num_deals=10, keep=keep)
    keep.unlink()
    for number, kind in enumerate(("Uniform", "Product")):
        register_policy("now", f"cpoker_env.agents.heuristics:{kind}", overwrite=True)
        if number == 0:
            evaluate(["greedy", "now"], num_deals=10, keep=keep)
    with pytest.raises(CheckpointError, match="resume with the same settings"):
        evaluate(["greedy", "now"], num_deals=10, keep=keep)


def test_shards_that_fail_wait_for_the_others(tmp_path):
    order = []

    def work(shard):
        order.append(shard.start)
        if order == [0]:
            raise OSError("not yet")

    Runner().run(work, cut(4, 1), "adding", "numbers")
    assert order == [0, 1, 2, 3, 0]


def test_networks_run_in_one_thread_and_others_as_before():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        told = Runner().run(lambda shard: torch.get_num_threads(), cut(2, 1), "adding", "numbers")
        assert told == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_only_the_workers_of_a_run_end_with_it(tmp_path):
    sleeps = "import time; time.sleep(60)"
    with open_runner(2) as runner:
        other = get_context("spawn").Process(target=exec, args=(sleeps,))
        other.start()
        workers = set(active_children()) - {other}
        assert runner.run(Squares(tmp_path), SHARDS, "adding", "numbers") == SUMS
    try:
        assert len(workers) == 2
        assert set(active_children()) & (workers | {other}) == {other}
    finally:
        other.kill()
        other.join()


def test_arrays_are_packed_exactly():
    for array in (
        np.array([0.1, np.nan, -0.0, np.inf]), np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::-1],
        np.zeros((0, 13), np.int64),
    ):  # fmt: skip
        found = unpack(json.loads(json.dumps(pack(array))))
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == np.ascontiguousarray(array).tobytes()
        found[...] = 1


def test_evaluations_by_workers_one_of_which_dies_are_the_same(tmp_path):
    register_policy("fails", FALLS)
    flag = tmp_path / "flag"
    agents = ["greedy", f"fails:{flag}", "balanced"]
    one = evaluate(agents, "mandarin", 3, 900, 5)
    flag.write_text("fall", encoding="utf-8")
    three = evaluate(agents, "mandarin", 3, 900, 5, workers=3)
    assert not flag.exists()
    assert three == one


def test_an_evaluation_goes_on_from_what_it_kept(tmp_path, capsys):
    register_policy("fails", FALLS)
    flag = tmp_path / "flag"
    words = ["evaluate", "--agents", f"fails:{flag},greedy", "--deals", "700", "--json"]
    assert main([*words, str(tmp_path / "whole.json")]) == 0
    flag.write_text("raise", encoding="utf-8")
    part = tmp_path / "part.json"
    assert main([*words, str(part)]) == 1
    said = capsys.readouterr().err
    assert "deals 256 to 511 once more: out of order" in said
    assert "1 of 3 shards are missing: deals 256 to 511 failed twice, out of order" in said
    assert not part.exists()
    flag.unlink()
    assert main([*words, str(part), "--seed", "12"]) == 1
    assert "seed 11, not 12" in capsys.readouterr().err
    assert main([*words, str(part)]) == 0
    assert part.read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not (tmp_path / "part.json.partial").exists()


def test_only_named_agents_can_be_kept_or_sent(tmp_path):
    given = {"greedy": "greedy", "me": Fails(Rules.preset("mandarin"))}
    for options in ({"keep": tmp_path / "keep"}, {"ray": "local"}, {"workers": 2}):
        with pytest.raises(ConfigError, match="import string"):
            evaluate(given, num_deals=10, **options)
    register_policy("own", lambda rules, num_players: given["me"], overwrite=True)
    with pytest.raises(ConfigError, match="import string"):
        exploit.main(exploit.Config("own", hands=20, samples=20, workers=2))


@pytest.mark.parametrize(("rules", "players"), [("mandarin", 4), ("western", 2)])
def test_best_responses_by_workers_are_the_same(tmp_path, rules, players, monkeypatch):
    register_policy("fails", FALLS)
    agent = f"fails:{tmp_path}/flag"
    told = []
    for workers in (1, 2):
        path = tmp_path / f"{workers}.json"
        config = exploit.Config(
            agent, rules, players, 600, 150, 8, seed=3, workers=workers, json=path,
            keep=tmp_path / f"kept-{workers}",
        )  # fmt: skip
        exploit.main(config)
        told.append(path.read_bytes())
    assert told[0] == told[1]
    assert (tmp_path / "kept-1").exists()
    # All of it is kept, so nobody is asked again.
    monkeypatch.setattr(Fails, "act", None)
    path.unlink()
    exploit.main(config)
    assert path.read_bytes() == told[1]


def test_populations_by_workers_are_the_same(tmp_path):
    options = {"hands": 6000, "rounds": 2, "tables_hands": 0, "least_share": 0.5}
    for workers in (1, 2):
        out = tmp_path / str(workers)
        fictitious_play.main(fictitious_play.Config(out=out, workers=workers, **options))
    one, two = (tmp_path / name / "agent.safetensors" for name in "12")
    assert one.read_bytes() == two.read_bytes()


def test_ray_that_is_missing_or_untried_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExtraError, match=r'pip install "cpoker-env\[ray\]"'):
        evaluate("greedy,uniform", num_deals=10, ray="local")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    for found in ("2.39.0", "2.61.0", "3.0.0"):
        monkeypatch.setattr(extras, "version", lambda name, found=found: found)
        with pytest.raises(ExtraError, match=rf"ray {found}: .* takes ray>=2\.60,<2\.61"):
            import_ray()

"""Agents against each other: exact sums, intervals, workers, what is printed and written."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint
from cpoker_env.agents.external import NUM_KEPT, Failure, Failures
from cpoker_env.train.evaluate import duel, evaluate, split_agents
from cpoker_env.train.matrix import by_pair, failure_lines, heat_map, labels_of
from cpoker_env.train.recipes import recipe_of
from cpoker_env.train.tally import Tally, add_up
from cpoker_env.train.tournament import CHUNK

from cpoker_env.cli import main
from cpoker_env.errors import CheckpointError, ConfigError, PolicyError, ShowdownError, WorkerError
from cpoker_env.policy import Actions, make_policy, register_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import SHOW, SURRENDER
from cpoker_env.table import Table

MADE = Rules.preset("mandarin"), 2
RULES = Rules.preset("mandarin")


class Fouls:
    """Lays all cards in front."""

    def act(self, batch, rng):
        return Actions(np.full(len(batch), SHOW, np.int8), np.zeros((len(batch), 13), np.int8))


class Surrenders:
    """Gives up on some deals and plays greedily on the others."""

    def __init__(self, every):
        self.every = every

    def act(self, batch, rng):
        actions = make_policy("greedy", batch.rules).act(batch, rng)
        actions.declarations[batch.indices % np.uint64(self.every) == 0] = SURRENDER
        return actions


def test_an_agent_wins_nothing_from_itself():
    greedy = make_policy("greedy", RULES)
    result = duel(greedy, greedy, RULES, 4, 300, 3)
    assert (result.units, result.half_width, result.plain_deals) == (0, 0, None)
    assert result.single_half_width > 0.1


def test_two_seats_are_the_same_from_both_sides():
    rules = Rules.preset("western", topology="banker", banker=1)
    balanced, uniform = (make_policy(name, rules) for name in ("balanced", "uniform"))
    one = duel(balanced, uniform, rules, 2, 300, 3)
    other = duel(uniform, balanced, rules, 2, 300, 3)
    assert other.units == -one.units < 0
    assert (other.half_width, other.plain_deals) == (one.half_width, one.plain_deals)


@pytest.mark.parametrize(("rules", "price"), [("basic", 3), ("four_two", 4)])
def test_a_foul_pays_its_price_to_everybody(rules, price):
    agents = {"greedy": "greedy", "fouls": Fouls()}
    for seats in (2, 3, 4):
        found = by_pair(evaluate(agents, rules, seats, 20).pairs, seats)
        for pair, sign in ((("greedy", "fouls"), 1), (("fouls", "greedy"), -1)):
            result = found[pair]
            assert result.units == sign * price * (seats - 1)
            assert (result.half_width, result.single_half_width) == (0, 0)


def test_intervals_of_known_results():
    # Of four deals the opponent gives up all and the agent the first and the third: the agent wins
    # 0, 3, 0, 3 in either seat.
    rules = Rules.preset("basic", surrender_cost=3)
    result = duel(Surrenders(2), Surrenders(1), rules, 2, 4, 1)
    assert result.units == 1.5
    assert result.half_width == pytest.approx(1.96 * math.sqrt(3 / 4))
    assert result.single_half_width == pytest.approx(1.96 * math.sqrt(18 / 7 / 4))
    assert result.plain_deals == pytest.approx(4 * (18 / 7) / 3)


def test_tallies_are_the_moments_of_the_plays():
    rng = np.random.default_rng(5)
    plays = rng.integers(-40, 40, (50, 3))
    parts = [(Tally.of(plays[at : at + 7]),) for at in range(0, 50, 7)]
    assert add_up(parts) == add_up(parts[::-1]) == (Tally.of(plays),)
    result = Tally.of(plays).result("a", "b", 50, 3, 12)
    deals = plays.mean(axis=1) / 12
    assert result.units == pytest.approx(deals.mean())
    assert result.half_width == pytest.approx(1.96 * deals.std(ddof=1) / math.sqrt(50))
    single = plays.std(ddof=1) / 12
    assert result.single_half_width == pytest.approx(1.96 * single / math.sqrt(50))
    assert result.plain_deals == pytest.approx((single / deals.std(ddof=1)) ** 2 * 50)


@pytest.mark.parametrize("options", [{}, {"topology": "pool"}, {"topology": "banker", "banker": 0}])
def test_pairs_and_full_tables_equal_plain_play(options):
    rules = Rules.preset("italian", **options)
    names = ["greedy", "product", "uniform", "balanced"]
    found = evaluate(names, rules, 3, 40, 9)
    made = {name: make_policy(name, rules, 3) for name in names}
    table = Table(rules, 3)
    deals = table.deal(9, np.arange(40, dtype=np.uint64))

    def units(*seats):
        return table.play(deals, [made[name] for name in seats], np.random.default_rng(0)).units

    for result in found.pairs:
        me, other = result.agent, result.opponent
        plays = [
            units(*(me if seat == place else other for seat in range(3)))[:, place]
            for place in range(3)
        ]
        assert result.units == pytest.approx(np.mean(plays))
    assert len(found.pairs) == 12
    assert len(found.tables) == 4
    for results in found.tables:
        lineup = [result.agent for result in results]
        for result in results:
            plays = [units(*seats)[:, seats.index(result.agent)] for seats in permutations(lineup)]
            assert result.units == pytest.approx(np.mean(plays))
            by_deal = np.mean(plays, axis=0)
            half_width = 1.96 * by_deal.std(ddof=1) / math.sqrt(40)
            assert result.half_width == pytest.approx(half_width)
        assert sum(result.units for result in results) == pytest.approx(0)
    for standing in found.standings:
        own = [r.units for results in found.tables for r in results if r.agent == standing.agent]
        assert len(own) == 3
        assert standing.units == pytest.approx(np.mean(own))


def test_full_tables_need_agents_enough_and_can_be_left_out():
    assert not evaluate(["greedy", "uniform"], RULES, 3, 10).tables
    assert not evaluate(["greedy", "uniform", "product"], RULES, 3, 10, tables=False).tables
    assert not evaluate(["greedy", "uniform", "product"], RULES, 2, 10).tables


def test_a_pair_does_not_depend_on_who_else_plays():
    few = evaluate(["product", "uniform"], RULES, 2, CHUNK + 50).pairs
    many = evaluate("greedy,product,balanced,uniform", RULES, 2, CHUNK + 50).pairs
    assert few == [r for r in many if (r.agent, r.opponent) == ("product", "uniform")]


def test_duplicate_deals_narrow_the_interval_and_strength_is_ordered():
    found = evaluate(["balanced", "product", "greedy", "uniform"], Rules.preset("western"), 2, 500)
    for result in found.pairs:
        assert result.units - result.half_width > 0
        assert result.half_width < result.single_half_width
        assert result.plain_deals > 600


MODULE = """
    import os
    import numpy as np
    from cpoker_env.agents.heuristics import Uniform

    class Draws(Uniform):
        "Plays differently with every number it draws."
        def act(self, batch, rng):
            batch.indices[:] = rng.integers(0, 2**60, len(batch))
            return super().act(batch, rng)

    class Dies(Uniform):
        def act(self, batch, rng):
            os._exit(3)
"""
PROGRAM = """
    import sys
    for line in sys.stdin:
        cards = line.split()
        print(*cards[10:], "|", *cards[5:10], "|", *cards[:5], flush=True)
"""


def test_results_do_not_depend_on_the_number_of_workers(tmp_path, monkeypatch, capsys):
    (tmp_path / "drawing.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    (tmp_path / "bot.py").write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    register_policy("draws", "drawing:Draws")
    agents = f"greedy,draws,checkpoint:neural-mandarin,external:{sys.executable} {tmp_path}/bot.py"
    for workers in ("1", "2"):
        words = ("--agents", agents, "--players", "3", "--deals", str(2 * CHUNK + 40))
        words += ("--workers", workers, "--json", str(tmp_path / f"{workers}.json"))
        assert main(["evaluate", *words]) == 0
    one, two = ((tmp_path / f"{workers}.json").read_bytes() for workers in "12")
    assert one == two
    record = json.loads(one)
    assert [len(record[key]) for key in ("results", "tables", "standings")] == [12, 4, 4]
    failed = record["failures"][agents.split(",")[-1]]
    assert failed["hands"] == 3 * (2 * CHUNK + 40)
    assert failed["counts"]["foul"] > 100
    assert [failure["reason"] for failure in failed["first"]] == ["foul"] * NUM_KEPT
    out, err = capsys.readouterr()
    assert f"{failed['counts']['foul']:,} of {failed['hands']:,} hands failed" in out
    assert failed["first"][0]["hand"] in out
    assert "100%" in err


def test_a_worker_that_dies_is_reported(tmp_path, monkeypatch):
    (tmp_path / "dying.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    register_policy("dies", "dying:Dies")
    with pytest.raises(WorkerError, match="its worker died"):
        evaluate(["greedy", "dies"], RULES, 2, 2 * CHUNK, workers=2)


def test_an_interrupt_ends_workers_and_programs(tmp_path):
    pid = tmp_path / "pid"
    (tmp_path / "bot.py").write_text(
        f"import os, time; open({str(pid)!r}, 'w').write(f'{{os.getpid()}}.')\n"
        "while True: time.sleep(1)",
        encoding="utf-8",
    )
    agents = f"greedy,external:{sys.executable} {tmp_path}/bot.py"
    command = ("-m", "cpoker_env.cli", "evaluate", "--agents", agents, "--workers", "2")
    # Whoever runs the tests in the background has told its children to ignore interrupts.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True, preexec_fn=listen
    ) as run:
        try:
            wait_for(lambda: pid.exists() and pid.read_text(encoding="utf-8").endswith("."))
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=60)  # minutes, were the programs waited for
        finally:
            run.kill()
    assert run.returncode == 130
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")[:-1]), 0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(number, tmp_path):
    keep = tmp_path / "keep.json"
    words = ("--agents", "greedy,balanced", "--deals", "1000000", "--workers", "2")
    command = ("-m", "cpoker_env.cli", "evaluate", *words, "--keep", str(keep))
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            wait_for(keep.exists)
            run.send_signal(number)
            _, said = run.communicate(timeout=60)  # hangs while a worker holds the other end
        finally:
            run.kill()
        wait_for(lambda: not processes_of(run.pid))
    assert "Traceback" not in said
    if number == signal.SIGTERM:
        assert run.returncode == 143
        assert "ended by a SIGTERM" in said
    assert json.loads(keep.read_text(encoding="utf-8"))["done"]
    assert [path.name for path in tmp_path.iterdir()] == ["keep.json"]


def wait_for(happens):
    deadline = time.monotonic() + 120
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_of(session):
    """Processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of, *_ = path.read_text().rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                found.append(path.parent.name)
    return found


def test_a_checkpoint_that_is_written_again_is_another_agent(tmp_path):
    kept = load_checkpoint("equilibrium-mandarin")
    path = tmp_path / "agent"
    before = []
    for name in ("equilibrium-mandarin", "equilibrium-mandarin-4"):
        save_checkpoint(path, load_checkpoint(name).weights, kept.rules, kept.config, [])
        before.append((make_policy(f"equilibrium:{path}"), recipe_of(f"equilibrium:{path}", *MADE)))
    assert before[0][0] is not before[1][0]
    assert before[0][1].identity != before[1][1].identity
    assert make_policy(f"equilibrium:{path}") is before[1][0]
    with pytest.raises(CheckpointError, match="differ from those the run began with"):
        before[0][1].make()
    before[1][1].make()


@pytest.mark.parametrize(
    ("agents", "options", "error", "says"),
    [
        (["greedy"], {}, ConfigError, "at least two"),
        (["greedy", "greedy"], {}, ConfigError, "each once"),
        (["greedy", "nobody"], {}, PolicyError, "the policies are"),
        (["greedy", "checkpoint:nothing"], {}, CheckpointError, "no such name ships"),
        ({"greedy": "greedy", "me": Fouls()}, {"workers": 2}, ConfigError, "import string"),
        ({"greedy": "greedy", "me": 7}, {}, PolicyError, "act"),
        (["greedy", "uniform"], {"num_deals": 1}, ConfigError, "deals 1"),
        (["greedy", "uniform"], {"workers": 0}, ConfigError, "workers 0"),
        (["greedy", "uniform"], {"seed": -1}, ConfigError, "seed -1"),
        (["greedy", "uniform"], {"num_players": 5}, ShowdownError, "5 seats"),
        (["greedy", "external:true"], {"timeout": 0}, PolicyError, "timeout 0"),
    ],
)
def test_bad_settings_raise_typed_errors(agents, options, error, says):
    with pytest.raises(error, match=says):
        evaluate(agents, RULES, **{"num_deals": 10, **options})


def test_commas_inside_quotes_belong_to_a_program():
    assert split_agents(" a,b , c,") == ["a", "b", "c"]
    assert split_agents("checkpoint:o'neil,b") == ["checkpoint:o'neil", "b"]
    assert split_agents("""external:x 'a,b' "c,d" e\\,f,b""") == [
        """external:x 'a,b' "c,d" e\\,f""",
        "b",
    ]
    with pytest.raises(ConfigError, match="close every quote"):
        split_agents("a,external:x 'b,c")


def test_a_plot_is_a_picture(tmp_path):
    target = tmp_path / "new" / "plot.png"
    words = ["--agents", "greedy,uniform,product", "--deals", "20", "--plot", str(target)]
    assert main(["evaluate", *words]) == 0
    assert target.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    agents = ["$one", "external:" + "x" * 90]
    pairs = by_pair(evaluate({agents[0]: "greedy", agents[1]: "uniform"}, RULES, 2, 9).pairs, 2)
    assert heat_map(agents, pairs, labels_of(agents), "$title")[:4] == b"\x89PNG"


def test_files_are_checked_before_playing(tmp_path, monkeypatch, capsys):
    def play(*args, **options):
        raise AssertionError("played")

    monkeypatch.setattr("cpoker_env.train.evaluate.play", play)
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (tmp_path, tmp_path / "file" / "x.json"):
        for option in ("--json", "--plot"):
            assert main(["evaluate", option, str(path)]) == 1
            assert "choose a file in a folder you may write to" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe")
    assert main(["evaluate", "--json", str(tmp_path / "pipe")]) == 1
    assert "is no regular file" in capsys.readouterr().err
    (tmp_path / "link").symlink_to("target")
    both = ("--json", str(tmp_path / "link"), "--keep", str(tmp_path / "target"))
    assert main(["evaluate", *both]) == 1
    assert "json and keep are both" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["evaluate", "--plot", str(tmp_path / "x.png")]) == 1
    assert capsys.readouterr().err.count('pip install "cpoker-env[plot]"') == 1


def test_output_names_rows_columns_and_failures(capsys):
    assert main(["evaluate", "--agents", "product,uniform", "--deals", "50"]) == 0
    out, _ = capsys.readouterr()
    result = evaluate(["product", "uniform"], RULES, 2, 50).pairs[0]
    assert f"{result.units:+.3f} ± {result.half_width:.3f}" in out
    assert f"{-result.units:+.3f}" in out
    long = "external:" + "x" * 40
    failures, later = Failures(), Failures()
    for _ in range(NUM_KEPT + 1):
        failures.add(Failure("foul", "2d 2c", "'x'"))
    later.add(Failure("foul", "2d 2c", "'x'"))
    later.add(Failure("crash", "As Kd", "exit status 1"))
    failures.extend(later)
    assert failure_lines({long: failures}, 3000, labels_of(["a", long])) == [
        "external 2: 6 of 3,000 hands failed: 1 crash, 5 foul",
        *["  foul: 2d 2c -> 'x'"] * 3,
        "  crash: As Kd -> exit status 1",
    ]

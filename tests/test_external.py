"""Programs in any language at the table, good ones and bad ones."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from cpoker_env.agents.external import MOST_IN_A_ROW, NUM_KEPT, External

from cpoker_env.arrangements import evaluate
from cpoker_env.cards import format_cards, parse_hand
from cpoker_env.errors import PolicyError
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.table import Table

DRAGON = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"
RNG = np.random.default_rng(0)
# Prints legal rows, if only because hands are sorted: best five at the back, rest below.
LEGAL = """
    import sys

    def rows(line):
        cards = line.split()
        by_rank = sorted(cards, key=lambda card: "23456789TJQKA".index(card[0]))
        back, rest = by_rank[8:], by_rank[:8]
        return " ".join(rest[:3]) + "|" + " ".join(rest[3:]) + "|" + " ".join(back)
"""
EACH = """
    for line in sys.stdin:
        print(answer(line), flush=True)
"""


def program(tmp_path, *parts, name="bot.py"):
    """The command of a Python program."""
    path = tmp_path / name
    path.write_text("\n".join(textwrap.dedent(part) for part in parts), encoding="utf-8")
    return f"{sys.executable} {path}"


def seat(command, rules="basic", num_players=2, **options):
    options = {"timeout": 20.0, **options}
    return make_policy(f"external:{command}", rules, num_players, **options)


def decisions(size, rules="basic", num_players=2, seed=3):
    read = Rules.preset(rules)
    deals = Table(read, 2).deal(seed, np.arange(size, dtype=np.uint64))
    return decisions_for(deals.hands[:, 0], read, num_players)


def laid(batch, rows):
    """Which hands lie in legal rows."""
    return evaluate(batch.hands, rows, batch.rules)[1]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pid):
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


def open_files():
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.is_dir() else 0


@pytest.mark.parametrize("rules", ["mandarin", "four_two"])
def test_cpoker_arrange_is_a_program_and_plays_as_the_policy_it_runs(rules):
    command = f"{sys.executable} -m cpoker_env.cli arrange --agent greedy --rules {rules}"
    policy = seat(command, rules, timeout=120.0)
    batch = decisions(700, rules)
    played, own = policy.act(batch, RNG), make_policy("greedy", rules).act(batch, RNG)
    assert (played.declarations == own.declarations).all()
    assert (played.rows == own.rows).all()
    assert (own.declarations == DECLARE).any() == (rules == "mandarin")
    for one in range(3):  # answered at once, though no more comes
        single = decisions_for(batch.hands[one : one + 1], batch.rules)
        assert (policy.act(single, RNG).rows == own.rows[one]).all()
    assert not policy.failures.counts
    policy.close()


def test_the_environment_says_what_is_played(tmp_path):
    command = program(
        tmp_path,
        """
        import json, os, sys
        rules = json.loads(os.environ["CPOKER_RULES"])
        knows = rules["surrender_cost"] == 7 and os.environ["CPOKER_PLAYERS"] == "4"
        answer = lambda line: "Surrender" if knows else "no"
        """,
        EACH,
    )
    rules = Rules.preset("mandarin", surrender_cost=7)
    policy = seat(command, rules, 4)
    actions = policy.act(decisions_for([parse_hand(DRAGON)], rules, 4), RNG)
    assert actions.declarations.tolist() == [SURRENDER]
    policy.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("'hello'", "rubbish"),
        ("'|'.join(['As Kd Qc', 'x'])", "rubbish"),
        ("' '.join(line.split())", "rubbish"),
        ("'declare ' + rows(line)", "rubbish"),
        ("'declare flush ' + rows(line)", "rubbish"),
        ("'x' * 100_000", "rubbish"),
        ("'\\\\u2660 \\\\xff'", "rubbish"),
        ("rows('As Ks Qs Js Ts 9s 8s 7s 6s 5s 4s 3s 2s')", "cards"),
        ("rows(line.replace(line[:2], line[3:5]))", "cards"),
        ("rows(line)[:-3]", "cards"),
        ("'surrender'", "surrender"),
        ("'|'.join(reversed(rows(line).split('|')))", "foul"),
        ("rows(line).replace(' ', '|', 1).replace('|', ' ', 2)", "rubbish"),
        ("'||' + line.strip()", "foul"),
    ],
)
def test_what_cannot_be_played_is_a_foul_and_is_reported(tmp_path, answer, reason):
    policy = seat(program(tmp_path, LEGAL, f"answer = lambda line: {answer}", EACH))
    batch = decisions(20)
    actions = policy.act(batch, RNG)
    assert not laid(batch, actions.rows).any()
    assert (actions.declarations == SHOW).all()
    assert policy.failures.counts == {reason: 20}
    assert len(policy.failures.first) == NUM_KEPT
    first = policy.failures.first[0]
    assert first.reason == reason
    assert first.hand == format_cards(batch.hands[0].tolist())
    assert 5 < len(first.said) < 150
    policy.close()


def test_a_natural_that_is_not_there_shows_the_rows_as_placed(tmp_path):
    command = program(tmp_path, LEGAL, "answer = lambda line: 'declare dragon ' + rows(line)", EACH)
    policy = seat(command, "mandarin")
    batch = decisions(30, "mandarin")
    batch.hands[4] = parse_hand(DRAGON)
    batch = decisions_for(batch.hands, batch.rules)
    actions = policy.act(batch, RNG)
    assert np.flatnonzero(actions.declarations == DECLARE).tolist() == [4]
    assert policy.failures.counts == {"declaration": 29}
    # Nobody's rows are all in front, as those of a failed hand would be.
    assert actions.rows.any(axis=1).all()
    policy.close()


def test_comments_and_empty_lines_are_passed_over(tmp_path):
    policy = seat(
        program(
            tmp_path, LEGAL, "print('# hello')",
            "answer = lambda line: f'\\n# thinking\\n{rows(line)}'", EACH,
        )
    )  # fmt: skip
    batch = decisions(70)
    actions = policy.act(batch, RNG)
    assert actions.rows.any(axis=1).all()
    assert set(policy.failures.counts) <= {"foul"}
    policy.close()


CRASHES = """
    def answer(line):
        if "As" in line:
            raise KeyError("aces")
        return rows(line)
"""


def test_a_crash_fouls_its_hand_and_the_rest_is_still_answered(tmp_path):
    policy = seat(program(tmp_path, LEGAL, CRASHES, EACH), restarts=100)
    batch = decisions(90)
    crashed = (batch.hands == 51).any(axis=1)
    before = open_files()
    actions = policy.act(batch, RNG)
    assert (actions.rows.any(axis=1) == ~crashed).all()
    assert policy.failures.counts["crash"] == crashed.sum() > 10
    said = next(f.said for f in policy.failures.first if f.reason == "crash")
    assert said == "exit status 1, KeyError: 'aces'"
    policy.close()
    assert open_files() == before


def test_a_program_that_fails_too_often_is_given_up(tmp_path):
    batch = decisions(90)
    places = np.flatnonzero((batch.hands == 51).any(axis=1))
    policy = seat(program(tmp_path, LEGAL, CRASHES, EACH), restarts=2)
    actions = policy.act(batch, RNG)
    assert policy.failures.counts["crash"] == 3
    assert policy.failures.counts["given up"] == 90 - places[2] - 1
    assert not actions.rows[places[2] + 1 :].any()


def test_a_program_that_never_answers_is_started_a_few_times_only(tmp_path):
    starts = tmp_path / "starts"
    policy = seat(program(tmp_path, f"open({str(starts)!r}, 'a').write('x')"))
    actions = policy.act(decisions(40), RNG)
    assert len(starts.read_text(encoding="utf-8")) == MOST_IN_A_ROW
    assert policy.failures.counts == {"crash": MOST_IN_A_ROW, "given up": 40 - MOST_IN_A_ROW}
    assert not actions.rows.any()


def test_a_hang_fouls_its_hand_and_ends_all_that_the_program_started(tmp_path):
    command = program(
        tmp_path,
        LEGAL,
        f"""
        import os, subprocess, time

        def answer(line):
            if "As" in line:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                with open({str(tmp_path / "pids")!r}, "a") as file:
                    print(os.getpid(), child.pid, file=file)
                time.sleep(600)
            return rows(line)
        """,
        EACH,
    )
    policy = seat(command, timeout=1.0)
    batch = decisions(7, seed=6)
    hung = (batch.hands == 51).any(axis=1)
    assert 1 <= hung.sum() <= 3
    actions = policy.act(batch, RNG)
    assert (actions.rows.any(axis=1) == ~hung).all()
    assert policy.failures.counts["hang"] == hung.sum()
    policy.close()
    pids = (tmp_path / "pids").read_text(encoding="utf-8").split()
    assert len(pids) == 2 * hung.sum()
    assert all(wait_until_gone(int(pid)) for pid in pids)


@pytest.mark.parametrize(
    "loop",
    [
        # Left to the buffer of its output, which a pipe makes large.
        "for line in sys.stdin: print(rows(line))",
        "lines = sys.stdin.readlines(); print(*map(rows, lines), sep='\\n')",
        """
        from itertools import islice
        while lines := list(islice(sys.stdin, 10)):
            print(*map(rows, lines), sep="\\n", flush=True)
        """,
    ],
    ids=["unflushed", "at the end", "by ten"],
)
def test_programs_that_answer_late_are_waited_for(tmp_path, loop):
    policy = seat(program(tmp_path, LEGAL, loop), timeout=3.0, startup=3.0)
    batch = decisions(150)
    actions = policy.act(batch, RNG)
    assert actions.rows.any(axis=1).all()
    assert set(policy.failures.counts) <= {"foul"}
    policy.close()


def test_a_program_that_does_not_read_cannot_block(tmp_path):
    command = program(
        tmp_path,
        "import sys",
        "while True: print('surrender', flush=True); print('noise' * 50, file=sys.stderr)",
    )
    policy = seat(command, "mandarin")
    actions = policy.act(decisions(4000, "mandarin"), RNG)  # 156 kB, more than a pipe holds
    assert (actions.declarations == SURRENDER).all()
    policy.close()


ENDLESS = """
    import os, sys, time
    sys.stdin.readline()
    print(f"declare {os.getpid()} x", flush=True)
    while True: time.sleep(1)
"""


def test_closing_ends_a_program_that_goes_on_forever(tmp_path):
    policy = seat(program(tmp_path, ENDLESS))
    policy.act(decisions(1), RNG)
    pid = int(policy.failures.first[0].said.split()[1])
    assert is_running(pid)
    policy.close()
    assert not is_running(pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_closing_in_a_fork_leaves_the_program_of_the_original(tmp_path):
    said = 'import os, sys\ndef answer(line): return f"declare {os.getpid()} x"'
    policy = seat(program(tmp_path, said, EACH))
    policy.act(decisions(1), RNG)
    child = os.fork()
    if child == 0:
        policy.close()
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    policy.act(decisions(1), RNG)
    policy.close()
    one, two = policy.failures.first
    assert one == two


def test_leaving_python_ends_the_program(tmp_path):
    code = f"""
    import numpy as np, cpoker_env
    policy = cpoker_env.make_policy("external:{program(tmp_path, ENDLESS)}", "basic")
    hand = cpoker_env.parse_hand("{DRAGON}")
    policy.act(cpoker_env.decisions_for([hand], "basic"), np.random.default_rng(0))
    print(policy.failures.first[0].said.split()[1])
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert wait_until_gone(int(told.stdout))


@pytest.mark.parametrize(
    ("argument", "options", "says"),
    [
        ("", {}, "without a program"),
        ("no-such-program -x", {}, "no program on the PATH"),
        ("python 'bot.py", {}, "quote as in a shell"),
        (sys.executable, {"timeout": 0}, "timeout 0"),
        (sys.executable, {"restarts": -1}, "restarts -1"),
    ],
)
def test_programs_that_cannot_be_run_are_refused_at_once(argument, options, says):
    with pytest.raises(PolicyError, match=says):
        External(Rules(), argument=argument, **options)

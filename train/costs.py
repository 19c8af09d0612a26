"""What the benchmark measures of this package: a table of costs and the targets they are held to.

A cost is prepared outside the clock: hands are dealt, policies made, actions drawn.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from cpoker_env.train.timing import LEAST_SECONDS, Timing, Work, describe

import cpoker_env
from cpoker_env import kernels
from cpoker_env.arrangements import best, evaluate, frontier
from cpoker_env.cards import HAND_SIZE
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import Policy, decisions_for, make_policy
from cpoker_env.row_values import row_values
from cpoker_env.rules import Rules
from cpoker_env.scoring import Settled, settle_deals
from cpoker_env.table import Table

SEED = 2024
ENV_STEPS = 16
"""Steps after each reset of a vector environment; their actions are kept."""

assert cpoker_env.__version__  # importing the package registers the environments


@dataclass(frozen=True)
class Setup:
    """What a cost is measured at.

    batch: hands, deals or environments at once.
    num_threads: for the costs that can use more than one.
    """

    rules: Rules
    batch: int
    num_players: int
    num_threads: int = 1


@dataclass(frozen=True)
class Cost:
    """One row of the benchmark.

    name: for `--only` and JSON. item: what is counted. prepare: what to time at a setup.
    batch, num_players: of the main table. target: at most so many CPU seconds an item.
    as_rate: people read the target as items a second. how: what is and is not in the figure.
    """

    name: str
    what: str
    item: str
    prepare: Callable[[Setup], Work]
    batch: int
    num_players: int = 2
    target: float | None = None
    as_rate: bool = False
    how: str = ""


def hands_of(setup: Setup) -> npt.NDArray[np.int8]:
    """(batch, 13) int8 hands, four from a deck."""
    table = Table(Rules.preset("basic"), 4)
    deals = table.deal(SEED, np.arange(-(-setup.batch // 4), dtype=np.uint64))
    return deals.hands.reshape(-1, HAND_SIZE)[: setup.batch]


def drawn_rows(hands: npt.NDArray[np.int8], setup: Setup) -> npt.NDArray[np.int8]:
    """(M, 13) int8 rows of a uniformly drawn legal arrangement of each hand."""
    batch = decisions_for(hands, setup.rules, setup.num_players, seed=SEED)
    return make_policy("uniform", setup.rules).act(batch, np.random.default_rng(SEED)).rows


def _best(setup: Setup) -> Work:
    hands = hands_of(setup)
    values = next(iter(row_values(setup.rules, setup.num_players).values()))
    return Work(len(hands), lambda: best(hands, values, setup.rules, num_threads=setup.num_threads))


def _frontier(setup: Setup) -> Work:
    hands = hands_of(setup)
    return Work(len(hands), lambda: frontier(hands, setup.rules, num_threads=setup.num_threads))


def _settle_dealt(setup: Setup) -> Callable[[], Settled]:
    """To settle dealt tables whose seats all show the rows that `greedy` lays."""
    table = Table(setup.rules, setup.num_players)
    deals = table.deal(SEED, np.arange(setup.batch, dtype=np.uint64))
    policy = make_policy("greedy", setup.rules, setup.num_players)
    seating = [(policy, list(range(setup.num_players)))]
    actions = table.act(deals, seating, np.random.default_rng(SEED))
    shown = np.zeros_like(actions.declarations)
    return lambda: settle_deals(deals.hands, actions.rows, shown, deals.naturals, setup.rules)


def _settle(setup: Setup) -> Work:
    settled = _settle_dealt(setup)()
    units = np.empty(settled.status.shape, np.int32)
    arguments = settled.strengths, settled.status, settled.naturals, settled.keys
    packed = setup.rules.packed
    return Work(setup.batch, lambda: kernels.settle_into(*arguments, packed, units))


def _score(setup: Setup) -> Work:
    return Work(setup.batch, _settle_dealt(setup))


def _evaluate(setup: Setup) -> Work:
    hands = hands_of(setup)
    rows = drawn_rows(hands, setup)
    return Work(2 * len(hands), lambda: evaluate(hands, rows, setup.rules))


def _deal(setup: Setup) -> Work:
    keys = np.full(setup.batch, SEED, np.uint64)
    indices = np.arange(setup.batch, dtype=np.uint64)
    hands = np.empty((setup.batch, setup.num_players, HAND_SIZE), np.int8)
    return Work(setup.batch, lambda: kernels.deal_into(keys, indices, hands))


def _naturals(setup: Setup) -> Work:
    hands = hands_of(setup)
    return Work(len(hands), lambda: natural_bits(hands, setup.rules))


def _policy(name: str, setup: Setup) -> Work:
    policy: Policy = make_policy(name, setup.rules, setup.num_players)
    if name == "neural":
        import torch  # loaded by the policy; its waiting threads would count as work

        torch.set_num_threads(setup.num_threads)
    batch = decisions_for(hands_of(setup), setup.rules, setup.num_players, seed=SEED)
    rng = np.random.default_rng(SEED)
    return Work(len(batch), lambda: policy.act(batch, rng))


def _vector(opponents: str, setup: Setup) -> Work:
    envs: Any = gym.make_vec(
        "ChinesePoker-v0", num_envs=setup.batch, vectorization_mode="vector_entry_point",
        rules=setup.rules, num_players=setup.num_players, opponents=opponents,
    )  # fmt: skip
    # The same seed deals the same hands again, so actions kept from here are legal when timed.
    observation, _ = envs.reset(seed=SEED)
    actions = []
    for _ in range(ENV_STEPS):
        rows = drawn_rows(observation["cards"], setup).astype(np.int64)
        actions.append({"declaration": np.zeros(setup.batch, np.int64), "placement": rows})
        observation, *_ = envs.step(actions[-1])

    def play() -> None:
        envs.reset(seed=SEED)
        for action in actions:
            envs.step(action)

    return Work(ENV_STEPS * setup.batch, play)


def _form(form: str, options: dict[str, Any], num_steps: int, setup: Setup) -> Work:
    envs: Any = gym.make_vec(
        f"ChinesePoker{form}-v0", num_envs=setup.batch, opponents="uniform",
        vectorization_mode="vector_entry_point", rules=setup.rules,
        num_players=setup.num_players, **options,
    )  # fmt: skip
    rng = np.random.default_rng(SEED)
    envs.reset(seed=SEED)
    actions, ended = [], 0
    for _ in range(num_steps):
        actions.append(envs.legal_actions(rng))
        ended += int(envs.step(actions[-1])[2].sum())

    def play() -> None:
        envs.reset(seed=SEED)
        for action in actions:
            envs.step(action)

    return Work(ended, play)


def _scalar(opponents: str, setup: Setup) -> Work:
    env: Any = gym.make(
        "ChinesePoker-v0",
        rules=setup.rules, num_players=setup.num_players, opponents=opponents,
    )  # fmt: skip
    seeds = [SEED, *[None] * (setup.batch - 1)]
    hands = np.array([env.reset(seed=seed)[0]["cards"] for seed in seeds])
    placements = drawn_rows(hands, setup).astype(np.int64)
    actions = [{"declaration": 0, "placement": placement} for placement in placements]

    def play() -> None:
        for seed, action in zip(seeds, actions, strict=True):
            env.reset(seed=seed)
            env.step(action)

    return Work(setup.batch, play)


KEPT = "legal actions drawn beforehand"
"""Of environments."""
# Batches are so large that the processor cannot learn a call's branches by heart from the calls
# before it: the same 2,048 hands again and again are evaluated in a third of the time.
COSTS: tuple[Cost, ...] = (
    Cost("best", "best arrangement by a value function", "hand", _best, 1024, target=30e-6,
         how="tables of the policy `balanced`, scoop term included; tables built beforehand"),
    Cost("frontier", "all non-dominated legal arrangements", "hand", _frontier, 1024,
         target=40e-6, how="strengths and rows of each"),
    Cost("settle", "scored from row strengths", "deal", _settle, 16384, 4, 1 / 8e6, True,
         how="the kernel alone, all rows shown, arranged by `greedy`"),
    Cost("score", "scored from cards", "deal", _score, 16384, 4, 1 / 1.5e6, True,
         how="settle_deals: evaluation, fouls, units of every seat"),
    Cost("evaluate", "five-card rows evaluated from cards", "row", _evaluate, 16384,
         how="middle and back of drawn arrangements; their fronts and the order of the rows are "
             "evaluated in the same time"),
    Cost("deal", "dealt", "deal", _deal, 16384, 4, how="sorted hands of every seat"),
    Cost("naturals", "naturals found", "hand", _naturals, 16384),
    Cost("uniform", "arranged by `uniform`", "hand", partial(_policy, "uniform"), 16384),
    Cost("greedy", "arranged by `greedy`", "hand", partial(_policy, "greedy"), 4096),
    Cost("balanced", "arranged by `balanced`", "hand", partial(_policy, "balanced"), 1024),
    Cost("equilibrium", "arranged by `equilibrium`", "hand", partial(_policy, "equilibrium"), 1024,
         target=50e-6, how="the tables that ship for the rules; loaded beforehand"),
    Cost("neural", "arranged by `neural`", "hand", partial(_policy, "neural"), 4096,
         target=50e-6),
    Cost("search", "arranged by `search`", "hand", partial(_policy, "search"), 256, target=2e-3,
         how="the population that ships for the rules; loaded beforehand"),
    Cost("vector-uniform", "make_vec, uniform opponents", "deal",
         partial(_vector, "uniform"), 4096, 2, 1 / 1e6, True, how=KEPT),
    Cost("vector-greedy", "make_vec, greedy opponents", "deal",
         partial(_vector, "greedy"), 4096, 2, 1 / 1e5, True, how=KEPT),
    Cost("vector-uniform-4", "make_vec, uniform opponents", "deal",
         partial(_vector, "uniform"), 4096, 4, how=KEPT),
    Cost("vector-greedy-4", "make_vec, greedy opponents", "deal",
         partial(_vector, "greedy"), 4096, 4, how=KEPT),
    Cost("sequential", "make_vec, sequential form", "deal",
         partial(_form, "Sequential", {}, 39), 4096, how="uniform opponents, random masked steps"),
    Cost("sequential-legal", "make_vec, sequential form, legal mask", "deal",
         partial(_form, "Sequential", {"mask": "legal"}, 39), 1024,
         how="the mask looks ahead at each of 13 steps"),
    Cost("candidates", "make_vec, candidates form", "deal",
         partial(_form, "Candidates", {}, 4), 1024,
         how="32 candidates ranked, their features in the observation"),
    Cost("scalar-greedy", "gym.make, greedy opponents", "deal",
         partial(_scalar, "greedy"), 256, 2, 1 / 15e3, True, how=f"reset and step; {KEPT}"),
    Cost("scalar-uniform", "gym.make, uniform opponents", "deal",
         partial(_scalar, "uniform"), 256, how=f"reset and step; {KEPT}"),
)  # fmt: skip
BY_NAME = {cost.name: cost for cost in COSTS}

SCALING: tuple[tuple[str, tuple[int, ...], tuple[str, ...]], ...] = (
    ("batch", (1, 16, 256, 4096), ("best", "frontier", "greedy", "uniform")),
    ("batch", (1, 16, 256, 4096, 65536), ("deal", "score", "vector-uniform")),
    ("num_players", (2, 3, 4), ("settle", "score", "deal", "vector-uniform", "vector-greedy",
                                "scalar-greedy")),
    ("num_threads", (1, 2), ("best", "frontier")),
)  # fmt: skip
"""Field of the setup, its values, and the costs measured at each."""


@dataclass(frozen=True)
class Start:
    """A row measured in processes of its own: `function` of `fresh.py`."""

    name: str
    what: str
    function: str
    target: float | None = None
    how: str = ""


STARTS = (
    Start("import", "import cpoker_env", "import_package", 0.4,
          "in a fresh process, without the interpreter's own start"),
    Start("first-result", "first result of a fresh process", "first_result",
          how="interpreter, import, gym.make, reset, step; kernels from the disk cache"),
)  # fmt: skip
COLD = (
    Start("cold-first-result", "first result", "first_result",
          how="as `first-result`, with an empty NUMBA_CACHE_DIR, then again with what it left"),
    Start("cold-everything", "every row once", "every_kernel",
          how="every row of the table once, with an empty NUMBA_CACHE_DIR, then again"),
)  # fmt: skip


def run_fresh(function: str, *arguments: int, **environment: str) -> dict[str, Any]:
    """What a function of `fresh.py` finds in a process of its own.

    Raises:
        RuntimeError: The process failed; its last line says why.
    """
    command = [sys.executable, str(Path(__file__).with_name("fresh.py")), function]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(
            (done.stderr.strip() or f"exit status {done.returncode}").split("\n")[-1]
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found.setdefault("wall_seconds", time.perf_counter() - started)
    return found


def time_start(start: Start, repeats: int, **environment: str) -> tuple[Timing, dict[str, Any]]:
    """Time of a start and what else its last process found."""
    cpu, wall = [], []
    found: dict[str, Any] = {}
    try:
        for _ in range(repeats):
            found = run_fresh(start.function, **environment)
            cpu.append(max(found.pop("cpu_seconds"), LEAST_SECONDS))
            wall.append(max(found.pop("wall_seconds"), LEAST_SECONDS))
    except RuntimeError as error:
        return Timing(error=describe(error)), {}
    return Timing(tuple(cpu), tuple(wall)), found


def time_cold(start: Start) -> tuple[Timing, Timing]:
    """(cold, warm) times: without any compiled kernel, then with those the first run stored."""
    with tempfile.TemporaryDirectory() as folder:
        cold, _ = time_start(start, 1, NUMBA_CACHE_DIR=folder)
        warm, _ = time_start(start, 2, NUMBA_CACHE_DIR=folder)
    return cold, warm

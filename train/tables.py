"""Fit the tables of `equilibrium` to exact values against a population near equilibrium.

Options of many hands are valued exactly against the population, card removal included; the tables
take what rows are worth on average from the population's own rows, and a weighted ridge regression
finds what the hand's own cards change. Options far from the best count little. A second regression
and a third find how often rows win, one by one and all three, for people.

    python -m cpoker_env.train.tables --population search-four_two
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.chances import (
    NUM_FEATURES,
    FloatArray,
    SideTables,
    chance_tables,
    chances_to_win,
    features_of,
    independent_side,
    products,
)
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint
from cpoker_env.agents.population import (
    IntArray,
    Population,
    Responses,
    draw_hands,
    opponents_of,
    respond,
)
from cpoker_env.agents.search import population_of
from cpoker_env.train.scripts import run_script
from rich.console import Console
from rich.progress import track

from cpoker_env import kernels
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.rules import F_NATURAL_VALUE, NUM_PATTERNS, Rules
from cpoker_env.valuation import TABLE_SIZES

CHUNK = 512
"""Hands that one thread answers at a time."""
TEMPERATURE = 0.2
"""Units below the best option at which an option counts 1/e of it."""
LEAST_WEIGHT = 0.15
"""Options that count less are left out."""
WINS_TEMPERATURE = 0.6
"""The same where chances to win are fitted, which people ask for second-best options too."""
WINS_HANDS = 10_000
"""Hands whose chances to win are counted."""
ALL_THREE_HANDS = 1500
"""Of these, hands whose chances to win and to lose all three rows are counted."""
NEAR = 0.3
"""Units below the best option within which strengths decide where knots lie."""


@dataclass(frozen=True)
class Config:
    """Fit tables to a population and store them."""

    population: str = "search-mandarin"
    """Path or shipped name of what fictitious play stored."""
    hands: int = 30_000
    """Hands whose options are valued."""
    knots: int = 32
    """Strengths of each row at which the effect of own cards is fitted."""
    ridge: float = 3.0
    """Weight that draws coefficients to zero, in options."""
    seed: int = 1
    """Names the hands."""
    out: Path | None = None
    """Path of the result without ending; default runs/equilibrium-NAME."""
    threads: int = 2
    """Threads that value hands."""


class Samples(NamedTuple):
    """Valued options of hands on one side of the bank.

    hands (H, 13), starts (H + 1,), strengths (M, 3), values (M,), surrender (H,), declare (H,),
    naturals (H,).
    """

    hands: IntArray
    starts: npt.NDArray[np.int64]
    strengths: npt.NDArray[np.int16]
    values: FloatArray
    surrender: FloatArray
    declare: FloatArray
    naturals: IntArray


def value_hands(
    hands: IntArray, population: Population, rules: Rules, bank: int, threads: int
) -> Samples:
    """Exact values of every option of hands (H, 13) on one side of the bank.

    Raises:
        ConfigError: A population so small that some hands have no opponents.
    """

    def work(at: int) -> Responses:
        part = hands[at : at + CHUNK]
        return respond(part, population, rules, np.full(len(part), bank, np.int8)).mean()

    chunks = range(0, len(hands), CHUNK)
    with ThreadPoolExecutor(threads) as pool:
        shown = track(
            pool.map(work, chunks), "valuing", len(chunks), console=Console(stderr=True),
            transient=True,
        )  # fmt: skip
        found = list(shown)
    if any((part.met == 0).any() for part in found):
        raise ConfigError(
            f"a population of {len(population)} hands: some hands meet nobody; make it larger"
        )
    sizes = np.concatenate([np.diff(part.options.starts) for part in found])
    return Samples(
        hands,
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part.options.strengths for part in found]),
        np.concatenate([part.values[0] for part in found]),
        np.concatenate([part.surrender[0] for part in found]),
        np.concatenate([part.declare[0] for part in found]),
        np.concatenate([part.naturals for part in found]),
    )


def fit_side(
    samples: Samples, population: Population, rules: Rules, bank: int, config: Config
) -> SideTables:
    """Tables of one side of the bank."""
    plays, across = population.plays, population.banks == -bank
    shows = across & (plays.status == kernels.NORMAL)
    counts = [
        np.bincount(plays.strengths[shows, row], minlength=size).astype(np.int32)
        for row, size in enumerate(TABLE_SIZES)
    ]
    starts, sizes = samples.starts[:-1], np.diff(samples.starts)
    behind = samples.values - np.repeat(np.maximum.reduceat(samples.values, starts), sizes)
    near = samples.strengths[behind > -NEAR]
    knots = np.full((3, config.knots), -1, np.int16)
    for row in range(3):
        spread = np.linspace(0, 1, config.knots)
        held = np.unique(np.quantile(near[:, row], spread, method="nearest"))
        knots[row, : len(held)] = held
    side = independent_side(counts, shows.sum() / across.sum(), knots)
    features = features_of(samples.hands)
    tables = chance_tables(side, rules, bank)
    unknowns = _regress(samples, behind, features, tables, config)
    first = side.coefficients.size
    side = side._replace(
        coefficients=unknowns[:first].reshape(side.coefficients.shape),
        shared=unknowns[first : first + NUM_FEATURES],
        scoops=unknowns[first + NUM_FEATURES :].reshape(2, 3),
        surrender=_linear(features, samples.surrender).astype(np.float32),
        declare=_declared(samples, rules),
    )
    return _fit_chances(samples, behind, features, population, bank, side, tables, config)


def _regress(
    samples: Samples, behind: FloatArray, features: FloatArray, tables: kernels.ChanceTables,
    config: Config,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """The unknowns of tables that hold zeros there: coefficients, shared, scoops."""
    size = tables.coefficients.size + tables.shared.size + tables.scoops.size
    matrix, vector = np.zeros((size, size)), np.zeros(size)
    kernels.add_equations_into(
        samples.starts, samples.strengths, features, samples.values,
        np.exp(behind / TEMPERATURE), LEAST_WEIGHT, tables, matrix, vector,
    )  # fmt: skip
    matrix += np.tril(matrix, -1).T
    matrix[np.diag_indices(size)] += config.ridge
    return np.linalg.solve(matrix, vector).astype(np.float32)


def count_wins(
    hands: IntArray,
    starts: npt.NDArray[np.int64],
    strengths: npt.NDArray[np.int16],
    population: Population,
    bank: int,
    threads: int,
) -> tuple[FloatArray, FloatArray]:
    """Shares of the opponents that show: whom each row beats, ties as halves; whom all three do.

    Args:
        hands: (H, 13) cards.
        starts: (H + 1,) bounds of their options.
        strengths: (M, 3) rows of the options.
        population: The opponents.
        bank: Side of the hands; ties are the bank's.
        threads: Threads that count.

    Returns:
        (M, 3) chances; (m, 2) to win and to lose all three rows, for the options of the first
        ALL_THREE_HANDS hands.
    """
    chances = np.empty((int(starts[-1]), 3))
    all_three = np.empty((int(starts[min(ALL_THREE_HANDS, len(hands))]), 2))
    ends: tuple[Literal["left", "right"], ...] = ("left", "right")
    if bank:
        ends = ("right",) if bank == 1 else ("left",)

    def work(h: int) -> None:
        met = opponents_of(hands[h], population, bank)
        seen = population.plays.strengths[met[population.plays.status[met] == kernels.NORMAL]]
        part = slice(starts[h], starts[h + 1])
        for row in range(3):
            ordered = np.sort(seen[:, row])
            beaten = [np.searchsorted(ordered, strengths[part, row], end) for end in ends]
            chances[part, row] = np.mean(beaten, axis=0) / max(len(ordered), 1)
        if h < ALL_THREE_HANDS:
            mine = strengths[part].T[:, :, None]
            theirs = np.ascontiguousarray(seen.T)[:, None]
            won = mine >= theirs if bank == 1 else mine > theirs
            lost = mine <= theirs if bank == -1 else mine < theirs
            all_three[part] = np.stack([won.all(axis=0), lost.all(axis=0)], axis=2).mean(axis=1)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(len(hands))))
    return chances, all_three


def _fit_chances(
    samples: Samples, behind: FloatArray, features: FloatArray, population: Population, bank: int,
    side: SideTables, tables: kernels.ChanceTables, config: Config,
) -> SideTables:  # fmt: skip
    """The tables with what they tell people: how often rows win, one by one and all three."""
    hands = samples.hands[:WINS_HANDS]
    starts = samples.starts[: len(hands) + 1]
    counted, all_three = count_wins(
        hands, starts, samples.strengths, population, bank, config.threads
    )
    weights = np.exp(behind[: len(counted)] / WINS_TEMPERATURE)
    used = np.flatnonzero(weights >= LEAST_WEIGHT)
    weights, strengths = weights[used], samples.strengths[used]
    of_hands = features[np.repeat(np.arange(len(hands)), np.diff(starts))[used]]
    added = counted[used] - chances_to_win(strengths, of_hands, side, tables)
    wins = np.stack(
        [
            _fit_row(tables.places[row, strengths[:, row]], of_hands, added[:, row], weights, side,
                     config.ridge)
            for row in range(3)
        ]
    )  # fmt: skip
    return side._replace(
        wins=wins.astype(np.float32),
        all_three=np.stack(
            [
                _least_squares(products(chances[: len(all_three)]), all_three[:, column])
                for column, chances in enumerate((counted, 1 - counted))
            ]
        ).astype(np.float32),
    )


def _fit_row(
    places: FloatArray, features: FloatArray, targets: FloatArray, weights: FloatArray,
    side: SideTables, ridge: float,
) -> FloatArray:  # fmt: skip
    """(K, F) coefficients at knots that, interpolated at places (N,), tell targets (N,)."""
    _, num_knots, width = side.wins.shape
    knots = np.minimum(places.astype(np.int64), num_knots - 2)
    matrix: FloatArray = ridge * np.eye(num_knots * width)
    vector = np.zeros(num_knots * width)
    for knot in np.unique(knots):
        here = knots == knot
        above = (places[here] - knot)[:, None]
        x = np.hstack([features[here] * (1 - above), features[here] * above])
        scaled = x * weights[here][:, None]
        part = slice(knot * width, (knot + 2) * width)
        # Such thin products take threads longer to share out than to compute.
        matrix[part, part] += np.einsum("ni,nj->ij", scaled, x)
        vector[part] += np.einsum("ni,n->i", scaled, targets[here])
    solved = np.linalg.solve(matrix, vector).reshape(num_knots, width)
    return np.asarray(solved, np.float64)


def _least_squares(columns: FloatArray, targets: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(columns, targets, rcond=None)[0], np.float64)


def _linear(features: FloatArray, targets: FloatArray) -> FloatArray:
    gram = features.T @ features + np.eye(features.shape[1])
    return np.asarray(np.linalg.solve(gram, features.T @ targets), np.float64)


def _declared(samples: Samples, rules: Rules) -> npt.NDArray[np.float32]:
    """Mean units of declaring each natural; the rare ones lean on their nominal value."""
    worth = np.zeros(NUM_PATTERNS, np.float32)
    for natural in range(NUM_PATTERNS):
        met = samples.declare[samples.naturals == natural]
        nominal = float(rules.packed[F_NATURAL_VALUE + natural])
        worth[natural] = (met.sum() + nominal) / (len(met) + 1)
    return worth


def fit(population: Population, rules: Rules, config: Config) -> dict[str, torch.Tensor]:
    """Tables of every side of the bank, as tensors NAME.SIDE."""
    tensors = {}
    for bank in (0,) if rules.banker is None else (1, -1):
        hands = draw_hands(2 * config.seed + 10**9 + (bank == 1), config.hands)
        samples = value_hands(hands, population, rules, bank, config.threads)
        side = fit_side(samples, population, rules, bank, config)
        for part, array in zip(SideTables._fields, side, strict=True):
            tensors[f"{part}.{bank}"] = torch.from_numpy(np.ascontiguousarray(array))
    return tensors


def identity_of(config: Config) -> dict[str, Any]:
    """Settings that decide the result."""
    return {k: v for k, v in asdict(config).items() if k not in ("out", "threads")}


def check_config(config: Config) -> None:
    """Raise unless every number is in range.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    for name, limit in {"hands": 1000, "knots": 2, "seed": 0, "threads": 1}.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    if not config.ridge > 0:
        raise ConfigError(f"ridge {config.ridge}: give a number above 0")


def main(config: Config) -> None:
    """Fit and store.

    Raises:
        ConfigError: A setting out of range.
        CheckpointError: No such population.
    """
    check_config(config)
    stored = load_checkpoint(config.population)
    if stored.config.get("kind") != "population":
        raise CheckpointError(f"checkpoint {config.population!r} holds no population")
    started = time.perf_counter()
    tensors = fit(population_of(stored), stored.rules, config)
    seconds = round(time.perf_counter() - started, 1)
    out = config.out or Path("runs") / f"equilibrium-{Path(config.population).name}"
    save_checkpoint(
        out, tensors, stored.rules,
        {"kind": "tables", **json.loads(json.dumps(identity_of(config))), "seconds": seconds}, [],
    )  # fmt: skip
    Console().print(
        f"saved {out}.safetensors and .json in {seconds} s; play it as equilibrium:{out}"
    )


if __name__ == "__main__":
    run_script(Config, main)

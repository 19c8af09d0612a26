"""What arrangements are worth near equilibrium, own cards considered, from small tables.

Rows are valued as if they were won independently, by how often each strength is seen. To the chance
to win a row comes what the hand's own cards change: a linear function of `kernels.NUM_FEATURES`
features of the hand, whose coefficients are interpolated between a few strengths of the row. So a
hand that holds three aces thinks better of its pair of kings in front.

These coefficients are those that tell the options of a hand apart best; taken alone they are no
chances, since what they add to all options alike is left open. A second set, fitted to how often
rows really win, and a polynomial for how often all three do, tell people the chances.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, IntArray
from cpoker_env.errors import CheckpointError
from cpoker_env.row_values import row_values_of
from cpoker_env.rules import NUM_PATTERNS, Rules
from cpoker_env.tables import NUM_STRENGTHS
from cpoker_env.valuation import TABLE_SIZES, RowValues

FloatArray = npt.NDArray[np.float64]
NUM_FEATURES = kernels.NUM_FEATURES
NUM_PRODUCTS = 10


class SideTables(NamedTuple):
    """What is stored for one side of the bank, or for all without a bank.

    front, middle, back: (455,), (7462,), (7462,) int32, how often opponents show each strength.
    ordinary: share of opponents that show.
    knots: (3, K) int16 rising strengths of each row, filled up with -1.
    coefficients: (3, K, F), shared (F,), scoops (2, 3) float32: see `kernels.ChanceTables`.
    surrender: (F,) float32, units of surrendering by feature.
    declare: (NUM_PATTERNS,) float32, units of declaring each natural.
    wins: (3, K, F) float32, what each feature adds to how often a row wins, half of the ties
        included, at a knot; zeros where it was not measured.
    all_three: (2, NUM_PRODUCTS) float32, chance to win and to lose all three rows by the
        `products` of their chances; their plain product where it was not measured.
    """

    front: npt.NDArray[np.int32]
    middle: npt.NDArray[np.int32]
    back: npt.NDArray[np.int32]
    ordinary: npt.NDArray[np.float32]
    knots: npt.NDArray[np.int16]
    coefficients: npt.NDArray[np.float32]
    shared: npt.NDArray[np.float32]
    scoops: npt.NDArray[np.float32]
    surrender: npt.NDArray[np.float32]
    declare: npt.NDArray[np.float32]
    wins: npt.NDArray[np.float32]
    all_three: npt.NDArray[np.float32]


def independent_side(
    counts: list[npt.NDArray[np.int32]], ordinary: float, knots: npt.NDArray[np.int16]
) -> SideTables:
    """Tables that know how often strengths are seen and nothing else."""
    front, middle, back = counts
    return SideTables(
        front,
        middle,
        back,
        np.array([ordinary], np.float32),
        knots,
        np.zeros((3, knots.shape[1], NUM_FEATURES), np.float32),
        np.zeros(NUM_FEATURES, np.float32),
        np.zeros((2, 3), np.float32),
        np.zeros(NUM_FEATURES, np.float32),
        np.zeros(NUM_PATTERNS, np.float32),
        np.zeros((3, knots.shape[1], NUM_FEATURES), np.float32),
        _plain_products(),
    )


def _plain_products() -> npt.NDArray[np.float32]:
    only_first = np.zeros((2, NUM_PRODUCTS), np.float32)
    only_first[:, 0] = 1
    return only_first


def side_of(tensors: Mapping[str, npt.NDArray[Any]], side: int, name: str) -> SideTables:
    """The tables of one side of the bank from stored tensors.

    Raises:
        CheckpointError: A tensor is missing or has another shape.
    """
    found: list[npt.NDArray[Any]] = []
    for part in SideTables._fields:
        key = f"{part}.{side}"
        if key not in tensors:
            raise CheckpointError(f"checkpoint {name!r} lacks the tensor {key}: copy it again")
        found.append(np.ascontiguousarray(tensors[key]))
    tables = SideTables(*found)
    num_knots = tables.knots.shape[-1]
    shapes = (
        *((size,) for size in TABLE_SIZES), (1,), (3, num_knots), (3, num_knots, NUM_FEATURES),
        (NUM_FEATURES,), (2, 3), (NUM_FEATURES,), (NUM_PATTERNS,), (3, num_knots, NUM_FEATURES),
        (2, NUM_PRODUCTS),
    )  # fmt: skip
    for part, tensor, shape in zip(SideTables._fields, found, shapes, strict=True):
        if tensor.shape != shape:
            raise CheckpointError(
                f"checkpoint {name!r}: {part}.{side} has shape {tensor.shape}, not {shape}"
            )
    return tables


def chance_tables(side: SideTables, rules: Rules, bank: int) -> kernels.ChanceTables:
    """Tables as the kernels read them; `bank` is the side that decides: 1, -1 or 0."""
    counts = [side.front.astype(np.float64), side.middle * 1.0, side.back * 1.0]
    plain = row_values_of(counts, bank, rules)
    share = float(side.ordinary[0])
    worth = RowValues(
        [share * table for table in plain.values],
        plain.wins,
        plain.losses,
        [share * table for table in plain.prizes or ()],
        [share * table for table in plain.prices or ()],
        share * plain.majority,
    )
    won, kept = np.zeros((3, NUM_STRENGTHS), np.int64), np.zeros((3, NUM_STRENGTHS), np.int64)
    kernels.gains_into(rules.packed, won, kept)
    return kernels.ChanceTables(
        worth.packed,
        share * (won + 1.0),  # what the loser would have won with its row is 1 as a rule
        np.stack([_places(knots) for knots in side.knots]),
        side.coefficients.astype(np.float64),
        side.shared.astype(np.float64),
        side.scoops.astype(np.float64),
    )


def _places(knots: npt.NDArray[np.int16]) -> FloatArray:
    held = knots[knots >= 0]
    return np.interp(np.arange(NUM_STRENGTHS), held, np.arange(len(held)))


def features_of(hands: IntArray) -> FloatArray:
    """(H, NUM_FEATURES) float64, what hands (H, 13), highest first, leave to the others."""
    features = np.empty((len(hands), NUM_FEATURES))
    kernels.features_into(hands, features)
    return features


def corrected_values(
    options: Frontier, features: FloatArray, tables: kernels.ChanceTables
) -> FloatArray:
    """(M,) units of showing each option of hands with these features."""
    values = np.empty(len(options.strengths))
    kernels.corrected_into(options.starts, options.strengths, features, tables, values)
    return values


def chances_to_win(
    strengths: IntArray, features: FloatArray, side: SideTables, tables: kernels.ChanceTables
) -> FloatArray:
    """(N, 3) how often rows of strengths (N, 3) win for hands of features (N, F), ties as halves.

    Against opponents that show, own cards considered as `SideTables.wins` has them.
    """
    rows = (tables.worth.front, tables.worth.middle, tables.worth.back)
    chances = np.empty(strengths.shape)
    last = side.wins.shape[1] - 2
    for row, table in enumerate(rows):
        _, win, lose, _, _ = table[strengths[:, row]].T
        place = tables.places[row, strengths[:, row]]
        knot = np.minimum(place.astype(np.int64), last)
        above = (place - knot)[:, None]
        effects = side.wins[row, knot] * (1 - above) + side.wins[row, knot + 1] * above
        chances[:, row] = 0.5 * (1 + win - lose) + (effects * features).sum(axis=1)
    clipped: FloatArray = np.clip(chances, 0, 1)
    return clipped


def products(chances: FloatArray) -> FloatArray:
    """(N, NUM_PRODUCTS) chances (N, 3) of independent rows multiplied, times each of them and two.

    How often all three rows are won differs from the plain product, since whoever is weak in one
    row is strong in another.
    """
    front, middle, back = chances.T
    both = np.stack(
        [
            np.ones_like(front), front, middle, back, front**2, middle**2, back**2,
            front * middle, front * back, middle * back,
        ]
    )  # fmt: skip
    found: FloatArray = (front * middle * back * both).T
    return found


def chances_to_scoop(chances: FloatArray, side: SideTables) -> FloatArray:
    """(N, 2) how often rows that win by `chances` (N, 3) are all won, and all lost."""
    won = products(chances) @ side.all_three[0]
    lost = products(1 - chances) @ side.all_three[1]
    found: FloatArray = np.clip(np.stack([won, lost], axis=1), 0, 1)
    return found

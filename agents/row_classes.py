"""How often rows win, by what they are called: every front pair, aces up, a queen-high flush.

Opponents' rows are told by how often each strength is seen, as the tables of `equilibrium` store it
or as they come up in a sample of hands.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import RANK_NAMES, describe_row
from cpoker_env.row_values import row_values_of
from cpoker_env.rules import Rules
from cpoker_env.tables import (
    CATEGORIES,
    NUM_FRONT_STRENGTHS,
    NUM_STRENGTHS,
    category_of,
    front_category_of,
    strength_ranks,
)

ACE = 12
Counts = Sequence[npt.NDArray[np.integer[Any]]]
"""By row, by strength: how often opponents show it."""


@dataclass(frozen=True)
class RowClass:
    """Rows of one name against opponents' rows.

    name: what players call them. category: of CATEGORIES.
    first, last: their strengths, both included.
    shown: share of opponents' rows that are of this class.
    chance: to win, half of the ties with them; of the class as opponents show it, or of its
        middle where they never do. lowest, highest: of its weakest and its strongest row.
    units: what the row earns by itself on average, royalties both ways included.
    """

    name: str
    category: str
    first: int
    last: int
    shown: float
    chance: float
    lowest: float
    highest: float
    units: float

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self)


def row_classes(counts: Counts, rules: Rules, bank: int = 0) -> list[list[RowClass]]:
    """The classes of front, middle and back, weakest first.

    Args:
        counts: How often opponents show each strength.
        rules: Decide royalties and where the wheel stands.
        bank: 1 if ties are ours, -1 if they are the opponent's, 0 if nobody's.
    """
    values = row_values_of([np.asarray(table, np.float64) for table in counts], bank, rules).values
    second_high, _ = rules.reading
    found = []
    for row, table in enumerate(counts):
        chances = chances_of(table, bank)
        share = table / max(table.sum(), 1)
        classes = []
        for name, category, first, last in _named(row, second_high):
            part = slice(first, last + 1)
            shown = float(share[part].sum())
            weights = share[part] if shown else np.ones(last + 1 - first)
            classes.append(
                RowClass(
                    name, category, first, last, shown,
                    float(np.average(chances[part], weights=weights)),
                    float(chances[first]), float(chances[last]),
                    float(np.average(values[row][part], weights=weights)),
                )
            )  # fmt: skip
        found.append(classes)
    return found


def chances_of(counts: npt.NDArray[np.integer[Any]], bank: int = 0) -> npt.NDArray[np.float64]:
    """(S,) how often each strength of a row beats one that is seen as `counts` (S,) say.

    Ties count half, unless one side is the bank.
    """
    share = counts / max(counts.sum(), 1)
    chances: npt.NDArray[np.float64] = np.cumsum(share) - (0.5 - 0.5 * bank) * share
    return chances


def landmarks(classes: Sequence[RowClass], chances: Sequence[float]) -> list[RowClass]:
    """The weakest class that wins at least so often, for each of some chances."""
    return [
        next((one for one in classes if one.chance >= chance), classes[-1]) for chance in chances
    ]


@cache
def _named(row: int, second_high: bool) -> list[tuple[str, str, int, int]]:
    """(name, category, first strength, last strength) of the classes of a row."""
    size = NUM_STRENGTHS if row else NUM_FRONT_STRENGTHS
    names = [_name(row, strength, second_high) for strength in range(size)]
    found = []
    for (name, category), group in groupby(range(size), key=lambda strength: names[strength]):
        strengths = list(group)
        found.append((name, category, strengths[0], strengths[-1]))
    return found


def _name(row: int, strength: int, second_high: bool) -> tuple[str, str]:
    category = CATEGORIES[category_of(strength) if row else front_category_of(strength)]
    if category in ("quads", "straight flush"):
        return category, category
    ranks = strength_ranks(second_high)[1 if row else 0][strength]
    # Suits do not matter to the name, but the cards have to be different.
    cards = [4 * int(rank) + list(ranks[:i]).count(rank) for i, rank in enumerate(ranks)]
    name = describe_row(cards, strength)
    if ranks[0] == ACE and (category == "flush" or (category == "high card" and row == 0)):
        return f"ace-{RANK_NAMES[ranks[1]]} {category.removesuffix(' card')}", category
    if category == "two pair":
        name = f"{name.removeprefix('two pair, ').partition(' and ')[0]} up"
    return name.partition(" of ")[0] if category == "full house" else name, category

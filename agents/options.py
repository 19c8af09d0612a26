"""What a hand could do, listed by what it is worth."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import Frontier
from cpoker_env.row_values import best_of
from cpoker_env.rules import PATTERNS
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER

Option = tuple[str, npt.NDArray[np.int8] | None, float]
"""What is done ("show", "surrender" or "declare NAME"), rows (13,) if shown, expected units."""


class Estimates(NamedTuple):
    """Units of every option of H hands.

    options: the candidates, M in all; values (M,) of showing them; surrender (H,), NaN where a hand
    may not; declare (H,), NaN where a hand has nothing to declare.
    """

    options: Frontier
    values: npt.NDArray[np.float64]
    surrender: npt.NDArray[np.float64]
    declare: npt.NDArray[np.float64]


class Ranked(NamedTuple):
    """One option: what is done, which candidate is shown (-1 for none), expected units."""

    label: str
    place: int
    units: float


def choose(found: Estimates) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """(H,) best candidate of each hand and (H,) its best declaration; ties declare first."""
    best = best_of(found.options, found.values)
    value = found.values[best]
    declarations = np.full(len(best), SHOW, np.int8)
    declarations[found.surrender > value] = SURRENDER
    declarations[found.declare >= np.fmax(found.surrender, value)] = DECLARE
    return best, declarations


def rank_options(
    options: Frontier,
    values: npt.NDArray[np.floating[Any]],
    surrender: npt.NDArray[np.floating[Any]],
    declare: npt.NDArray[np.floating[Any]],
    naturals: npt.NDArray[np.int8],
    k: int,
) -> list[list[Ranked]]:
    """The `k` best candidates of each hand and its declarations, best first.

    Args:
        options: Candidates of H hands, M in all.
        values: (M,) units of showing them.
        surrender: (H,) units of surrendering, NaN where a hand may not.
        declare: (H,) units of declaring, NaN where a hand has nothing to declare.
        naturals: (H,) int8, the best natural of each hand.
        k: How many to show.
    """
    ranked = []
    for h in range(len(options)):
        start = options.starts[h]
        order = np.argsort(-values[start : options.starts[h + 1]], kind="stable")[:k] + start
        found = [Ranked("show", int(i), float(values[i])) for i in order]
        if not np.isnan(surrender[h]):
            found.append(Ranked("surrender", -1, float(surrender[h])))
        if not np.isnan(declare[h]):
            found.append(Ranked(f"declare {PATTERNS[naturals[h]]}", -1, float(declare[h])))
        ranked.append(sorted(found, key=lambda option: -option.units))
    return ranked


def list_options(
    options: Frontier,
    values: npt.NDArray[np.floating[Any]],
    surrender: npt.NDArray[np.floating[Any]],
    declare: npt.NDArray[np.floating[Any]],
    naturals: npt.NDArray[np.int8],
    k: int,
) -> list[list[Option]]:
    """The `k` best options of each hand, best first; arguments as `rank_options` takes them."""
    return [
        [
            (option.label, None if option.place < 0 else options.rows[option.place], option.units)
            for option in ranked[:k]
        ]
        for ranked in rank_options(options, values, surrender, declare, naturals, k)
    ]

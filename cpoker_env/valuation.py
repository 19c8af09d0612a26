"""What an arrangement is worth: a table of units a row, and what the three rows earn together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.errors import ArrangementError, ConfigError
from cpoker_env.tables import NUM_FRONT_STRENGTHS, NUM_STRENGTHS

TABLE_SIZES = (NUM_FRONT_STRENGTHS, NUM_STRENGTHS, NUM_STRENGTHS)
CHANCE_STEPS = 1 << 16
"""Chances are rounded to multiples of one part in this many: products of three are then exact."""

_MARGIN = 1e-9
"""Far above rounding, far below anything that matters."""

_MOST_UNITS = 1e5
"""Where sums of products are still told apart by far less than the margin."""

_COLUMNS = ("values", "wins", "losses", "prizes", "prices")

FloatTables = Sequence[npt.NDArray[np.floating[Any]]]


@dataclass(frozen=True, eq=False)
class RowValues:
    """A value function of the three row strengths, 0 the weakest of each row.

    `cpoker_env.tables` says which strength is what: a middle or back of category c (CATEGORIES)
    starts at CATEGORY_STARTS[c], a front is a pair from FRONT_PAIR on and trips from FRONT_TRIPS
    on. To value winning a row at random, for example, against fives that are all equally likely:

        >>> from cpoker_env.valuation import RowValues
        >>> chances = [np.arange(size) / size for size in (455, 7462, 7462)]
        >>> values = RowValues([2 * chance - 1 for chance in chances])
        >>> values.of(np.array([[454, 7000, 7461]])).round(3)
        array([2.872])

    An arrangement of strengths (f, m, b) is worth the sum over its rows of `values`, plus the
    chance to win all three rows times the sum of `prizes`, less the chance to lose all three times
    the sum of `prices`, plus `majority` times the chance to win more rows than are lost less the
    chance to lose more. Rows are won and lost independently of each other; what is left of
    `wins` + `losses` is the chance to tie.

    Every field but the last is three float tables by strength, front (455,), middle (7462,) and
    back (7462,); None stands for zeros. They are copied, the chances rounded to multiples of
    2**-16.

    values: units.
    wins, losses: chances, 0..1, together at most 1.
    prizes, prices: units that a row adds to what a scoop brings, or to what being scooped costs.
    majority: units.

    Raises:
        ConfigError: Tables of other sizes, numbers that are not finite, or chances out of range.
    """

    values: FloatTables
    wins: FloatTables | None = None
    losses: FloatTables | None = None
    prizes: FloatTables | None = None
    prices: FloatTables | None = None
    majority: float = 0.0
    packed: kernels.Worth = field(init=False, repr=False)
    """The tables as the kernels read them."""

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, tuple(map(_frozen, _tables(name, given))))
        object.__setattr__(self, "packed", self._pack())

    @property
    def is_monotone(self) -> bool:
        """Whether a stronger row is certainly never worth less, whatever the other two are.

        Then the most valuable arrangement lies on the frontier, and finding it takes less time.
        """
        return bool(self.packed.is_monotone)

    def of(self, strengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """(M,) float64 values of arrangements of strengths (M, 3).

        Raises:
            ArrangementError: Another shape or dtype, or a strength out of range.
        """
        try:
            given = np.asarray(strengths)
        except ValueError:
            given = np.empty(0)
        if given.ndim != 2 or given.shape[1] != 3 or given.dtype.kind not in "iu":
            raise ArrangementError(
                f"strengths of shape {given.shape} and dtype {given.dtype}: give (M, 3) integers"
            )
        if given.size and (given.min() < 0 or (given.max(axis=0) >= TABLE_SIZES).any()):
            raise ArrangementError(
                f"strengths {given.min(axis=0).tolist()}..{given.max(axis=0).tolist()}: "
                f"they start at 0 and end below {list(TABLE_SIZES)}"
            )
        found = np.empty(len(given))
        kernels.worth_into(np.ascontiguousarray(given, np.int16), self.packed, found)
        return found

    def _pack(self) -> kernels.Worth:
        columns = [_tables(name, getattr(self, name)) for name in _COLUMNS]
        is_number = isinstance(self.majority, int | float | np.floating | np.integer)
        if not is_number or not abs(self.majority) <= _MOST_UNITS:
            raise ConfigError(f"majority {self.majority!r}: give units, at most {_MOST_UNITS:g}")
        rows = [np.stack([column[row] for column in columns], axis=1) for row in range(3)]
        for name, table in zip(("front", "middle", "back"), rows, strict=True):
            win, lose = table[:, 1], table[:, 2]
            if min(win.min(), lose.min()) < -_MARGIN or (win + lose).max() > 1 + _MARGIN:
                raise ConfigError(
                    f"chances of the {name} to win {win.min()}..{win.max()}, to lose "
                    f"{lose.min()}..{lose.max()}: they are 0..1, and at most 1 together"
                )
            table[:, 1] = _to_steps(win)
            table[:, 2] = np.minimum(_to_steps(lose), 1 - table[:, 1])
        most = rows[0].max(axis=0) + rows[1].max(axis=0) + rows[2].max(axis=0)
        least = rows[0].min(axis=0) + rows[1].min(axis=0) + rows[2].min(axis=0)
        has_joint = self.majority != 0 or any(table[:, 1:].any() for table in rows)
        limit = max(most[3], 0.0) + max(-least[4], 0.0) + abs(self.majority)
        front, middle, back = map(_frozen, rows)
        return kernels.Worth(
            front,
            middle,
            back,
            _frozen(np.maximum.accumulate(front[:, 0])),
            _frozen(np.maximum.accumulate(middle[:, 0])),
            float(self.majority),
            float(limit) if has_joint else 0.0,
            has_joint,
            _is_monotone(rows, float(self.majority)),
        )


def _tables(name: str, tables: FloatTables | None) -> list[npt.NDArray[np.float64]]:
    """Three float64 tables of the right sizes."""
    if tables is None:
        return [np.zeros(size) for size in TABLE_SIZES]
    try:
        given = [np.asarray(table) for table in tables]
    except (TypeError, ValueError):
        raise ConfigError(f"{name}: give three tables of floats by strength") from None
    if len(given) != 3 or any(table.dtype.kind not in "fiu" for table in given):
        raise ConfigError(f"{name}: give three tables of floats by strength")
    found = [table.astype(np.float64) for table in given]
    shapes = [table.shape for table in found]
    if shapes != [(size,) for size in TABLE_SIZES]:
        raise ConfigError(
            f"{name} of shapes {shapes[:3]}: give {[(size,) for size in TABLE_SIZES]}"
        )
    if not all((np.abs(table) <= _MOST_UNITS).all() for table in found):
        raise ConfigError(
            f"{name} with a number that is not finite, or beyond {_MOST_UNITS:g}: give units"
        )
    return found


def _frozen(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same array, read-only: value functions are shared and cached."""
    table.setflags(write=False)
    return table


def _to_steps(chances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    steps: npt.NDArray[np.float64] = np.round(np.clip(chances, 0, 1) * CHANCE_STEPS) / CHANCE_STEPS
    return steps


def _is_monotone(rows: list[npt.NDArray[np.float64]], majority: float) -> bool:
    """Whether no step up in one row lowers the value computed, rounding included.

    If units, chances and prizes all rise, so does every rounded step of the sum. A prize may also
    fall where the row's own units make up for it, a scoop being no likelier than the row itself:
    then the value must rise by more than rounding both without and with a certain win elsewhere.
    """
    least = np.array([table.min(axis=0) for table in rows])
    if majority < 0 or least[:, 3].sum() < 0 or least[:, 4].sum() < 0:
        return False
    for row, table in enumerate(rows):
        units, win, lose, prize, price = np.diff(table, axis=0).T
        if (win < 0).any() or (lose > 0).any() or (price > 0).any():
            return False
        others = least[:, 3].sum() - least[row, 3]
        scooping = units + np.diff(table[:, 1] * (table[:, 3] + others))
        rises = (units >= 0) & (prize >= 0)
        if not (rises | ((units > _MARGIN) & (scooping > _MARGIN))).all():
            return False
    return True

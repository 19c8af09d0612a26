"""What rows are worth against hands played the same way: the value functions of `balanced`.

Three tables a row, expected units and chances, come from a small simulated population that plays by
the tables of the round before. They take a second to build, know royalties, scoops and the overall
point under any rules, and ignore which cards the hand itself holds.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, IntArray, evaluate, frontier
from cpoker_env.errors import ArrangementError, ConfigError
from cpoker_env.rules import Rules
from cpoker_env.table import Table
from cpoker_env.tables import tables_for
from cpoker_env.valuation import TABLE_SIZES, RowValues

NUM_HANDS = 3000
NUM_ROUNDS = 4
SEED = 20_240


class _Side(NamedTuple):
    """Tables of one side of the bank.

    values, wins, losses: per row, by strength: expected units, chance to win, chance to lose.
    closed: the same as a value function, with scoop and overall point.
    """

    values: tuple[npt.NDArray[np.float64], ...]
    wins: tuple[npt.NDArray[np.float64], ...]
    losses: tuple[npt.NDArray[np.float64], ...]
    closed: RowValues


class TopArrangements(NamedTuple):
    """The most valuable non-dominated arrangements of each hand, most valuable first.

    Places beyond a hand's `counts` are zeros.

    rows: (H, k, 13) int8, the row of each card of the hand, highest card first.
    strengths: (H, k, 3) int16, front 0..454, middle and back 0..7461.
    values: (H, k) float64, expected units.
    counts: (H,) int32.
    """

    rows: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    values: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int32]


def row_values(rules: Rules | str, num_players: int = 2) -> dict[int, RowValues]:
    """Value functions by side: 0 without a bank, with one 1 for the bank and -1 against it.

    For independent rows they hold all that the rules pay, with two exceptions: the overall point
    goes by rows where points decide it (`has_closed_form`), and a scoop that doubles everything
    (`double_all`) doubles the winner's royalties but not, under `protection` or when lost, those
    of the opponent.

    Args:
        rules: The house rules; read once, the tables are kept.
        num_players: Seats at the table, 2-4; only the pool depends on it.

    Raises:
        RulesError: Unknown preset.
        ConfigError: Not 2-4 players.
    """
    return {side: tables.closed for side, tables in _tables_for(rules, num_players).items()}


def row_values_of(
    counts: list[npt.NDArray[np.floating[Any]]], side: int, rules: Rules, num_players: int = 2
) -> RowValues:
    """Value function against hands whose rows are seen as often as `counts` say.

    Args:
        counts: Per row, by strength, how often opponents show it.
        side: 1 for the bank, -1 against it, 0 without one.
        rules: The house rules.
        num_players: Seats at the table; only the pool depends on it.
    """
    return _tables_of(counts, side, rules, num_players).closed


def has_closed_form(rules: Rules) -> bool:
    """Whether `row_values` tell the overall point as the rules have it."""
    return rules.topology == "pool" or rules.overall_by == "rows" or rules.overall_point == 0


def arrangement_values(
    strengths: IntArray, sides: IntArray, rules: Rules, num_players: int = 2
) -> npt.NDArray[np.float64]:
    """(M,) float64 expected units of arrangements, scoop and overall point included.

    Args:
        strengths: (M, 3) int16, front 0..454, middle and back 0..7461; not checked.
        sides: (M,) 1 for the bank, -1 against it, 0 without one.
        rules: The house rules.
        num_players: Seats at the table.

    Raises:
        ArrangementError: Sides of the bank that the rules do not have.
    """
    tables = _tables_for(rules, num_players)
    _check_sides(sides, len(strengths), list(tables))
    return _values_by_side(strengths, sides, tables, rules)


def top_arrangements(
    hands: IntArray, rules: Rules | str, num_players: int, bank: IntArray, k: int
) -> TopArrangements:
    """The k most valuable non-dominated arrangements of each hand.

    Of equal values the one with the stronger back, then middle, comes first.

    Args:
        hands: (H, 13) integers; the rows that come back refer to each hand highest card first.
        rules: The house rules.
        num_players: Seats at the table.
        bank: (H,) 1 for the bank, -1 against it, 0 without one.
        k: How many, from 1 on.

    Raises:
        CardError: Not H hands of 13 different cards.
        ArrangementError: Sides of the bank that the rules do not have.
        ConfigError: `k` or `num_players` out of range.
    """
    is_whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not is_whole or not 1 <= k <= kernels.MAX_FRONTIER:
        raise ConfigError(f"k {k!r}: give a whole number 1..{kernels.MAX_FRONTIER}")
    rules = Rules.of(rules)
    options = frontier(hands, rules)
    sides = np.asarray(bank, np.float64)
    tables = _tables_for(rules, num_players)
    _check_sides(sides, len(options), list(tables))
    values = _values_by_side(options.strengths, sides[options.hand_index], tables, rules)
    return select_top(options, values, int(k))


def select_top(options: Frontier, values: npt.NDArray[np.floating[Any]], k: int) -> TopArrangements:
    """The k most valuable arrangements of each hand by `values` (M,)."""
    size = len(options)
    top = TopArrangements(
        np.zeros((size, k, 13), np.int8),
        np.zeros((size, k, 3), np.int16),
        np.zeros((size, k)),
        np.zeros(size, np.int32),
    )
    kernels.select_into(
        options.starts, options.strengths, options.rows, np.asarray(values, np.float64), k, *top
    )
    return top


def best_of(options: Frontier, values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """(H,) index of each hand's most valuable arrangement, the first of equals."""
    starts = options.starts[:-1]
    highest = np.maximum.reduceat(values, starts)
    is_best = np.flatnonzero(values == highest[options.hand_index])
    hands = options.hand_index[is_best]
    first = np.flatnonzero(np.diff(hands, prepend=-1))
    return is_best[first]


def _tables_for(rules: Rules | str, num_players: int) -> dict[int, _Side]:
    # Elsewhere every pairing stands alone, so one set of tables serves any number of seats.
    if isinstance(num_players, bool) or num_players not in (2, 3, 4):
        raise ConfigError(f"num_players {num_players!r}: a table has 2 to 4")
    rules = Rules.of(rules)
    if rules.banker is not None:
        rules = replace(rules, banker=0)  # the tables of a side do not depend on the bank's seat
    return _build(rules, int(num_players) if rules.topology == "pool" else 2)


def _check_sides(sides: IntArray, size: int, allowed: list[int]) -> None:
    if sides.shape != (size,) or not np.isin(sides, allowed).all():
        raise ArrangementError(
            f"bank of shape {sides.shape} and sides {np.unique(sides).tolist()}: "
            f"give ({size},) of {allowed}"
        )


@lru_cache(maxsize=64)
def _build(rules: Rules, num_players: int) -> dict[int, _Side]:
    deals = Table(Rules.preset("basic"), 2).deal(SEED, np.arange(NUM_HANDS // 2, dtype=np.uint64))
    hands = deals.hands.reshape(-1, 13)
    options = frontier(hands, rules)
    rows = np.empty((len(hands), 13), np.int8)
    lookup = tables_for(rules)
    kernels.greedy_into(hands, lookup.rows, lookup.splits, rules.packed, rows)
    played, _ = evaluate(hands, rows, rules)
    sides = (0,) if rules.banker is None else (1, -1)
    counts = [np.bincount(played[:, row], minlength=TABLE_SIZES[row]) * 1.0 for row in range(3)]
    for step in range(1, NUM_ROUNDS + 1):
        tables = {side: _tables_of(counts, side, rules, num_players) for side in sides}
        if step == NUM_ROUNDS:
            return tables
        for side in sides:
            values = _values_of(options.strengths, tables[side], rules)
            played = options.strengths[best_of(options, values)]
            for row in range(3):
                counts[row] *= 0.5
                counts[row] += np.bincount(played[:, row], minlength=TABLE_SIZES[row])
    raise AssertionError("NUM_ROUNDS is at least 1")


def _tables_of(
    counts: list[npt.NDArray[np.floating[Any]]], side: int, rules: Rules, num_players: int
) -> _Side:
    values, wins, losses, prizes, prices = (
        tuple(np.zeros(size) for size in TABLE_SIZES) for _ in range(5)
    )
    for row in range(3):
        kernels.row_values_into(
            counts[row] / counts[row].sum(), row, side, rules.packed,
            values[row], wins[row], losses[row],
        )  # fmt: skip
    if rules.topology == "pool":
        return _Side(values, wins, losses, _pool_values(wins, losses, num_players))
    kernels.scoop_shares_into(rules.packed, prizes, prices)
    majority = float(rules.overall_point)
    return _Side(values, wins, losses, RowValues(values, wins, losses, prizes, prices, majority))


def _pool_values(
    wins: tuple[npt.NDArray[np.float64], ...],
    losses: tuple[npt.NDArray[np.float64], ...],
    num_players: int,
) -> RowValues:
    """Each row's pool goes to who beats all others; whoever takes all three collects them again."""
    others = num_players - 1
    beats_all = [
        np.clip(0.5 * (1 + (win - loss)), 0, 1) ** others
        for win, loss in zip(wins, losses, strict=True)
    ]
    return RowValues(
        [num_players * chance - 1 for chance in beats_all],
        beats_all,
        prizes=[np.full(size, float(others)) for size in TABLE_SIZES],
    )


def _values_by_side(
    strengths: IntArray, sides: IntArray, tables: dict[int, _Side], rules: Rules
) -> npt.NDArray[np.float64]:
    values = np.empty(len(strengths))
    for side, found in tables.items():
        mine = sides == side
        values[mine] = _values_of(np.ascontiguousarray(strengths[mine], np.int16), found, rules)
    return values


def _values_of(
    strengths: npt.NDArray[np.int16], tables: _Side, rules: Rules
) -> npt.NDArray[np.float64]:
    if has_closed_form(rules):
        return tables.closed.of(strengths)
    out = np.empty(len(strengths))
    kernels.independent_values_into(
        strengths, tables.values, tables.wins, tables.losses, rules.packed, out
    )
    return out

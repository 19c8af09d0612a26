"""The best cheap heuristic: rows valued by how often they win against hands played the same way.

Two tables a row, its expected units and its chances, come from a small simulated population that
plays by the tables of the round before; they take a second to build, know royalties, scoops and the
overall point under any rules, and ignore which cards the hand itself holds.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, evaluate, frontier
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.table import Table
from cpoker_env.tables import NUM_FRONT_STRENGTHS, NUM_STRENGTHS, tables_for

NUM_HANDS = 3000
NUM_ROUNDS = 4
SEED = 20_240
_SIZES = (NUM_FRONT_STRENGTHS, NUM_STRENGTHS, NUM_STRENGTHS)


class RowTables(NamedTuple):
    """Per row, by strength: expected units, chance to win, chance to lose; float64 each."""

    values: tuple[npt.NDArray[np.float64], ...]
    wins: tuple[npt.NDArray[np.float64], ...]
    losses: tuple[npt.NDArray[np.float64], ...]


class Balanced:
    """Plays the arrangement with the highest expected units by the row tables.

    Surrenders when that is worth less than the surrender's price, declares its best natural when
    the natural collects at least as much.
    """

    def __init__(self, rules: Rules, num_players: int, tables: dict[int, RowTables]) -> None:
        self.rules = rules
        self.num_players = num_players
        self.tables = tables

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        options = frontier(batch.hands, self.rules)
        values = self._values(options, batch)
        best = best_of(options, values)
        expected = values[best]
        declarations = np.full(len(batch), SHOW, np.int8)
        if self.rules.surrender_cost is not None and self.rules.topology != "pool":
            gives_up = batch.can_surrender & (expected < -self.rules.surrender_cost)
            declarations[gives_up] = SURRENDER
        collects = np.array([self._collects(natural) for natural in batch.naturals])
        declarations[(batch.naturals >= 0) & (collects >= expected)] = DECLARE
        return Actions(declarations, options.rows[best])

    def candidates(
        self, batch: DecisionBatch, k: int
    ) -> list[list[tuple[str, npt.NDArray[np.int8] | None, float]]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        options = frontier(batch.hands, self.rules)
        values = self._values(options, batch)
        listed = []
        for h in range(len(batch)):
            start, end = options.starts[h], options.starts[h + 1]
            found: list[tuple[str, npt.NDArray[np.int8] | None, float]] = [
                ("show", options.rows[i], float(values[i])) for i in range(start, end)
            ]
            if batch.can_surrender[h] and self.rules.surrender_cost is not None:
                found.append(("surrender", None, -float(self.rules.surrender_cost)))
            if batch.naturals[h] >= 0:
                name = PATTERNS[batch.naturals[h]]
                found.append((f"declare {name}", None, self._collects(batch.naturals[h])))
            listed.append(sorted(found, key=lambda option: -option[2])[:k])
        return listed

    def _collects(self, natural: int) -> float:
        return -1.0 if natural < 0 else float(self.rules.natural_value(PATTERNS[natural]))

    def _values(self, options: Frontier, batch: DecisionBatch) -> npt.NDArray[np.float64]:
        values = np.empty(len(options.strengths))
        bank = batch.bank[options.hand_index]
        for side in np.unique(bank):
            values[bank == side] = _table_values(
                options.strengths[bank == side],
                self.tables[int(side)],
                self.num_players,
                self.rules,
            )
        return values


def make_balanced(rules: Rules, num_players: int = 2) -> Balanced:
    """The policy, its tables built once per rules and process."""
    return Balanced(rules, num_players, _build(rules, num_players))


def best_of(options: Frontier, values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """(H,) index of each hand's most valuable arrangement, the first of equals."""
    starts = options.starts[:-1]
    highest = np.maximum.reduceat(values, starts)
    is_best = np.flatnonzero(values == highest[options.hand_index])
    hands = options.hand_index[is_best]
    first = np.flatnonzero(np.diff(hands, prepend=-1))
    return is_best[first]


@lru_cache(maxsize=64)
def _build(rules: Rules, num_players: int) -> dict[int, RowTables]:
    deals = Table(Rules.preset("basic"), 2).deal(SEED, np.arange(NUM_HANDS // 2, dtype=np.uint64))
    hands = deals.hands.reshape(-1, 13)
    options = frontier(hands, rules)
    rows = np.empty((len(hands), 13), np.int8)
    kernels.greedy_into(hands, tables_for(rules), rules.packed, rows)
    played, _ = evaluate(hands, rows, rules)
    sides = (0,) if rules.banker is None else (1, -1)
    counts = [np.bincount(played[:, row], minlength=_SIZES[row]) * 1.0 for row in range(3)]
    for step in range(1, NUM_ROUNDS + 1):
        tables = {side: _row_tables(counts, side, rules) for side in sides}
        if step == NUM_ROUNDS:
            return tables
        for side in sides:
            values = _table_values(options.strengths, tables[side], num_players, rules)
            played = options.strengths[best_of(options, values)]
            for row in range(3):
                counts[row] *= 0.5
                counts[row] += np.bincount(played[:, row], minlength=_SIZES[row])
    raise AssertionError("NUM_ROUNDS is at least 1")


def _row_tables(counts: list[npt.NDArray[np.floating]], side: int, rules: Rules) -> RowTables:
    tables = RowTables(*(tuple(np.empty(size) for size in _SIZES) for _ in range(3)))
    for row in range(3):
        kernels.row_values_into(
            counts[row] / counts[row].sum(), row, side, rules.packed,
            tables.values[row], tables.wins[row], tables.losses[row],
        )  # fmt: skip
    return tables


def _table_values(
    strengths: npt.NDArray[np.int16], tables: RowTables, num_players: int, rules: Rules
) -> npt.NDArray[np.float64]:
    out = np.empty(len(strengths))
    kernels.independent_values_into(
        np.ascontiguousarray(strengths), tables.values, tables.wins, tables.losses, num_players,
        rules.packed, out,
    )  # fmt: skip
    return out

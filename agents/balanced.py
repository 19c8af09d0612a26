"""The best cheap heuristic: rows valued by how often they win against hands played the same way."""

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.accounts import MAJORITY, Account, account_of_rows
from cpoker_env.agents.options import Estimates, Option, list_options

from cpoker_env.arrangements import Best, Frontier, IntArray, best, frontier
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.row_values import arrangement_values, has_closed_form, row_values, select_top
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER


class Balanced:
    """Plays the arrangement with the highest expected units by the row tables.

    Surrenders when that is worth less than the surrender's price, declares its best natural when
    the natural collects at least as much.
    """

    def __init__(self, rules: Rules, num_players: int = 2) -> None:
        self.rules = rules
        self.num_players = num_players
        self.values = row_values(rules, num_players)

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        rows, _, expected = self._best(batch)
        declarations = np.full(len(batch), SHOW, np.int8)
        if self.rules.surrender_cost is not None and self.rules.topology != "pool":
            gives_up = batch.can_surrender & (expected < -self.rules.surrender_cost)
            declarations[gives_up] = SURRENDER
        collects = np.array([self._collects(natural) for natural in batch.naturals])
        declarations[(batch.naturals >= 0) & (collects >= expected)] = DECLARE
        return Actions(declarations, rows)

    def candidates(self, batch: DecisionBatch, k: int) -> list[list[Option]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        found = self.estimate(batch)
        return list_options(*found, batch.naturals, k)

    def estimate(self, batch: DecisionBatch) -> Estimates:
        """Units of every option of B decisions."""
        options = frontier(batch.hands, self.rules)
        cost = np.nan
        if self.rules.surrender_cost is not None and self.rules.topology != "pool":
            cost = -float(self.rules.surrender_cost)
        collects = np.array([self._collects(natural) for natural in batch.naturals])
        return Estimates(
            options,
            self._values(options, batch),
            np.where(batch.can_surrender, cost, np.nan),
            np.where(batch.naturals >= 0, collects, np.nan),
        )

    def account(self, batch: DecisionBatch, found: Estimates, chosen: IntArray) -> Account:
        """Accounts of some candidates (N,) of what `estimate` found for these decisions."""
        strengths = found.options.strengths[chosen]
        sides = batch.bank[found.options.hand_index[chosen]]
        rows = np.empty((len(chosen), 3, 5))
        majority = 0.0
        for side, worth in self.values.items():
            tables = worth.packed
            mine = sides == side
            for row, table in enumerate((tables.front, tables.middle, tables.back)):
                rows[mine, row] = table[strengths[mine, row]]
            majority = tables.majority
        account = account_of_rows(rows, majority, 1.0, self.rules)
        # Nothing is left unless points decide the overall point.
        account.parts[:, MAJORITY] += found.values[chosen] - account.parts.sum(axis=1)
        return account

    def _collects(self, natural: int) -> float:
        return -1.0 if natural < 0 else float(self.rules.natural_value(PATTERNS[natural]))

    def _best(self, batch: DecisionBatch) -> Best:
        if not has_closed_form(self.rules):
            options = frontier(batch.hands, self.rules)
            rows, strengths, values, _ = select_top(options, self._values(options, batch), 1)
            return Best(rows[:, 0], strengths[:, 0], values[:, 0])
        if len(self.values) == 1:
            return best(batch.hands, self.values[0], self.rules)
        rows = np.empty((len(batch), 13), np.int8)
        strengths = np.empty((len(batch), 3), np.int16)
        values = np.empty(len(batch))
        for side, worth in self.values.items():
            mine = batch.bank == side
            rows[mine], strengths[mine], values[mine] = best(batch.hands[mine], worth, self.rules)
        return Best(rows, strengths, values)

    def _values(self, options: Frontier, batch: DecisionBatch) -> npt.NDArray[np.float64]:
        return arrangement_values(
            options.strengths, batch.bank[options.hand_index], self.rules, self.num_players
        )


def make_balanced(rules: Rules, num_players: int = 2) -> Balanced:
    """The policy, its tables built once per rules and process."""
    return Balanced(rules, num_players)

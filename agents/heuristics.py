"""Policies that need no learning: uniform and greedy."""

import numpy as np

from cpoker_env import kernels
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW
from cpoker_env.tables import tables_for

_DECLARE = np.int8(DECLARE)


class Uniform:
    """Draws uniformly among all legal arrangements; never declares, never surrenders.

    The draw depends on the deal's name and the seat alone, not on how decisions are batched.
    """

    def __init__(self, rules: Rules, num_players: int = 2) -> None:
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        rows = np.empty((len(batch), 13), np.int8)
        tables = tables_for(batch.rules)
        kernels.uniform_into(
            batch.hands, batch.seeds, batch.indices, batch.seats.astype(np.int64) + 1,
            tables.rows, tables.splits, batch.rules.packed, rows,
        )  # fmt: skip
        return Actions(np.full(len(batch), SHOW, np.int8), rows)


class Greedy:
    """Best back, then best middle, then best front; declares its best natural, never surrenders.

    The default opponent: what it does is part of the environments' version.
    """

    def __init__(self, rules: Rules, num_players: int = 2) -> None:
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        rows = np.empty((len(batch), 13), np.int8)
        tables = tables_for(batch.rules)
        kernels.greedy_into(batch.hands, tables.rows, tables.splits, batch.rules.packed, rows)
        declarations = (batch.naturals >= 0) * _DECLARE
        return Actions(declarations, rows)

"""Policies that need no learning: uniform, greedy and product."""

from functools import cache

import numpy as np

from cpoker_env import kernels
from cpoker_env.arrangements import best
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW
from cpoker_env.tables import (
    CATEGORY_STARTS,
    FRONT_PAIR,
    FRONT_TRIPS,
    NUM_STRENGTHS,
    tables_for,
)
from cpoker_env.valuation import RowValues

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


class Product:
    """The largest product of the rows' ranks; declares its best natural, never surrenders.

    A row's rank is the share of all rows of its size that are not stronger: a classic of
    hand-written players. The strongest row has rank 1.
    """

    def __init__(self, rules: Rules, num_players: int = 2) -> None:
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        rows = best(batch.hands, rank_values(), batch.rules).rows
        return Actions((batch.naturals >= 0) * _DECLARE, rows)


@cache
def rank_values() -> RowValues:
    """The logarithm of the product of ranks, as a value function."""
    fives = np.repeat(_ROWS_OF_STRENGTH, np.diff([*CATEGORY_STARTS, NUM_STRENGTHS]))
    fronts = np.repeat([64, 24, 4], [FRONT_PAIR, FRONT_TRIPS - FRONT_PAIR, 13])
    # Chances of a RowValues, which multiply as they are, are rounded too coarsely for this.
    return RowValues(
        [np.log(np.cumsum(counts) / counts.sum()) for counts in (fronts, fives, fives)]
    )


_ROWS_OF_STRENGTH = (1020, 384, 144, 64, 1020, 4, 24, 4, 4)
"""Five-card rows of each strength, by category: 2,598,960 in all, as fronts are 22,100."""

"""Policies that need no learning: uniform, greedy and product."""

from functools import cache

import numpy as np

from cpoker_env import kernels
from cpoker_env.arrangements import best
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW
from cpoker_env.tables import tables_for
from cpoker_env.valuation import TABLE_SIZES, RowValues

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

    A row's rank is (strength + 1) / number of strengths a row of its size can have, so that the
    strongest has rank 1 and no row can be given up for the others.
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
    # Logarithms add up exactly enough to tell products of whole numbers apart; the chances of a
    # RowValues, which multiply as they are, are rounded too coarsely.
    return RowValues([np.log(np.arange(1, size + 1) / size) for size in TABLE_SIZES])

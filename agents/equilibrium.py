"""Near-equilibrium play from small tables, in some 30 us a hand.

The tables are fitted to exact values against a population that fictitious play made; see
`cpoker_env.agents.chances` for the value function and `cpoker_env.train.tables` for the fit.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.chances import (
    FloatArray,
    SideTables,
    chance_tables,
    corrected_chances,
    corrected_values,
    features_of,
    side_of,
)
from cpoker_env.agents.checkpoint import load_checkpoint, shipped_for
from cpoker_env.agents.options import Option, list_options

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, frontier
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.row_values import best_of
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER


class Side(NamedTuple):
    """Stored tables of one side of the bank and what the kernels read."""

    stored: SideTables
    tables: kernels.ChanceTables


class Estimates(NamedTuple):
    """Units of every option of H hands.

    options: the candidates, M in all; values (M,) of showing them; surrender (H,), NaN where a hand
    may not; declare (H,), NaN where a hand has nothing to declare.
    """

    options: Frontier
    values: FloatArray
    surrender: FloatArray
    declare: FloatArray


class Equilibrium:
    """Plays the option that its tables value highest."""

    def __init__(self, rules: Rules, sides: dict[int, SideTables]) -> None:
        self.rules = rules
        self.sides = {
            bank: Side(side, chance_tables(side, rules, bank)) for bank, side in sides.items()
        }

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        found = self.estimate(batch)
        best = best_of(found.options, found.values)
        value = found.values[best]
        declarations = np.full(len(batch), SHOW, np.int8)
        declarations[found.surrender > value] = SURRENDER
        declarations[found.declare >= np.fmax(found.surrender, value)] = DECLARE
        return Actions(declarations, found.options.rows[best])

    def candidates(self, batch: DecisionBatch, k: int) -> list[list[Option]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        found = self.estimate(batch)
        return list_options(
            found.options, found.values, found.surrender, found.declare, batch.naturals, k
        )

    def estimate(self, batch: DecisionBatch) -> Estimates:
        """Units of every option of B decisions."""
        options = frontier(batch.hands, self.rules)
        size = len(batch)
        values = np.empty(len(options.strengths))
        surrender, declare = np.full(size, np.nan), np.full(size, np.nan)
        features = features_of(batch.hands)
        sides = batch.bank
        may = batch.can_surrender & self.rules.surrender_allowed
        for bank, side in self.sides.items():
            if len(self.sides) == 1:
                values = corrected_values(options, features, side.tables)
                mine = np.ones(size, np.bool_)
            else:
                mine = sides == bank
                theirs = mine[options.hand_index]
                values[theirs] = corrected_values(options, features, side.tables)[theirs]
            gives = mine & may
            surrender[gives] = features[gives] @ side.stored.surrender
            told = mine & (batch.naturals >= 0)
            declare[told] = side.stored.declare[batch.naturals[told]]
        return Estimates(options, values, surrender, declare)

    def chances(self, batch: DecisionBatch) -> tuple[Frontier, npt.NDArray[np.float64]]:
        """Candidates of B decisions and (M, 3) the chance of each of their rows to win."""
        options = frontier(batch.hands, self.rules)
        features = features_of(batch.hands)
        chances = np.empty((len(options.strengths), 3))
        for bank, side in self.sides.items():
            mine = (batch.bank == bank)[options.hand_index]
            chances[mine] = corrected_chances(options, features, side.tables)[mine]
        return options, chances


def make_equilibrium(rules: Rules, num_players: int = 2, argument: str = "") -> Equilibrium:
    """The policy of stored tables, `argument` being their path or shipped name.

    Without one, the tables that ship for these rules and so many seats.

    Raises:
        CheckpointError: None ship, or they cannot be read, or are of other rules.
    """
    name = argument or shipped_for("equilibrium", rules, num_players)
    return _load(rules, name)


@lru_cache(maxsize=16)
def _load(rules: Rules, name: str) -> Equilibrium:
    stored = load_checkpoint(name)
    if stored.config.get("kind") != "tables":
        raise CheckpointError(f"checkpoint {name!r} holds no tables of chances: see README, Agents")
    if stored.rules != rules:
        raise CheckpointError(
            f"checkpoint {name!r} is of {stored.rules.name}, not {rules.name}: "
            "choose one of the same rules"
        )
    tensors = {key: tensor.numpy() for key, tensor in stored.weights.items()}
    banks = (0,) if rules.banker is None else (1, -1)
    return Equilibrium(rules, {bank: side_of(tensors, bank, name) for bank in banks})

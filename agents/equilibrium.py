"""Near-equilibrium play from small tables, in some 40 us a hand.

The tables are fitted to exact values against a population that fictitious play made; see
`cpoker_env.agents.chances` for the value function and `cpoker_env.train.tables` for the fit.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.accounts import MAJORITY, OTHERS, PARTS, SCOOP, Account, account_of_rows
from cpoker_env.agents.chances import (
    SideTables,
    chance_tables,
    chances_to_scoop,
    chances_to_win,
    corrected_values,
    features_of,
    side_of,
)
from cpoker_env.agents.checkpoint import hash_of, load_kind, shipped_for
from cpoker_env.agents.options import Estimates, Option, choose, list_options

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, IntArray, frontier
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules


class Side(NamedTuple):
    """Stored tables of one side of the bank and what the kernels read."""

    stored: SideTables
    tables: kernels.ChanceTables


class Equilibrium:
    """Plays the option that its tables value highest."""

    def __init__(self, rules: Rules, sides: dict[int, SideTables]) -> None:
        self.rules = rules
        has_scoops = rules.scoop != "none" or rules.topology == "pool"
        self._together = SCOOP if has_scoops else MAJORITY if rules.overall_point else OTHERS
        self.sides = {
            bank: Side(side, chance_tables(side, rules, bank)) for bank, side in sides.items()
        }

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        found = self.estimate(batch)
        best, declarations = choose(found)
        return Actions(declarations, found.options.rows[best])

    def candidates(self, batch: DecisionBatch, k: int) -> list[list[Option]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        found = self.estimate(batch)
        return list_options(*found, batch.naturals, k)

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

    def account(self, batch: DecisionBatch, found: Estimates, chosen: IntArray) -> Account:
        """Accounts of some candidates (N,) of what `estimate` found for these decisions."""
        strengths, hands = found.options.strengths[chosen], found.options.hand_index[chosen]
        features, banks = features_of(batch.hands[hands]), batch.bank[hands]
        size = len(chosen)
        account = Account(np.empty((size, 3)), np.empty((size, 2)), np.empty((size, len(PARTS))))
        for bank, side in self.sides.items():
            mine = np.flatnonzero(banks == bank)
            chances = chances_to_win(strengths[mine], features[mine], side.stored, side.tables)
            share = float(side.stored.ordinary[0])
            part = account_of_rows(
                _moved_rows(strengths[mine], chances, side.tables),
                side.tables.worth.majority,
                share,
                self.rules,
            )
            part = part._replace(scoops=share * chances_to_scoop(chances, side.stored))
            left = found.values[chosen[mine]] - part.parts.sum(axis=1)
            part.parts[:, self._together] += left  # the most of what rows bring by hanging together
            for whole, its_part in zip(account, part, strict=True):
                whole[mine] = its_part
        return account

    def chances(self, batch: DecisionBatch) -> tuple[Frontier, npt.NDArray[np.float64]]:
        """Candidates of B decisions and (M, 3) how often each row wins, ties as halves."""
        options = frontier(batch.hands, self.rules)
        features = features_of(batch.hands)
        chances = np.empty((len(options.strengths), 3))
        for bank, side in self.sides.items():
            mine = np.flatnonzero((batch.bank == bank)[options.hand_index])
            chances[mine] = chances_to_win(
                options.strengths[mine], features[options.hand_index[mine]], side.stored,
                side.tables,
            )  # fmt: skip
        return options, chances

    def row_counts(self, bank: int = 0) -> list[npt.NDArray[np.int32]]:
        """How often a seat on this side of the bank sees each strength of front, middle, back."""
        stored = self.sides[bank].stored
        return [stored.front, stored.middle, stored.back]

    def under(self, rules: Rules) -> "Equilibrium":
        """The same view of what opponents show, under other rules."""
        return Equilibrium(rules, {bank: side.stored for bank, side in self.sides.items()})


def _moved_rows(
    strengths: IntArray, chances: npt.NDArray[np.float64], tables: kernels.ChanceTables
) -> npt.NDArray[np.float64]:
    """(N, 3, 5) columns of `kernels.Worth` for rows that win as often as `chances` (N, 3) say."""
    worth = (tables.worth.front, tables.worth.middle, tables.worth.back)
    rows = np.stack([table[strengths[:, row]] for row, table in enumerate(worth)], axis=1)
    added = chances - 0.5 * (1 + rows[:, :, 1] - rows[:, :, 2])
    rows[:, :, 0] += added * tables.gains[np.arange(3), strengths]
    rows[:, :, 1] += added
    rows[:, :, 2] -= added
    return rows


def make_equilibrium(rules: Rules, num_players: int = 2, argument: str = "") -> Equilibrium:
    """The policy of stored tables, `argument` being their path or shipped name.

    Without one, the tables that ship for these rules and so many seats.

    Raises:
        CheckpointError: None ship, or they cannot be read, or are of other rules.
    """
    name = argument or shipped_for("equilibrium", rules, num_players)
    return _load(rules, name, hash_of(name))


@lru_cache(maxsize=16)
def _load(rules: Rules, name: str, sha256: str | None) -> Equilibrium:
    """The policy of stored tables, once for each content of their file."""
    stored = load_kind(name, "tables", rules)
    tensors = {key: tensor.numpy() for key, tensor in stored.weights.items()}
    banks = (0,) if rules.banker is None else (1, -1)
    return Equilibrium(rules, {bank: side_of(tensors, bank, name) for bank in banks})

"""Where the units of an arrangement come from: its rows, royalties, scoops, the majority.

A policy explains itself by two methods, `Explains`: what its options are worth, and an account of
some of them. Tables of rows that are won independently give accounts by formula, a population of
opponents by counting.
"""

from itertools import product
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.options import Estimates

from cpoker_env import kernels
from cpoker_env.arrangements import IntArray
from cpoker_env.policy import DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.tables import NUM_STRENGTHS
from cpoker_env.valuation import TABLE_SIZES

FloatArray = npt.NDArray[np.float64]
PARTS = ("front", "middle", "back", "royalties", "scoop", "majority", "others")
FRONT, MIDDLE, BACK, ROYALTIES, SCOOP, MAJORITY, OTHERS = range(len(PARTS))


class Account(NamedTuple):
    """What makes up the worth of N arrangements against one opponent.

    chances: (N, 3) of each row to win against an opponent that shows, half of the ties with them.
    scoops: (N, 2) chances to win and to lose all three rows against any opponent.
    parts: (N, len(PARTS)) units that add up to the arrangement's: one a row won or lost, what
        royalties, scoops (home runs too) and the majority add, and what opponents bring that do
        not show.
    """

    chances: FloatArray
    scoops: FloatArray
    parts: FloatArray


@runtime_checkable
class Explains(Protocol):
    """A policy that can say what its options are worth and why."""

    def estimate(self, batch: DecisionBatch) -> Estimates:
        """Units of every option of B decisions."""

    def account(self, batch: DecisionBatch, found: Estimates, chosen: IntArray) -> Account:
        """Accounts of some candidates (N,) of what `estimate` found for the same decisions."""


def account_of_rows(rows: FloatArray, majority: float, share: float, rules: Rules) -> Account:
    """Accounts of N arrangements whose rows are won independently of each other.

    Args:
        rows: (N, 3, 5) of each row the columns of `kernels.Worth`; units are those of all
            opponents, chances those of opponents that show.
        majority: Units for more rows won than lost, of all opponents.
        share: Of opponents that show.
        rules: Tell the pool, where `rows` are about beating all others.
    """
    wins, losses = np.clip(rows[:, :, 1], 0, 1), np.clip(rows[:, :, 2], 0, 1)
    is_pool = rules.topology == "pool"
    plain = rows[:, :, 0] if is_pool else share * (rows[:, :, 1] - rows[:, :, 2])
    scoops = np.stack([wins.prod(axis=1), losses.prod(axis=1)], axis=1)
    unclipped = rows[:, :, 1].prod(axis=1), rows[:, :, 2].prod(axis=1)
    parts = np.zeros((len(rows), len(PARTS)))
    parts[:, :ROYALTIES] = plain
    parts[:, ROYALTIES] = rows[:, :, 0].sum(axis=1) - plain.sum(axis=1)
    parts[:, SCOOP] = unclipped[0] * rows[:, :, 3].sum(axis=1)
    parts[:, SCOOP] -= unclipped[1] * rows[:, :, 4].sum(axis=1)
    parts[:, MAJORITY] = majority * _majority_sign(rows[:, :, 1], rows[:, :, 2])
    chances = wins if is_pool else np.clip(0.5 * (1 + rows[:, :, 1] - rows[:, :, 2]), 0, 1)
    return Account(chances, share * scoops, parts)


def _majority_sign(wins: FloatArray, losses: FloatArray) -> FloatArray:
    """(N,) chance to win more rows than are lost, less the chance to lose more."""
    sign = np.zeros(len(wins))
    chances = {1: wins, 0: 1 - wins - losses, -1: losses}
    for results in product((-1, 0, 1), repeat=3):
        weight = np.prod([chances[result][:, row] for row, result in enumerate(results)], axis=0)
        sign += np.sign(sum(results)) * weight
    return sign


def account_of_plays(
    strengths: IntArray,
    theirs: IntArray,
    num_met: int,
    bank: int,
    rules: Rules,
    runs: FloatArray | None = None,
) -> Account:
    """Accounts of N arrangements (N, 3) by counting over n opponents (n, 3) that show.

    Args:
        strengths: Rows of the arrangements.
        theirs: Rows of the opponents that show.
        num_met: How many opponents there are, with those that do not show.
        bank: 1 if ties are the arrangements', -1 if the opponents', else 0.
        rules: The house rules.
        runs: (n,) chance that a scoop of each opponent is part of a home run; None leaves those
            out.
    """
    seen = np.ascontiguousarray(theirs.T, np.int16)
    num_met, shown = max(num_met, 1), max(seen.shape[1], 1)
    is_pool = rules.topology == "pool"
    gains, kept = np.zeros((3, NUM_STRENGTHS), np.int64), np.zeros((3, NUM_STRENGTHS), np.int64)
    kernels.gains_into(rules.packed, gains, kept)
    prizes, prices = (tuple(np.ones(size) for size in TABLE_SIZES) for _ in range(2))
    if not is_pool:
        kernels.scoop_shares_into(rules.packed, prizes, prices)
    row = np.arange(3)
    their_gains, their_kept = gains[row[:, None], seen], kept[row[:, None], seen]
    their_prize = np.sum([prizes[i][seen[i]] for i in range(3)], axis=0)
    if runs is not None and bank != 1:
        their_prize = their_prize * (1 + runs)
    account = Account(
        np.empty((len(strengths), 3)),
        np.empty((len(strengths), 2)),
        np.zeros((len(strengths), len(PARTS))),
    )
    for mine, chances, scoops, parts in zip(strengths, *account, strict=True):
        wins = seen < mine[:, None] if bank != 1 else seen <= mine[:, None]
        losses = seen > mine[:, None] if bank != -1 else seen >= mine[:, None]
        won, lost = wins.all(axis=0), losses.all(axis=0)
        margins = wins.sum(axis=1) - losses.sum(axis=1)
        prize = sum(prizes[i][mine[i]] for i in range(3))
        chances[:] = 0.5 * (1 + margins / shown)
        scoops[:] = won.sum() / num_met, lost.sum() / num_met
        parts[:ROYALTIES] = margins / num_met
        units = (wins.sum(axis=1) * gains[row, mine]).sum() - (their_gains * losses).sum()
        units += shown * kept[row, mine].sum() - their_kept.sum()
        parts[ROYALTIES] = (units - margins.sum()) / num_met
        parts[SCOOP] = prize * scoops[0] - their_prize[lost].sum() / num_met
        if runs is not None and bank != -1:
            parts[SCOOP] += prize * scoops[0] ** 3
        if rules.overall_point and not is_pool:
            leads = wins.sum(axis=0) - losses.sum(axis=0)
            if rules.overall_by == "points":
                leads = (wins * gains[row, mine][:, None] - losses * their_gains).sum(axis=0)
                leads = leads + kept[row, mine].sum() - their_kept.sum(axis=0)
                leads = leads + np.where(won, prize, 0) - np.where(lost, their_prize, 0)
            parts[MAJORITY] = rules.overall_point * np.sign(leads).sum() / num_met
    return account

"""Options valued over whole tables, where a seat's units are more than the sum of its pairings.

In a pool of three or four nothing is settled in pairs, and a home run is made over three opponents
at once. So all opponents of a deal are dealt together from the cards a hand leaves, and each option
of the hand is settled exactly at each of these tables. What pairings do tell is known far better
from a population: of home runs the tables give only what they add to the plain pairings.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.population import IntArray, Plays, Responses

from cpoker_env import kernels
from cpoker_env.rules import Rules
from cpoker_env.scoring import STATUSES
from cpoker_env.table import Table

_FOUL = STATUSES.index("foul")


def are_tied(rules: Rules, num_players: int) -> bool:
    """Whether the rules tie the pairings of so many seats together."""
    if rules.topology == "pool":
        return num_players > 2
    return rules.scoop == "shot_homerun" and num_players == 4


def seats_of(sides: IntArray, rules: Rules) -> npt.NDArray[np.int64]:
    """(H,) the seat of a hand of each side: the bank's for 1, the lowest other for -1, or 0."""
    bank = rules.banker or 0
    return np.where(sides == 1, bank, 0 if rules.banker is None else 1 - min(bank, 1))


class Dealt(NamedTuple):
    """T tables of N seats dealt around each of H hands.

    hands: (H, T, N, 13) int8, highest first.
    seats: (H,) int64, where each hand sits itself.
    is_other: (H, T, N) bool, the seats of its opponents.
    """

    hands: npt.NDArray[np.int8]
    seats: npt.NDArray[np.int64]
    is_other: npt.NDArray[np.bool_]

    def opponents(self) -> npt.NDArray[np.int8]:
        """(H * T * (N - 1), 13) hands of the opponents, table by table, in the order of seats."""
        found: npt.NDArray[np.int8] = self.hands[self.is_other]
        return found

    def sides(self, rules: Rules) -> npt.NDArray[np.int8]:
        """Sides of the bank of `opponents`."""
        if rules.banker is None:
            return np.zeros(int(self.is_other.sum()), np.int8)
        at = np.broadcast_to(np.arange(self.hands.shape[2]), self.is_other.shape)[self.is_other]
        return np.where(at == rules.banker, 1, -1).astype(np.int8)


def deal_tables(
    hands: IntArray, sides: IntArray, rules: Rules, num_players: int, num_tables: int, key: int,
    first: int = 0,
) -> Dealt:  # fmt: skip
    """Tables at which hands sit and everybody else is dealt from the cards they leave.

    Args:
        hands: (H, 13), each highest first.
        sides: (H,) of the bank.
        rules: The house rules.
        num_players: N.
        num_tables: T.
        key: Names the deals, with the number of the hand and of the table.
        first: Number of the first hand.
    """
    table = Table(rules, num_players)
    seats = seats_of(sides, rules)
    dealt = np.empty((len(hands), num_tables, num_players, 13), np.int8)
    for h, hand in enumerate(hands.tolist()):
        fixed = [hand if seat == seats[h] else None for seat in range(num_players)]
        start = (first + h) * num_tables
        indices = np.arange(start, start + num_tables, dtype=np.uint64)
        dealt[h] = table.deal_around(fixed, key, indices).hands
    is_own = np.arange(num_players) == seats[:, None]
    is_other = np.repeat(~is_own[:, None], num_tables, axis=1)
    return Dealt(dealt, seats, is_other)


def seat_plays(dealt: Dealt, others: Plays, own: Plays) -> Plays:
    """Everything shown at tables, (H, T, N) and so on: opponents' plays, and (H,) own ones."""
    shape = dealt.is_other.shape
    num_tables = shape[1]

    def fill(theirs: IntArray, mine: IntArray) -> IntArray:
        whole = np.empty((*shape, *theirs.shape[1:]), theirs.dtype)
        whole[dealt.is_other] = theirs
        whole[~dealt.is_other] = np.repeat(mine, num_tables, axis=0)
        return whole

    return Plays(
        fill(others.strengths, own.strengths),
        fill(others.status, own.status),
        fill(others.declared, own.declared),
        fill(others.keys, own.keys),
    )


def add_tables(
    found: Responses, dealt: Dealt, shown: Plays, is_foul: npt.NDArray[np.bool_], rules: Rules
) -> Responses:
    """Values with what whole tables tell beyond pairings: in a pool they tell everything.

    Args:
        found: Values against a population, home runs aside, or `unvalued` in a pool.
        dealt: Tables around the hands; every other one goes to the second half.
        shown: What their seats show.
        is_foul: (H,) whether each hand's last candidate is a foul.
        rules: The house rules.
    """
    size = len(dealt.hands)
    values = np.empty_like(found.values)
    surrender, declare, foul = np.empty((3, 2, size))
    kernels.table_units_into(
        dealt.seats, found.options.starts, found.options.strengths, is_foul, found.naturals,
        shown.strengths, shown.status, rules.packed, values, surrender, declare, foul,
    )  # fmt: skip
    num_met = opponents_met(dealt.seats, dealt.hands.shape[2], rules)
    met = found.met
    if rules.topology == "pool":
        num_tables = dealt.hands.shape[1]
        met = np.outer([(num_tables + 1) // 2, num_tables // 2], num_met)
    return found._replace(
        values=found.values + values / num_met[found.options.hand_index],
        surrender=found.surrender + surrender / num_met,
        declare=found.declare + declare / num_met,
        foul=found.foul + foul / num_met,
        met=met,
    )


def opponents_met(seats: IntArray, num_players: int, rules: Rules) -> npt.NDArray[np.int64]:
    """(H,) opponents that seats settle with: all others, or only the bank."""
    if rules.banker is None:
        return np.full(len(seats), num_players - 1)
    return np.where(seats == rules.banker, num_players - 1, 1)


def mean_square(shown: Plays, rules: Rules) -> float:
    """Mean square of what seats win from one opponent in deals, their plays (..., N) and so on.

    In a pool, which has no pairings, of a seat's units by its number of opponents.
    """
    seats = shown.status.shape[-1]
    status = shown.status.reshape(-1, seats)
    units = np.empty(status.shape, np.int32)
    pairs = np.empty((*status.shape, seats), np.int32)
    kernels.settle_pairs_into(
        shown.strengths.reshape(-1, seats, 3), status, shown.declared.reshape(-1, seats),
        shown.keys.reshape(-1, seats), rules.packed, units, pairs,
    )  # fmt: skip
    if rules.topology == "pool":
        return float(((units / rules.unit_scale / (seats - 1)) ** 2).mean())
    a, b = np.triu_indices(seats, 1)
    if rules.banker is not None:
        is_held = (a == rules.banker) | (b == rules.banker)
        a, b = a[is_held], b[is_held]
    return float((pairs[:, a, b].astype(np.float64) ** 2).mean())

"""A batch of deals from cards to units; the one simulator under every environment and trainer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import Arrangement, arrangement_of
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import Actions, DecisionBatch, Policy, check_actions
from cpoker_env.rules import Rules
from cpoker_env.scoring import (
    DECLARE,
    SHOW,
    SURRENDER,
    Settled,
    Showdown,
    account,
    check_num_seats,
    settle_deals,
)


@dataclass(frozen=True)
class Deals:
    """B dealt tables of N seats.

    hands: (B, N, 13) int8, highest first.
    bits: (B, N) int16, bit set of the natural patterns held.
    naturals: (B, N) int8, best natural in play, -1 for none.
    seeds, indices: (B,) uint64, the names of the deals.
    can_surrender: (B, N) bool.
    """

    hands: npt.NDArray[np.int8]
    bits: npt.NDArray[np.int16]
    naturals: npt.NDArray[np.int8]
    seeds: npt.NDArray[np.uint64]
    indices: npt.NDArray[np.uint64]
    can_surrender: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.hands)


class Table:
    """House rules and a number of seats; deals, collects actions, settles.

    Raises:
        ShowdownError: Not 2-4 seats, or a bank's seat that is not taken.
    """

    def __init__(self, rules: Rules, num_players: int) -> None:
        check_num_seats(num_players, rules)
        self.rules = rules
        self.num_players = num_players

    def deal(self, seeds: npt.NDArray[np.uint64] | int, indices: npt.NDArray[np.uint64]) -> Deals:
        """Deals by name: a pure function of (seed, index), the same on every platform.

        Args:
            seeds: One for all, or (B,) uint64.
            indices: (B,) uint64.
        """
        # A copy of one memory layout, as kernels compile once for each.
        keys = np.array(np.broadcast_to(np.asarray(seeds, np.uint64), indices.shape))
        hands = np.empty((len(indices), self.num_players, 13), np.int8)
        kernels.deal_into(keys, indices, hands)
        return self.seat(hands, keys, indices)

    def seat(
        self,
        hands: npt.NDArray[np.int8],
        seeds: npt.NDArray[np.uint64],
        indices: npt.NDArray[np.uint64],
        can_surrender: npt.NDArray[np.bool_] | None = None,
    ) -> Deals:
        """Deals of given hands (B, N, 13), each highest first."""
        bits, best = natural_bits(hands.reshape(-1, 13), self.rules)
        shape = hands.shape[:2]
        if can_surrender is None:
            can_surrender = np.full(shape, self.rules.surrender_allowed)
        return Deals(hands, bits.reshape(shape), best.reshape(shape), seeds, indices, can_surrender)

    def decisions(self, deals: Deals, seat: int) -> DecisionBatch:
        """What one seat of every deal has to decide."""
        return DecisionBatch(
            np.ascontiguousarray(deals.hands[:, seat]),
            self.rules,
            self.num_players,
            np.full(len(deals), seat, np.int8),
            deals.naturals[:, seat],
            deals.can_surrender[:, seat],
            deals.seeds,
            deals.indices,
        )

    def act(
        self,
        deals: Deals,
        policies: Sequence[Policy | None],
        rng: np.random.Generator,
    ) -> Actions:
        """Actions (B, N) and (B, N, 13) of all seats; a seat without a policy shows nothing legal.

        Raises:
            PolicyError: A policy answered out of shape or range.
        """
        size = len(deals)
        declarations = np.zeros((size, self.num_players), np.int8)
        rows = np.zeros((size, self.num_players, 13), np.int8)
        for seat, policy in enumerate(policies):
            if policy is not None:
                batch = self.decisions(deals, seat)
                actions = check_actions(policy.act(batch, rng), batch, type(policy).__name__)
                declarations[:, seat], rows[:, seat] = actions
        return Actions(declarations, rows)

    def score(self, deals: Deals, actions: Actions) -> Settled:
        """Units of acted deals; a declaration that is not available shows the rows as placed."""
        declarations = available_declarations(
            actions.declarations, deals.naturals, deals.can_surrender
        )
        return settle_deals(deals.hands, actions.rows, declarations, deals.naturals, self.rules)

    def play(self, deals: Deals, policies: Sequence[Policy], rng: np.random.Generator) -> Settled:
        """Settled deals with every seat played by a policy."""
        return self.score(deals, self.act(deals, policies, rng))

    def showdown(self, deals: Deals, actions: Actions, settled: Settled, deal: int) -> Showdown:
        """The readable account of one deal."""
        return account(settled, deal, arrangements_of(deals, actions, deal), self.rules)


def arrangements_of(deals: Deals, actions: Actions, deal: int) -> tuple[Arrangement, ...]:
    """What every seat of one deal laid."""
    hands, rows = deals.hands[deal].tolist(), actions.rows[deal].tolist()
    return tuple(arrangement_of(hand, row) for hand, row in zip(hands, rows, strict=True))


def available_declarations(
    declarations: npt.NDArray[np.int8],
    naturals: npt.NDArray[np.int8],
    can_surrender: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]:
    """Declarations with those not available turned into showing the rows."""
    missing = ((declarations == SURRENDER) & ~can_surrender) | (
        (declarations == DECLARE) & (naturals < 0)
    )
    return np.where(missing, SHOW, declarations).astype(np.int8)

"""A batch of deals from cards to units; the one simulator under every environment and trainer."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import Arrangement
from cpoker_env.cards import HAND_SIZE, NUM_CARDS, Card, format_card
from cpoker_env.errors import CardError
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import Actions, DecisionBatch, Policy, check_actions
from cpoker_env.rules import Rules
from cpoker_env.scoring import (
    Settled,
    Showdown,
    account,
    check_num_seats,
    settle_checked,
)
from cpoker_env.tables import tables_for


@dataclass(slots=True, eq=False)
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

    def take(self, where: npt.NDArray[np.bool_]) -> "Deals":
        """Copies of some of the deals."""
        return Deals(*(getattr(self, part.name)[where] for part in fields(self)))

    def part(self, start: int, end: int) -> "Deals":
        """Views of some neighbours among the deals."""
        return Deals(
            self.hands[start:end], self.bits[start:end], self.naturals[start:end],
            self.seeds[start:end], self.indices[start:end], self.can_surrender[start:end],
        )  # fmt: skip

    def put(self, where: npt.NDArray[np.bool_], new: "Deals") -> "Deals":
        """The deals with some replaced; these here stay as they are."""
        whole = Deals(*(getattr(self, part.name).copy() for part in fields(self)))
        for part in fields(self):
            getattr(whole, part.name)[where] = getattr(new, part.name)
        return whole


Seating = Sequence[tuple[Policy, list[int]]]
"""Policies and the seats of each, in order."""


class Table:
    """House rules and a number of seats; deals, collects actions, settles.

    Raises:
        ShowdownError: Not 2-4 seats, or a bank's seat that is not taken.
    """

    def __init__(self, rules: Rules, num_players: int) -> None:
        check_num_seats(num_players, rules)
        self.rules = rules
        self.num_players = num_players
        self._surrender_allowed = rules.surrender_allowed

    def deal(self, seeds: npt.NDArray[np.uint64] | int, indices: npt.NDArray[np.uint64]) -> Deals:
        """Deals by name: a pure function of (seed, index), the same on every platform.

        Args:
            seeds: One for all, or (B,) uint64.
            indices: (B,) uint64.
        """
        size, seats = len(indices), self.num_players
        keys = _keys(seeds, size)
        hands = np.empty((size, seats, HAND_SIZE), np.int8)
        bits = np.empty((size, seats), np.int16)
        best = np.empty((size, seats), np.int8)
        tables = tables_for(self.rules).naturals
        kernels.deal_tables_into(keys, indices, tables, self.rules.packed, hands, bits, best)
        return Deals(hands, bits, best, keys, indices.copy(), self._may_surrender(size))

    def check_fixed(self, fixed: Sequence[Sequence[Card] | None]) -> npt.NDArray[np.bool_]:
        """(52,) bool, the cards of fixed hands, which may be those of one deal.

        Raises:
            CardError: More hands than seats, or a card in two of them.
        """
        if len(fixed) > self.num_players:
            raise CardError(f"{len(fixed)} hands for {self.num_players} seats: give at most those")
        times = np.zeros(NUM_CARDS, np.int8)
        for hand in fixed:
            if hand is not None:
                times[list(hand)] += 1
        if (times > 1).any():
            twice = format_card(int(times.argmax()))
            raise CardError(f"card {twice!r} in two hands: each of the 52 cards exists once")
        return times > 0

    def deal_around(
        self,
        fixed: Sequence[Sequence[Card] | None],
        seeds: npt.NDArray[np.uint64] | int,
        indices: npt.NDArray[np.uint64],
    ) -> Deals:
        """Deals in which some seats hold given cards and the others get the rest, as named.

        Args:
            fixed: Up to N hands of 13 cards, in seat order; None and seats left out are dealt.
            seeds, indices: As for `deal`.

        Raises:
            CardError: More hands than seats, or a card in two of them.
        """
        taken = self.check_fixed(fixed)
        size = len(indices)
        keys = _keys(seeds, size)
        given = [*fixed, *[None] * (self.num_players - len(fixed))]
        others = [seat for seat, hand in enumerate(given) if hand is None]
        dealt = np.empty((size, len(others), HAND_SIZE), np.int8)
        kernels.deal_rest_into(keys, indices, np.flatnonzero(~taken).astype(np.int8), dealt)
        hands = np.empty((size, self.num_players, HAND_SIZE), np.int8)
        hands[:, others] = dealt
        for seat, hand in enumerate(given):
            if hand is not None:
                hands[:, seat] = sorted(hand, reverse=True)
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
            can_surrender = self._may_surrender(len(hands))
        return Deals(hands, bits.reshape(shape), best.reshape(shape), seeds, indices, can_surrender)

    def _may_surrender(self, size: int) -> npt.NDArray[np.bool_]:
        allowed = np.empty((size, self.num_players), np.bool_)
        allowed.fill(self._surrender_allowed)
        return allowed

    def decisions(self, deals: Deals, seats: Sequence[int]) -> DecisionBatch:
        """What some seats of every deal have to decide, the seats of a deal side by side.

        The arrays are copies: a policy may do with them what it likes.
        """
        at, count = _places(seats), len(seats)
        return DecisionBatch(
            deals.hands[:, at].copy().reshape(-1, HAND_SIZE),
            self.rules,
            self.num_players,
            np.array(list(seats) * len(deals), np.int8),
            deals.naturals[:, at].flatten(),
            deals.can_surrender[:, at].flatten(),
            deals.seeds.copy() if count == 1 else deals.seeds.repeat(count),
            deals.indices.copy() if count == 1 else deals.indices.repeat(count),
        )

    def act(
        self,
        deals: Deals,
        seating: Seating,
        rng: np.random.Generator,
    ) -> Actions:
        """Actions (B, N) and (B, N, 13) of all seats; a seat without a policy shows nothing legal.

        A policy that sits in several seats is asked once for all of them; `seats_of` finds these.

        Raises:
            PolicyError: A policy answered out of shape or range.
        """
        size = len(deals)
        declarations = np.zeros((size, self.num_players), np.int8)
        rows = np.zeros((size, self.num_players, HAND_SIZE), np.int8)
        for policy, seats in seating:
            batch = self.decisions(deals, seats)
            actions = check_actions(policy.act(batch, rng), batch, type(policy).__name__)
            at = _places(seats)
            declarations[:, at] = actions.declarations.reshape(size, -1)
            rows[:, at] = actions.rows.reshape(size, -1, HAND_SIZE)
        return Actions(declarations, rows)

    def score(self, deals: Deals, actions: Actions) -> Settled:
        """Units of acted deals; a declaration that is not available shows the rows as placed."""
        return settle_checked(
            deals.hands, actions.rows, actions.declarations, deals.naturals, deals.can_surrender,
            self.rules,
        )  # fmt: skip

    def play(self, deals: Deals, policies: Sequence[Policy], rng: np.random.Generator) -> Settled:
        """Settled deals with every seat played by a policy."""
        return self.score(deals, self.act(deals, seats_of(policies), rng))

    def showdown(self, deals: Deals, actions: Actions, settled: Settled, deal: int) -> Showdown:
        """The readable account of one deal."""
        return account(settled, deal, arrangements_of(deals, actions, deal), self.rules)


def seats_of(policies: Sequence[Policy | None]) -> Seating:
    """Policies with their seats, from one policy, or None, for each seat."""
    found: dict[int, tuple[Policy, list[int]]] = {}
    for seat, policy in enumerate(policies):
        if policy is not None:
            found.setdefault(id(policy), (policy, []))[1].append(seat)
    return list(found.values())


def _places(seats: Sequence[int]) -> slice | list[int]:
    """Seats as an index: a slice, which is a view, where they are neighbours."""
    first, last = seats[0], seats[-1]
    return slice(first, last + 1) if last - first + 1 == len(seats) else list(seats)


def _keys(seeds: npt.NDArray[np.uint64] | int, size: int) -> npt.NDArray[np.uint64]:
    # A copy of one memory layout, as kernels compile once for each.
    keys = np.empty(size, np.uint64)
    keys[:] = seeds
    return keys


def arrangements_of(deals: Deals, actions: Actions, deal: int) -> tuple[Arrangement, ...]:
    """What every seat of one deal laid."""
    hands = deals.hands[deal]
    laid = np.empty(hands.shape, np.int8)
    starts = np.empty((len(hands), 2), np.int64)
    kernels.lay_into(hands, actions.rows[deal], laid, starts)
    return tuple(
        [
            Arrangement(tuple(cards[:middle]), tuple(cards[middle:back]), tuple(cards[back:]))
            for cards, (middle, back) in zip(laid.tolist(), starts.tolist(), strict=True)
        ]
    )

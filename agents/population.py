"""Hands as a policy plays them, kept to be everyone's opponents, and exact answers to them.

Of many hands drawn at random those that share no card with a given hand are exactly its opponents'
distribution, so one stored, already arranged population serves every hand.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.options import Estimates, choose

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, frontier
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import decisions_for
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, STATUSES, SURRENDER
from cpoker_env.table import Table
from cpoker_env.tables import NUM_STRENGTHS, tables_for

IntArray = npt.NDArray[Any]
_NORMAL, _FOUL, _SURRENDER, _NATURAL = range(len(STATUSES))
FloatArray = npt.NDArray[np.float64]

_CLUBS = np.uint64(sum(1 << 4 * rank for rank in range(13)))
RELABELLINGS = np.array(
    [
        (0, 1, 2, 3), (3, 1, 2, 0), (0, 2, 1, 3), (3, 2, 1, 0),
        (1, 0, 3, 2), (2, 0, 3, 1), (1, 3, 0, 2), (2, 3, 0, 1),
    ]
)  # fmt: skip
"""New suit of each suit, colours kept together: no rule tells the hands before and after apart."""


class Plays(NamedTuple):
    """What hands showed, declared or gave up, (H, ...) each.

    strengths: (H, 3) int16 row strengths.
    status: (H,) int8, index into scoring.STATUSES.
    declared: (H,) int8 pattern, -1 for none.
    keys: (H,) int64 comparison keys of declared naturals.
    """

    strengths: npt.NDArray[np.int16]
    status: npt.NDArray[np.int8]
    declared: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]

    def put(self, where: IntArray, new: "Plays") -> None:
        """Replace some of them in place."""
        self.strengths[where] = new.strengths
        self.status[where] = new.status
        self.declared[where] = new.declared
        self.keys[where] = new.keys

    def take(self, where: IntArray) -> "Plays":
        """Copies of some of them."""
        return Plays(
            self.strengths[where], self.status[where], self.declared[where], self.keys[where]
        )


def resolve(hands: IntArray, rows: IntArray, declarations: IntArray, rules: Rules) -> Plays:
    """What hands (H, 13) play with these rows (H, 13) and declarations (H,)."""
    size = len(hands)
    plays = Plays(
        np.empty((size, 3), np.int16), np.empty(size, np.int8), np.empty(size, np.int8),
        np.empty(size, np.int64),
    )  # fmt: skip
    decisions = decisions_for(hands, rules)
    tables = tables_for(rules)
    kernels.resolve_into(
        hands, rows, declarations, decisions.naturals, decisions.can_surrender, tables.rows,
        tables.naturals, rules.packed, *plays,
    )  # fmt: skip
    return plays


class Population(NamedTuple):
    """P hands with what they play, and sets of them as bits of W = P / 64 words, lowest bit first.

    holders: (52, W) uint64, the hands that hold each card.
    sides: (3, W) uint64, the hands of each bank -1, 0, 1.
    banks: (P,) int8, 1 the bank, -1 against it, 0 without one.
    runs: (P,) uint8, the chance of each hand to scoop two more opponents in 256ths, so that a scoop
        is part of a home run of ordinary hands; empty where home runs are left aside.
    """

    holders: npt.NDArray[np.uint64]
    sides: npt.NDArray[np.uint64]
    banks: npt.NDArray[np.int8]
    plays: Plays
    runs: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.banks)


def draw_hands(seed: int, size: int, first: int = 0) -> npt.NDArray[np.int8]:
    """(size, 13) int8 independent hands in the order a population keeps them: by their clubs.

    Hand number i is that of the first seat in deal `first` + i of the seed.
    """
    indices = np.arange(first, first + size, dtype=np.uint64)
    hands = np.ascontiguousarray(Table(Rules.preset("basic"), 2).deal(seed, indices).hands[:, 0])
    return hands[order_of(hands)]


def order_of(hands: IntArray) -> npt.NDArray[np.int64]:
    """(H,) indices that put hands in the order in which a population finds opponents fastest."""
    return np.argsort(card_sets(hands) & _CLUBS, kind="stable")


def sides_of(rules: Rules, size: int) -> npt.NDArray[np.int8]:
    """(size,) sides of a population's hands: every other one is the bank, where there is one."""
    sides = np.zeros(size, np.int8)
    if rules.banker is not None:
        sides[0::2], sides[1::2] = 1, -1
    return sides


def runs_of(scoops: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.uint8]:
    """Chances to scoop two more opponents, in 256ths, from chances to scoop one."""
    runs: npt.NDArray[np.uint8] = np.clip(np.round(256 * np.square(scoops)), 0, 255).astype(
        np.uint8
    )
    return runs


def gather(
    hands: IntArray,
    plays: Plays,
    banks: IntArray | None = None,
    runs: npt.NDArray[np.uint8] | None = None,
) -> Population:
    """A population of hands, met in this order; shares the arrays of `plays` and `runs`."""
    size = len(hands)
    sides = np.zeros(size, np.int8) if banks is None else banks.astype(np.int8)
    is_held = np.zeros((52, size), np.bool_)
    is_held[hands.T, np.arange(size)] = True
    return Population(
        _sets(is_held), _sets(sides == [[-1], [0], [1]]), sides, plays,
        np.empty(0, np.uint8) if runs is None else runs,
    )  # fmt: skip


def _sets(is_in: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """(S, P) booleans as (S, W) sets."""
    packed = np.packbits(is_in, axis=1, bitorder="little")
    spare = -packed.shape[1] % 8
    return np.pad(packed, ((0, 0), (0, spare))).view("<u8").astype(np.uint64)


def keys_of(hands: IntArray, naturals: IntArray, rules: Rules) -> npt.NDArray[np.int64]:
    """(H,) int64 comparison keys of hands (H, 13) that declare naturals (H,), 0 for none."""
    keys = np.empty(len(hands), np.int64)
    kernels.natural_keys_into(hands, naturals, tables_for(rules).naturals, rules.packed, keys)
    return keys


def opponents_of(
    hand: IntArray, population: Population, bank: int = 0, num_relabellings: int = 1
) -> npt.NDArray[np.int64]:
    """(n,) whom of a population one hand (13,) meets in `respond`, some of them more than once."""
    suits = RELABELLINGS[:num_relabellings, hand & 3]
    found = []
    for cards in (hand & ~3) | suits:
        taken = np.bitwise_or.reduce(population.holders[cards])
        free = (population.sides[1 - bank] & ~taken).astype("<u8")
        found.append(np.flatnonzero(np.unpackbits(free.view(np.uint8), bitorder="little")))
    return np.concatenate(found)


class Responses(NamedTuple):
    """Exact mean units of every option of H hands, against each half of their opponents.

    options: the candidates of each hand, M in all.
    values: (2, M) of showing them.
    surrender, declare: (2, H) of giving up and declaring; declaring counts where naturals are not
        -1.
    scoops: (2, M) share of opponents that each candidate scoops.
    foul: (2, H) of showing rows out of order, valued where plays were given to `respond`; `best`
        leaves fouls on purpose aside.
    naturals, keys: (H,) int8 best natural of each hand, -1 for none, and (H,) int64 its key.
    met: (2, H) int64, how many opponents each half has.
    """

    options: Frontier
    values: FloatArray
    surrender: FloatArray
    declare: FloatArray
    scoops: FloatArray
    foul: FloatArray
    naturals: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]
    met: npt.NDArray[np.int64]

    def mean(self) -> "Responses":
        """Both halves taken together, twice."""
        weight = self.met / np.maximum(self.met.sum(axis=0), 1)
        per_candidate = weight[:, self.options.hand_index]

        def both(values: FloatArray, weights: FloatArray) -> FloatArray:
            return np.tile((values * weights).sum(axis=0), (2, 1))

        return self._replace(
            values=both(self.values, per_candidate),
            surrender=both(self.surrender, weight),
            declare=both(self.declare, weight),
            scoops=both(self.scoops, per_candidate),
            foul=both(self.foul, weight),
        )

    def estimates(self, half: int, rules: Rules) -> Estimates:
        """Units of every option by one half, NaN for what the rules or the hand do not have."""
        may = np.full(len(self.naturals), rules.surrender_allowed)
        return Estimates(
            self.options,
            self.values[half],
            np.where(may, self.surrender[half], np.nan),
            np.where(self.naturals >= 0, self.declare[half], np.nan),
        )

    def best(self, half: int, rules: Rules) -> tuple[IntArray, IntArray]:
        """(index of the best candidate, best declaration) of each hand by one half, (H,) each."""
        return choose(self.estimates(half, rules))

    def plays(self, candidates: IntArray, declarations: IntArray) -> Plays:
        """What hands play that choose these candidates and declarations, (H,) each."""
        declares = declarations == DECLARE
        status = np.array([_NORMAL, _SURRENDER, _NATURAL], np.int8)[declarations]
        return Plays(
            self.options.strengths[candidates],
            status,
            np.where(declares, self.naturals, -1).astype(np.int8),
            np.where(declares, self.keys, 0),
        )

    def value_of_extra(self, half: int, plays: "Plays") -> FloatArray:
        """(H,) units of what hands play, which was the `extra` of these responses."""
        shown = self.options.starts[1:] - 1
        declarations = np.zeros(len(shown), np.int8)
        declarations[plays.status == _SURRENDER] = SURRENDER
        declarations[plays.status == _NATURAL] = DECLARE
        return self.value_of(half, shown, declarations)

    def value_of(self, half: int, candidates: IntArray, declarations: IntArray) -> FloatArray:
        """(H,) units of these choices by one half."""
        by_declaration = (self.values[half][candidates], self.surrender[half], self.declare[half])
        chosen: FloatArray = np.choose(declarations, by_declaration)
        return chosen


def respond(
    hands: IntArray,
    population: Population,
    rules: Rules,
    bank: IntArray | None = None,
    num_relabellings: int = 1,
    extra: Plays | None = None,
) -> Responses:
    """Values of every option of hands against those of the population that could sit there.

    Args:
        hands: (H, 13) int8, each highest first.
        population: Whom they meet.
        rules: The house rules; a pool is valued as two seats play it, home runs where the
            population knows of them.
        bank: (H,) int8 side of each hand; None for rules without a bank.
        num_relabellings: 1..8, times a hand meets the population, its suits renamed each time.
        extra: The rows of these plays are one more candidate of each hand, the last; they may be
            dominated, or foul.
    """
    found = unvalued(hands, rules, extra)
    options = found.options
    size = len(hands)
    last_fouls = np.zeros(size, np.bool_) if extra is None else extra.status == _FOUL
    sides = np.zeros(size, np.int8) if bank is None else np.ascontiguousarray(bank, np.int8)
    suits = RELABELLINGS[:num_relabellings, hands & 3]
    relabelled = ((hands & ~3) | suits.astype(np.int8)).swapaxes(0, 1)
    # About 1.3 % of all hands share no card with a given one; 3 % is far beyond what happens.
    limit = 2 * (int(0.015 * len(population) * num_relabellings) + 64)
    kernels.responses_into(
        np.ascontiguousarray(relabelled), options.starts, options.strengths, last_fouls,
        found.naturals, found.keys, sides,
        population.holders, population.sides, *population.plays, population.runs,
        rules.packed, *_gains(rules), limit, extra is not None,
        found.values, found.surrender, found.declare, found.scoops, found.foul, found.met,
    )  # fmt: skip
    return found


def unvalued(hands: IntArray, rules: Rules, extra: Plays | None = None) -> Responses:
    """The options of hands, as `respond` takes them, their values still 0 and nobody met."""
    options = frontier(hands, rules)
    if extra is not None:
        options = _with_extra(options, extra.strengths)
    _, naturals = natural_bits(hands, rules)
    surrender, declare, foul = np.zeros((3, 2, len(hands)))
    return Responses(
        options, np.zeros((2, len(options.strengths))), surrender, declare,
        np.zeros((2, len(options.strengths))), foul, naturals,
        keys_of(hands, naturals, rules), np.zeros((2, len(hands)), np.int64),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _gains(rules: Rules) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    gains, kept = np.zeros((3, NUM_STRENGTHS), np.int64), np.zeros((3, NUM_STRENGTHS), np.int64)
    kernels.gains_into(rules.packed, gains, kept)
    return gains, kept


def _with_extra(options: Frontier, extra: npt.NDArray[np.int16]) -> Frontier:
    """One more candidate for each hand, after the others; its rows are left at zero."""
    starts = options.starts + np.arange(len(options.starts))
    strengths = np.empty((len(options.strengths) + len(extra), 3), np.int16)
    rows = np.zeros((len(strengths), 13), np.int8)
    is_extra = np.zeros(len(strengths), np.bool_)
    is_extra[starts[1:] - 1] = True
    strengths[~is_extra], strengths[is_extra] = options.strengths, extra
    rows[~is_extra] = options.rows
    return Frontier(starts, strengths, rows)


def card_sets(hands: IntArray) -> npt.NDArray[np.uint64]:
    """(..., 13) cards as (...) sets of 52 bits."""
    masks: npt.NDArray[np.uint64] = (np.uint64(1) << hands.astype(np.uint64)).sum(
        axis=-1, dtype=np.uint64
    )
    return masks

"""Lookup tables the kernels read, built once per process from the definition of poker hands.

A row's cards, highest first, give ranks r1 >= r2 >= ... Its *index* is the sum over positions i of
``offset[i, r_i]``, the place of the rank multiset in combinatorial order: 0..6187 for five cards,
0..454 for three. ``fives`` turns a five-card index into a *strength*, 0..7461, higher is better,
equal means tied; ``front`` does the same for three cards, 0..454. Front and five-card
strengths are different scales: ``min_middle[front strength]`` is the lowest middle strength that
keeps the order of the rows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env.rules import Rules

CATEGORIES = (
    "high card",
    "pair",
    "two pair",
    "trips",
    "straight",
    "flush",
    "full house",
    "quads",
    "straight flush",
)
CATEGORY_SIZES = (1277, 2860, 858, 858, 10, 1277, 156, 156, 10)
"""Distinct strengths of each category, weakest first; 7,462 in all."""
CATEGORY_STARTS = tuple(sum(CATEGORY_SIZES[:i]) for i in range(len(CATEGORY_SIZES)))
FULL_HOUSE, QUADS, STRAIGHT_FLUSH = CATEGORY_STARTS[6:9]
NUM_STRENGTHS = 7462
ROYAL_FLUSH = NUM_STRENGTHS - 1
FRONT_CATEGORY_SIZES = (286, 156, 13)
"""High cards, pairs and trips among the front strengths; 455 in all."""
FRONT_PAIR, FRONT_TRIPS = 286, 442
NUM_FRONT_STRENGTHS = 455
NUM_FRONTS = 286
"""Ways to choose three of 13 cards."""
NUM_SPLITS = 126
"""Ways to split the other ten cards into two unordered fives."""
NUM_FIVES = 1287
"""Ways to choose five of 13 cards."""
NUM_REMAINDERS = 56
"""Ways to choose five of the eight cards another five leaves."""

HIGH_CARD, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH = range(6)
_FIVE = tuple[int, tuple[int, ...]]
_OFFSET = [[comb(12 - rank + i, i + 1) for rank in range(13)] for i in range(5)]


class RowTables(NamedTuple):
    """From cards to strengths, and the order of the rows.

    offset: (5, 13) int64, index share of a rank at a position of its row.
    fives: (2, 6188) int16, five-card strength by index, suits mixed or all the same.
    front: (455,) int16, three-card strength by index.
    min_middle: (455,) int16, lowest middle strength legal over a front strength; the front may be
        matched by an equal prefix only where the rules let it.
    """

    offset: npt.NDArray[np.int64]
    fives: npt.NDArray[np.int16]
    front: npt.NDArray[np.int16]
    min_middle: npt.NDArray[np.int16]


class NaturalTables(NamedTuple):
    """Hands of three straights.

    straights: (S,) int64, their rank counts (3 bits a rank), sorted.
    straights_key: (S,) int64, comparison key of the best such split.
    straights_ranks: (8192,) bool, by 13-bit set of ranks, whether a hand of just these ranks may
        be three straights.
    """

    straights: npt.NDArray[np.int64]
    straights_key: npt.NDArray[np.int64]
    straights_ranks: npt.NDArray[np.bool_]


class SplitTables(NamedTuple):
    """Ways to split the 13 positions of a hand; the same under all rules.

    front_masks: (286,) int16, 13-bit mask of each front.
    five_masks: (1287,) int16, 13-bit mask of each five.
    front_cards: (286, 3) uint8, positions of the cards of each front.
    five_cards: (1287, 5) uint8, positions of the cards of each five.
    splits: (286, 126, 2) int16, indices of the two fives left by each front.
    remainders: (1287, 56, 2) int16, indices of the five and the front that each five's complement
        may be split into.
    """

    front_masks: npt.NDArray[np.int16]
    five_masks: npt.NDArray[np.int16]
    front_cards: npt.NDArray[np.uint8]
    five_cards: npt.NDArray[np.uint8]
    splits: npt.NDArray[np.int16]
    remainders: npt.NDArray[np.int16]


class Tables(NamedTuple):
    """Arrays for the kernels under one reading of the wheel and of the front's prefix.

    Three parts, so that a kernel is handed what it reads, as plain tuples in the order of
    `RowTables`, `NaturalTables` and `SplitTables`: every array and every name passed costs a call
    time.
    """

    rows: tuple[npt.NDArray[Any], ...]
    naturals: tuple[npt.NDArray[Any], ...]
    splits: tuple[npt.NDArray[Any], ...]


def tables_for(rules: Rules) -> Tables:
    """The tables these rules need; built once per process, then shared."""
    return _tables(*rules.reading)


def category_of(strength: int) -> int:
    """Index into CATEGORIES of a five-card strength."""
    return int(np.searchsorted(CATEGORY_STARTS, strength, side="right")) - 1


def front_category_of(strength: int) -> int:
    """Index into CATEGORIES of a front strength: high card, pair or trips."""
    return TRIPS if strength >= FRONT_TRIPS else PAIR if strength >= FRONT_PAIR else HIGH_CARD


@cache
def strength_ranks(second_high: bool) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Ranks behind every strength, like ranks first, then high to low.

    Returns:
        (455, 3) int8 for fronts, (7462, 5) int8 for five-card rows; ranks 0..12.
    """
    tables = RowTables(*_tables(second_high, True).rows)
    fronts = np.zeros((NUM_FRONT_STRENGTHS, 3), np.int8)
    fives = np.zeros((NUM_STRENGTHS, 5), np.int8)
    for ranks in _multisets(3):
        fronts[tables.front[_index(ranks)]] = _grouped(ranks)
    for ranks in _multisets(5):
        index = _index(ranks)
        fives[tables.fives[0, index]] = _grouped(ranks)
        if _distinct(ranks):
            fives[tables.fives[1, index]] = ranks
    return fronts, fives


def _grouped(ranks: tuple[int, ...]) -> list[int]:
    return sorted(ranks, key=lambda rank: (ranks.count(rank), rank), reverse=True)


@cache
def _tables(second_high: bool, middle_may_tie: bool) -> Tables:
    plain_keys = {ranks: _rank_five(ranks, False, second_high) for ranks in _multisets(5)}
    flush_keys = {
        ranks: _rank_five(ranks, True, second_high) for ranks in _multisets(5) if _distinct(ranks)
    }
    ladder = sorted(set(plain_keys.values()) | set(flush_keys.values()))
    strength = {key: place for place, key in enumerate(ladder)}
    plain = np.zeros(comb(17, 5), np.int16)
    flush = np.zeros(comb(17, 5), np.int16)
    for ranks, key in plain_keys.items():
        plain[_index(ranks)] = strength[key]
    for ranks, key in flush_keys.items():
        flush[_index(ranks)] = strength[key]

    front_keys = {ranks: _rank_groups(ranks) for ranks in _multisets(3)}
    front_ladder = sorted(front_keys.values())
    front = np.zeros(NUM_FRONT_STRENGTHS, np.int16)
    for ranks, key in front_keys.items():
        front[_index(ranks)] = front_ladder.index(key)
    prefixes = [(category, ranks[: _front_length(category)]) for category, ranks in ladder]
    # Ladders ascend, and so do their prefixes.
    first = bisect_left if middle_may_tie else bisect_right
    min_middle = np.array([first(prefixes, key) for key in front_ladder], np.int16)
    straights, straights_key = _three_straights(second_high)
    rows = RowTables(np.array(_OFFSET, np.int64), np.stack((plain, flush)), front, min_middle)
    naturals = NaturalTables(straights, straights_key, _rank_sets(straights))
    return Tables(tuple(rows), tuple(naturals), tuple(_split_tables()))


def _multisets(size: int) -> Iterator[tuple[int, ...]]:
    """Rank multisets that four suits allow, ranks high to low."""
    for ranks in combinations_with_replacement(range(12, -1, -1), size):
        if all(ranks.count(rank) <= 4 for rank in set(ranks)):
            yield ranks


def _distinct(ranks: tuple[int, ...]) -> bool:
    return len(set(ranks)) == len(ranks)


def _index(ranks: tuple[int, ...]) -> int:
    return sum(shares[rank] for shares, rank in zip(_OFFSET, ranks, strict=False))


def _rank_groups(ranks: tuple[int, ...]) -> _FIVE:
    """Category and ranks of cards read by like ranks alone, no straight or flush."""
    groups = sorted(((ranks.count(r), r) for r in set(ranks)), reverse=True)
    shape = tuple(count for count, _ in groups)
    if shape[0] == 4:
        category = 7
    elif shape[0] == 3:
        category = 6 if shape[1:2] == (2,) else TRIPS
    elif shape[0] == 2:
        category = TWO_PAIR if shape[1] == 2 else PAIR
    else:
        category = HIGH_CARD
    return category, tuple(rank for _, rank in groups)


def _straight_top(ranks: tuple[int, ...], second_high: bool) -> float | None:
    """What a run compares by, its top rank; None if the ranks are no run. The wheel's is given."""
    if not _distinct(ranks):
        return None
    if ranks[0] - ranks[-1] == len(ranks) - 1:
        return ranks[0]
    if ranks[0] == 12 and ranks[1] == len(ranks) - 2 and ranks[-1] == 0:
        return 11.5 if second_high else len(ranks) - 2
    return None


def _rank_five(ranks: tuple[int, ...], flush: bool, second_high: bool) -> _FIVE:
    top = _straight_top(ranks, second_high)
    if top is not None:
        return (8 if flush else STRAIGHT), (int(2 * top),)
    return (FLUSH, ranks) if flush else _rank_groups(ranks)


def _front_length(category: int) -> int:
    """How many of a middle's ranks its own front could have: trips 1, pair 2, high card 3."""
    return {HIGH_CARD: 3, PAIR: 2, TRIPS: 1}.get(category, 5)


def _three_straights(second_high: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    def runs(size: int) -> dict[int, tuple[int, ...]]:
        found = {}
        for ranks in combinations(range(12, -1, -1), size):
            top = _straight_top(ranks, second_high)
            if top is not None:
                found[int(2 * top)] = ranks
        return found

    keys: dict[int, int] = {}
    fives, threes = runs(5), runs(3)
    for back, back_ranks in fives.items():
        for middle, middle_ranks in fives.items():
            for front, front_ranks in threes.items():
                ranks = back_ranks + middle_ranks + front_ranks
                if back < middle or any(ranks.count(rank) > 4 for rank in ranks):
                    continue
                counts = sum(1 << 3 * rank for rank in ranks)
                keys[counts] = max(keys.get(counts, -1), (back << 10) | (middle << 5) | front)
    counts_sorted = sorted(keys)
    return (
        np.array(counts_sorted, np.int64),
        np.array([keys[counts] for counts in counts_sorted], np.int64),
    )


def _rank_sets(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(8192,) bool, which sets of ranks the rank counts (3 bits a rank) have."""
    is_held = (counts[:, None] >> 3 * np.arange(13) & 7) > 0
    found = np.zeros(1 << 13, np.bool_)
    found[is_held @ (1 << np.arange(13))] = True
    return found


@cache
def _split_tables() -> SplitTables:
    front_masks = _masks(3)
    five_masks = _masks(5)
    index_of = np.full(1 << 13, -1, np.int16)
    index_of[front_masks] = np.arange(NUM_FRONTS)
    index_of[five_masks] = np.arange(NUM_FIVES)
    splits = np.empty((NUM_FRONTS, NUM_SPLITS, 2), np.int16)
    for place, front in enumerate(front_masks):
        rest = _ALL_CARDS ^ int(front)
        lowest = rest & -rest
        with_lowest = five_masks[(five_masks & front == 0) & (five_masks & lowest != 0)]
        splits[place, :, 0] = index_of[with_lowest]
        splits[place, :, 1] = index_of[rest ^ with_lowest]
    remainders = np.empty((NUM_FIVES, NUM_REMAINDERS, 2), np.int16)
    for place, back in enumerate(five_masks):
        middles = five_masks[five_masks & back == 0]
        remainders[place, :, 0] = index_of[middles]
        remainders[place, :, 1] = index_of[_ALL_CARDS ^ back ^ middles]
    return SplitTables(front_masks, five_masks, _positions(3), _positions(5), splits, remainders)


_ALL_CARDS = 0x1FFF


def _masks(size: int) -> npt.NDArray[np.int16]:
    """13-bit masks of all choices of `size` cards, in lexicographic order of positions."""
    masks: npt.NDArray[np.int16] = (1 << _positions(size).astype(np.int64)).sum(axis=1)
    return masks.astype(np.int16)


@cache
def _positions(size: int) -> npt.NDArray[np.uint8]:
    """Positions of all choices of `size` cards, in lexicographic order."""
    return np.array(list(combinations(range(13), size)), np.uint8)

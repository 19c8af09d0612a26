"""A hand and its arrangements: rows to cards and back, legality, the frontier, names of rows."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import factorial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE, NUM_CARDS, Card, format_cards, parse_cards, rank_of
from cpoker_env.errors import ArrangementError, CardError, ConfigError
from cpoker_env.rules import Rules
from cpoker_env.tables import (
    CATEGORIES,
    FRONT_TRIPS,
    FULL_HOUSE,
    QUADS,
    ROYAL_FLUSH,
    STRAIGHT_FLUSH,
    category_of,
    front_category_of,
    tables_for,
)
from cpoker_env.valuation import RowValues

ROW_NAMES = ("front", "middle", "back")
ROW_SIZES = (3, 5, 5)
NUM_ARRANGEMENTS = 72072
"""Ways to place 13 cards, 3 in front, 5 in the middle, 5 in the back, legal or not."""

IntArray = npt.NDArray[Any]


class Arrangement(NamedTuple):
    """A hand split into its rows, each highest card first."""

    front: tuple[Card, ...]
    middle: tuple[Card, ...]
    back: tuple[Card, ...]

    @property
    def hand(self) -> list[Card]:
        """All cards, highest first."""
        return sorted((*self.front, *self.middle, *self.back), reverse=True)

    def __str__(self) -> str:
        return "|".join(format_cards(row) for row in self)


def parse_arrangement(
    front: str | Iterable[str], middle: str | Iterable[str], back: str | Iterable[str]
) -> Arrangement:
    """Arrangement of three rows of card texts.

    Raises:
        CardError: A text that is no card, or a card twice.
        ArrangementError: A row of the wrong size.
    """
    rows = [parse_cards(row) for row in (front, middle, back)]
    for name, size, row in zip(ROW_NAMES, ROW_SIZES, rows, strict=True):
        if len(row) != size:
            raise ArrangementError(f"{name} of {len(row)} cards: it takes exactly {size}")
    seen: set[Card] = set()
    for card in (card for row in rows for card in row):
        if card in seen:
            raise CardError(f"card {format_cards([card])!r} twice: it can lie in one row only")
        seen.add(card)
    return Arrangement(*(tuple(sorted(row, reverse=True)) for row in rows))


def check_hands(hands: IntArray | Sequence[Any]) -> npt.NDArray[np.int8]:
    """Hands as (M, 13) int8, each highest first, C order.

    Raises:
        CardError: Another shape or dtype, a card out of 0..51, or a card twice in a hand.
    """
    try:
        given = np.asarray(hands)
    except ValueError:
        raise CardError(f"hands of unequal lengths: give (M, {HAND_SIZE})") from None
    if given.ndim != 2 or given.shape[1] != HAND_SIZE:
        raise CardError(f"hands of shape {given.shape}: give (M, {HAND_SIZE})")
    if given.dtype.kind not in "iu":
        raise CardError(f"hands of dtype {given.dtype}: give integers 0..{NUM_CARDS - 1}")
    if given.size and (given.min() < 0 or given.max() >= NUM_CARDS):
        raise CardError(
            f"cards {given.min()}..{given.max()} in hands: a card is 0..{NUM_CARDS - 1}"
        )
    hands8 = np.empty(given.shape, np.int8)
    twice = kernels.sort_hands_into(np.ascontiguousarray(given, np.int8), hands8)
    if twice >= 0:
        raise CardError(f"hand {twice} holds a card twice: give 13 different cards")
    return hands8


def rows_of(arrangement: Arrangement) -> npt.NDArray[np.int8]:
    """(13,) int8 row (0 front, 1 middle, 2 back) of each card of the hand, highest card first."""
    row_of_card = {card: row for row in range(3) for card in arrangement[row]}
    return np.array([row_of_card[card] for card in arrangement.hand], np.int8)


def arrangement_of(hand: Sequence[Card], rows: Sequence[int]) -> Arrangement:
    """Arrangement of a hand, highest first, and the row of each card; sizes are not checked.

    Raises:
        ArrangementError: A hand in another order, which rows of this package never refer to.
    """
    if any(higher < lower for higher, lower in pairwise(hand)):
        raise ArrangementError(
            f"hand {format_cards(hand)} is not highest card first: rows refer to that order"
        )
    laid: tuple[list[Card], list[Card], list[Card]] = ([], [], [])
    for card, row in zip(hand, rows, strict=True):
        laid[row].append(int(card))
    return Arrangement(tuple(laid[0]), tuple(laid[1]), tuple(laid[2]))


def evaluate(
    hands: IntArray, rows: IntArray, rules: Rules
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
    """Row strengths and legality of arrangements.

    Args:
        hands: (M, 13) int8, highest first.
        rows: (M, 13) int8, the row of each card.
        rules: Decide the wheel and the order of the rows.

    Returns:
        (M, 3) int16 strengths of front (0..454), middle and back (0..7461); (M,) bool, whether the
        sizes are 3, 5, 5 and the rows in order.
    """
    strengths = np.empty((len(hands), 3), np.int16)
    is_legal = np.empty(len(hands), np.bool_)
    kernels.evaluate_into(hands, rows, tables_for(rules).rows, rules.packed, strengths, is_legal)
    return strengths, is_legal


def is_foul(arrangement: Arrangement, rules: Rules) -> bool:
    """Whether the rows are out of order under the rules."""
    _, is_legal = evaluate(np.array([arrangement.hand], np.int8), rows_of(arrangement)[None], rules)
    return not is_legal[0]


@dataclass(frozen=True)
class Frontier:
    """Non-dominated legal arrangements of a batch of hands, ragged.

    The arrangements of hand h are ``starts[h]:starts[h + 1]``, strongest front first.

    starts: (H + 1,) int64.
    strengths: (M, 3) int16, front 0..454, middle and back 0..7461.
    rows: (M, 13) int8, the row of each card of the hand, highest card first.
    """

    starts: npt.NDArray[np.int64]
    strengths: npt.NDArray[np.int16]
    rows: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def hand_index(self) -> npt.NDArray[np.int64]:
        """(M,) int64: the hand each arrangement belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


def frontier(hands: IntArray, rules: Rules | str, num_threads: int = 1) -> Frontier:
    """Every non-dominated legal arrangement of each hand.

    An arrangement is dominated if another of the same hand is at least as strong in all rows; of
    arrangements equal in all rows one is kept, always the same. A hand always has a legal one.

    Args:
        hands: (H, 13) integers; the rows that come back refer to each hand highest card first.
        rules: Decide the wheel and the order of the rows.
        num_threads: Hands are shared out among so many threads; the result does not change.

    Raises:
        CardError: Not H hands of 13 different cards.
        ConfigError: `num_threads` is no positive int.
    """
    rules = Rules.of(rules)
    hands8 = check_hands(hands)
    parts = _in_parts(lambda part: _frontier_of(hands8[part], rules), len(hands8), num_threads)
    offsets = np.cumsum([0, *(part_starts[-1] for part_starts, _ in parts)])
    starts = np.concatenate(
        [[0], *(part[1:] + at for (part, _), at in zip(parts, offsets[:-1], strict=True))]
    ).astype(np.int64)
    blocks = [block for _, part_blocks in parts for block in part_blocks]
    if len(blocks) == 1:
        return Frontier(starts, *blocks[0])
    strengths, rows = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return Frontier(starts, strengths, rows)


_SPARE_ROOM = 4096
"""Room for arrangements beyond the 160 a hand that most batches need."""
_Block = tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]


def _frontier_of(
    hands: npt.NDArray[np.int8], rules: Rules
) -> tuple[npt.NDArray[np.int64], list[_Block]]:
    """Bounds of the frontiers, and their strengths and rows in one or more blocks."""
    starts = np.zeros(len(hands) + 1, np.int64)
    blocks: list[_Block] = []
    done = 0
    spare = _SPARE_ROOM
    tables = tables_for(rules)
    while done < len(hands) or not blocks:
        room = 160 * (len(hands) - done) + spare
        strengths = np.empty((room, 3), np.int16)
        rows = np.empty((room, HAND_SIZE), np.int8)
        before = done
        done = kernels.frontier_into(
            hands, before, tables.rows, tables.splits, rules.packed, starts, strengths, rows
        )
        size = starts[done] - starts[before]
        blocks.append((strengths[:size], rows[:size]))
        if done == before:
            spare *= 2
    return starts, blocks


class Best(NamedTuple):
    """The most valuable arrangement of each hand.

    rows: (H, 13) int8, the row of each card of the hand, highest card first.
    strengths: (H, 3) int16, front 0..454, middle and back 0..7461.
    values: (H,) float64, units.
    """

    rows: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    values: npt.NDArray[np.float64]


def best(hands: IntArray, values: RowValues, rules: Rules | str, num_threads: int = 1) -> Best:
    """The legal arrangement of each hand with the highest value, exactly.

    Of equal values the one with the strongest back, then middle, then front is taken; of
    arrangements equal in all rows one, always the same. Values that are not monotone take longer.

    Args:
        hands: (H, 13) integers; the rows that come back refer to each hand highest card first.
        values: What row strengths are worth.
        rules: Decide the wheel and the order of the rows.
        num_threads: Hands are shared out among so many threads; the result does not change.

    Raises:
        CardError: Not H hands of 13 different cards.
        ConfigError: `num_threads` is no positive int.
    """
    rules = Rules.of(rules)
    hands8 = check_hands(hands)
    found = Best(
        np.empty((len(hands8), HAND_SIZE), np.int8),
        np.empty((len(hands8), 3), np.int16),
        np.empty(len(hands8)),
    )

    tables = tables_for(rules)

    def work(part: slice) -> None:
        kernels.best_into(
            hands8[part], tables.rows, tables.splits, rules.packed, values.packed,
            *(array[part] for array in found),
        )  # fmt: skip

    _in_parts(work, len(hands8), num_threads)
    return found


def _as_array(what: str, values: Any) -> IntArray:
    try:
        return np.asarray(values)
    except ValueError:
        raise ArrangementError(f"{what} of unequal lengths: give an array") from None


_T = TypeVar("_T")


def _in_parts(work: Callable[[slice], _T], size: int, num_threads: int) -> list[_T]:
    """What `work` returns for each of `num_threads` contiguous parts of range(size), in order."""
    if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
        raise ConfigError(f"num_threads {num_threads!r}: give a whole number from 1 on")
    if num_threads == 1 or size <= 1:
        return [work(slice(0, size))]
    # More threads than a few a core only wait for each other.
    num_parts = min(num_threads, size, 4 * (os.cpu_count() or 1))
    bounds = [size * part // num_parts for part in range(num_parts + 1)]
    with ThreadPoolExecutor(num_parts) as pool:
        return list(pool.map(work, map(slice, bounds[:-1], bounds[1:])))


class Enumeration(NamedTuple):
    """Every arrangement of a hand, in lexicographic order of the rows.

    rows: (72072, 13) int8, the row of each card of the hand, highest card first; read-only.
    strengths: (72072, 3) int16, front 0..454, middle and back 0..7461.
    is_legal: (72072,) bool, whether the rows are in order.
    """

    rows: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    is_legal: npt.NDArray[np.bool_]


def enumerate(hand: IntArray, rules: Rules | str) -> Enumeration:
    """All 72,072 arrangements of a hand, legal or not; entry i lies as ``rows_at([i])[0]``.

    Args:
        hand: (13,) integers; the rows that come back refer to the hand highest card first.
        rules: Decide the wheel and the order of the rows.

    Raises:
        CardError: Not 13 different cards.
    """
    rules = Rules.of(rules)
    ordered = check_hands([hand])
    rows = _all_rows()
    told = evaluate(np.repeat(ordered, len(rows), axis=0), rows, rules)
    shared = rows.view()
    shared.flags.writeable = False
    return Enumeration(shared, *told)


def index_of(rows: IntArray) -> npt.NDArray[np.int64]:
    """(M,) int64 index 0..72071 of rows (M, 13) among all, in lexicographic order.

    Raises:
        ArrangementError: Another shape or dtype, or rows that are not 3, 5 and 5 cards.
    """
    given = _as_array("rows", rows)
    if given.ndim != 2 or given.shape[1] != HAND_SIZE or given.dtype.kind not in "iu":
        raise ArrangementError(
            f"rows of shape {given.shape} and dtype {given.dtype}: give (M, {HAND_SIZE}) integers"
        )
    sizes = (given[:, :, None] == np.arange(3)).sum(axis=1)
    is_off = (sizes != ROW_SIZES).any(axis=1)
    if is_off.any():
        at = int(is_off.argmax())
        raise ArrangementError(
            f"rows {at} hold {sizes[at].tolist()} cards: front, middle and back take {ROW_SIZES}"
        )
    left = np.tile(ROW_SIZES, (len(given), 1))
    index = np.zeros(len(given), np.int64)
    for card in range(HAND_SIZE):
        laid = given[:, card]
        for row in range(2):
            index += np.where(laid > row, _ways_after(left, row), 0)
        left[np.arange(len(given)), laid] -= 1
    return index


def rows_at(indices: IntArray) -> npt.NDArray[np.int8]:
    """(M, 13) int8 rows at indices (M,) among all, in lexicographic order.

    Raises:
        ArrangementError: Another shape or dtype, or an index out of 0..72071.
    """
    given = _as_array("indices", indices)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ArrangementError(
            f"indices of shape {given.shape} and dtype {given.dtype}: give (M,) integers"
        )
    if given.size and (given.min() < 0 or given.max() >= NUM_ARRANGEMENTS):
        raise ArrangementError(
            f"indices {given.min()}..{given.max()}: they are 0..{NUM_ARRANGEMENTS - 1}"
        )
    rest = given.astype(np.int64)
    left = np.tile(ROW_SIZES, (len(rest), 1))
    rows = np.empty((len(rest), HAND_SIZE), np.int8)
    for card in range(HAND_SIZE):
        laid = np.zeros(len(rest), np.int64)
        for row in range(2):
            skipped = np.where(laid == row, _ways_after(left, row), 0)
            is_past = (laid == row) & (rest >= skipped)
            rest -= np.where(is_past, skipped, 0)
            laid += is_past
        rows[:, card] = laid
        left[np.arange(len(rest)), laid] -= 1
    return rows


def _ways_after(left: npt.NDArray[np.int64], row: int) -> npt.NDArray[np.int64]:
    """(M,) int64 ways to go on once a card is in `row`, with room (M, 3) `left` in the rows."""
    room = left.copy()
    room[:, row] -= 1
    # Room of -1 reads the last line, which is kept at no ways.
    return _ways()[room[:, 0], room[:, 1], room[:, 2]]


@cache
def _ways() -> npt.NDArray[np.int64]:
    """(5, 7, 7) int64 ways to fill rows with room for so many cards; the last of each axis 0."""
    ways = np.zeros((5, 7, 7), np.int64)
    for room in np.ndindex(4, 6, 6):
        count = factorial(sum(room))
        for size in room:
            count //= factorial(size)
        ways[room] = count
    return ways


@cache
def _all_rows() -> npt.NDArray[np.int8]:
    return rows_at(np.arange(NUM_ARRANGEMENTS))


_PLURALS = (
    "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines", "tens", "jacks",
    "queens", "kings", "aces",
)  # fmt: skip
RANK_NAMES = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen",
    "king", "ace",
)  # fmt: skip


def describe_row(cards: Sequence[Card], strength: int) -> str:
    """Name of a row, as a player would say it: "pair of kings", "queen-high flush".

    Args:
        cards: The row's three or five cards.
        strength: Its strength on the scale of its size.
    """
    category = front_category_of(strength) if len(cards) == 3 else category_of(strength)
    ranks = [rank_of(card) for card in cards]
    grouped = sorted(set(ranks), key=lambda rank: (ranks.count(rank), rank), reverse=True)
    first, second = grouped[0], grouped[min(1, len(grouped) - 1)]
    is_wheel = set(ranks) == {12, 0, 1, 2, 3}
    top = RANK_NAMES[3 if is_wheel else first]
    match CATEGORIES[category]:
        case "high card":
            return f"{RANK_NAMES[first]} high"
        case "pair":
            return f"pair of {_PLURALS[first]}"
        case "two pair":
            return f"two pair, {_PLURALS[first]} and {_PLURALS[second]}"
        case "trips":
            return f"trip {_PLURALS[first]}"
        case "full house":
            return f"{_PLURALS[first]} full of {_PLURALS[second]}"
        case "quads":
            return f"quad {_PLURALS[first]}"
        case "straight flush" if strength == ROYAL_FLUSH:
            return "royal flush"
        case name:
            return f"{top}-high {name}"


def royalty_title(row: int, strength: int) -> str:
    """Name of what earns a royalty in a row: "trips", "full house"; "" for nothing."""
    if row == 0:
        return "trips" if strength >= FRONT_TRIPS else ""
    if strength >= STRAIGHT_FLUSH:
        return "a royal flush" if strength == ROYAL_FLUSH else "a straight flush"
    if strength >= QUADS:
        return "quads"
    return "a full house" if row == 1 and strength >= FULL_HOUSE else ""

"""A hand and its arrangements: rows to cards and back, legality, the frontier, names of rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE, NUM_CARDS, Card, format_cards, parse_cards, rank_of
from cpoker_env.errors import ArrangementError, CardError
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


def check_hands(hands: IntArray) -> npt.NDArray[np.int8]:
    """Hands as (M, 13) int8, each highest first, C order.

    Raises:
        CardError: Another shape or dtype, a card out of 0..51, or a card twice in a hand.
    """
    given = np.asarray(hands)
    if given.ndim != 2 or given.shape[1] != HAND_SIZE:
        raise CardError(f"hands of shape {given.shape}: give (M, {HAND_SIZE})")
    if given.dtype.kind not in "iu":
        raise CardError(f"hands of dtype {given.dtype}: give integers 0..{NUM_CARDS - 1}")
    if given.size and (given.min() < 0 or given.max() >= NUM_CARDS):
        raise CardError(
            f"cards {given.min()}..{given.max()} in hands: a card is 0..{NUM_CARDS - 1}"
        )
    hands8 = np.sort(given.astype(np.int8), axis=1)[:, ::-1]
    twice = (hands8[:, 1:] == hands8[:, :-1]).any(axis=1)
    if twice.any():
        raise CardError(f"hand {int(twice.argmax())} holds a card twice: give 13 different cards")
    return np.ascontiguousarray(hands8)


def rows_of(arrangement: Arrangement) -> npt.NDArray[np.int8]:
    """(13,) int8 row (0 front, 1 middle, 2 back) of each card of the hand, highest card first."""
    row_of_card = {card: row for row, cards in enumerate(arrangement) for card in cards}
    return np.array([row_of_card[card] for card in arrangement.hand], np.int8)


def arrangement_of(hand: Sequence[Card], rows: Sequence[int]) -> Arrangement:
    """Arrangement of a hand, highest first, and the row of each card; sizes are not checked."""
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
    kernels.evaluate_into(hands, rows, tables_for(rules), rules.packed, strengths, is_legal)
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


def frontier(hands: IntArray, rules: Rules) -> Frontier:
    """Every non-dominated legal arrangement of each hand.

    An arrangement is dominated if another of the same hand is at least as strong in all rows; of
    arrangements equal in all rows one is kept. A hand always has a legal arrangement.

    Args:
        hands: (H, 13) int8, each highest first.
        rules: Decide the wheel and the order of the rows.
    """
    hands = np.ascontiguousarray(hands, np.int8)
    starts = np.zeros(len(hands) + 1, np.int64)
    room = 160 * len(hands) + 4096
    strengths = np.empty((room, 3), np.int16)
    rows = np.empty((room, HAND_SIZE), np.int8)
    done = 0
    while True:
        done = kernels.frontier_into(
            hands, done, tables_for(rules), rules.packed, starts, strengths, rows
        )
        if done == len(hands):
            break
        grown = 2 * len(strengths)
        strengths = np.resize(strengths, (grown, 3))
        rows = np.resize(rows, (grown, HAND_SIZE))
    return Frontier(starts, strengths[: starts[-1]], rows[: starts[-1]])


def enumerate_arrangements(hand: IntArray) -> npt.NDArray[np.int8]:
    """(72072, 13) int8: every way to place a hand's 13 cards in rows, in lexicographic order."""
    fronts = np.zeros((NUM_ARRANGEMENTS, HAND_SIZE), np.int8)
    place = 0

    def walk(card: int, left: tuple[int, int, int], prefix: list[int]) -> None:
        nonlocal place
        if card == HAND_SIZE:
            fronts[place] = prefix
            place += 1
            return
        for row in range(3):
            if left[row]:
                rest = tuple(n - (r == row) for r, n in enumerate(left))
                walk(card + 1, rest, [*prefix, row])  # type: ignore[arg-type]

    walk(0, (3, 5, 5), [])
    return fronts


_PLURALS = (
    "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines", "tens", "jacks",
    "queens", "kings", "aces",
)  # fmt: skip
_SINGULARS = (
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
    top = _SINGULARS[3 if is_wheel else first]
    match CATEGORIES[category]:
        case "high card":
            return f"{_SINGULARS[first]} high"
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

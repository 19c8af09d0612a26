"""Cards as ints 0..51 and as text.

A card is ``4 * rank + suit``:

======  ==========================================
rank    0 = deuce, 1 = three, ... 8 = ten, 9 = jack, 10 = queen, 11 = king, 12 = ace
suit    0 = clubs, 1 = diamonds, 2 = hearts, 3 = spades
======  ==========================================

so 0 is ``2c``, 1 is ``2d``, 4 is ``3c`` and 51 is ``As``.
"""

from collections.abc import Iterable
from typing import TypeAlias

from cpoker_env.errors import CardError

Card: TypeAlias = int

RANK_LETTERS = "23456789TJQKA"
SUIT_LETTERS = "cdhs"
SUIT_SYMBOLS = "♣♦♥♠"
NUM_CARDS = 52
HAND_SIZE = 13

CARD_NAMES: tuple[str, ...] = tuple(r + s for r in RANK_LETTERS for s in SUIT_LETTERS)
_CARD_OF_NAME: dict[str, Card] = {name: card for card, name in enumerate(CARD_NAMES)}


def format_card(card: Card) -> str:
    """Text of a card, ``"As"``.

    Raises:
        CardError: Not an int 0..51.
    """
    if not 0 <= int(card) < NUM_CARDS:
        raise CardError(f"card {card}: a card is an int 0..51 (4 * rank + suit)")
    return CARD_NAMES[int(card)]


def format_cards(cards: Iterable[Card]) -> str:
    """Text of several cards, ``"As Kd 2c"``, in the order given."""
    return " ".join(format_card(card) for card in cards)


def parse_card(text: str) -> Card:
    """Card of a text such as ``"As"``, ``"as"``, ``"10h"`` or ``"T♥"``.

    Raises:
        CardError: Not a rank 2-9 T J Q K A followed by a suit c d h s.
    """
    if isinstance(text, str):
        name = text.strip()
        if name[:2] == "10":
            name = "T" + name[2:]
        if len(name) == 2:
            suit = name[1].lower()
            if suit in SUIT_SYMBOLS:
                suit = SUIT_LETTERS[SUIT_SYMBOLS.index(suit)]
            card = _CARD_OF_NAME.get(name[0].upper() + suit)
            if card is not None:
                return card
    raise CardError(
        f"card {text!r}: write a rank 2-9 T J Q K A followed by a suit c d h s, as in 'As' or 'Td'"
    )


def parse_cards(text: str | Iterable[str]) -> list[Card]:
    """Cards of a text (``"As Kd 2c"``, commas allowed) or of a list of card texts.

    Raises:
        CardError: A text that is no card, or the same card twice.
    """
    words = text.replace(",", " ").split() if isinstance(text, str) else list(text)
    cards = [parse_card(word) for word in words]
    for position, card in enumerate(cards):
        if card in cards[:position]:
            raise CardError(f"card {CARD_NAMES[card]!r} twice: each of the 52 cards exists once")
    return cards


def parse_hand(text: str | Iterable[str]) -> list[Card]:
    """The 13 cards of a hand, highest first.

    Raises:
        CardError: Not 13 different cards.

    Example:
        >>> format_cards(parse_hand("2c 3c 4c 5c 6c 7c 8c 9c Tc Jc Qc Kc Ac"))
        'Ac Kc Qc Jc Tc 9c 8c 7c 6c 5c 4c 3c 2c'
    """
    cards = parse_cards(text)
    if len(cards) != HAND_SIZE:
        raise CardError(
            f"{len(cards)} cards in a hand: a hand has exactly {HAND_SIZE}, "
            f"{'add' if len(cards) < HAND_SIZE else 'remove'} {abs(len(cards) - HAND_SIZE)}"
        )
    return sorted(cards, reverse=True)


def rank_of(card: Card) -> int:
    """Rank 0 (deuce) .. 12 (ace)."""
    return card >> 2


def suit_of(card: Card) -> int:
    """Suit 0..3 = clubs, diamonds, hearts, spades."""
    return card & 3

"""Cards to text and back."""

import pytest

from cpoker_env.cards import (
    CARD_NAMES,
    format_card,
    format_cards,
    parse_card,
    parse_cards,
    parse_hand,
    rank_of,
    suit_of,
)
from cpoker_env.errors import CardError, CPokerError

HAND = "2c 3c 4c 5c 6c 7c 8c 9c Tc Jc Qc Kc Ac"


def test_every_card_round_trips_through_its_text():
    assert [parse_card(format_card(card)) for card in range(52)] == list(range(52))
    assert len(set(CARD_NAMES)) == 52


@pytest.mark.parametrize(
    ("name", "card", "rank", "suit"),
    [("2c", 0, 0, 0), ("2d", 1, 0, 1), ("3c", 4, 1, 0), ("Th", 34, 8, 2), ("As", 51, 12, 3)],
)
def test_card_is_four_times_rank_plus_suit(name, card, rank, suit):
    assert parse_card(name) == card
    assert (rank_of(card), suit_of(card)) == (rank, suit)


@pytest.mark.parametrize("text", ["Th", "th", "10h", "T♥", "10♥", " tH "])
def test_card_is_read_in_every_usual_spelling(text):
    assert parse_card(text) == 34


@pytest.mark.parametrize("text", ["", "1s", "11s", "Xs", "A", "Ax", "AsK", "sA", "100h", None, 51])
def test_bad_card_text_is_refused_with_its_value_and_the_fix(text):
    with pytest.raises(CardError) as raised:
        parse_card(text)
    assert repr(text) in str(raised.value)
    assert "2-9 T J Q K A" in str(raised.value)


@pytest.mark.parametrize("card", [-1, 52, 1000])
def test_card_out_of_range_has_no_text(card):
    with pytest.raises(CardError, match=f"card {card}: a card is an int 0..51"):
        format_card(card)


def test_cards_are_read_from_text_and_lists_in_their_order():
    assert parse_cards("As Kd,2c") == [51, 45, 0]
    assert parse_cards(["As", "Kd", "2c"]) == [51, 45, 0]
    assert format_cards([51, 45, 0]) == "As Kd 2c"
    assert parse_cards("") == []


def test_card_twice_is_refused_by_name():
    with pytest.raises(CardError, match="card 'Kd' twice"):
        parse_cards("Kd As kd")


def test_hand_is_sorted_highest_first():
    assert parse_hand(HAND) == list(range(48, -1, -4))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HAND[:-3], "12 cards in a hand: a hand has exactly 13, add 1"),
        (HAND + " As", "14 cards in a hand: a hand has exactly 13, remove 1"),
        ("", "0 cards in a hand: a hand has exactly 13, add 13"),
    ],
)
def test_hand_of_another_size_is_refused_with_the_fix(text, says):
    with pytest.raises(CardError) as raised:
        parse_hand(text)
    assert str(raised.value) == says


def test_card_errors_are_value_errors_too():
    assert issubclass(CardError, ValueError)
    assert issubclass(CardError, CPokerError)

"""The text of hands and settled deals."""

import re

import pytest

from cpoker_env.cards import parse_hand
from cpoker_env.render import hand_text, showdown_text
from cpoker_env.rules import Rules
from cpoker_env.scoring import settle_showdown

ESCAPE = "\x1b"
NORTH = {"front": "Ks 8h 3d", "middle": "9s 9d 6c 4h 2s", "back": "Qh Qd 5c 5s 7d"}
EAST = {"front": "Jc Td 4c", "middle": "Tc Ts 8c 6d 3s", "back": "Jd Jh 7h 7s 2c"}
OTHER_EAST = {"front": "Js Td 4c", "middle": "Tc Ts 8c 6s 3s", "back": "Jd Jc 7h 7s 2c"}
DRAGON = "Ah Kh Qc Jh Th 9c 8d 7c 6h 5d 4s 3h 2d"


def plain(text: str) -> str:
    """The text without its colour codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_showdown_text_names_rows_and_says_who_pays() -> None:
    text = showdown_text(settle_showdown([NORTH, EAST], Rules.preset("western")), colour=False)
    lines = text.splitlines()
    assert lines[0] == "western rules"
    north = next(line for line in lines if line.split()[:1] == ["North"])
    assert "K♠ 8♥ 3♦" in north
    assert north.endswith("+2")
    assert next(line for line in lines if line.split()[:1] == ["East"]).endswith("-2")
    assert "two pair, queens and fives" in text
    assert "North beats East 2 rows to 1: 1 for rows, + 1 for the majority" in lines


def test_colour_adds_codes_and_changes_no_letter() -> None:
    showdown = settle_showdown([NORTH, EAST], Rules())
    coloured = showdown_text(showdown)
    bare = showdown_text(showdown, colour=False)
    assert ESCAPE in coloured
    assert ESCAPE not in bare
    assert [line.rstrip() for line in plain(coloured).splitlines()] == bare.splitlines()


def test_hearts_are_red() -> None:
    assert f"{ESCAPE}[31mA♥" in hand_text(parse_hand(DRAGON))


def test_width_wraps_long_lines() -> None:
    showdown = settle_showdown([NORTH, EAST], Rules())
    text = showdown_text(showdown, colour=False, width=72)
    assert max(map(len, text.splitlines())) <= 72
    assert "J♥ J♦ 7♠ 7♥ 2♣" in text


def test_hand_text_sorts_and_groups_by_suit() -> None:
    first, by_suit = hand_text(parse_hand(DRAGON), colour=False).splitlines()
    assert first == "A♥ K♥ Q♣ J♥ T♥ 9♣ 8♦ 7♣ 6♥ 5♦ 4♠ 3♥ 2♦"
    assert by_suit == "by suit:  4♠   A♥ K♥ J♥ T♥ 6♥ 3♥   8♦ 5♦ 2♦   Q♣ 9♣ 7♣"


def test_natural_without_rows_shows_all_cards_and_its_name() -> None:
    showdown = settle_showdown([{"cards": DRAGON, "declare": "dragon"}, OTHER_EAST], Rules())
    lines = showdown_text(showdown, colour=False).splitlines()
    place = next(i for i, line in enumerate(lines) if "North" in line)
    cards = [word for word in lines[place].split() if word[-1] in "♣♦♥♠"]
    assert " ".join(cards) == hand_text(parse_hand(DRAGON), colour=False).splitlines()[0]
    assert lines[place].endswith("+13")
    assert lines[place + 1].split() == ["dragon"]


def test_surrender_without_rows_shows_all_cards() -> None:
    showdown = settle_showdown([{"cards": DRAGON, "surrender": True}, OTHER_EAST], Rules())
    text = showdown_text(showdown, colour=False)
    assert "surrenders" in text
    assert text.count("♥") >= 6
    assert "North surrenders and pays East 3" in text


def test_foul_is_marked() -> None:
    fouled = {"front": "Qh Qd 7d", "middle": "9s 9d 6c 4h 2s", "back": "Ks 8h 3d 5c 5s"}
    text = showdown_text(settle_showdown([fouled, EAST], Rules()), colour=False)
    assert "foul: pair of queens" in text
    assert "North fouls and pays East: 6 for the foul" in text


def test_pool_lines_are_told() -> None:
    text = showdown_text(
        settle_showdown([NORTH, EAST], Rules.preset("basic", topology="pool")), colour=False
    )
    assert "everybody antes 3; each row pays 2" in text
    assert "front: North wins with king high" in text


def test_changed_rules_are_named_as_they_are() -> None:
    rules = Rules.preset("basic", natural_order=("dragon",), natural_values={"dragon": 13})
    text = showdown_text(settle_showdown([NORTH, EAST], rules), colour=False, width=200)
    assert "natural_order=['dragon']" in text


@pytest.mark.parametrize("num_seats", [2, 3, 4])
def test_every_seat_has_a_line(num_seats: int) -> None:
    seats = [
        {"front": f"A{s} K{s} Q{s}", "middle": f"2{s} 3{s} 4{s} 5{s} 7{s}",
         "back": f"6{s} 8{s} 9{s} T{s} J{s}"}
        for s in "cdhs"[:num_seats]
    ]  # fmt: skip
    text = showdown_text(settle_showdown(seats, Rules()), colour=False)
    for name in ("North", "East", "South", "West")[:num_seats]:
        assert re.search(rf"^ *{name} ", text, re.MULTILINE)


def test_no_colour_is_kept_to(monkeypatch):
    hand = list(range(13))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in hand_text(hand)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in hand_text(hand)

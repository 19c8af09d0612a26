"""Strengths over the whole space of rows, against a public evaluator and plain Python."""

from collections import Counter
from itertools import combinations, combinations_with_replacement

import numpy as np
import phevaluator
import pytest
import reference

from cpoker_env.cards import format_card, parse_cards
from cpoker_env.rules import Rules
from cpoker_env.tables import CATEGORY_SIZES, RowTables, category_of, front_category_of, tables_for

BASIC = Rules.preset("basic")
FIVE_CARD_COUNTS = (1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 40)
FRONT_COUNTS = (18304, 3744, 52)
ROYAL = {51, 47, 43, 39, 35}


def five_strengths(cards, rules=BASIC):
    """Strengths of (M, 5) rows, each highest first."""
    tables = RowTables(*tables_for(rules).rows)
    index = sum(tables.offset[i, cards[:, i] >> 2] for i in range(5))
    suits = np.bitwise_and.reduce(1 << (cards & 3), axis=1)
    return np.where(suits > 0, tables.fives[1][index], tables.fives[0][index]).astype(np.int64)


def all_rows(size):
    descending = np.arange(51, -1, -1, dtype=np.int64)
    return descending[np.array(list(combinations(range(52), size)))]


def text(cards):
    return [format_card(int(card)) for card in cards]


def test_all_five_card_rows_have_the_public_order_and_counts():
    cards = all_rows(5)
    strengths = five_strengths(cards)
    assert len(strengths) == 2_598_960
    categories = np.searchsorted(np.cumsum(CATEGORY_SIZES), strengths, side="right")
    assert np.bincount(categories).tolist() == list(FIVE_CARD_COUNTS)

    # A poker rank depends on the rank multiset and on being a flush only; ours must too, over all
    # rows, and one row of each class must rank as the public evaluator says.
    ranks = cards >> 2
    is_flush = np.bitwise_and.reduce(1 << (cards & 3), axis=1) > 0
    key = (ranks * 13 ** np.arange(5)).sum(axis=1) * 2 + is_flush
    classes, first, of_class = np.unique(key, return_index=True, return_inverse=True)
    assert len(classes) == 7462
    assert (strengths == strengths[first][of_class]).all()
    public = np.array([phevaluator.evaluate_cards(*text(row)) for row in cards[first]])
    # The public scale runs from 1, a royal flush, to 7462.
    assert (7462 - public == strengths[first]).all()


def test_random_rows_rank_as_the_public_evaluator():
    rng = np.random.default_rng(3)
    cards = np.sort(rng.permuted(np.tile(np.arange(52), (100_000, 1)), axis=1)[:, :5])[:, ::-1]
    public = np.array([phevaluator.evaluate_cards(*text(row)) for row in cards])
    assert (7462 - public == five_strengths(cards)).all()


def test_all_fronts_have_the_plain_order_and_counts():
    cards = all_rows(3)
    tables = RowTables(*tables_for(BASIC).rows)
    strengths = tables.front[sum(tables.offset[i, cards[:, i] >> 2] for i in range(3))]
    assert len(cards) == 22_100
    keys = [reference.rank_three(text(row)) for row in cards]
    ladder = {key: place for place, key in enumerate(sorted(set(keys)))}
    assert len(ladder) == 455
    assert [ladder[key] for key in keys] == strengths.tolist()
    counts = Counter(front_category_of(int(strength)) for strength in strengths)
    # high card, pair, trips
    assert [counts[category] for category in (0, 1, 3)] == list(FRONT_COUNTS)
    assert sum(counts.values()) == 22_100


@pytest.mark.parametrize("order_ties", ["strict", "all_ok"])
@pytest.mark.parametrize("prefix", ["longer_wins", "equal"])
@pytest.mark.parametrize("wheel", ["low", "second_high"])
def test_front_and_middle_are_in_order_as_the_reference_says(order_ties, prefix, wheel):
    rules = Rules.preset("basic", order_ties=order_ties, front_middle_prefix=prefix, wheel=wheel)
    options = rules.to_dict()
    tables = RowTables(*tables_for(rules).rows)
    # A royal flush beats every middle below, so that only front and middle decide.
    back = ["As", "Ks", "Qs", "Js", "Ts"]
    rng = np.random.default_rng(4)
    both = set()
    fronts = [
        [4 * rank + suit for suit, rank in enumerate(ranks)]
        for ranks in combinations_with_replacement(range(12, -1, -1), 3)
    ]
    assert len(fronts) == 455
    for front in fronts:
        rest = [card for card in range(52) if card not in front and card not in ROYAL]
        for draw in range(6):
            middle = rng.permutation(rest)[:5]
            if draw % 2:  # the front's own ranks again, as many as there are
                like = [card for card in rest if card >> 2 in {c >> 2 for c in front}]
                again = [card for card in like if rng.random() < 0.5]
                middle = np.array([*again, *rng.permutation(sorted({*rest} - {*again}))])[:5]
            middle = np.sort(middle)[::-1]
            is_foul = reference.is_foul(text(front), text(middle), back, options)
            strength = five_strengths(middle[None], rules)[0]
            place = tables.front[sum(tables.offset[i, c >> 2] for i, c in enumerate(front))]
            assert (strength < tables.min_middle[place]) == is_foul, (
                text(front),
                text(middle),
            )
            both.add(is_foul)
    assert both == {True, False}


def test_wheel_moves_under_the_ace_high_straight():
    low, high = (Rules.preset("basic", wheel=wheel) for wheel in ("low", "second_high"))
    rows = {
        name: np.array([sorted(parse_cards(cards), reverse=True)])
        for name, cards in {
            "wheel": "As 2d 3c 4h 5s", "six": "2d 3c 4h 5s 6c", "king": "9c Td Jh Qs Kd",
            "ace": "Tc Jd Qh Ks Ad", "steel": "As 2s 3s 4s 5s", "kingsf": "9c Tc Jc Qc Kc",
            "royal": "Tc Jc Qc Kc Ac",
        }.items()
    }  # fmt: skip
    at = {name: int(five_strengths(row, low)[0]) for name, row in rows.items()}
    assert at["wheel"] < at["six"] < at["king"] < at["ace"] < at["steel"] < at["kingsf"]
    at = {name: int(five_strengths(row, high)[0]) for name, row in rows.items()}
    assert at["six"] < at["king"] < at["wheel"] < at["ace"]
    assert at["kingsf"] < at["steel"] < at["royal"]
    assert category_of(at["wheel"]) == 4


def test_flushes_compare_all_five_cards_and_full_houses_their_pair():
    def strength(cards):
        return int(five_strengths(np.array([sorted(parse_cards(cards), reverse=True)]))[0])

    assert strength("As Js Ts 9s 3s") > strength("Ah Jh Th 9h 2h")
    assert strength("8s 8d 8h Qc Qd") > strength("8s 8d 8h Jc Jd")
    assert strength("5s 6s 7s 8s 9s") > strength("Ts Th Tc Td Ac")

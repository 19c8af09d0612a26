"""Showdowns told in words, and bad input refused with the value and the fix."""

from fractions import Fraction

import numpy as np
import pytest
from compare_reference import random_rules

from cpoker_env import kernels
from cpoker_env.errors import ArrangementError, CardError, DeclarationError, ShowdownError
from cpoker_env.rules import PRESETS, Rules
from cpoker_env.scoring import check_num_seats, settle_deals, settle_showdown
from cpoker_env.tables import (
    FRONT_TRIPS,
    FULL_HOUSE,
    NUM_FRONT_STRENGTHS,
    NUM_STRENGTHS,
    QUADS,
    ROYAL_FLUSH,
    STRAIGHT_FLUSH,
)

# Wins front and back, loses the middle.
NORTH = {"front": "Ks 8h 3d", "middle": "9s 9d 6c 4h 2s", "back": "Qh Qd 5c 5s 7d"}
EAST = {"front": "Jc Td 4c", "middle": "Tc Ts 8c 6d 3s", "back": "Jd Jh 7h 7s 2c"}
# Beats WEAK in all rows, with trips in front.
STRONG = {"front": "8s 8h 8d", "middle": "Ts Td Th 4c 2d", "back": "As Ks Qs Js 9s"}
WEAK = {"front": "Kc 7h 3d", "middle": "Qh Qd 9c 5h 3c", "back": "Ac Ad Jc Jd 2h"}
FOULED = {"front": "Ah Ad 9h", "middle": "Kh Kd 7c 5d 2c", "back": "Qc Jh Td 8c 3h"}
SIX_PAIRS = "Kc Kd Qh Qd Jc Jd 9c 9d 7c 7d 5c 5d 3h"
EAST_OF_PAIRS = {"front": "As 8h 3d", "middle": "9s 9h 6c 4h 2s", "back": "Ts Td 5h 5s 8d"}


def settle(*seats, preset="mandarin", **options):
    return settle_showdown(seats, Rules.preset(preset, **options))


def test_scoop_is_told_with_its_rows_and_royalties():
    showdown = settle(STRONG, WEAK)
    # Three rows shot twice, and three for the trips in front.
    assert showdown.units == (9, -9)
    (pairing,) = showdown.pairwise
    assert pairing.kind == "rows"
    assert pairing.summary == "North scoops East: 2 x 3 rows, + 3 for trips in front"
    assert pairing.reasons == (
        "front: North's trip eights beats king high",
        "middle: North's trip tens beats pair of queens",
        "back: North's ace-high flush beats two pair, aces and jacks",
        "a shot multiplies the row units by 2",
    )


def test_loser_named_first_still_reads_from_the_winner():
    (pairing,) = settle(WEAK, STRONG).pairwise
    assert pairing.units == -9
    assert pairing.summary == "East scoops North: 2 x 3 rows, + 3 for trips in front"


def test_rows_two_to_one_and_the_majority_point_are_told():
    (pairing,) = settle(NORTH, EAST, preset="western").pairwise
    assert pairing.units == 2
    assert pairing.summary == "North beats East 2 rows to 1: 1 for rows, + 1 for the majority"


def test_account_in_plain_types_uses_the_names_of_the_scored_showdowns():
    (pairing,) = settle(NORTH, EAST).pairwise
    told = pairing.to_dict()
    assert list(told) == ["a", "b", "points_to_a", "kind", "summary", "reasons"]
    assert (told["a"], told["b"], told["points_to_a"], told["kind"]) == (0, 1, 1, "rows")


@pytest.mark.parametrize(
    ("preset", "units"),
    # 3 lost rows; 4; 3; 6: nothing to add, the winner has no royalty.
    [("basic", 3), ("western", 4), ("eastern", 3), ("mandarin", 6)],
)
def test_foul_pays_the_price_of_the_version(preset, units):
    showdown = settle(NORTH, FOULED, preset=preset)
    assert showdown.units == (units, -units)
    assert showdown.statuses == ("normal", "foul")
    (pairing,) = showdown.pairwise
    assert pairing.summary == f"East fouls and pays North: {units} for the foul"
    assert pairing.reasons == ("rows out of order: pair of aces / pair of kings / queen high",)


def test_natural_collects_its_value_by_name():
    showdown = settle({"cards": SIX_PAIRS, "declare": "six_pairs"}, EAST_OF_PAIRS)
    assert showdown.units == (3, -3)
    assert showdown.statuses == ("natural", "normal")
    assert showdown.naturals == ("six_pairs", None)
    assert showdown.pairwise[0].summary == "North collects 3 from East for six pairs"


def test_declaring_true_takes_the_best_natural():
    showdown = settle({"cards": SIX_PAIRS, "declare": True}, EAST_OF_PAIRS)
    assert showdown.naturals == ("six_pairs", None)


def test_surrender_pays_and_is_told():
    showdown = settle({**NORTH, "surrender": True}, EAST)
    assert showdown.units == (-3, 3)
    assert showdown.pairwise[0].summary == "North surrenders and pays East 3"


def test_hand_may_surrender_without_rows():
    showdown = settle({"cards": SIX_PAIRS, "surrender": True}, EAST_OF_PAIRS)
    assert showdown.statuses == ("surrender", "normal")


def test_bank_takes_tied_rows():
    tied = {"front": "Kc 8d 3h", "middle": "9h 9c 6d 4s 2d", "back": "Qs Qc 5d 5h 7s"}
    assert settle(NORTH, tied, preset="basic").units == (0, 0)
    showdown = settle(NORTH, tied, preset="basic", topology="banker", banker=1)
    assert showdown.units == (-3, 3)
    assert showdown.pairwise[0].reasons[0] == (
        "front: both king high, the tie goes to the bank, East"
    )


def test_pool_shares_a_tied_row_exactly():
    tied = {"front": "Kc 8d 3h", "middle": "9h 9c 6d 4s 2d", "back": "Qs Qc 5d 5h 7s"}
    low = {"front": "Jh 7c 4c", "middle": "8s 8c 6h 4d 2h", "back": "Ts Td 3c 3s Jd"}
    showdown = settle(NORTH, tied, low, preset="basic", topology="pool")
    assert showdown.units == (Fraction(3, 2), Fraction(3, 2), -3)
    assert showdown.pairwise == ()
    assert showdown.pool == (
        "everybody antes 3; each row pays 3",
        "front: North and East share with king high",
        "middle: North and East share with pair of nines",
        "back: North and East share with two pair, queens and fives",
    )


@pytest.mark.parametrize(
    ("seat", "error", "says"),
    [
        ({"cards": SIX_PAIRS[:-3], "declare": True}, CardError,
         "North: 12 cards in a hand: a hand has exactly 13, add 1"),
        ({"cards": SIX_PAIRS + " 2h", "declare": True}, CardError,
         "North: 14 cards in a hand: a hand has exactly 13, remove 1"),
        ({**NORTH, "front": "Ks 8h"}, ArrangementError,
         "North: front of 2 cards: it takes exactly 3"),
        ({**NORTH, "front": "Ks 8h 3d 3h"}, ArrangementError,
         "North: front of 4 cards: it takes exactly 3"),
        ({**NORTH, "middle": "9s 9d 6c 4h 2s 2h"}, ArrangementError,
         "North: middle of 6 cards: it takes exactly 5"),
        ({**NORTH, "back": []}, ArrangementError, "North: back of 0 cards: it takes exactly 5"),
        ({**NORTH, "front": "Ks 8h 9s"}, CardError,
         "North: card '9s' twice: it can lie in one row only"),
        ({**NORTH, "front": "Ks Ks 3d"}, CardError,
         "North: card 'Ks' twice: each of the 52 cards exists once"),
        ({**NORTH, "front": "Ks 8h 1d"}, CardError,
         "North: card '1d': write a rank 2-9 T J Q K A followed by a suit"),
        ({**NORTH, "front": 7}, CardError, "North: cards 7: give a list of card texts"),
        ({"front": "Ks 8h 3d", "middle": NORTH["middle"]}, ArrangementError,
         "North: rows missing: give front, middle and back, or cards"),
        ({}, ArrangementError, "North: rows missing: give front, middle and back, or cards"),
        ({"cards": SIX_PAIRS}, ArrangementError,
         "North: cards without rows: give front, middle and back, or declare or surrender"),
        ({**NORTH, "cards": SIX_PAIRS}, ArrangementError,
         "North: cards differ from front, middle and back: leave one out"),
        ({**NORTH, "bottom": "As"}, ShowdownError,
         "North: key 'bottom': the keys are seat, front, middle, back, cards, declare, surr"),
        ({**NORTH, "surrender": "yes"}, ShowdownError,
         "North: surrender 'yes': give true or false"),
        ("Ks 8h 3d", ShowdownError, "North: 'Ks 8h 3d': give an object with front, middle and"),
        ({"cards": SIX_PAIRS, "declare": "dragon"}, DeclarationError,
         "does not hold: it holds six_pairs"),
        ({**NORTH, "declare": "six_pairs"}, DeclarationError,
         "North: declares 'six_pairs', which Ks Qh Qd 9s 9d 8h 7d 6c 5s 5c 4h 3d 2s does not"
         " hold: it holds no natural in play"),
        ({**NORTH, "declare": "royal"}, DeclarationError,
         "North: declares 'royal': the naturals in play are three_straights, three_flushes,"),
        ({**NORTH, "declare": "no_figure"}, DeclarationError,
         "North: declares 'no_figure': the naturals in play are three_straights"),
        ({**NORTH, "declare": True}, DeclarationError, "holds no natural: show the rows"),
        ({"cards": SIX_PAIRS, "declare": True, "surrender": True}, DeclarationError,
         "North: surrenders and declares True: choose one"),
    ],
)  # fmt: skip
def test_bad_seat_is_refused_with_its_value_and_the_fix(seat, error, says):
    with pytest.raises(error) as raised:
        settle(seat, EAST_OF_PAIRS)
    assert type(raised.value) is error
    assert says in str(raised.value)


def test_card_at_two_seats_is_refused_naming_both():
    with pytest.raises(CardError) as raised:
        settle(NORTH, {**EAST, "front": "Ks Td 4c"})
    assert str(raised.value) == (
        "card 'Ks' twice: at North and East; each of the 52 cards exists once"
    )


def test_surrender_is_refused_where_the_rules_have_none():
    with pytest.raises(DeclarationError) as raised:
        settle(NORTH, {**EAST, "surrender": True}, preset="basic")
    assert str(raised.value) == (
        "East: surrender: these rules have none; set surrender_cost to allow it"
    )


def test_natural_is_refused_where_naturals_are_off():
    with pytest.raises(DeclarationError, match="naturals are off in these rules; set naturals to"):
        settle({"cards": SIX_PAIRS, "declare": "six_pairs"}, EAST_OF_PAIRS, preset="basic")
    with pytest.raises(DeclarationError, match="a pool has no naturals"):
        settle({"cards": SIX_PAIRS, "declare": True}, EAST_OF_PAIRS, topology="pool")


@pytest.mark.parametrize("num_seats", [0, 1, 5])
def test_table_of_another_size_is_refused(num_seats):
    with pytest.raises(ShowdownError, match=f"{num_seats} seats: a table has 2 to 4"):
        settle_showdown([NORTH] * num_seats, Rules())


def test_bank_must_be_seated():
    rules = Rules.preset("italian", topology="banker", banker=3)
    with pytest.raises(ShowdownError, match=r"banker 3 with 3 seats: name a seat 0\.\.2"):
        check_num_seats(3, rules)
    check_num_seats(4, rules)


@pytest.mark.parametrize("preset", PRESETS)
def test_wrong_row_sizes_in_a_batch_are_a_foul(preset):
    hands = np.array([[range(51, 38, -1), range(12, -1, -1)]], np.int8)
    rows = np.array([[[2] * 13, [1] * 6 + [2] * 5 + [0] * 2]], np.int8)
    zeros = np.zeros((1, 2), np.int8)
    settled = settle_deals(hands, rows, zeros, zeros, Rules.preset(preset))
    assert settled.status.tolist() == [[1, 1]]
    assert settled.units.tolist() == [[0.0, 0.0]]


def random_strengths(size, num_seats, rng):
    """(B, N, 3) strengths with many ties and royalties; in some deals a seat wins all rows."""
    few = rng.random((size, num_seats)) < 0.5
    front = np.where(few, 100, rng.integers(NUM_FRONT_STRENGTHS, size=(size, num_seats)))
    front[rng.random(front.shape) < 0.2] = FRONT_TRIPS + 3
    edges = np.array([FULL_HOUSE - 1, FULL_HOUSE, QUADS, STRAIGHT_FLUSH, ROYAL_FLUSH])
    fives = [
        np.where(
            rng.random((size, num_seats)) < 0.5,
            rng.choice(edges, (size, num_seats)),
            rng.integers(NUM_STRENGTHS, size=(size, num_seats)),
        )
        for _ in range(2)
    ]
    strengths = np.stack([front, *fives], axis=2).astype(np.int16)
    best = rng.integers(num_seats, size=size)
    giants = np.flatnonzero(rng.random(size) < 0.2)
    strengths[giants] //= 2
    strengths[giants, best[giants]] = [FRONT_TRIPS, STRAIGHT_FLUSH, STRAIGHT_FLUSH]
    return strengths


@pytest.mark.parametrize("seed", range(8))
def test_batches_settle_as_the_parts_of_their_pairings(seed):
    rng = np.random.default_rng(seed)
    num_homeruns = 0
    for _ in range(40):
        num_seats = int(rng.integers(2, 5))
        rules = random_rules(rng, num_seats)
        shape = (25, num_seats)
        strengths = random_strengths(*shape, rng)
        status = np.where(rng.random(shape) < 0.1, rng.integers(4, size=shape), 0).astype(np.int8)
        naturals = np.where(status == kernels.NATURAL, rng.integers(10, size=shape), -1)
        settled = (strengths, status, naturals.astype(np.int8), rng.integers(3, size=shape))
        units = np.full(shape, 77, np.int32)
        again = np.full(shape, 77, np.int32)
        pairs = np.full((*shape, num_seats), 77, np.int32)
        kernels.settle_into(*settled, rules.packed, units)
        kernels.settle_pairs_into(*settled, rules.packed, again, pairs)
        assert (units == again).all()
        assert (pairs == -pairs.transpose(0, 2, 1)).all()
        assert (units.sum(axis=1) == 0).all()
        if rules.topology == "pool":
            assert not pairs.any()
            continue
        assert (pairs.sum(axis=2) == units).all()
        parts = np.empty((num_seats, num_seats, kernels.NUM_PARTS), np.int64)
        for deal in range(len(units)):
            kernels.settle_parts_into(*(array[deal] for array in settled), rules.packed, parts)
            held = np.triu(np.ones((num_seats, num_seats), bool), 1)
            assert (pairs[deal][held] == parts[held][:, kernels.PART_TOTAL]).all(), rules.to_dict()
            is_ordinary = not status[deal].any()
            num_homeruns += is_ordinary and (parts[held][:, kernels.PART_MULTIPLIER] == 3).any()
    assert num_homeruns > 0

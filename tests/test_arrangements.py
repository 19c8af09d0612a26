"""Arrangements of a hand: legality, the frontier and greedy against brute force."""

import numpy as np
import pytest

from cpoker_env import kernels
from cpoker_env.arrangements import (
    NUM_ARRANGEMENTS,
    arrangement_of,
    check_hands,
    describe_row,
    enumerate_arrangements,
    evaluate,
    frontier,
    is_foul,
    parse_arrangement,
    rows_of,
)
from cpoker_env.cards import parse_cards, parse_hand
from cpoker_env.errors import ArrangementError, CardError
from cpoker_env.rules import Rules
from cpoker_env.tables import tables_for

BUILT = {
    "four trips": "As Ad Ac Ks Kd Kc Qs Qd Qc Js Jd Jc 2h",
    "three quads": "As Ad Ac Ah Ks Kd Kc Kh Qs Qd Qc Qh 2h",
    "quads and pairs": "As Ad Ac Ah Ks Kd Kc Kh Qs Qd Js Jd 2h",
    "pure dragon": "As Ks Qs Js Ts 9s 8s 7s 6s 5s 4s 3s 2s",
    "six pairs": "As Ad Ks Kd Qs Qd Js Jd Ts Td 9s 9d 2h",
    "no pair": "Ac Kd Qc Jd Th 9c 8d 7h 6s 5h 4s 3s 2h",
    "equal straights": "5s 6d 7h 8c 9s 5h 6s 7d 8h 9c Kh Qd 4c",
    "equal prefix": "As Ah Ad Ac Kd Ks 5s 2c 9d 9c 9s 8d 4c",
}
ALL = enumerate_arrangements(np.arange(12, -1, -1))
VARIANTS = [
    {"order_ties": ties, "front_middle_prefix": prefix, "wheel": wheel}
    for ties in ("strict", "back_middle_ok", "all_ok")
    for prefix in ("longer_wins", "equal")
    for wheel in ("low", "second_high")
]
# The first and the last reading of the row order, and one of each option in between.
MAIN_VARIANTS = [VARIANTS[0], VARIANTS[3], VARIANTS[6], VARIANTS[11]]


def some_hands(count, seed=5):
    rng = np.random.default_rng(seed)
    random = [sorted(rng.permutation(52)[:13].tolist(), reverse=True) for _ in range(count)]
    return np.array([*random, *(parse_hand(text) for text in BUILT.values())], np.int8)


def brute_force(hand, rules):
    """Strengths and rows of every legal arrangement."""
    strengths, is_legal = evaluate(np.tile(hand, (NUM_ARRANGEMENTS, 1)), ALL, rules)
    return strengths[is_legal].astype(np.int64), ALL[is_legal]


def test_enumeration_lists_every_arrangement_once():
    assert ALL.shape == (NUM_ARRANGEMENTS, 13)
    assert (np.sort(ALL, axis=1) == np.repeat([0, 1, 2], [3, 5, 5])).all()
    assert len(np.unique(ALL @ 3 ** np.arange(13))) == NUM_ARRANGEMENTS


def non_dominated(strengths):
    """Distinct lines of (M, 3) strengths that no other line equals or exceeds in all rows."""
    left = np.unique(strengths, axis=0)
    kept = []
    while len(left):
        best = left[left.sum(axis=1).argmax()]
        kept.append(tuple(best.tolist()))
        left = left[~(left <= best).all(axis=1)]
    return sorted(kept)


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_frontier_equals_brute_force(options):
    rules = Rules.preset("basic", **options)
    hands = some_hands(6)
    found = frontier(hands, rules)
    for h, hand in enumerate(hands):
        strengths, _ = brute_force(hand, rules)
        mine = slice(found.starts[h], found.starts[h + 1])
        told = found.strengths[mine]
        assert sorted(map(tuple, told.tolist())) == non_dominated(strengths)
        assert (np.diff(told[:, 0]) <= 0).all()  # strongest front first
        again, is_legal = evaluate(
            np.tile(hand, (mine.stop - mine.start, 1)), found.rows[mine], rules
        )
        assert is_legal.all()
        assert (again == found.strengths[mine]).all()


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_greedy_has_the_best_back_then_middle_then_front(options):
    rules = Rules.preset("basic", **options)
    hands = some_hands(6)
    rows = np.empty((len(hands), 13), np.int8)
    kernels.greedy_into(hands, tables_for(rules), rules.packed, rows)
    laid, is_legal = evaluate(hands, rows, rules)
    assert is_legal.all()
    for h, hand in enumerate(hands):
        strengths, _ = brute_force(hand, rules)
        best = max(map(tuple, strengths[:, ::-1].tolist()))
        assert tuple(laid[h, ::-1].tolist()) == best


def draw_uniform(hands, rules, key):
    rows = np.empty((len(hands), 13), np.int8)
    kernels.uniform_into(
        hands, np.full(len(hands), key, np.uint64), np.arange(len(hands), dtype=np.uint64),
        np.ones(len(hands), np.int64), tables_for(rules), rules.packed, rows,
    )  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("name", "order_ties", "num_legal", "num_tied"),
    [
        ("no pair", "strict", 17_541, 0),
        # Tied fives come of one split and two arrangements; drawn half as often, the 1,296 would
        # add some 9,000 to a chi-square that may be off by 1,250.
        ("three quads", "back_middle_ok", 31_052, 1_296),
        ("three quads", "strict", 31_052 - 1_296, 0),
    ],
)
def test_uniform_draws_every_legal_arrangement_equally(name, order_ties, num_legal, num_tied):
    rules = Rules.preset("basic", order_ties=order_ties)
    hand = np.array(parse_hand(BUILT[name]), np.int8)
    strengths, legal = brute_force(hand, rules)
    assert len(legal) == num_legal
    assert (strengths[:, 1] == strengths[:, 2]).sum() == num_tied
    draws = 30 * len(legal)
    rows = draw_uniform(np.tile(hand, (draws, 1)), rules, key=9)
    codes = 3 ** np.arange(13)
    places, counts = np.unique(rows @ codes, return_counts=True)
    assert set(places.tolist()) == set((legal @ codes).tolist())
    chi_square = ((counts - 30) ** 2 / 30).sum()
    assert abs(chi_square - len(legal)) < 5 * np.sqrt(2 * len(legal))


def test_uniform_draw_depends_on_its_name_alone():
    rules = Rules.preset("mandarin")
    hands = some_hands(200, seed=9)
    size = len(hands)
    keys, indices = np.arange(size, dtype=np.uint64), np.arange(size, dtype=np.uint64)[::-1].copy()
    streams = np.arange(size) % 4
    together = np.empty((size, 13), np.int8)
    tables = tables_for(rules)
    kernels.uniform_into(hands, keys, indices, streams, tables, rules.packed, together)
    for m in range(0, size, 7):
        one = slice(m, m + 1)
        alone = np.empty((1, 13), np.int8)
        kernels.uniform_into(
            hands[one], keys[one], indices[one], streams[one], tables, rules.packed, alone
        )
        assert (alone[0] == together[m]).all()


@pytest.mark.parametrize("options", MAIN_VARIANTS, ids=lambda options: "-".join(options.values()))
def test_uniform_draws_are_always_legal_and_reproducible(options):
    rules = Rules.preset("basic", **options)
    hands = some_hands(3000, seed=8)
    rows = draw_uniform(hands, rules, key=10)
    _, is_legal = evaluate(hands, rows, rules)
    assert is_legal.all()
    assert (draw_uniform(hands, rules, key=10) == rows).all()
    assert (draw_uniform(hands, rules, key=11) != rows).any()


def test_rows_round_trip_through_an_arrangement():
    laid = parse_arrangement("Ks 8h 3d", "9s 9d 6c 4h 2s", "Qh Qd 5c 5s 7d")
    assert arrangement_of(laid.hand, rows_of(laid).tolist()) == laid
    assert not is_foul(laid, Rules())
    assert is_foul(parse_arrangement("As Ah 9d", "Ks Kd 8c 6h 2s", "Qh Qd Qc 5s 7d"), Rules())


@pytest.mark.parametrize(
    ("hands", "error", "says"),
    [
        (np.zeros((2, 12), np.int8), CardError, "give \\(M, 13\\)"),
        (np.zeros((1, 13), np.int8), CardError, "twice"),
        (np.arange(40, 53)[None], CardError, "0..51"),
        (np.arange(13)[None] * 1.0, CardError, "integers"),
    ],
)
def test_bad_hands_are_refused(hands, error, says):
    with pytest.raises(error, match=says):
        check_hands(hands)


def test_rows_of_the_wrong_size_are_refused():
    with pytest.raises(ArrangementError, match="front of 2 cards: it takes exactly 3"):
        parse_arrangement("Ks 8h", "9s 9d 6c 4h 2s", "Qh Qd 5c 5s 7d")


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("Ks 8h 3d", "king high"),
        ("8s 8h 8d", "trip eights"),
        ("9s 9d 6c", "pair of nines"),
        ("Qh Qd 5c 5s 7d", "two pair, queens and fives"),
        ("As 2d 3c 4h 5s", "five-high straight"),
        ("As Ks Qs Js Ts", "royal flush"),
        ("As 2s 3s 4s 5s", "five-high straight flush"),
        ("8s 8d 8h Qc Qd", "eights full of queens"),
        ("6s 6d 6h 6c Qd", "quad sixes"),
        ("Ad 9d 7d 4d 2d", "ace-high flush"),
    ],
)
def test_rows_are_named_as_players_say(row, name):
    cards = sorted(parse_cards(row), reverse=True)
    tables = tables_for(Rules())
    index = sum(int(tables.offset[i, card >> 2]) for i, card in enumerate(cards))
    if len(cards) == 3:
        strength = tables.front[index]
    else:
        same = len({card & 3 for card in cards}) == 1
        strength = tables.flush[index] if same else tables.plain[index]
    assert describe_row(cards, int(strength)) == name

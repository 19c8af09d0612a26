"""Arrangements of a hand: legality, the frontier and greedy against brute force."""

import numpy as np
import pytest

from cpoker_env import arrangements, kernels
from cpoker_env.arrangements import (
    NUM_ARRANGEMENTS,
    arrangement_of,
    best,
    check_hands,
    describe_row,
    evaluate,
    frontier,
    index_of,
    is_foul,
    parse_arrangement,
    rows_at,
    rows_of,
)
from cpoker_env.cards import parse_cards, parse_hand
from cpoker_env.errors import ArrangementError, CardError, ConfigError
from cpoker_env.rules import Rules
from cpoker_env.tables import NUM_FRONT_STRENGTHS, RowTables, tables_for
from cpoker_env.valuation import TABLE_SIZES, RowValues

BUILT = {
    "four trips": "As Ad Ac Ks Kd Kc Qs Qd Qc Js Jd Jc 2h",
    "three quads": "As Ad Ac Ah Ks Kd Kc Kh Qs Qd Qc Qh 2h",
    "quads and pairs": "As Ad Ac Ah Ks Kd Kc Kh Qs Qd Js Jd 2h",
    "pure dragon": "As Ks Qs Js Ts 9s 8s 7s 6s 5s 4s 3s 2s",
    "six pairs": "As Ad Ks Kd Qs Qd Js Jd Ts Td 9s 9d 2h",
    "no pair": "Ac Kd Qc Jd Th 9c 8d 7h 6s 5h 4s 3s 2h",
    "equal straights": "5s 6d 7h 8c 9s 5h 6s 7d 8h 9c Kh Qd 4c",
    "two suits": "As Ks Qs Ts 8s 6s 4s Ah Kh Jh 9h 7h 3h",
    "two suits of equal ranks": "As Ks Qs 9s 7s 5s Ah Kh Qh 9h 7h 5h 2h",
    "quads and trips": "As Ad Ac Ah Ks Kd Kc Kh Qs Qd Qc Js 2h",
    "flushes and a loose pair": "As Js 9s 7s 3s Ah Jh 9h 7h 3h Ad Ac 2h",
    "low cards": "6s 5s 5h 5d 4s 4h 4d 3s 3h 3d 2s 2h 2d",
    "equal prefix": "As Ah Ad Ac Kd Ks 5s 2c 9d 9c 9s 8d 4c",
}
ALL = rows_at(np.arange(NUM_ARRANGEMENTS))
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
    legal = np.flatnonzero(is_legal)
    return strengths[legal].astype(np.int64), ALL[legal]


def non_dominated(strengths):
    """Distinct lines of (M, 3) strengths that no other line equals or exceeds in all rows.

    Front descending, then middle ascending. `most` keeps the best middle over each front or a
    stronger one, among backs gone through, from the strongest.
    """
    keys = np.unique((strengths[:, 2] << 22) | (strengths[:, 0] << 13) | strengths[:, 1])
    # Of a back and a front only the best middle can stay; then by back and front, descending.
    keys = keys[np.flatnonzero(np.diff(keys >> 13, append=-1))][::-1]
    most = np.full(NUM_FRONT_STRENGTHS + 1, -1)
    kept = []
    for group in np.split(keys, np.flatnonzero(np.diff(keys >> 22)) + 1):
        fronts, middles = (group >> 13) & 511, group & 8191
        stronger = np.maximum.accumulate(np.concatenate([[-1], middles[:-1]]))
        stays = (middles > stronger) & (middles > most[fronts])
        if stays.any():
            kept.append(group[stays])
            most[fronts] = np.maximum(most[fronts], middles)
            most = np.maximum.accumulate(most[::-1])[::-1]
    found = np.concatenate(kept)
    found = np.stack([(found >> 13) & 511, found & 8191, found >> 22], axis=1)
    return found[np.lexsort((found[:, 1], -found[:, 0]))]


def slowly_non_dominated(strengths):
    left = np.unique(strengths, axis=0)
    kept = []
    while len(left):
        best_left = left[left.sum(axis=1).argmax()]
        kept.append(tuple(best_left.tolist()))
        left = left[~(left <= best_left).all(axis=1)]
    return sorted(kept)


def test_brute_force_equals_the_definition():
    rules = Rules.preset("basic", order_ties="all_ok")
    for hand in some_hands(3)[::4]:
        strengths, _ = brute_force(hand, rules)
        assert sorted(map(tuple, non_dominated(strengths).tolist())) == slowly_non_dominated(
            strengths
        )


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_frontier_equals_brute_force(options):
    rules = Rules.preset("basic", **options)
    hands = some_hands(50)
    found = frontier(hands, rules)
    again, is_legal = evaluate(hands[found.hand_index], found.rows, rules)
    assert is_legal.all()
    assert (again == found.strengths).all()
    for h, hand in enumerate(hands):
        strengths, _ = brute_force(hand, rules)
        mine = slice(found.starts[h], found.starts[h + 1])
        # Strongest front first, then middle ascending.
        assert np.array_equal(found.strengths[mine], non_dominated(strengths)), hand


def test_frontier_of_few_ranks_and_suits_equals_brute_force():
    rng = np.random.default_rng(17)
    decks = [np.arange(16), np.arange(24), np.flatnonzero(np.arange(52) % 4 < 2)]
    hands = np.array([rng.permutation(deck)[:13] for deck in decks for _ in range(15)])
    for options in MAIN_VARIANTS:
        rules = Rules.preset("basic", **options)
        found = frontier(hands, rules)
        for h, hand in enumerate(check_hands(hands)):
            mine = slice(found.starts[h], found.starts[h + 1])
            strengths, _ = brute_force(hand, rules)
            assert np.array_equal(found.strengths[mine], non_dominated(strengths)), hand


def test_frontier_sorts_each_hand_and_does_not_depend_on_suits():
    hands = some_hands(40)
    shuffled = np.random.default_rng(2).permuted(hands, axis=1).astype(np.int64)
    one, other = frontier(hands, Rules()), frontier(shuffled, Rules())
    assert np.array_equal(one.rows, other.rows)
    relabelled = frontier((hands & ~3) | np.array([2, 0, 3, 1], np.int8)[hands & 3], Rules())
    assert np.array_equal(one.strengths, relabelled.strengths)


def random_values(rng, is_joint):
    def tables():
        return [rng.normal(size=size).round(1) for size in TABLE_SIZES]

    if not is_joint:
        return RowValues(tables())
    cuts = [np.sort(rng.random((size, 2)), axis=1) for size in TABLE_SIZES]
    wins, losses = [cut[:, 0] for cut in cuts], [1 - cut[:, 1] for cut in cuts]
    return RowValues(tables(), wins, losses, tables(), tables(), float(rng.normal()))


def monotone_values(rng, is_joint):
    """Plateaus, steps and flat stretches of tables that rise together."""

    def rising(steps):
        return [np.sort(rng.integers(0, steps, size) / steps) for size in TABLE_SIZES]

    if not is_joint:
        return RowValues(rising(40))
    wins = rising(900)
    losses = [(1 - win) * rng.random() for win in wins]
    prices = [2 - price for price in rising(5)]
    return RowValues(rising(40), wins, losses, rising(5), prices, 3.0 * rng.random())


def middle_first(rng, is_joint):
    """Worth more the weaker the back: bounds that never help."""
    falls = [-0.01 * np.arange(size) for size in TABLE_SIZES]
    return RowValues([falls[0], -falls[1], falls[2]])


def scoop_first(rng, is_joint):
    """Units that fall a little and a scoop that is worth far more: bounds need both."""
    rises = [np.arange(size) / size for size in TABLE_SIZES]
    falls = [-0.02 * rise for rise in rises]
    lost = [1 - rise for rise in rises]
    return RowValues(falls, rises, lost, [np.full(size, 9.0) for size in TABLE_SIZES])


def middle_heavy(rng, is_joint):
    """Wants the middle as strong as the back, where the rules let it."""
    rises = [np.arange(size) / size for size in TABLE_SIZES]
    return RowValues([0.001 * rises[0], rises[1], 0.5 * rises[2]])


@pytest.mark.parametrize("options", MAIN_VARIANTS, ids=lambda options: "-".join(options.values()))
def test_best_equals_brute_force(options):
    rules = Rules.preset("basic", **options)
    rng = np.random.default_rng(31)
    hands = some_hands(12, seed=3)
    functions = [
        make(rng, is_joint)
        for make in (random_values, monotone_values, middle_first)
        for is_joint in (False, True)
    ]
    assert [values.is_monotone for values in functions] == [False, False, True, True, False, False]
    functions += [scoop_first(rng, True), middle_heavy(rng, False)]
    assert [values.is_monotone for values in functions[6:]] == [False, True]
    told = [best(hands, values, rules) for values in functions]
    for found in told:
        again, is_legal = evaluate(hands, found.rows, rules)
        assert is_legal.all()
        assert np.array_equal(again, found.strengths)
    for h, hand in enumerate(hands):
        strengths, _ = brute_force(hand, rules)
        for values, found in zip(functions, told, strict=True):
            worth = values.of(strengths)
            assert found.values[h] == worth.max()
            ties = strengths[worth == worth.max()]
            assert tuple(found.strengths[h, ::-1]) == max(map(tuple, ties[:, ::-1].tolist()))


@pytest.mark.parametrize("num_threads", [2, 3, 100])
def test_threads_change_nothing(num_threads):
    hands = some_hands(50)
    values = monotone_values(np.random.default_rng(1), True)
    for one, other in (
        (frontier(hands, Rules()), frontier(hands, Rules(), num_threads=num_threads)),
        (best(hands, values, Rules()), best(hands, values, Rules(), num_threads=num_threads)),
    ):
        names = ("starts", "strengths", "rows") if hasattr(one, "starts") else one._fields
        for name in names:
            assert np.array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype


@pytest.mark.parametrize("spare", [8, 4096])
def test_frontiers_larger_than_the_room_set_aside_are_whole(spare, monkeypatch):
    monkeypatch.setattr(arrangements, "_SPARE_ROOM", spare)
    hands = some_hands(300)
    large = hands[[np.diff(frontier(hands, Rules()).starts).argmax()]]
    alone = frontier(large, Rules())
    assert len(alone.rows) > 500
    many = frontier(np.repeat(large, 200, axis=0), Rules())
    assert np.array_equal(np.diff(many.starts), np.full(200, len(alone.rows)))
    assert np.array_equal(many.rows, np.tile(alone.rows, (200, 1)))
    assert np.array_equal(many.strengths, np.tile(alone.strengths, (200, 1)))


def test_no_hands_have_no_arrangements():
    none = np.empty((0, 13), np.int8)
    values = random_values(np.random.default_rng(1), False)
    for num_threads in (1, 2):
        found = frontier(none, Rules(), num_threads=num_threads)
        assert len(found) == len(found.rows) == 0
        assert len(best(none, values, Rules(), num_threads=num_threads).rows) == 0


@pytest.mark.parametrize("num_threads", [0, -1, 1.0, None, True, "2"])
def test_bad_thread_counts_are_refused(num_threads):
    hands = some_hands(1)
    values = random_values(np.random.default_rng(1), False)
    with pytest.raises(ConfigError, match=r"num_threads .*: give a whole number"):
        frontier(hands, Rules(), num_threads=num_threads)
    with pytest.raises(ConfigError, match=r"num_threads .*: give a whole number"):
        best(hands, values, Rules(), num_threads=num_threads)


def test_enumeration_lists_every_arrangement_once():
    hand = np.array(parse_hand(BUILT["six pairs"]))
    rules = Rules.preset("basic")
    told = arrangements.enumerate(hand[::-1], rules)
    assert told.rows.shape == (NUM_ARRANGEMENTS, 13)
    assert (np.sort(told.rows, axis=1) == np.repeat([0, 1, 2], [3, 5, 5])).all()
    codes = told.rows.astype(np.int64) @ 3 ** np.arange(12, -1, -1)
    assert (np.diff(codes) > 0).all()  # lexicographic, so none twice
    strengths, is_legal = evaluate(np.tile(hand, (NUM_ARRANGEMENTS, 1)), ALL, rules)
    assert np.array_equal(told.strengths, strengths)
    assert np.array_equal(told.is_legal, is_legal)
    with pytest.raises(ValueError, match="read-only"):
        told.rows[0] = 0


def test_index_and_rows_are_each_others_inverse():
    everything = np.arange(NUM_ARRANGEMENTS)
    assert np.array_equal(index_of(ALL), everything)
    assert rows_at([0]).tolist() == [[0] * 3 + [1] * 5 + [2] * 5]
    assert rows_at([NUM_ARRANGEMENTS - 1]).tolist() == [[2] * 5 + [1] * 5 + [0] * 3]
    some = np.random.default_rng(4).integers(0, NUM_ARRANGEMENTS, 500)
    assert np.array_equal(rows_at(some), ALL[some])
    assert np.array_equal(index_of(ALL[some].astype(np.int64)), some)


@pytest.mark.parametrize(
    ("call", "argument", "says"),
    [
        (index_of, np.zeros((2, 13), np.int8), "rows 0 hold \\[13, 0, 0\\] cards"),
        (index_of, np.full((1, 13), 3), "rows 0 hold \\[0, 0, 0\\] cards"),
        (index_of, np.zeros(13, np.int8), "give \\(M, 13\\) integers"),
        (index_of, np.zeros((1, 13)), "give \\(M, 13\\) integers"),
        (rows_at, [NUM_ARRANGEMENTS], "they are 0..72071"),
        (rows_at, [-1], "they are 0..72071"),
        (rows_at, [0.5], "give \\(M,\\) integers"),
        (rows_at, 7, "give \\(M,\\) integers"),
    ],
)
def test_bad_rows_and_indices_are_refused(call, argument, says):
    with pytest.raises(ArrangementError, match=says):
        call(argument)


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_greedy_has_the_best_back_then_middle_then_front(options):
    rules = Rules.preset("basic", **options)
    hands = some_hands(6)
    rows = np.empty((len(hands), 13), np.int8)
    tables = tables_for(rules)
    kernels.greedy_into(hands, tables.rows, tables.splits, rules.packed, rows)
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
        np.ones(len(hands), np.int64), *tables_for(rules)[::2], rules.packed, rows,
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
    tables = tables_for(rules).rows, tables_for(rules).splits
    kernels.uniform_into(hands, keys, indices, streams, *tables, rules.packed, together)
    for m in range(0, size, 7):
        one = slice(m, m + 1)
        alone = np.empty((1, 13), np.int8)
        kernels.uniform_into(
            hands[one], keys[one], indices[one], streams[one], *tables, rules.packed, alone
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
    values = random_values(np.random.default_rng(1), False)
    for call in (
        check_hands,
        lambda bad: frontier(bad, Rules()),
        lambda bad: best(bad, values, Rules()),
        lambda bad: arrangements.enumerate(bad[0], Rules()),
    ):
        with pytest.raises(error, match=says):
            call(hands)


def test_the_hand_with_a_card_twice_is_named():
    hands = some_hands(5)
    hands[3, 7] = hands[3, 0]
    with pytest.raises(CardError, match="hand 3 holds a card twice"):
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
    tables = RowTables(*tables_for(Rules()).rows)
    index = sum(int(tables.offset[i, card >> 2]) for i, card in enumerate(cards))
    if len(cards) == 3:
        strength = tables.front[index]
    else:
        same = len({card & 3 for card in cards}) == 1
        strength = tables.fives[1][index] if same else tables.fives[0][index]
    assert describe_row(cards, int(strength)) == name

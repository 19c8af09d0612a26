"""Options valued over whole tables against settling each of them deal by deal."""

from dataclasses import replace

import numpy as np
import pytest
from cpoker_env.agents.population import draw_hands, resolve, sides_of, unvalued
from cpoker_env.train.whole_tables import (
    add_tables,
    are_tied,
    deal_tables,
    mean_square,
    seat_plays,
    seats_of,
)

from cpoker_env.naturals import natural_bits
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER, settle_deals

NUM_HANDS, NUM_TABLES = 6, 120
HOUSES = [
    (4, Rules.preset("mandarin")),
    (4, Rules.preset("mandarin", homerun_counts="foul_counts", foul=1)),
    (4, Rules.preset("mandarin", homerun_counts="foul_and_surrender_count")),
    (4, Rules.preset("mandarin", royalty_mode="replace", overall_point=2, overall_by="points")),
    (4, Rules.preset("mandarin", topology="banker", banker=0)),
    (4, Rules.preset("mandarin", topology="banker", banker=2, homerun_counts="foul_counts")),
    (4, Rules.preset("italian", topology="pool")),
    (3, Rules.preset("western", topology="pool")),
]


def choices(hands, rules, seed):
    """Rows and declarations that show, surrender, declare and foul."""
    rng = np.random.default_rng(seed)
    decisions = decisions_for(hands, rules)
    rows = make_policy("greedy", rules).act(decisions, rng).rows
    declarations = np.where(decisions.naturals >= 0, DECLARE, SHOW).astype(np.int8)
    if rules.surrender_allowed:
        declarations[rng.random(len(hands)) < 0.1] = SURRENDER
    foul = rng.random(len(hands)) < 0.2
    rows[foul] = rows[foul][:, ::-1]
    return rows, declarations


def settled(hands, rows, declarations, rules):
    naturals = natural_bits(hands.reshape(-1, 13), rules)[1].reshape(declarations.shape)
    return settle_deals(hands, rows, declarations, naturals, rules)


def told_units(hands, rows, declarations, rules, seat):
    """Units of a seat in every table, less what its pairings alone would give outside a pool."""
    told = settled(hands, rows, declarations, rules).units[:, seat]
    if rules.topology == "pool":
        return told
    for other in range(hands.shape[1]):
        if other == seat or (rules.banker is not None and rules.banker not in (seat, other)):
            continue
        two = [seat, other]
        apart = rules if rules.banker is None else replace(rules, banker=two.index(rules.banker))
        pair = [part[:, two] for part in (hands, rows, declarations)]
        told = told - settled(*pair, apart).units[:, 0]
    return told


@pytest.mark.parametrize(("num_players", "rules"), HOUSES, ids=[r.name for _, r in HOUSES])
def test_table_values_equal_settling_deal_by_deal(num_players, rules):
    hands = draw_hands(7, NUM_HANDS)
    sides = sides_of(rules, NUM_HANDS)
    dealt = deal_tables(hands, sides, rules, num_players, NUM_TABLES, 11)
    others = choices(dealt.opponents(), rules, 3)
    own = choices(hands, rules, 4)
    own[0][0] = 2  # a foul
    plays = resolve(hands, *own, rules)
    shown = seat_plays(dealt, resolve(dealt.opponents(), *others, rules), plays)
    blank = unvalued(hands, rules, plays)
    found = add_tables(blank, dealt, shown, plays.status == 1, rules)
    all_rows = np.empty(dealt.hands.shape, np.int8)
    all_declarations = np.empty(dealt.is_other.shape, np.int8)
    all_rows[dealt.is_other], all_declarations[dealt.is_other] = others
    num_told = 0
    for h, seat in enumerate(seats_of(sides, rules)):
        num_met = 1 if rules.banker not in (None, seat) else num_players - 1

        def told(rows, declaration, half, h=h, seat=seat, num_met=num_met):
            all_rows[h, :, seat] = rows
            all_declarations[h, :, seat] = declaration
            tables = (part[h, half::2] for part in (dealt.hands, all_rows, all_declarations))
            return told_units(*tables, rules, seat).mean() / num_met

        first, last = found.options.starts[h], found.options.starts[h + 1] - 1
        for half in range(2):
            for place in range(first, last, max((last - first) // 5, 1)):
                value = told(found.options.rows[place], SHOW, half)
                assert found.values[half, place] == pytest.approx(value, abs=1e-9)
                num_told += value != 0
            value = told(own[0][h], SHOW, half)
            assert found.values[half, last] == pytest.approx(value, abs=1e-9)
            value = told(np.full(13, 2, np.int8), SHOW, half)
            assert found.foul[half, h] == pytest.approx(value, abs=1e-9)
            if rules.surrender_allowed:
                value = told(own[0][h], SURRENDER, half)
                assert found.surrender[half, h] == pytest.approx(value, abs=1e-9)
            if found.naturals[h] >= 0:
                value = told(own[0][h], DECLARE, half)
                assert found.declare[half, h] == pytest.approx(value, abs=1e-9)
    assert num_told > 10, "home runs too rare to prove anything"


def test_tables_deal_each_card_once_around_the_hand():
    rules = Rules.preset("mandarin", topology="banker", banker=2)
    hands = draw_hands(5, 4)
    sides = sides_of(rules, 4)
    dealt = deal_tables(hands, sides, rules, 4, 20, 9)
    assert dealt.seats.tolist() == [2, 0, 2, 0]
    assert (np.sort(dealt.hands.reshape(4, 20, 52)) == np.arange(52)).all()
    for h, seat in enumerate(dealt.seats):
        assert (dealt.hands[h, :, seat] == hands[h]).all()
    assert len(np.unique(dealt.opponents(), axis=0)) == 4 * 20 * 3
    assert dealt.sides(rules).reshape(4, 20, 3)[:, 0].tolist() == [
        [-1, -1, -1], [-1, 1, -1], [-1, -1, -1], [-1, 1, -1],
    ]  # fmt: skip
    later = deal_tables(hands[2:], sides[2:], rules, 4, 20, 9, first=2)
    assert (later.hands == dealt.hands[2:]).all()
    assert (deal_tables(hands, sides, rules, 4, 20, 10).hands != dealt.hands).any()
    three = deal_tables(hands, np.zeros(4, np.int8), Rules.preset("italian"), 3, 20, 9)
    assert all(len(set(table)) == 39 for table in three.hands.reshape(-1, 39).tolist())


def test_only_the_pool_and_home_runs_tie_pairings_together():
    pool = Rules.preset("italian", topology="pool")
    assert [are_tied(pool, seats) for seats in (2, 3, 4)] == [False, True, True]
    assert [are_tied(Rules.preset("mandarin"), seats) for seats in (2, 3, 4)] == [
        False, False, True,
    ]  # fmt: skip
    assert not are_tied(Rules.preset("italian"), 4)


def test_mean_square_counts_every_pairing_that_is_held():
    rules = Rules.preset("western")
    hands = draw_hands(1, 3)
    surrender, foul = np.array([SURRENDER, SHOW, SHOW], np.int8), np.full((3, 13), 2, np.int8)
    plays = resolve(hands, foul, surrender, rules)
    table = plays.take(np.array([[0, 1, 2]]))
    # The surrender pays both fouls 3; the fouls pay each other nothing.
    assert mean_square(table, rules) == pytest.approx((9 + 9 + 0) / 3)
    banked = Rules.preset("western", topology="banker", banker=0)
    assert mean_square(table, banked) == pytest.approx(9)
    pool = Rules.preset("western", topology="pool")
    rows = make_policy("greedy", pool).act(decisions_for(hands, pool), np.random.default_rng(1))
    plays = resolve(hands, np.stack([rows.rows[0], *foul[1:]]), np.zeros(3, np.int8), pool)
    table = plays.take(np.array([[0, 1, 2]]))
    # The only ordinary hand takes three rows of 3, having paid 3: +6, -3, -3 over two opponents.
    assert mean_square(table, pool) == pytest.approx((36 + 9 + 9) / 3 / 4)

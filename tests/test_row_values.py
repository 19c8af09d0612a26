"""Value functions of rows: their closed form, and the ranking of arrangements by them."""

from itertools import product

import numpy as np
import pytest

from cpoker_env import kernels
from cpoker_env.arrangements import best, evaluate, frontier
from cpoker_env.errors import ArrangementError, ConfigError
from cpoker_env.row_values import (
    arrangement_values,
    best_of,
    has_closed_form,
    row_values,
    select_top,
    top_arrangements,
)
from cpoker_env.rules import PRESETS, Rules
from cpoker_env.valuation import CHANCE_STEPS, TABLE_SIZES, RowValues

# Every kind of scoop, royalty and overall point that the closed form has to know.
HOUSES = [
    *((preset, {}) for preset in PRESETS),
    ("italian", {"overall_point": 2}),
    ("mandarin", {"scoop": "double_all", "royalties": "protection"}),
    ("mandarin", {"scoop": "double_all", "royalty_mode": "replace", "overall_point": 2}),
    ("mandarin", {"scoop": "extra", "scoop_extra": 2, "overall_point": 1}),
    ("eastern", {"topology": "banker", "banker": 1}),
]


def some_hands(count, seed=6):
    rng = np.random.default_rng(seed)
    return np.array([np.sort(rng.permutation(52)[:13])[::-1] for _ in range(count)], np.int8)


def three(make):
    return [make(size) for size in TABLE_SIZES]


@pytest.mark.parametrize(("preset", "options"), HOUSES)
def test_closed_form_equals_the_sum_over_all_row_results(preset, options):
    rules = Rules.preset(preset, **options)
    assert has_closed_form(rules)
    strengths = frontier(some_hands(20), rules).strengths
    for values in row_values(rules, 2).values():
        tables = (values.packed.front, values.packed.middle, values.packed.back)
        units, wins, losses = (
            tuple(np.ascontiguousarray(t[:, c]) for t in tables) for c in (0, 1, 2)
        )
        summed = np.empty(len(strengths))
        kernels.independent_values_into(strengths, units, wins, losses, rules.packed, summed)
        assert np.abs(values.of(strengths) - summed).max() < 1e-12


def test_value_is_the_mean_over_all_row_results():
    rng = np.random.default_rng(7)
    cuts = three(lambda size: np.sort(rng.integers(0, CHANCE_STEPS, (size, 2)), axis=1))
    wins = [cut[:, 0] / CHANCE_STEPS for cut in cuts]
    losses = [1 - cut[:, 1] / CHANCE_STEPS for cut in cuts]
    units, prizes, prices = (three(lambda size: rng.normal(size=size)) for _ in range(3))
    values = RowValues(units, wins, losses, prizes, prices, 1.7)
    assert not values.is_monotone
    strengths = np.stack([rng.integers(0, size, 50) for size in TABLE_SIZES], axis=1)
    for laid, told in zip(strengths, values.of(strengths), strict=True):
        expected = sum(units[row][laid[row]] for row in range(3))
        for results in product((-1, 0, 1), repeat=3):
            chance = 1.0
            for row, result in enumerate(results):
                win, lose = wins[row][laid[row]], losses[row][laid[row]]
                chance *= win if result > 0 else lose if result < 0 else 1 - win - lose
            if sum(results) == 3:
                expected += chance * sum(prizes[row][laid[row]] for row in range(3))
            if sum(results) == -3:
                expected -= chance * sum(prices[row][laid[row]] for row in range(3))
            expected += 1.7 * chance * np.sign(sum(results))
        assert told == pytest.approx(expected, abs=1e-12)


def test_pool_pays_each_row_and_the_sweep_among_all_seats():
    rules = Rules.preset("basic", topology="pool")
    two, four = row_values(rules, 2)[0], row_values(rules, 4)[0]
    best_rows = np.array([[454, 7461, 7461]], np.int16)
    # Three pools of everyone's unit, and the other seats' three again for the sweep.
    assert two.of(best_rows)[0] == pytest.approx(3 + 3, abs=0.05)
    assert four.of(best_rows)[0] == pytest.approx(9 + 9, abs=0.05)
    assert two.is_monotone
    assert four.is_monotone


def test_overall_point_by_points_keeps_the_sum_over_row_results():
    rules = Rules.preset("italian", overall_point=2, overall_by="points")
    assert not has_closed_form(rules)
    strengths = frontier(some_hands(20), rules).strengths
    exact = arrangement_values(strengths, np.zeros(len(strengths)), rules)
    closed = row_values(rules)[0].of(strengths)
    assert np.abs(exact - closed).max() > 0.01


@pytest.mark.parametrize("preset", PRESETS)
def test_tables_of_every_preset_are_monotone(preset):
    rules = Rules.preset(preset)
    values = row_values(rules)[0]
    assert values.is_monotone
    hands = some_hands(200)
    options = frontier(hands, rules)
    worth = values.of(options.strengths)
    found = best(hands, values, rules)
    assert np.array_equal(found.values, np.maximum.reduceat(worth, options.starts[:-1]))


def test_a_falling_table_is_not_monotone():
    rising = three(lambda size: np.arange(size) / size)
    assert RowValues(rising, rising, [1 - r for r in rising], majority=1.0).is_monotone
    assert not RowValues(rising, rising, [1 - r for r in rising], majority=-1.0).is_monotone
    for name in ("values", "wins", "losses", "prizes", "prices"):
        tables = {"values": rising, "wins": rising, "losses": [1 - r for r in rising]}
        tables["losses"] = [(1 - r) / 2 for r in rising]
        tables["wins"] = [r / 2 for r in rising]
        tables["prizes"] = [1 + r for r in rising]
        tables["prices"] = [2 - r for r in rising]
        assert RowValues(**tables).is_monotone
        bent = tables[name][1].copy()
        at = 4000
        up = name in ("values", "wins", "prizes")
        bent[at] = bent[at] - 0.05 if up else bent[at] + 0.05
        tables[name] = [tables[name][0], bent, tables[name][2]]
        assert not RowValues(**tables).is_monotone


def test_a_scoop_that_costs_its_winner_is_not_monotone():
    rising = three(lambda size: np.arange(size) / size)
    flat, falling = three(np.zeros), [1 - r for r in rising]
    minus = three(lambda size: np.full(size, -1.0))
    assert not RowValues(flat, rising, falling, prizes=minus).is_monotone
    assert not RowValues(flat, rising, falling, prices=minus).is_monotone
    # One row's prize may be negative as long as the three together are not.
    mixed = [minus[0], three(lambda size: np.full(size, 2.0))[1], flat[2]]
    assert RowValues(flat, rising, falling, prizes=mixed).is_monotone
    # A prize that falls needs units of its own row that make up for it, whatever the others' are.
    falls = [1 - 0.5 * r for r in rising]
    assert not RowValues(flat, rising, falling, prizes=falls).is_monotone
    assert RowValues([2 * r for r in rising], rising, falling, prizes=falls).is_monotone


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"values": three(lambda size: np.zeros(size + 1))}, "values of shapes"),
        ({"values": three(lambda size: np.full(size, np.nan))}, "values with a number"),
        ({"wins": three(lambda size: np.full(size, 1.1))}, "chances of the front"),
        ({"losses": three(lambda size: np.full(size, -0.1))}, "chances of the front"),
        ({"majority": float("inf")}, "majority inf"),
    ],
)
def test_bad_tables_are_refused(fields, says):
    with pytest.raises(ConfigError, match=says):
        RowValues(**{"values": three(np.zeros), **fields})


@pytest.mark.parametrize(
    "strengths",
    [np.zeros(3, np.int16), np.zeros((1, 3)), [[455, 0, 0]], [[0, -1, 0]], [[0, 0, 7462]]],
)
def test_strengths_out_of_range_are_refused(strengths):
    with pytest.raises(ArrangementError):
        RowValues(three(np.zeros)).of(np.asarray(strengths))


@pytest.mark.parametrize("k", [1, 7, 400])
def test_top_arrangements_are_the_frontier_by_value(k):
    rules = Rules.preset("mandarin", topology="banker", banker=0)
    hands = some_hands(40)
    bank = np.where(np.arange(40) % 3 == 0, 1, -1)
    top = top_arrangements(hands, rules, 3, bank, k)
    options = frontier(hands, rules)
    worth = arrangement_values(options.strengths, bank[options.hand_index], rules, 3)
    for h in range(40):
        mine = np.arange(options.starts[h], options.starts[h + 1])
        back, middle = -options.strengths[mine, 2], -options.strengths[mine, 1]
        order = mine[np.lexsort((middle, back, -worth[mine]))][:k]
        count = top.counts[h]
        assert count == len(order)
        assert np.array_equal(top.values[h, :count], worth[order])
        assert np.array_equal(top.strengths[h, :count], options.strengths[order])
        assert np.array_equal(top.rows[h, :count], options.rows[order])
        assert not top.rows[h, count:].any()
        assert not top.values[h, count:].any()
        told, is_legal = evaluate(np.repeat(hands[h : h + 1], count, 0), top.rows[h, :count], rules)
        assert is_legal.all()
        assert np.array_equal(told, top.strengths[h, :count])


def test_equal_values_put_the_stronger_back_first():
    options = frontier(some_hands(10), Rules())
    top = select_top(options, np.zeros(len(options.rows)), 1000)
    for h in range(10):
        count = top.counts[h]
        backs = top.strengths[h, :count, ::-1].astype(np.int64)
        assert count == options.starts[h + 1] - options.starts[h]
        assert (np.diff(backs[:, 0] * 10_000 + backs[:, 1]) < 0).all()


def test_first_of_equal_values_is_best():
    options = frontier(some_hands(10), Rules())
    assert np.array_equal(best_of(options, np.zeros(len(options.rows))), options.starts[:-1])


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_k_is_refused(k):
    with pytest.raises(ConfigError, match=r"give a whole number 1\.\.36036"):
        top_arrangements(some_hands(1), Rules(), 2, np.zeros(1), k)


@pytest.mark.parametrize("bank", [[1], [0, 0], 0])
def test_bad_sides_are_refused(bank):
    with pytest.raises(ArrangementError, match="bank of shape"):
        top_arrangements(some_hands(1), Rules(), 2, np.array(bank), 3)

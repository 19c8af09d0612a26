"""Units to money: stacks, caps, and who may surrender."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpoker_env.errors import ShowdownError
from cpoker_env.money import BUY_IN_UNITS, may_surrender, settle_stacks
from cpoker_env.rules import Rules


def test_uncapped_stacks_move_by_units_times_the_price():
    assert settle_stacks([6, -2, -4], [100, 100, 100], unit=5) == [130, 90, 80]


def test_uncapped_stack_may_go_below_zero():
    assert settle_stacks([10, -10], [5, 5]) == [15, -5]


def test_capped_loser_pays_no_more_than_its_stack():
    assert settle_stacks([10, -10], [5, 4], policy="cap_prorata") == [9, 0]


def test_capped_winners_share_in_proportion_and_leftovers_go_by_largest_remainder():
    # 10 is collected for winnings of 3 and 6: 3 1/3 and 6 2/3, so the spare coin is the second's.
    assert settle_stacks([3, 6, -9], [0, 0, 9], policy="cap_prorata") == [3, 6, 0]
    assert settle_stacks([3, 6, -9], [0, 0, 5], policy="cap_prorata") == [2, 3, 0]
    assert settle_stacks([4, 8, -12], [0, 0, 10], policy="cap_prorata") == [3, 7, 0]


def test_capped_leftover_of_equal_remainders_goes_to_the_first_seat():
    assert settle_stacks([-10, 5, 5], [3, 0, 0], policy="cap_prorata") == [0, 2, 1]


def test_capped_with_an_indebted_stack_pays_nothing():
    assert settle_stacks([5, -5], [10, -3], policy="cap_prorata") == [10, -3]


def test_stacks_of_fractions_stay_exact():
    assert settle_stacks([Fraction(3, 2), Fraction(-3, 2)], [1, 2], unit=0.5) == [
        Fraction(7, 4),
        Fraction(5, 4),
    ]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.data())
def test_money_is_neither_made_nor_lost(data):
    seats = data.draw(st.integers(2, 4))
    units = data.draw(st.lists(st.integers(-60, 60), min_size=seats - 1, max_size=seats - 1))
    units.append(-sum(units))
    stacks = data.draw(st.lists(st.integers(0, 200), min_size=seats, max_size=seats))
    for policy in ("uncapped", "cap_prorata"):
        after = settle_stacks(units, stacks, unit=3, policy=policy)
        assert sum(after) == sum(stacks)
        if policy == "cap_prorata":
            assert min(after) >= 0
            for won, before, stack in zip(units, stacks, after, strict=True):
                assert (stack - before) * won >= 0
                assert abs(stack - before) <= abs(3 * won)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1, -1], [1]), "1 stacks for 2 seats: give one for each seat"),
        (([1, -1], [5, 5], 0), "unit 0: the price of a unit is above 0"),
        (([1, -1], [5, 5], -2), "unit -2: the price of a unit is above 0"),
        (([1, -1], [5, 5], 1, "cap"), "money policy 'cap': choose one of uncapped, cap_prorata"),
        (([1, -1], ["5", 5]), "stack '5': give a number"),
        (([1, -1], [True, 5]), "stack True: give a number"),
        (([1, -1], [float("nan"), 5]), "stack nan: give a finite number"),
        (([1, -1], [5, 5], float("inf")), "unit inf: give a finite number"),
    ],
)
def test_bad_money_is_refused_with_its_value_and_the_fix(arguments, says):
    with pytest.raises(ShowdownError) as raised:
        settle_stacks(*arguments)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("num_seats", "stack", "unit", "may"),
    [(4, 9, 1, True), (4, 8, 1, False), (2, 3, 1, True), (3, 29, 5, False), (3, 30, 5, True)],
)
def test_surrender_needs_its_price_for_every_opponent(num_seats, stack, unit, may):
    assert may_surrender(Rules.preset("mandarin"), num_seats, stack, unit) is may


def test_no_stack_buys_a_surrender_where_the_rules_have_none():
    assert not may_surrender(Rules.preset("basic"), 2, 10**9)


def test_usual_buy_in_pays_a_surrender_at_a_full_table():
    assert BUY_IN_UNITS == 20
    assert may_surrender(Rules(), 4, BUY_IN_UNITS)

"""Units turned into money: a unit's price, stacks, and what happens when a loss exceeds a stack.

Units stay uncapped and zero-sum; only what changes hands is limited here.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Literal, TypeAlias

from cpoker_env.errors import ShowdownError
from cpoker_env.rules import Rules

Money: TypeAlias = int | float | Fraction
MoneyPolicy: TypeAlias = Literal["uncapped", "cap_prorata"]
POLICIES: tuple[MoneyPolicy, ...] = ("uncapped", "cap_prorata")
MAX_MONEY = 10**15
"""Largest stack, buy-in or price of a unit, well within what floats tell apart."""
BUY_IN_UNITS = 20
"""The usual buy-in, in units. Source: the Czech text."""


def settle_stacks(
    units: Sequence[int | Fraction],
    stacks: Sequence[Money],
    unit: Money = 1,
    policy: MoneyPolicy = "uncapped",
) -> list[int | Fraction]:
    """Stacks after a deal; their sum stays the same.

    Args:
        units: Per seat, sum 0.
        stacks: Per seat, before the deal.
        unit: Price of one unit.
        policy: `uncapped` moves everything, a stack may go below 0; with `cap_prorata` a net loser
            pays at most its stack, and what is collected goes to the net winners in proportion to
            their winnings, rounded down to whole coins, leftover coins by largest remainder, then
            by seat.

    Raises:
        ShowdownError: An unknown policy, a unit not above 0, or stacks that do not fit the seats.
    """
    if policy not in POLICIES:
        raise ShowdownError(f"money policy {policy!r}: choose one of {', '.join(POLICIES)}")
    if len(stacks) != len(units):
        raise ShowdownError(f"{len(stacks)} stacks for {len(units)} seats: give one for each seat")
    price = _amount("unit", unit)
    if price <= 0:
        raise ShowdownError(f"unit {unit}: the price of a unit is above 0")
    before = [_amount("stack", stack) for stack in stacks]
    due = [Fraction(won) * price for won in units]
    if policy == "cap_prorata":
        due = _capped(due, before)
    return [_plain(stack + won) for stack, won in zip(before, due, strict=True)]


def may_surrender(rules: Rules, num_seats: int, stack: Money, unit: Money = 1) -> bool:
    """Whether a seat may surrender: the rules have it, and the stack pays every opponent."""
    if rules.surrender_cost is None:
        return False
    return _amount("stack", stack) >= rules.surrender_cost * (num_seats - 1) * Fraction(unit)


def _capped(due: list[Fraction], before: list[Fraction]) -> list[Fraction]:
    paid = [min(-won, max(stack, Fraction(0))) if won < 0 else Fraction(0)
            for won, stack in zip(due, before, strict=True)]  # fmt: skip
    collected = sum(paid, Fraction(0))
    winnings = sum((won for won in due if won > 0), Fraction(0))
    if winnings == 0:
        return due
    coin = Fraction(1, lcm(*(amount.denominator for amount in (collected, *before))))
    shares = [collected * won / winnings if won > 0 else Fraction(0) for won in due]
    taken = [share // coin * coin for share in shares]
    left = collected - sum(taken, Fraction(0))
    by_remainder = sorted(range(len(due)), key=lambda s: (taken[s] - shares[s], s))
    for seat in by_remainder:
        if left <= 0:
            break
        taken[seat] += coin
        left -= coin
    return [won - loss for won, loss in zip(taken, paid, strict=True)]


def _amount(what: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise ShowdownError(f"{what} {value!r}: give a number")
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        raise ShowdownError(f"{what} {value!r}: give a finite number") from None


def _plain(amount: Fraction) -> int | Fraction:
    return int(amount) if amount.denominator == 1 else amount

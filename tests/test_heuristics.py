"""The product heuristic against brute force."""

import numpy as np
import pytest

from cpoker_env.arrangements import enumerate as enumerate_all
from cpoker_env.arrangements import evaluate, frontier
from cpoker_env.cards import parse_hand
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW
from cpoker_env.table import Table
from cpoker_env.tables import CATEGORY_SIZES, FRONT_CATEGORY_SIZES

# How many five-card rows there are of each category, weakest first, and of fronts.
FIVES = (1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 40)
FRONTS = (18_304, 3_744, 52)


def ranks():
    """Per row, by strength, how many rows are not stronger: from published counts alone."""
    found = []
    for sizes, counts in ((FRONT_CATEGORY_SIZES, FRONTS), *[(CATEGORY_SIZES, FIVES)] * 2):
        each = [count // size for size, count in zip(sizes, counts, strict=True)]
        found.append(np.cumsum(np.repeat(each, sizes)))
    return found


def products(strengths):
    """(M,) products of the rows' ranks, times what they are divided by: whole numbers, exact."""
    front, middle, back = (
        table[strengths[:, row]].astype(object) for row, table in enumerate(ranks())
    )
    return front * middle * back


@pytest.mark.parametrize(
    "options", [{}, {"wheel": "second_high", "order_ties": "all_ok"}], ids=["default", "loose"]
)
def test_product_equals_brute_force(options):
    rules = Rules.preset("four_two", **options)
    deals = Table(rules, 4).deal(21, np.arange(150, dtype=np.uint64))
    batch = decisions_for(deals.hands.reshape(-1, 13), rules)
    actions = make_policy("product", rules).act(batch, np.random.default_rng(0))
    strengths, is_legal = evaluate(batch.hands, actions.rows, rules)
    assert is_legal.all()
    options = frontier(batch.hands, rules)
    told, starts = products(options.strengths), options.starts
    most = [max(told[starts[h] : starts[h + 1]]) for h in range(len(batch))]
    assert (products(strengths) == most).all()
    for h in range(3):
        _, every, legal = enumerate_all(batch.hands[h], rules)
        assert products(every[legal]).max() == most[h]


def test_product_declares_what_it_may_and_never_surrenders():
    rules = Rules.preset("mandarin")
    hands = ["As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s", "Js 9d 9c 8h 7s 6s 5c 5s 4h 3s 3c 2c 2s"]
    batch = decisions_for([parse_hand(hand) for hand in hands], rules)
    assert batch.can_surrender.all()
    assert batch.naturals[1] < 0
    actions = make_policy("product", rules).act(batch, np.random.default_rng(0))
    assert actions.declarations.tolist() == [DECLARE, SHOW]

"""Answers to a stored population against plain settling, and what is played with them."""

import json

import numpy as np
import pytest
from cpoker_env.agents.population import (
    RELABELLINGS,
    draw_hands,
    gather,
    resolve,
    respond,
    sides_of,
)
from cpoker_env.agents.search import Search
from cpoker_env.train.evaluate import duel
from cpoker_env.train.fictitious_play import Config, load_state, main, play_round, start_state
from cpoker_env.train.gains import interval

from cpoker_env.arrangements import frontier
from cpoker_env.errors import CheckpointError
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.rules import PRESETS, Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER, settle_deals

HOUSES = [
    *((preset, {}) for preset in PRESETS),
    ("mandarin", {"royalty_mode": "replace"}),
    ("mandarin", {"scoop": "double_all"}),
    ("mandarin", {"scoop": "double_all", "royalties": "protection"}),
    ("mandarin", {"royalties": "protection"}),
    ("western", {"overall_by": "points"}),
    ("mandarin", {"overall_point": 1, "overall_by": "points"}),
    ("italian", {"topology": "pool"}),
    ("mandarin", {"topology": "banker", "banker": 0}),
    ("western", {"topology": "banker", "banker": 1}),
]


def crowd(rules, size, seed):
    """Hands, rows and declarations that show, surrender, declare and foul."""
    rng = np.random.default_rng(seed)
    hands = draw_hands(seed, size)
    decisions = decisions_for(hands, rules, seed=seed)
    rows = make_policy("uniform", rules).act(decisions, rng).rows.copy()
    declarations = np.where(decisions.naturals >= 0, DECLARE, SHOW)
    if rules.surrender_allowed:
        declarations[rng.random(size) < 0.1] = SURRENDER
    foul = rng.random(size) < 0.1
    rows[foul] = rows[foul][:, ::-1]
    return hands, rows, declarations.astype(np.int8)


def paid(hand, rows, declaration, others, rules, seat):
    """Mean units of one choice against each of other hands, settled as two-seat deals."""
    hands, their_rows, their_declarations = others
    size = len(hands)
    table = [np.tile(hand, (size, 1)), hands]
    laid = [np.tile(rows, (size, 1)), their_rows]
    told = [np.full(size, declaration, np.int8), their_declarations]
    naturals = [natural_bits(part, rules)[1] for part in table]
    if seat == 1:
        table, laid, told, naturals = (part[::-1] for part in (table, laid, told, naturals))
    stacked = (np.stack(part, axis=1) for part in (table, laid, told, naturals))
    return settle_deals(*stacked, rules).units[:, seat].mean()


@pytest.mark.parametrize(("preset", "options"), HOUSES, ids=[f"{p}-{o}" for p, o in HOUSES])
def test_responses_equal_settling_pair_by_pair(preset, options):
    rules = Rules.preset(preset, **options)
    others = crowd(rules, 1600, 3)
    sides = sides_of(rules, 1600)
    population = gather(others[0], resolve(*others, rules), sides)
    mine = crowd(rules, 8, 4)
    my_sides = sides_of(rules, 8)
    plays = resolve(*mine, rules)
    found = respond(mine[0], population, rules, my_sides, extra=plays)
    mean = found.mean()
    for h, hand in enumerate(mine[0]):
        is_met = ~np.isin(others[0], hand).any(axis=1) & (sides == -my_sides[h])
        met = [part[is_met] for part in others]
        assert found.met[:, h].sum() == is_met.sum() > 0
        seat = 0 if rules.banker is None else rules.banker if my_sides[h] == 1 else 1 - rules.banker
        first, last = found.options.starts[h], found.options.starts[h + 1] - 1
        for place in (first, (first + last) // 2, last - 1):
            told = paid(hand, found.options.rows[place], SHOW, met, rules, seat)
            assert mean.values[0, place] == pytest.approx(told, abs=1e-9)
        for half in range(2):
            every_other = [part[half::2] for part in met]
            told = paid(hand, found.options.rows[first], SHOW, every_other, rules, seat)
            assert found.values[half, first] == pytest.approx(told, abs=1e-9)
        told = paid(hand, mine[1][h], SHOW, met, rules, seat)
        assert mean.values[0, last] == pytest.approx(told, abs=1e-9)
        told = paid(hand, mine[1][h], SURRENDER, met, rules, seat)
        if rules.surrender_allowed:
            assert mean.surrender[0, h] == pytest.approx(told, abs=1e-9)
        told = paid(hand, np.full(13, 2, np.int8), SHOW, met, rules, seat)
        assert mean.foul[0, h] == pytest.approx(told, abs=1e-9)
        if found.naturals[h] >= 0:
            told = paid(hand, mine[1][h], DECLARE, met, rules, seat)
            assert mean.declare[0, h] == pytest.approx(told, abs=1e-9)
        own = mean.value_of_extra(0, plays)[h]
        assert own == pytest.approx(paid(hand, mine[1][h], mine[2][h], met, rules, seat), abs=1e-9)


def test_relabellings_keep_ranks_colours_and_flushes():
    hands = draw_hands(1, 50)
    rules = Rules.preset("mandarin")
    bits, _ = natural_bits(hands, rules)
    assert len({tuple(suits) for suits in RELABELLINGS.tolist()}) == 8
    for suits in RELABELLINGS:
        renamed = np.sort((hands & ~3) | suits[hands & 3].astype(np.int8), axis=1)[:, ::-1]
        renamed = np.ascontiguousarray(renamed)
        assert (natural_bits(renamed, rules)[0] == bits).all()
        before, after = frontier(hands, rules), frontier(renamed, rules)
        assert (before.strengths == after.strengths).all()


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("basic", {}),
        ("mandarin", {"royalty_mode": "replace", "overall_point": 1}),
        ("mandarin", {"royalties": "protection", "topology": "banker", "banker": 1}),
    ],
)
def test_many_opponents_are_worth_what_each_relabelling_of_them_is(preset, options):
    rules = Rules.preset(preset, **options)
    others = crowd(rules, 90_000, 3)
    population = gather(others[0], resolve(*others, rules), sides_of(rules, 90_000))
    hands, sides = draw_hands(4, 4), sides_of(rules, 4)
    whole = respond(hands, population, rules, sides, num_relabellings=8)
    assert rules.topology == "banker" or (whole.met.sum(axis=0) > 4 * 2048).all()
    units, met = 0, 0
    for suits in RELABELLINGS:
        renamed = np.sort((hands & ~3) | suits[hands & 3].astype(np.int8), axis=1)[:, ::-1]
        part = respond(np.ascontiguousarray(renamed), population, rules, sides)
        each = part.met[:, part.options.hand_index] * part.values
        units, met = units + each.sum(axis=0), met + part.met.sum(axis=0)
    assert (whole.met.sum(axis=0) == met).all()
    told = whole.mean().values[0] * met[whole.options.hand_index]
    assert told == pytest.approx(units, abs=1e-6)


def test_no_more_opponents_are_met_than_the_first_to_fit():
    rules = Rules.preset("mandarin")
    hands, rows, declarations = crowd(rules, 300, 3)
    hands[:], rows[:] = hands[0], rows[0]
    mine = np.array([np.setdiff1d(np.arange(52), hands[0])[:-14:-1]], np.int8)
    declarations[:] = SHOW
    declarations[136:] = SURRENDER
    population = gather(hands, resolve(hands, rows, declarations, rules))
    found = respond(mine, population, rules)
    assert found.met[:, 0].tolist() == [68, 68]
    few = gather(hands[:9], resolve(hands[:9], rows[:9], declarations[:9], rules))
    fewer = respond(mine, few, rules)
    assert fewer.met[:, 0].tolist() == [5, 4]
    assert found.values == pytest.approx(fewer.values)
    assert found.surrender == pytest.approx(fewer.surrender)


SMALL = Config(rules="mandarin", hands=6000, rounds=3)


def test_fictitious_play_lowers_exploitability_and_resumes_exactly(tmp_path):
    rules = Rules.preset("mandarin")
    state = start_state(SMALL, rules)
    first = interval(play_round(state, SMALL, rules).upper)
    for _ in range(5):
        last = interval(play_round(state, SMALL, rules).upper)
    assert last.mean < first.mean
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    main(Config(**{**SMALL.__dict__, "out": whole}))
    main(Config(**{**SMALL.__dict__, "out": cut, "rounds": 3}))
    saved = cut / "state.safetensors"
    with pytest.raises(CheckpointError, match="resume"):
        main(Config(**{**SMALL.__dict__, "out": cut}))
    with pytest.raises(CheckpointError, match="same settings"):
        load_state(saved, Config(**{**SMALL.__dict__, "seed": 2}), rules)
    main(Config(**{**SMALL.__dict__, "out": cut, "resume": True}))
    assert (whole / "agent.safetensors").read_bytes() == (cut / "agent.safetensors").read_bytes()
    record = json.loads((whole / "agent.json").read_text(encoding="utf-8"))
    assert record["config"]["kind"] == "population"
    policy = make_policy(f"search:{whole / 'agent'}", rules)
    assert isinstance(policy, Search)
    hands = draw_hands(11, 20)
    batch = decisions_for(hands, rules)
    actions = policy.act(batch, np.random.default_rng(0))
    for h, options in enumerate(policy.candidates(batch, 3)):
        label, rows, units = options[0]
        assert units >= options[1][2] >= options[2][2]
        if label == "show":
            assert (actions.rows[h] == rows).all()
    with pytest.raises(CheckpointError, match="of the same rules"):
        make_policy(f"search:{whole / 'agent'}", "western")


def test_the_shipped_population_is_used_by_name_and_beats_greedy():
    rules = Rules.preset("four_two")
    search = make_policy("search", rules)
    result = duel(search, make_policy("greedy", rules), rules, 2, 250, 3)
    assert result.units - result.half_width > 0.9
    with pytest.raises(CheckpointError, match="nothing ships"):
        make_policy("search", Rules.preset("four_two", surrender_cost=3))

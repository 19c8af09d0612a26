"""The tables of `equilibrium`: their value function against plain arithmetic, and their fit."""

import numpy as np
import pytest
from cpoker_env.agents.chances import (
    NUM_FEATURES,
    SideTables,
    chance_tables,
    corrected_values,
    features_of,
    independent_side,
    side_of,
)
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint
from cpoker_env.agents.equilibrium import Equilibrium
from cpoker_env.agents.population import Population, draw_hands, gather, respond, runs_of, sides_of
from cpoker_env.agents.search import make_search
from cpoker_env.train import tables
from cpoker_env.train.exploitability import play_hands

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, frontier
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.row_values import best_of, row_values_of
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SURRENDER
from cpoker_env.valuation import TABLE_SIZES

SMALL = tables.Config(hands=3000, knots=4, ridge=60.0)
KNOTS = np.array([[0, 300, 454, -1], [0, 3000, 5000, 7461], [0, 4000, 7461, -1]], np.int16)


@pytest.fixture(scope="module")
def crowd():
    """A population of balanced hands under Mandarin rules."""
    rules = Rules.preset("mandarin")
    hands = draw_hands(3, 40_000)
    sides = sides_of(rules, len(hands))
    plays = play_hands(make_policy("balanced", rules), hands, sides, rules, 2, 2)
    return rules, gather(hands, plays, sides)


def some_side(seed, scale=0.02):
    """Tables with random rows and random unknowns."""
    rng = np.random.default_rng(seed)
    counts = [rng.integers(0, 5, size).astype(np.int32) for size in TABLE_SIZES]
    side = independent_side(counts, 0.9, KNOTS)
    filled = {
        name: (scale * rng.standard_normal(getattr(side, name).shape)).astype(np.float32)
        for name in ("coefficients", "shared", "scoops")
    }
    return side, side._replace(**filled)


def told(strengths, features, side, rules):
    """The value of one arrangement, written out."""
    plain = row_values_of([np.asarray(t, float) for t in side[:3]], 0, rules)
    share = float(side.ordinary[0])
    win = [plain.wins[row][strengths[row]] for row in range(3)]
    lose = [plain.losses[row][strengths[row]] for row in range(3)]
    value = float(features @ side.shared)
    scoop, scooped = np.prod(win), np.prod(lose)
    for power in (1, 2, 3):
        value += side.scoops[0, power - 1] * scoop**power
        value += side.scoops[1, power - 1] * scooped**power
    won, _ = (np.zeros((3, 7462), np.int64) for _ in range(2))
    kernels.gains_into(rules.packed, won, np.zeros((3, 7462), np.int64))
    for row in range(3):
        knots = [k for k in side.knots[row].tolist() if k >= 0]
        place = np.interp(strengths[row], knots, range(len(knots)))
        low = min(int(place), len(knots) - 2)
        at_knots = side.coefficients[row].astype(float) @ features
        effect = at_knots[low] * (1 - place + low) + at_knots[low + 1] * (place - low)
        win[row], lose[row] = win[row] + effect, lose[row] - effect
        value += share * plain.values[row][strengths[row]]
        value += effect * share * (1 + won[row, strengths[row]])
    prize = sum(plain.prizes[row][strengths[row]] for row in range(3))
    price = sum(plain.prices[row][strengths[row]] for row in range(3))
    value += share * (np.prod(win) * prize - np.prod(lose) * price)
    results = [(up, 1 - up - down, down) for up, down in zip(win, lose, strict=True)]
    for first, a in zip((1, 0, -1), results[0], strict=True):
        for second, b in zip((1, 0, -1), results[1], strict=True):
            for third, c in zip((1, 0, -1), results[2], strict=True):
                sign = np.sign(first + second + third)
                value += share * plain.majority * a * b * c * sign
    return value


@pytest.mark.parametrize("preset", ["four_two", "mandarin", "eastern"])
def test_corrected_values_equal_the_formula_written_out(preset):
    rules = Rules.preset(preset)
    _, side = some_side(1)
    hands = draw_hands(5, 6)
    options = frontier(hands, rules)
    features = features_of(hands)
    built = chance_tables(side, rules, 0)
    values = corrected_values(options, features, built)
    for place in range(0, len(values), 17):
        hand = options.hand_index[place]
        value = told(options.strengths[place], features[hand], side, rules)
        assert values[place] == pytest.approx(value, abs=2e-4)  # chances are rounded


def test_features_count_ranks_suits_and_straights():
    hand = np.array([draw_hands(1, 1)[0]])
    found = features_of(hand)[0]
    ranks, suits = hand[0] >> 2, np.sort(np.bincount(hand[0] & 3, minlength=4))[::-1]
    assert len(found) == NUM_FEATURES
    assert found[0] == 1
    assert (found[1:14] == np.bincount(ranks, minlength=13) - 1).all()
    assert found[14:17] == pytest.approx(0.5 * (suits[:3] - [5, 4, 3]))
    held = {-1 if rank == 12 else rank for rank in ranks.tolist()} | set(ranks.tolist())
    straights = [len(held & set(range(low, low + 5))) for low in range(-1, 9)]
    assert found[17:] == pytest.approx(0.3 * (np.array(straights) - 3))


@pytest.mark.parametrize("preset", ["four_two", "mandarin"])
def test_equations_hold_the_slopes_of_the_value(preset):
    rules = Rules.preset(preset)
    side, _ = some_side(2)
    hands = draw_hands(6, 1)
    options, features = frontier(hands, rules), features_of(hands)
    one = Frontier(np.array([0, 1]), options.strengths[2:3], options.rows[2:3])
    plain = chance_tables(side, rules, 0)
    base = corrected_values(one, features, plain)[0]
    size = plain.coefficients.size + NUM_FEATURES + 6
    matrix, slopes = np.zeros((size, size)), np.zeros(size)
    kernels.add_equations_into(
        one.starts, one.strengths, features, np.array([base + 1]), np.ones(1), 0.5, plain, matrix,
        slopes,
    )  # fmt: skip
    assert np.tril(np.outer(slopes, slopes)) == pytest.approx(matrix)
    unknowns = ("coefficients", "shared", "scoops")
    at = 0
    for name in unknowns:
        for place in range(getattr(plain, name).size):
            moved = getattr(plain, name).copy()
            moved.ravel()[place] += 1e-5
            value = corrected_values(one, features, plain._replace(**{name: moved}))[0]
            assert (value - base) / 1e-5 == pytest.approx(slopes[at], abs=1e-4)
            at += 1


def test_fit_loses_less_than_independent_rows(crowd):
    rules, population = crowd
    samples = tables.value_hands(draw_hands(8, 3000), population, rules, 0, 2)
    side = tables.fit_side(samples, population, rules, 0, SMALL)
    again = tables.fit_side(samples, population, rules, 0, SMALL)
    assert all((a == b).all() for a, b in zip(side, again, strict=True))
    fresh = draw_hands(9, 1500)
    exact = tables.value_hands(fresh, population, rules, 0, 2)
    options, features = frontier(fresh, rules), features_of(fresh)
    lost = []
    blank = independent_side([*side[:3]], float(side.ordinary[0]), side.knots)
    for one in (side, blank):
        values = corrected_values(options, features, chance_tables(one, rules, 0))
        chosen = exact.values[best_of(options, values)]
        lost.append((np.maximum.reduceat(exact.values, exact.starts[:-1]) - chosen).mean())
    assert lost[0] < 0.93 * lost[1]
    surrenders = features @ side.surrender
    assert np.abs(surrenders - exact.surrender).mean() < 0.05
    six_pairs = exact.declare[exact.naturals == 6]
    assert side.declare[6] == pytest.approx(six_pairs.mean(), abs=0.3)


def test_tables_are_stored_found_and_checked(tmp_path, crowd):
    rules, population = crowd
    tensors = {key: value.numpy() for key, value in tables.fit(population, rules, SMALL).items()}
    side = side_of(tensors, 0, "x")
    assert set(tensors) == {f"{part}.0" for part in SideTables._fields}
    policy = Equilibrium(rules, {0: side})
    hands = draw_hands(10, 300)
    batch = decisions_for(hands, rules)
    actions = policy.act(batch, np.random.default_rng(0))
    assert ((actions.declarations == DECLARE) <= (batch.naturals >= 0)).all()
    for h, options in enumerate(policy.candidates(batch, 3)):
        label, rows, units = options[0]
        assert units == max(option[2] for option in options)
        if label == "show":
            assert (actions.rows[h] == rows).all()
        else:
            assert actions.declarations[h] == (SURRENDER if label == "surrender" else DECLARE)
    kept = decisions_for(hands, rules)
    kept.can_surrender[:] = False
    assert (policy.act(kept, np.random.default_rng(0)).declarations != SURRENDER).all()
    with pytest.raises(CheckpointError, match=r"lacks the tensor back\.0"):
        side_of({k: v for k, v in tensors.items() if k != "back.0"}, 0, "x")
    with pytest.raises(CheckpointError, match="has shape"):
        side_of({**tensors, "scoops.0": np.zeros((2, 2), np.float32)}, 0, "x")
    with pytest.raises(ConfigError, match="knots 1"):
        tables.main(tables.Config(knots=1))
    with pytest.raises(CheckpointError, match="nothing ships"):
        make_policy("equilibrium", Rules.preset("mandarin", surrender_cost=2))
    with pytest.raises(CheckpointError, match="no tables"):
        make_policy("equilibrium:search-mandarin", "mandarin")


def test_tables_that_change_under_their_name_are_read_again(tmp_path):
    kept, rules = load_checkpoint("equilibrium-mandarin"), Rules.preset("mandarin")
    batch, told = decisions_for(draw_hands(3, 200), rules), []
    for price in (0, 100):
        weights = {key: part + price * (key == "surrender.0") for key, part in kept.weights.items()}
        save_checkpoint(tmp_path / "agent", weights, rules, kept.config, [])
        policy = make_policy(f"equilibrium:{tmp_path / 'agent'}", rules)
        assert make_policy(f"equilibrium:{tmp_path / 'agent'}", rules) is policy
        told.append(policy.act(batch, np.random.default_rng(0)).declarations == SURRENDER)
    assert told[0].sum() < told[1].sum()


def test_sides_of_a_bank_have_their_own_tables():
    rules = Rules.preset("western", topology="banker", banker=1)
    hands = draw_hands(3, 20_000)
    sides = sides_of(rules, len(hands))
    plays = play_hands(make_policy("balanced", rules), hands, sides, rules, 2, 2)
    fitted = tables.fit(gather(hands, plays, sides), rules, SMALL)
    tensors = {key: value.numpy() for key, value in fitted.items()}
    policy = Equilibrium(rules, {bank: side_of(tensors, bank, "x") for bank in (1, -1)})
    batch = decisions_for(draw_hands(4, 400), rules, seats=np.arange(400) % 2)
    found = policy.estimate(batch)
    apart = [
        policy.estimate(decisions_for(batch.hands[h : h + 1], rules, seats=batch.seats[h : h + 1]))
        for h in (0, 1)
    ]
    starts = found.options.starts
    for h in (0, 1):
        assert found.values[starts[h] : starts[h + 1]] == pytest.approx(apart[h].values)
    best = best_of(found.options, found.values)
    assert found.values[best][1::2].mean() > found.values[best][0::2].mean()  # ties go to the bank


def test_home_runs_add_what_their_chances_say():
    rules = Rules.preset("mandarin")
    search = make_search(rules)
    population = search.population
    rng = np.random.default_rng(1)
    scoops = rng.random(len(population)) * 0.9
    runs = runs_of(scoops)
    assert np.abs(runs / 256 - scoops**2).max() < 1 / 256
    hands = draw_hands(12, 8)
    plain = respond(hands, population, rules)
    sets = (population.holders, population.sides, population.banks, population.plays)
    coupled = respond(hands, Population(*sets, runs), rules)
    is_held = np.zeros((8, 52), bool)
    np.put_along_axis(is_held, hands.astype(np.int64), True, axis=1)
    crowd_hands = draw_hands(1, len(population))
    plays = population.plays
    for h in (0, 3, 7):
        meets = np.flatnonzero(~is_held[h][crowd_hands].any(axis=1))
        for half in (0, 1):
            met = meets[half::2]
            shows = met[plays.status[met] == kernels.NORMAL]
            for place in range(plain.options.starts[h], plain.options.starts[h + 1], 20):
                mine = plain.options.strengths[place]
                beaten = (plays.strengths[shows] < mine).all(axis=1).sum() / len(met)
                lost = (plays.strengths[shows] > mine).all(axis=1)
                assert plain.scoops[half, place] == pytest.approx(beaten)
                more = 3 * beaten**3 - (3.0 * runs[shows][lost] / 256).sum() / len(met)
                told = coupled.values[half, place] - plain.values[half, place]
                assert told == pytest.approx(more, abs=1e-9)

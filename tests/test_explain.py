"""Why options are best: accounts that add up, chances that are counted, sentences that agree."""

import io
import json
import re

import numpy as np
import pytest
import small_tables
from cpoker_env.agents.accounts import OTHERS, PARTS, ROYALTIES, Explains, account_of_plays
from cpoker_env.agents.explain import explain
from cpoker_env.agents.options import choose, rank_options
from cpoker_env.agents.population import Population, draw_hands, opponents_of, runs_of
from cpoker_env.agents.search import Search

from cpoker_env import kernels
from cpoker_env.cards import parse_hand
from cpoker_env.cli import main
from cpoker_env.policy import decisions_for, make_policy, register_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER

QUADS_AND_PAIRS = "Js Jc Tc As Ah Ac 8s 8d Td 7s 7h 7d 7c"
SIX_PAIRS = "Ks Kd Qs Qc 6s 6c Tc Ts 9c 9s 8c 8s 2d"
HOPELESS = "Kc Qc Js Td 8h 7d 6d 5s 5c 4h 4c 3h 2s"


def policy_of(name, preset):
    if name == "equilibrium":
        return small_tables.equilibrium(preset)
    if name == "search":
        return Search(Rules.preset(preset), small_tables.crowd(preset))
    return make_policy(name, preset)


def spread(found, num_hands):
    """Some candidates of every hand, best and others."""
    starts = found.options.starts
    return np.concatenate([np.arange(starts[h], starts[h + 1], 9) for h in range(num_hands)])


@pytest.mark.parametrize("name", ["balanced", "search", "equilibrium"])
@pytest.mark.parametrize("preset", ["mandarin", "four_two"])
def test_parts_add_up_to_the_units_of_an_option(name, preset):
    policy = policy_of(name, preset)
    assert isinstance(policy, Explains)
    batch = decisions_for(draw_hands(21, 40), policy.rules)
    found = policy.estimate(batch)
    chosen = spread(found, 40)
    account = policy.account(batch, found, chosen)
    assert account.parts.shape == (len(chosen), len(PARTS))
    assert account.parts.sum(axis=1) == pytest.approx(found.values[chosen])
    assert (account.chances >= 0).all()
    assert (account.chances <= 1).all()
    assert (account.scoops.sum(axis=1) <= 1).all()
    if preset == "four_two":
        assert account.parts[:, ROYALTIES] == pytest.approx(0, abs=1e-4)  # chances are rounded


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("mandarin", {}),
        ("western", {}),
        ("italian", {"royalties": "protection"}),
        ("special", {"scoop": "double_all"}),
        ("western", {"topology": "banker", "banker": 0}),
        ("mandarin", {"topology": "banker", "banker": 0}),
        ("basic", {"topology": "pool"}),
        ("eastern", {"overall_point": 2, "overall_by": "points"}),
    ],
)
def test_counted_parts_leave_the_same_rest_to_every_option(preset, changes):
    # What opponents bring that do not show cannot depend on how the hand is laid, so an error in
    # any other part would show here.
    rules = Rules.preset(preset, **changes)
    crowd = small_tables.crowd("mandarin")
    sides = np.zeros((3, crowd.sides.shape[1]), np.uint64)
    banks = [0] if rules.banker is None else [1, -1]
    for bank in banks:
        sides[1 - bank] = crowd.sides[1]
    policy = Search(rules, Population(crowd.holders, sides, crowd.banks, crowd.plays, crowd.runs))
    seats = np.arange(6) % 2 if rules.banker is not None else None
    batch = decisions_for(draw_hands(22, 6), rules, seats=seats)
    found = policy.estimate(batch)
    chosen = spread(found, 6)
    account = policy.account(batch, found, chosen)
    for h in range(6):
        rest = account.parts[found.options.hand_index[chosen] == h, OTHERS]
        assert rest == pytest.approx(rest[0], abs=1e-9)


def test_counted_parts_equal_pairings_settled_one_by_one():
    rules = Rules.preset("mandarin")
    rng = np.random.default_rng(4)
    hands = draw_hands(5, 400)
    batch = decisions_for(hands, rules)
    found = make_policy("balanced", rules).estimate(batch)
    theirs = found.options.strengths[choose(found)[0]]
    mine = found.options.strengths[rng.integers(0, len(found.options.strengths), 5)]
    account = account_of_plays(mine, theirs, 500, 0, rules)
    for n, strengths in enumerate(mine):
        pairs = np.stack([np.tile(strengths, (400, 1)), theirs], axis=1)
        units = np.empty((400, 2), np.int32)
        kernels.settle_into(
            pairs, np.zeros((400, 2), np.int8), np.full((400, 2), -1, np.int8),
            np.zeros((400, 2), np.int64), rules.packed, units,
        )  # fmt: skip
        assert account.parts[n, :OTHERS].sum() == pytest.approx(units[:, 0].sum() / 500)
        wins, ties = strengths > theirs, strengths == theirs
        assert account.chances[n] == pytest.approx((wins + 0.5 * ties).mean(axis=0))
        assert account.scoops[n, 0] == pytest.approx(wins.all(axis=1).sum() / 500)
        assert account.scoops[n, 1] == pytest.approx((strengths < theirs).all(axis=1).sum() / 500)


def test_home_runs_are_counted_with_scoops():
    rules = Rules.preset("mandarin")
    crowd = small_tables.crowd("mandarin")
    runs = runs_of(np.random.default_rng(2).random(len(crowd)))
    coupled = Population(crowd.holders, crowd.sides, crowd.banks, crowd.plays, runs)
    batch = decisions_for(draw_hands(23, 3), rules)
    rests = []
    for population in (crowd, coupled):
        policy = Search(rules, population)
        found = policy.estimate(batch)
        rests.append(policy.account(batch, found, spread(found, 3)).parts[:, OTHERS])
    # The kernel cubes the share of each half of the opponents, the account that of all.
    assert rests[0] == pytest.approx(rests[1], abs=0.02)


def test_opponents_are_those_that_share_no_card():
    crowd = small_tables.crowd("mandarin")
    hands = draw_hands(3, 20_000)
    hand = draw_hands(24, 1)[0]
    expected = np.flatnonzero(~np.isin(hands, hand).any(axis=1))
    assert (opponents_of(hand, crowd) == expected).all()
    assert 3 * len(expected) < len(opponents_of(hand, crowd, 0, 4)) < 5 * len(expected)


@pytest.mark.parametrize("preset", ["mandarin", "four_two"])
def test_fitted_chances_are_close_to_counted_ones_and_better_than_averages(preset):
    policy = small_tables.equilibrium(preset)
    exact = Search(policy.rules, small_tables.crowd(preset))
    batch = decisions_for(draw_hands(25, 150), policy.rules)
    found = exact.estimate(batch)
    best = found.values[choose(found)[0]][found.options.hand_index]
    near = np.flatnonzero(found.values > best - 0.5)
    counted = exact.account(batch, found, near)
    told = policy.account(batch, policy.estimate(batch), near)
    blank = small_tables.equilibrium(preset)
    side = blank.sides[0]
    plain = side.stored._replace(wins=np.zeros_like(side.stored.wins))
    blank.sides[0] = side._replace(stored=plain)
    averages = blank.account(batch, blank.estimate(batch), near)

    def error(account):
        return np.sqrt(np.square(account.chances - counted.chances).mean(axis=0))

    # About 1,000 opponents a hand count chances to 0.015 themselves.
    assert (error(told) < 0.025).all()
    assert (error(told) < error(averages)).all()
    assert np.abs((told.chances - counted.chances).mean(axis=0)).max() < 0.01
    assert np.abs(told.scoops - counted.scoops).mean() < 0.025
    options, chances = policy.chances(batch)
    assert (options.strengths == found.options.strengths).all()
    assert chances[near] == pytest.approx(told.chances)


def test_options_are_ranked_with_declarations_among_them():
    rules = Rules.preset("mandarin")
    policy = make_policy("balanced", rules)
    batch = decisions_for(np.array([parse_hand(SIX_PAIRS), parse_hand(HOPELESS)]), rules)
    found = policy.estimate(batch)
    first, second = rank_options(*found, batch.naturals, 2)
    assert [option.label for option in first] == ["declare six_pairs", "show", "show", "surrender"]
    assert [option.label for option in second] == ["surrender", "show", "show"]
    assert first[1].units == found.values[: found.options.starts[1]].max()
    assert (choose(found)[1] == [DECLARE, SURRENDER]).all()


@pytest.mark.parametrize("name", ["balanced", "search", "equilibrium"])
def test_reasons_add_up_and_begin_with_what_is_played(name):
    policy = policy_of(name, "mandarin")
    batch = decisions_for(draw_hands(26, 150), policy.rules)
    actions = policy.act(batch, np.random.default_rng(0))
    compared = 0
    for h, (options, why) in enumerate(explain(policy, batch, 3)):
        assert len(options) == 3
        assert options[0].units >= options[1].units >= options[2].units
        played = ("show", "surrender", "declare")[actions.declarations[h]]
        assert options[0].label.partition(" ")[0] == played
        arrangements = [option.shown for option in options if option.shown is not None]
        for shown in arrangements:
            assert shown.parts.sum() == pytest.approx(shown.units)
        if "more than the next arrangement" not in why:
            continue
        compared += 1
        gained, _, given = why.partition("it gains")[2].partition(" and gives up ")
        numbers = [
            [float(n) for n in re.findall(r"(\d+\.\d{3}) ", part)] for part in (gained, given)
        ]
        gap = float(re.search(r"worth (\d+\.\d{3}) more", why)[1])
        if len(arrangements) > 1:
            assert gap == pytest.approx(arrangements[0].units - arrangements[1].units, abs=6e-4)
        if gained:
            assert sum(numbers[0]) - sum(numbers[1]) == pytest.approx(gap, abs=0.006)
    assert compared > 100


@pytest.mark.parametrize("name", ["balanced", "search", "equilibrium"])
def test_reasons_say_why_to_declare_keep_back_or_surrender(name):
    policy = policy_of(name, "mandarin")
    hands = [parse_hand(text) for text in (SIX_PAIRS, QUADS_AND_PAIRS, HOPELESS)]
    batch = decisions_for(np.array(hands), policy.rules)
    declare, kept, gives_up = (why for _, why in explain(policy, batch, 1))
    assert re.match(
        r"Declared, six pairs collects \+[23]\.\d+; shown, .* is worth [+-][01]", declare
    )
    assert re.match(r"Kept back it is worth \+\d+\.\d+; declared, six pairs collects \+[23]", kept)
    assert re.match(r"Shown, .* worth -[34]\.\d+ \(.*\); surrendering costs [23]\.", gives_up)


def test_a_row_that_is_better_only_beside_its_pair_says_so():
    policy = make_policy("balanced", "four_two")
    hand = parse_hand("As Ad Kc Kd 9s 9d 7c 7d 5h 4h 3c 2d Jh")
    (explanation,) = explain(policy, decisions_for(np.array([hand]), policy.rules), 2)
    first, second = (option.shown for option in explanation.options)
    assert len(first.names) == 3
    for row, name in enumerate(first.names):
        if name != second.names[row]:
            assert f"{name}, not {second.names[row]}" in explanation.why
    assert sum(chance < 0.5 for chance in first.chances) >= 1


def run(capsys, *words):
    status = main(list(words))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_arrange_explains_in_lines_and_in_json(capsys):
    status, out, _ = run(capsys, "arrange", SIX_PAIRS, "--top", "3")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("declare six_pairs ")
    assert lines[1] == "  +3.000 declare six_pairs"
    assert re.match(
        r"  [+-]\d\.\d{3} show ([\w ]+\|){2}[\w ]+  front +\d+\.\d %  middle +\d+\.\d %  "
        r"back +\d+\.\d %  scoops +\d+\.\d %  scooped +\d+\.\d %$",
        lines[2],
    )
    assert lines[4].startswith("  why: Declared, six pairs collects")
    assert len(lines) == 5
    _, out, _ = run(capsys, "arrange", SIX_PAIRS, "--top", "3", "--json")
    record = json.loads(out)
    declare, shown, _ = record["options"]
    assert declare == {"action": "declare six_pairs", "units": 3.0}
    assert set(shown) == {
        "action", "units", "rows", "names", "chances", "scoops", "scooped", "parts",
    }  # fmt: skip
    assert sum(shown["parts"].values()) == pytest.approx(shown["units"])
    assert len(shown["chances"]) == 3
    assert record["why"] in lines[4]
    _, plain, _ = run(capsys, "arrange", SIX_PAIRS, "--json")
    assert {"options", "why"} == set(record) - set(json.loads(plain))


class _OnlyCandidates:
    def __init__(self, rules, num_players=2):
        self.inner = make_policy("balanced", rules, num_players)

    def act(self, batch, rng):
        return self.inner.act(batch, rng)

    def candidates(self, batch, k):
        return self.inner.candidates(batch, k)


def test_arrange_lists_options_of_policies_that_explain_nothing(capsys):
    register_policy("only-candidates", _OnlyCandidates, overwrite=True)
    words = ("arrange", QUADS_AND_PAIRS, "--agent", "only-candidates", "--top", "2")
    status, out, _ = run(capsys, *words)
    lines = out.splitlines()
    assert status == 0
    assert len(lines) == 3
    assert lines[1].endswith(lines[0])
    _, out, _ = run(capsys, *words, "--json")
    record = json.loads(out)
    assert [set(option) for option in record["options"]] == [{"action", "units", "rows"}] * 2
    assert "why" not in record


def test_streams_longer_than_a_chunk_are_explained_line_by_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SIX_PAIRS}\n{QUADS_AND_PAIRS}\n" * 300))
    status, out, _ = run(capsys, "arrange", "--top", "1")
    lines = out.splitlines()
    assert status == 0
    assert len(lines) == 600 * 3
    assert lines[0:6] == lines[-6:]
    assert sum(line.startswith("  why: ") for line in lines) == 600


def test_showing_is_what_no_other_option_is_worth_more_than():
    policy = policy_of("equilibrium", "mandarin")
    batch = decisions_for(draw_hands(27, 400), policy.rules)
    found = policy.estimate(batch)
    best, declarations = choose(found)
    shows = declarations == SHOW
    assert not (found.surrender[shows] > found.values[best][shows]).any()
    assert (
        found.surrender[declarations == SURRENDER] > found.values[best][declarations == SURRENDER]
    ).all()
    assert np.isnan(found.declare[batch.naturals < 0]).all()

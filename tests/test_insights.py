"""How often rows win by name, and the thresholds that sampled hands show."""

import json
from itertools import pairwise

import numpy as np
import pytest
import small_tables
from cpoker_env.agents import insights, row_classes
from cpoker_env.train import matrix

from cpoker_env import cli_tables
from cpoker_env.arrangements import arrangement_of, evaluate
from cpoker_env.cli import main
from cpoker_env.policy import decisions_for, make_policy, register_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.tables import CATEGORIES, FULL_HOUSE, QUADS
from cpoker_env.valuation import TABLE_SIZES

SIZE = 3000


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(5)
    return [rng.integers(0, 4, size) for size in TABLE_SIZES]


@pytest.fixture(scope="module")
def sample():
    policy = make_policy("balanced", "mandarin")
    return insights.sample_hands(policy, policy.rules, num_hands=SIZE, seed=2)


def test_classes_part_all_rows_and_win_half_the_time_on_average(counts):
    rules = Rules.preset("mandarin")
    for classes, table in zip(row_classes.row_classes(counts, rules), counts, strict=True):
        assert classes[0].first == 0
        assert classes[-1].last == len(table) - 1
        for one, other in pairwise(classes):
            assert other.first == one.last + 1
            assert one.lowest - 1e-9 <= one.chance <= one.highest + 1e-9
            assert one.highest <= other.lowest
        assert sum(one.shown for one in classes) == pytest.approx(1)
        assert sum(one.shown * one.chance for one in classes) == pytest.approx(0.5)
        assert len({one.name for one in classes}) == len(classes)


@pytest.mark.parametrize("bank", [0, 1, -1])
def test_chances_are_counted_one_by_one(counts, bank):
    table = counts[0]
    found = row_classes.chances_of(table, bank)
    for strength in (0, 100, 300, 454):
        below, tied = table[:strength].sum(), table[strength]
        share = {0: 0.5, 1: 1, -1: 0}[bank]
        assert found[strength] == pytest.approx((below + share * tied) / table.sum())


@pytest.mark.parametrize(
    ("row", "name", "category", "size"),
    [
        (0, "ace-king high", "high card", 11),
        (0, "king high", "high card", 55),
        (0, "pair of kings", "pair", 12),
        (0, "trip aces", "trips", 1),
        (1, "pair of kings", "pair", 220),
        (1, "aces up", "two pair", 132),
        (2, "trip twos", "trips", 66),
        (2, "five-high straight", "straight", 1),
        (2, "ace-king flush", "flush", 164),
        (2, "queen-high flush", "flush", 209),
        (2, "kings full", "full house", 12),
        (1, "quads", "quads", 156),
        (2, "straight flush", "straight flush", 10),
    ],
)
def test_classes_have_the_names_players_use(counts, row, name, category, size):
    classes = row_classes.row_classes(counts, Rules.preset("basic"))[row]
    (found,) = (one for one in classes if one.name == name)
    assert found.category == category
    assert found.last - found.first + 1 == size


def test_units_alone_hold_royalties(counts):
    rules = Rules.preset("mandarin")
    middle = row_classes.row_classes(counts, rules)[1]
    table = counts[1]
    share = table / table.sum()
    royalty = np.zeros(len(table))
    royalty[FULL_HOUSE:QUADS], royalty[QUADS:-10], royalty[-10:] = 2, 8, 10
    (flush,) = (one for one in middle if one.name == "seven-high flush")
    mine = np.arange(flush.first, flush.last + 1)
    units = []
    for strength in mine:
        signs = np.sign(strength - np.arange(len(table)))
        gain = np.where(signs > 0, 1, np.where(signs < 0, -1 - royalty, 0))
        units.append((share * gain).sum())
    expected = np.average(units, weights=share[mine])
    assert flush.units == pytest.approx(expected)


def test_landmarks_are_the_weakest_rows_that_win_so_often(counts):
    classes = row_classes.row_classes(counts, Rules.preset("basic"))[0]
    half, always = row_classes.landmarks(classes, (0.5, 1.1))
    place = classes.index(half)
    assert half.chance >= 0.5 > classes[place - 1].chance
    assert always is classes[-1]


def test_a_sample_is_what_the_policy_plays(sample):
    policy = make_policy("balanced", "mandarin")
    batch = decisions_for(sample.hands, policy.rules)
    actions = policy.act(batch, np.random.default_rng(0))
    assert (actions.declarations == sample.declarations).all()
    shows = sample.declarations == SHOW
    strengths, _ = evaluate(sample.hands, actions.rows, policy.rules)
    assert (strengths == sample.strengths).all()
    for row, table in enumerate(sample.row_counts()):
        assert table.sum() == shows.sum()
        assert table[sample.strengths[shows][0, row]] > 0


def test_surrenders_are_below_their_price_and_kept_hands_above(sample):
    found = insights.surrendering(sample)
    gone = sample.declarations == SURRENDER
    assert 0.005 < found.share == pytest.approx(gone.mean())
    assert found.price == found.price_low == found.price_high == -3
    assert all(one.shown < -3 == one.other for one in found.given_up)
    assert all(one.shown >= -3 for one in found.kept)
    lost = sum(share * gives for _, _, share, gives in found.by_holding)
    assert lost == pytest.approx(found.share)
    assert all(name in CATEGORIES and pairs <= 6 for name, pairs, _, _ in found.by_holding)
    backs = sample.strengths[gone, 2]
    strongest = backs.argmax()
    rows = arrangement_of(sample.hands[gone][strongest].tolist(), sample.rows[gone][strongest])
    assert str(rows) == found.given_up[0].rows
    assert len(found.given_up) == 3


def test_naturals_are_kept_back_where_they_show_for_more(sample):
    rules = Rules.preset("mandarin")
    found = insights.insights_of(sample, rules)
    assert [one.name for one in found.naturals] == list(rules.naturals_in_play)
    assert sum(one.hands for one in found.naturals) == (sample.naturals >= 0).sum()
    assert found.shown == pytest.approx((sample.declarations == SHOW).mean())
    kept = declared = 0
    for one in found.naturals:
        assert sum(hands for _, hands, _ in one.by_back) == one.hands
        num_kept = sum(kept_back for _, _, kept_back in one.by_back)
        assert num_kept == pytest.approx(one.kept_back * one.hands)
        kept, declared = kept + num_kept, declared + one.hands - num_kept
        if one.hands:
            assert one.declared == rules.natural_value(one.name)
        assert len(one.examples) == min(3, num_kept)
        gains = [example.shown - example.other for example in one.examples]
        assert gains == sorted(gains, reverse=True)
        assert all(gain > 0 for gain in gains)
        assert (one.gain > 0) == (num_kept > 0)
    assert declared == (sample.declarations == DECLARE).sum()
    assert kept > 0


def test_royalties_change_how_hands_are_laid():
    policy = small_tables.equilibrium("mandarin")
    sample = insights.sample_hands(policy, policy.rules, num_hands=SIZE, seed=3)
    found = insights.royalties(sample, policy.rules)
    shows = sample.declarations == SHOW
    middles = sample.strengths[shows, 1]
    lines = {line.name: line for line in found.rows}
    full = lines["middle_full"]
    assert full.pays == 2
    assert full.shown == pytest.approx(((middles >= FULL_HOUSE) & (middles < QUADS)).mean())
    assert full.shown > full.without
    assert lines["front_trips"].shown >= lines["front_trips"].without
    assert 0 < found.differs < 0.2
    assert found.gain > 0
    assert (sample.plain_shown <= sample.shown + 1e-9).all()
    unpaid = insights.royalties(sample._replace(plain_strengths=np.empty((0, 3))), policy.rules)
    assert unpaid.differs is None
    assert unpaid.rows[0].without is None


def test_rules_without_declarations_have_nothing_to_tell():
    policy = make_policy("balanced", "four_two")
    sample = insights.sample_hands(policy, policy.rules, num_hands=600)
    found = insights.insights_of(sample, policy.rules)
    assert found.shown == 1
    assert found.surrendering is None
    assert found.naturals == ()
    assert found.royalties is None


def run(capsys, *words):
    status = main(["arrange", "--tables", *words])
    out = capsys.readouterr()
    return status, out.out, out.err


@pytest.fixture
def small_equilibrium():
    register_policy(
        "small", lambda rules, num_players: small_tables.equilibrium(rules.name), overwrite=True
    )
    return ("--agent", "small", "--sample", "1500")


def test_tables_are_printed_with_thresholds(capsys, small_equilibrium):
    status, out, _ = run(capsys, *small_equilibrium)
    assert status == 0
    assert out.startswith("mandarin, 2 seats, small\n")
    for text in ("pair of aces", "ace-king flush", "who surrenders", "six pairs", "trips in front",
                 "the weakest row that wins at least", "would lose 0."):  # fmt: skip
        assert text in out
    assert "\x1b" not in out


def test_tables_in_json_use_the_stored_counts_and_are_drawn(capsys, tmp_path, small_equilibrium):
    picture = tmp_path / "new" / "rows.png"
    status, out, _ = run(capsys, *small_equilibrium, "--json", "--plot", str(picture))
    record = json.loads(out)
    assert status == 0
    (side,) = record["sides"]
    assert set(side["rows"]) == {"front", "middle", "back"}
    stored = small_tables.equilibrium("mandarin").row_counts()[0]
    aces = next(one for one in side["rows"]["front"] if one["name"] == "trip aces")
    assert aces["shown"] == pytest.approx(stored[454] / stored.sum())
    assert side["hands"] == 1500
    assert side["surrendering"]["price"] == pytest.approx(-3, abs=0.3)
    assert record["rules"] == Rules.preset("mandarin").to_dict()
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert [path.name for path in picture.parent.iterdir()] == ["rows.png"]


def test_tables_of_a_bank_are_told_for_both_sides(capsys, tmp_path):
    rules = tmp_path / "bank.json"
    rules.write_text('{"preset": "western", "topology": "banker", "banker": 1}', encoding="utf-8")
    words = ("--rules", str(rules), "--agent", "balanced", "--sample", "400", "--json")
    status, out, _ = run(capsys, *words)
    bank, against = json.loads(out)["sides"]
    assert status == 0
    assert [bank["bank"], against["bank"]] == [1, -1]
    assert bank["rows"]["front"][-1]["chance"] == 1
    _, text, _ = run(capsys, *words[:-1])
    assert ", against the bank\n" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--agent", "greedy", "--sample", "10"), "does not value options"),
        (("--agent", "balanced", "--sample", "0"), "sample 0: give 1 or more"),
        (("--agent", "balanced", "--top", "2"), "leave out hands and --top"),
        (("As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s",), "leave out hands and --top"),
        (("--agent", "balanced", "--plot", "{folder}"), "choose a file in a folder"),
        (("--rules", "norse"), "the presets are"),
    ],
)
def test_tables_refuse_what_they_cannot_do(capsys, tmp_path, words, says):
    status, out, err = run(capsys, *(word.format(folder=tmp_path) for word in words))
    assert status == 1
    assert out == ""
    assert says in err


def test_a_plot_needs_tables_and_matplotlib(capsys, monkeypatch, tmp_path):
    picture = str(tmp_path / "rows.png")
    assert main(["arrange", "--plot", picture]) == 1
    assert "add --tables" in capsys.readouterr().err
    monkeypatch.setattr(matrix.importlib.util, "find_spec", lambda name: None)
    status, _, err = run(capsys, "--agent", "balanced", "--plot", picture)
    assert status == 1
    assert "needs matplotlib" in err


def test_classes_hardly_ever_shown_are_left_out_of_what_is_printed(counts):
    rules = Rules.preset("basic")
    table = counts[0].copy()
    table[:100] = 0
    (front, *_) = row_classes.row_classes([table, *counts[1:]], rules)
    printed = cli_tables.class_table("front", front)
    assert printed.row_count == sum(one.shown >= cli_tables.LEAST_SHOWN for one in front)
    assert printed.row_count < len(front)

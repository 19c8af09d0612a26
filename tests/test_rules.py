"""House rules: validation, JSON, presets, and that they work as dictionary keys."""

import copy
import dataclasses
import json
import pickle

import pytest

from cpoker_env.errors import RulesError
from cpoker_env.rules import (
    MAX_UNITS,
    OPTIONS,
    PACKED_SIZE,
    PATTERNS,
    POOL_SCALE,
    PRESETS,
    FrozenMap,
    Rules,
)

SIX_ROYALTIES = {
    "front_trips": 3,
    "middle_full": 2,
    "middle_quads": 4,
    "back_quads": 4,
    "middle_sf": 5,
    "back_sf": 5,
}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scoop": "sweep"}, "scoop 'sweep': choose one of none, extra, double_all, shot_homerun"),
        ({"scoop": None}, "scoop None: choose one of"),
        ({"overall_by": "units"}, "overall_by 'units': choose one of rows, points"),
        ({"royalties": True}, "royalties True: choose one of off, win_only, protection"),
        ({"royalty_mode": "sum"}, "royalty_mode 'sum': choose one of replace, add"),
        ({"natural_tiebreak": ""}, "natural_tiebreak '': choose one of"),
        ({"surrender_vs_foul": "x"}, "surrender_vs_foul 'x': choose one of surrender_pays, zero"),
        ({"surrender_vs_natural": 3}, "surrender_vs_natural 3: choose one of"),
        ({"foul_royalties": "all"}, "foul_royalties 'all': choose one of none, add, as_rows"),
        ({"homerun_counts": "all"}, "homerun_counts 'all': choose one of compared_only"),
        ({"topology": "ring"}, "topology 'ring': choose one of all_pairs, banker, pool"),
        ({"wheel": "high"}, "wheel 'high': choose one of low, second_high"),
        ({"order_ties": "ok"}, "order_ties 'ok': choose one of strict, back_middle_ok, all_ok"),
        ({"front_middle_prefix": 1}, "front_middle_prefix 1: choose one of longer_wins, equal"),
        ({"naturals": 1}, "naturals 1: give true or false"),
        ({"six_pairs_quads": "yes"}, "six_pairs_quads 'yes': give true or false"),
        ({"six_pairs_trips": 0}, "six_pairs_trips 0: give true or false"),
        ({"six_pairs_odd_card": None}, "six_pairs_odd_card None: give true or false"),
        ({"scoop_extra": -1}, "scoop_extra -1: give whole units 0..1000"),
        ({"overall_point": 1.0}, "overall_point 1.0: give whole units 0..1000"),
        ({"overall_point": True}, "overall_point True: give whole units"),
        ({"surrender_cost": MAX_UNITS + 1}, "surrender_cost 1001: give whole units 0..1000 or no"),
        ({"foul": "rows"}, "foul 'rows': give whole units 0..1000 or 'as_rows'"),
        ({"foul": None}, "foul None: give whole units 0..1000 or 'as_rows'"),
        ({"royalty_table": 3}, "royalty_table 3: give an object with keys among front_trips"),
        ({"royalty_table": {"front_pair": 1}}, "royalty_table key 'front_pair': the keys are fr"),
        ({"royalty_table": {"back_sf": -1}}, "royalty_table.back_sf -1: give whole units 0..1000"),
        ({"natural_values": {"flush": 1}}, "natural_values key 'flush': the keys are pure_dragon"),
        ({"natural_values": {"dragon": "x"}}, "natural_values.dragon 'x': give whole units"),
        ({"natural_values": {"no_figure": 1}}, "natural_values key 'no_figure': the keys are"),
        ({"natural_values": {}}, "natural_values is empty, which contradicts naturals true"),
        ({"natural_order": "dragon"}, "natural_order 'dragon': list patterns among pure_dragon"),
        ({"natural_order": ["royal"]}, "natural_order ('royal',): list patterns among pure_dra"),
        ({"natural_order": ["dragon"] * 2}, "natural_order ('dragon', 'dragon'): name each pa"),
        ({"natural_order": ["dragon"]}, "which natural_order does not rank: add it to natural_o"),
        ({"no_figure": 3}, "no_figure 3: give an object with keys among value"),
        ({"no_figure": {}}, "no_figure {}: write {'value': units} or none"),
        ({"no_figure": {"value": -3}}, "no_figure.value -3: give whole units 0..1000"),
        ({"no_figure": {"value": 3}, "naturals": False}, "no_figure contradicts naturals false"),
        ({"topology": "banker"}, "banker None: with topology 'banker' name the bank's seat, 0 to"),
        ({"topology": "banker", "banker": 4}, "banker 4: with topology 'banker' name the bank's"),
        ({"banker": 0}, "banker 0 contradicts topology 'all_pairs'"),
        ({"scoop": "extra", "scoop_extra": 0}, "scoop_extra 0 contradicts scoop 'extra'"),
        ({"scoops": "none"}, "option 'scoops': the options are scoop, "),
    ],
    ids=str,
)
def test_bad_option_is_refused_by_name_with_the_fix(options, says):
    with pytest.raises(RulesError) as raised:
        Rules.preset("mandarin", **options)
    assert says in str(raised.value)


def test_incomplete_royalty_table_names_what_is_missing():
    with pytest.raises(RulesError, match="no value for middle_full, middle_quads"):
        Rules.from_dict({"royalty_table": {"front_trips": 3, "back_quads": 4}})


@pytest.mark.parametrize("name", ["Mandarin", "", None, 3, ["basic"]])
def test_unknown_preset_lists_the_known_ones(name):
    with pytest.raises(RulesError) as raised:
        Rules.preset(name)
    assert repr(name) in str(raised.value)
    assert ", ".join(PRESETS) in str(raised.value)


def test_presets_are_the_seven_versions():
    assert list(PRESETS) == [
        "basic",
        "special",
        "italian",
        "western",
        "eastern",
        "mandarin",
        "four_two",
    ]
    assert Rules() == Rules.preset("mandarin")
    assert [Rules.preset(name).name for name in PRESETS] == list(PRESETS)


def test_changed_preset_is_named_by_its_changes():
    assert Rules.preset("italian", overall_point=1).name == "italian(overall_point=1)"


def test_royalty_table_override_changes_named_entries_only():
    table = Rules.preset("mandarin", royalty_table={"royal_back": 14}).royalty_table
    assert table == {**Rules.preset("mandarin").royalty_table, "royal_back": 14}
    assert Rules.preset("basic", royalty_table=SIX_ROYALTIES) == Rules.preset("basic")


CHANGED = {
    "mandarin": {"no_figure": {"value": 3}, "wheel": "second_high", "surrender_cost": None},
    "italian": {"topology": "banker", "banker": 2, "royalty_table": {"royal_middle": 9}},
    "basic": {"topology": "pool", "natural_order": ["dragon", "no_figure", *PATTERNS[3:9]],
              "natural_values": {"dragon": 9, "minor": 0}},
}  # fmt: skip


@pytest.mark.parametrize(
    "rules",
    [
        *(Rules.preset(name) for name in PRESETS),
        *(Rules.preset(name, **options) for name, options in CHANGED.items()),
    ],
    ids=lambda rules: rules.name[:40],
)
def test_rules_survive_json_dict_pickle_and_copy(rules):
    copies = [
        Rules.from_json(rules.to_json()),
        Rules.from_json(rules.to_json(indent=2)),
        Rules.from_dict(rules.to_dict()),
        pickle.loads(pickle.dumps(rules)),
        copy.deepcopy(rules),
        copy.copy(rules),
        dataclasses.replace(rules),
    ]
    for other in copies:
        assert other == rules
        assert hash(other) == hash(rules)
        assert (other.packed == rules.packed).all()
    assert json.loads(rules.to_json()) == rules.to_dict()
    assert tuple(rules.to_dict()) == OPTIONS
    assert len({rules, *copies}) == 1


def test_all_presets_differ_as_keys():
    assert len({Rules.preset(name): name for name in PRESETS}) == len(PRESETS)


def test_dict_may_start_from_a_preset():
    rules = Rules.from_dict({"preset": "western", "foul": 6})
    assert rules == Rules.preset("western", foul=6)
    assert Rules.from_json('{"preset": "western", "foul": 6}') == rules


@pytest.mark.parametrize("text", ["", "{", "mandarin", '{"foul": }'])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(RulesError, match="not valid JSON"):
        Rules.from_json(text)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"mandarin"'])
def test_json_that_is_no_object_is_refused(text):
    with pytest.raises(RulesError, match="give an object of options"):
        Rules.from_json(text)


def test_rules_cannot_change():
    rules = Rules()
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.foul = 3
    with pytest.raises(TypeError):
        rules.royalty_table["back_sf"] = 3
    with pytest.raises(ValueError, match="read-only"):
        rules.packed[0] = 1
    given = dict(SIX_ROYALTIES)
    rules = Rules(royalty_table=given)
    given["back_sf"] = 99
    assert rules.royalty_table["back_sf"] == 5


def test_frozen_map_equals_and_hashes_by_its_items():
    one, other = FrozenMap({"a": 1, "b": 2}), FrozenMap({"b": 2, "a": 1})
    assert one == other == {"a": 1, "b": 2}
    assert hash(one) == hash(other)
    assert one != FrozenMap({"a": 1})


def test_naturals_in_play_follow_the_ladder_and_the_values():
    assert Rules.preset("western").naturals_in_play == (
        "three_straights", "three_flushes", "six_pairs", "all_one_colour", "dragon",
        "colour_dragon", "pure_dragon",
    )  # fmt: skip
    assert Rules.preset("basic").naturals_in_play == ()
    assert Rules.preset("italian", topology="pool").naturals_in_play == ()
    with_figure = Rules.preset("italian", no_figure={"value": 3})
    assert with_figure.naturals_in_play[0] == "no_figure"
    assert with_figure.natural_value("no_figure") == 3
    order = ["six_pairs", "no_figure", "three_straights", "three_flushes", "dragon"]
    moved = Rules.preset("italian", no_figure={"value": 3}, natural_order=order)
    assert moved.naturals_in_play == tuple(order)


def test_surrender_is_allowed_where_it_has_a_price():
    assert [Rules.preset(name).surrender_allowed for name in PRESETS] == [
        False, False, False, True, True, True, False,
    ]  # fmt: skip
    assert Rules.preset("basic", surrender_cost=0).surrender_allowed


def test_packed_rules_have_one_cell_per_name():
    assert Rules().packed.shape == (PACKED_SIZE,)
    assert Rules.preset("basic", topology="pool").unit_scale == POOL_SCALE
    assert Rules.preset("basic").unit_scale == 1

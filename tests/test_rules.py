"""House rules: presets, validation, JSON."""

import pickle
from copy import deepcopy

import pytest

from cpoker_env.errors import RulesError
from cpoker_env.rules import PRESETS, Rules


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name):
    rules = Rules.preset(name)
    assert rules.name == name
    for twin in (Rules.from_json(rules.to_json()), deepcopy(rules), pickle.loads(pickle.dumps(rules))):
        assert twin == rules
        assert hash(twin) == hash(rules)
        assert (twin.packed == rules.packed).all()


def test_default_is_mandarin():
    assert Rules() == Rules.preset("mandarin")


def test_part_of_the_royalty_table_may_be_changed():
    rules = Rules.preset("mandarin", royalty_table={"royal_middle": 14})
    assert rules.royalty_table["royal_middle"] == 14
    assert rules.royalty_table["middle_quads"] == 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scoop": "triple"}, "scoop 'triple'.*none, extra"),
        ({"overall_point": -1}, "overall_point -1"),
        ({"overall_point": True}, "overall_point True"),
        ({"overall_point": 1.5}, "overall_point 1.5"),
        ({"foul": "rows"}, "foul 'rows'.*as_rows"),
        ({"naturals": 1}, "naturals 1"),
        ({"royalty_table": {"front_quads": 3}}, "royalty_table key 'front_quads'"),
        ({"royalty_table": 3}, "royalty_table 3"),
        ({"natural_order": ["dragon", "dragon"]}, "natural_order"),
        ({"natural_order": ["dragon"]}, "natural_values names"),
        ({"natural_values": {"phoenix": 3}}, "natural_values key 'phoenix'"),
        ({"natural_values": {}}, "natural_values is empty"),
        ({"topology": "banker"}, "banker None"),
        ({"banker": 1}, "banker 1 contradicts topology"),
        ({"no_figure": {}}, "no_figure"),
        ({"naturals": False, "no_figure": {"value": 3}}, "no_figure contradicts"),
        ({"scoop": "extra"}, "scoop_extra 0 contradicts"),
        ({"jokers": 2}, "option 'jokers'"),
        ({"surrender_cost": 10**9}, "surrender_cost"),
    ],
)
def test_bad_options_name_the_field(options, says):
    with pytest.raises(RulesError, match=says):
        Rules.preset("mandarin", **options)


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"preset": "norse"}', '{"preset": 3}'])
def test_bad_json_is_refused(text):
    with pytest.raises(RulesError):
        Rules.from_json(text)

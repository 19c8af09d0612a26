"""Every scored showdown of the rules text."""

import json
from pathlib import Path

import pytest

from cpoker_env.money import may_surrender, settle_stacks
from cpoker_env.rules import Rules
from cpoker_env.scoring import settle_showdown

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector(vector):
    rules = Rules.preset(vector["ruleset"], **vector["options"])
    showdown = settle_showdown(vector["players"], rules)
    expected, money = vector["expected"], vector.get("money")
    found = {
        "points": list(showdown.units),
        "status": list(showdown.statuses),
        "pairwise": [
            {"a": p.a, "b": p.b, "points_to_a": p.units, "kind": p.kind} for p in showdown.pairwise
        ],
    }
    if money:
        found["stacks_after"] = settle_stacks(
            showdown.units, money["stacks"], money["unit"], money.get("policy", "uncapped")
        )
        found["surrender_allowed"] = [
            may_surrender(rules, len(vector["players"]), stack, money["unit"])
            for stack in money["stacks"]
        ]
    assert expected == {key: found[key] for key in expected}

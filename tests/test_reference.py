"""The engine and the independent reference agree; the reference reads the presets the same way."""

import compare_reference
import numpy as np
import pytest
import reference

from cpoker_env.cards import format_card
from cpoker_env.naturals import best_natural, natural_patterns
from cpoker_env.rules import PATTERNS, PRESETS, Rules
from cpoker_env.scoring import KINDS, STATUSES


def test_engine_equals_reference_on_random_showdowns():
    counts = compare_reference.compare(40_000, seed=20_261)
    assert set(counts["status"]) == set(STATUSES)
    assert set(counts["kind"]) == set(KINDS)
    assert set(counts["topology"]) == {"all_pairs", "banker", "pool"}
    assert set(counts["rules"]) == {"preset", "changed"}
    assert counts["extra"]["home run"] >= 50
    assert min(counts["extra"][f"{row} tie"] for row in ("front", "middle", "back")) >= 10
    assert sum(counts["topology"].values()) == 40_000


@pytest.mark.parametrize("name", PRESETS)
def test_presets_equal_the_reference_reading(name):
    ours, theirs = Rules.preset(name).to_dict(), dict(reference.PRESETS[name])
    if ours["scoop"] != "extra":  # read only with scoop "extra"
        ours.pop("scoop_extra")
        theirs.pop("scoop_extra")
    if ours["royalties"] == "off":  # read only with royalties
        for options in (ours, theirs):
            for option in ("royalty_mode", "royalty_table", "foul_royalties"):
                options.pop(option)
    if not ours["naturals"]:
        for options in (ours, theirs):
            for option in ("natural_values", "natural_order", "natural_tiebreak"):
                options.pop(option)
    assert ours.keys() == theirs.keys()
    assert {k: list(v) if isinstance(v, tuple) else v for k, v in theirs.items()} == ours


@pytest.mark.parametrize("quads", [True, False])
@pytest.mark.parametrize("trips", [True, False])
def test_natural_detection_equals_brute_force(quads, trips):
    rules = Rules.preset(
        "mandarin", six_pairs_quads=quads, six_pairs_trips=trips, no_figure={"value": 3}
    )
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(400):
        for hand in compare_reference.random_hands(rng, 2):
            cards = [format_card(card) for card in hand]
            expected = reference.natural_patterns(cards, rules.to_dict())
            assert set(natural_patterns(hand, rules)) == set(expected), cards
            assert best_natural(hand, rules) == reference.best_natural(cards, rules.to_dict())
            seen |= set(expected)
    assert seen == set(PATTERNS)

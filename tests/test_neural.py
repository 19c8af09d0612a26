"""The networks that ship."""

import json
from importlib.resources import files

import numpy as np
import pytest
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint, write_bytes
from cpoker_env.train.evaluate import duel
from store_decisions import STORED, decide, networks

from cpoker_env.cards import parse_hand
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import make_policy
from cpoker_env.rules import PRESETS, Rules


def test_a_network_ships_for_every_preset():
    shipped = set(networks())
    assert {f"neural-{preset}" for preset in PRESETS} | {"neural-mandarin-4"} == shipped
    for name in shipped:
        folder = files("cpoker_env.checkpoints")
        assert len((folder / f"{name}.safetensors").read_bytes()) < 4_000_000
        card = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert load_checkpoint(name).sha256 in card
        assert "Exploitability" in card
        assert "python -m cpoker_env.train.selfplay" in card


def test_shipped_networks_decide_as_they_did():
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    assert sorted(stored) == networks()
    for name, answers in stored.items():
        assert len(answers) > 15
        hands, now, _ = decide(name)
        found = dict(zip(hands, now, strict=True))
        assert {hand: found[hand] for hand in answers} == answers, name


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_shipped_networks_beat_greedy(preset):
    rules = Rules.preset(preset)
    agent = make_policy("neural", rules)
    result = duel(agent, make_policy("greedy", rules), rules, 2, 1000, 12)
    assert result.units - result.half_width > 0.6


def test_answers_do_not_depend_on_the_batch():
    stored = json.loads(STORED.read_text(encoding="utf-8"))["neural-mandarin"]
    hands = np.array([parse_hand(hand) for hand in stored])
    _, together, _ = decide("neural-mandarin", hands)
    alone = [decide("neural-mandarin", hands[i : i + 1])[1][0] for i in range(len(hands))]
    assert together == alone == list(stored.values())


def test_the_four_seat_network_is_found_at_four_seats():
    rules = Rules.preset("mandarin")
    at_two, at_four = make_policy("neural", rules), make_policy("neural", rules, 4)
    named = {name: load_checkpoint(name).weights for name in networks()}
    for policy, name in ((at_two, "neural-mandarin"), (at_four, "neural-mandarin-4")):
        assert (policy.valuer.weights == named[name]["weights.weight"].numpy()[0]).all()
    assert (at_two.valuer.weights != at_four.valuer.weights).any()


def test_damaged_checkpoints_are_refused(tmp_path):
    folder = files("cpoker_env.checkpoints")
    whole = {
        ending: (folder / f"neural-mandarin.{ending}").read_bytes()
        for ending in ("json", "safetensors")
    }

    def lay(record, weights):
        write_bytes(tmp_path / "a.json", record)
        write_bytes(tmp_path / "a.safetensors", weights)
        return str(tmp_path / "a")

    stored = load_checkpoint(lay(whole["json"], whole["safetensors"]))
    assert stored.rules == Rules.preset("mandarin")
    with pytest.raises(CheckpointError, match="hash"):
        load_checkpoint(lay(whole["json"], whole["safetensors"][:-10]))
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(lay(b'{"format": 1', whole["safetensors"]))
    record = json.loads(whole["json"])
    record["config"]["width"] = 32
    path = lay(json.dumps(record).encode(), whole["safetensors"])
    for name in (f"neural:{path}", f"checkpoint:{path}"):
        with pytest.raises(CheckpointError, match="does not fit its network"):
            make_policy(name, "mandarin")
    record["config"]["width"] = 48
    with pytest.raises(CheckpointError, match="power of two"):
        make_policy(f"neural:{lay(json.dumps(record).encode(), whole['safetensors'])}", "mandarin")
    for name, value in (("hand_tower.0.weight", float("nan")), ("front_counts", -1)):
        weights = load_checkpoint("neural-mandarin").weights
        weights[name][0, 0] = value
        save_checkpoint(tmp_path / "odd", weights, stored.rules, stored.config, [])
        with pytest.raises(CheckpointError, match=name):
            make_policy(f"neural:{tmp_path / 'odd'}", "mandarin")
    record["config"]["kind"] = "novel"
    path = lay(json.dumps(record).encode(), whole["safetensors"])
    with pytest.raises(CheckpointError, match="kind 'novel'"):
        make_policy(f"checkpoint:{path}", "mandarin")
    with pytest.raises(CheckpointError, match="no such name ships"):
        load_checkpoint("nothing")
    with pytest.raises(CheckpointError, match="is of mandarin, not basic"):
        make_policy("checkpoint:neural-mandarin", "basic")
    with pytest.raises(CheckpointError, match="nothing ships"):
        make_policy("neural", Rules.preset("mandarin", foul=7))


def test_a_checkpoint_is_played_as_what_it_is():
    for kind in ("neural", "search", "equilibrium"):
        named = make_policy(f"checkpoint:{kind}-four_two", "four_two")
        assert type(named) is type(make_policy(kind, "four_two"))

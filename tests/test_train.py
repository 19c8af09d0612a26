"""Learning, resuming, checkpoints and evaluation."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from cpoker_env.agents.checkpoint import load_checkpoint
from cpoker_env.agents.neural import NeuralPolicy
from cpoker_env.train.evaluate import duel
from cpoker_env.train.selfplay import (
    Config,
    load_state,
    main,
    play_round,
    save_state,
    start_state,
)

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules

SMALL = Config(rules="four_two", hands=1024, rounds=6, opponents=40, eval_deals=200)


def run_rounds(state, config, rules, until):
    while state.round < until:
        play_round(state, config, rules)
    return state


def test_self_play_beats_greedy_from_random_weights(tmp_path):
    config = dataclasses.replace(SMALL, rounds=8, hands=2048, out=tmp_path / "run")
    main(config)
    agent = make_policy(f"checkpoint:{tmp_path / 'run' / 'agent'}", "four_two")
    result = duel(agent, make_policy("greedy", "four_two"), Rules.preset("four_two"), 2, 1500, 9)
    assert result.units - result.half_width > 0.3
    record = json.loads((tmp_path / "run" / "agent.json").read_text(encoding="utf-8"))
    assert [r["opponent"] for r in record["results"]] == ["uniform", "greedy", "balanced"]
    assert list((tmp_path / "run").glob("events.out.tfevents.*"))
    with pytest.raises(CheckpointError, match="--resume"):
        main(config)


@pytest.mark.parametrize("rules", ["mandarin", "italian"])
def test_resumed_run_equals_the_uninterrupted_one(tmp_path, rules):
    config = dataclasses.replace(SMALL, rules=rules, rounds=4, memory=2)
    read = Rules.preset(rules)
    whole = run_rounds(start_state(config, read), config, read, 4)
    half = run_rounds(start_state(config, read), config, read, 2)
    save_state(tmp_path / "state.safetensors", half, config)
    resumed = load_state(tmp_path / "state.safetensors", config, read)
    run_rounds(resumed, config, read, 4)
    for mine, theirs in zip(
        whole.network.state_dict().values(), resumed.network.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert resumed.deals == whole.deals
    other = dataclasses.replace(config, seed=2)
    with pytest.raises(CheckpointError, match="seed"):
        load_state(tmp_path / "state.safetensors", other, read)


@pytest.mark.parametrize("options", [{"topology": "banker", "banker": 0}, {"topology": "pool"}])
def test_other_topologies_learn_without_a_hitch(options):
    rules = Rules.preset("italian", **options)
    state = run_rounds(start_state(SMALL, rules), SMALL, rules, 2)
    assert np.isfinite(state.seconds)
    result = duel(
        NeuralPolicy(state.network, rules), make_policy("uniform", rules), rules, 3, 50, 1
    )
    assert np.isfinite(result.units)


def test_shipped_quick_agent_beats_greedy():
    rules = Rules.preset("mandarin")
    agent = make_policy("checkpoint:quick-mandarin", rules)
    result = duel(agent, make_policy("greedy", rules), rules, 2, 1000, 12)
    assert result.units - result.half_width > 0


def test_damaged_checkpoints_are_refused(tmp_path):
    stored = load_checkpoint("quick-mandarin")
    from importlib.resources import files

    for ending in ("json", "safetensors"):
        source = files("cpoker_env.checkpoints") / f"quick-mandarin.{ending}"
        shutil.copy(str(source), tmp_path / f"a.{ending}")
    assert load_checkpoint(str(tmp_path / "a")).rules == stored.rules
    weights = tmp_path / "a.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    with pytest.raises(CheckpointError, match="hash"):
        load_checkpoint(str(tmp_path / "a"))
    weights.write_bytes(whole)
    (tmp_path / "a.json").write_text('{"format": 1', encoding="utf-8")
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(str(tmp_path / "a"))
    with pytest.raises(CheckpointError, match="no such name ships"):
        load_checkpoint("nothing")
    with pytest.raises(CheckpointError, match="trained for mandarin"):
        make_policy("checkpoint:quick-mandarin", "basic")


def test_bad_settings_raise_typed_errors(tmp_path):
    for changes, says in (
        ({"hands": 1000}, "multiple"), ({"rounds": 0}, "num_rounds"), ({"threads": 0}, "threads"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=says):
            main(dataclasses.replace(SMALL, out=tmp_path, **changes))
    with pytest.raises(CheckpointError, match="no run to resume"):
        main(dataclasses.replace(SMALL, out=tmp_path, resume=True))

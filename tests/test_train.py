"""Self-play: learning, resuming, several processes, checkpoints."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from cpoker_env.agents.checkpoint import load_checkpoint
from cpoker_env.agents.network import Valuer, hand_inputs
from cpoker_env.agents.population import draw_hands
from cpoker_env.train import selfplay
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import measure
from cpoker_env.train.ranks import Ranks
from cpoker_env.train.selfplay import (
    Config,
    load_state,
    main,
    play_round,
    save_state,
    start_state,
)
from safetensors.torch import load_file

from cpoker_env.arrangements import frontier
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules

SMALL = Config(
    rules="four_two", hands=1024, rounds=3, batch=128, memory=3, snapshot_every=1, eval_deals=200,
    eval_every=2, threads=1,
)  # fmt: skip


def run_rounds(state, config, until):
    while state.round < until:
        play_round(state, config, Ranks())
    return state


def weights_of(state):
    return [*state.learner.network.state_dict().values(), *state.learner.average.parameters()]


def assert_same(state, other):
    for mine, theirs in zip(weights_of(state), weights_of(other), strict=True):
        assert torch.equal(mine, theirs)


def weakness(policy):
    """Exploitability at most, of few hands: enough to tell a learner from one that stands still."""
    return measure(policy, policy.rules, 2, 400, 1500, 3, 1)[1].upper.mean()


def frozen_policy(config):
    """What is played after the same rounds if the weights never move: independent rows decide."""
    frozen = dataclasses.replace(config, learning_rate=1e-12)
    return run_rounds(start_state(frozen, Rules.preset("four_two")), frozen, 4).policy()


def test_self_play_beats_greedy_from_random_weights(tmp_path):
    config = dataclasses.replace(
        SMALL, hands=4096, rounds=4, memory=6, average=0.98, eval_every=4, out=tmp_path / "run"
    )
    main(config)
    rules = Rules.preset("four_two")
    agent = make_policy(f"neural:{tmp_path / 'run' / 'agent'}", rules)
    result = duel(agent, make_policy("greedy", rules), rules, 2, 1500, 9)
    assert result.units - result.half_width > 0.7
    assert weakness(agent) < 0.7 * weakness(frozen_policy(config))
    record = json.loads((tmp_path / "run" / "agent.json").read_text(encoding="utf-8"))
    assert [r["opponent"] for r in record["results"]] == ["uniform", "greedy", "balanced"]
    assert record["config"]["deals"] == 4 * 4096
    with pytest.raises(CheckpointError, match="--resume"):
        main(config)


def test_a_run_charts_what_people_look_for(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    main(dataclasses.replace(SMALL, out=tmp_path))
    events = EventAccumulator(str(tmp_path)).Reload()
    scalars = {
        "charts/SPS", "charts/deals", "losses/value", "losses/units_below_best",
        "eval/units_vs_greedy", "eval/exploitability",
    }  # fmt: skip
    assert scalars <= set(events.Tags()["scalars"])
    assert events.Tags()["images"] == ["hands/0", "hands/1"]
    assert [event.value for event in events.Scalars("charts/deals")] == [1024.0, 2048.0, 3072.0]


@pytest.mark.parametrize("rules", ["mandarin", "italian"])
def test_resumed_run_equals_the_uninterrupted_one(tmp_path, rules):
    config = dataclasses.replace(SMALL, rules=rules, rounds=4, latest_share=0.5, players=4)
    read = Rules.preset(rules)
    whole = run_rounds(start_state(config, read), config, 4)
    half = run_rounds(start_state(config, read), config, 2)
    save_state(tmp_path / "state.safetensors", half, config)
    resumed = load_state(tmp_path / "state.safetensors", config, read)
    assert resumed.league.names == half.league.names
    run_rounds(resumed, config, 4)
    assert_same(whole, resumed)
    for mine, theirs in zip(
        whole.crowd.arrays().values(), resumed.crowd.arrays().values(), strict=True
    ):
        assert (mine == theirs).all()
    with pytest.raises(CheckpointError, match="seed"):
        load_state(tmp_path / "state.safetensors", dataclasses.replace(config, seed=2), read)


def test_a_run_that_nobody_watches_tells_lines_and_how_to_go_on(tmp_path, monkeypatch, capsys):
    config = dataclasses.replace(SMALL, hands=512, rounds=3, eval_every=100, out=tmp_path)
    play, rounds = selfplay.play_round, []

    def interrupted(*args):
        if len(rounds) == 2:
            raise KeyboardInterrupt
        rounds.append(play(*args))
        return rounds[-1]

    monkeypatch.setattr(selfplay, "play_round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(config)
    said = capsys.readouterr().err
    assert "round 1 of 3: loss " in said
    assert "stopped after round 2: the same command with --resume goes on" in said


def test_a_killed_run_ends_as_if_nothing_had_been(tmp_path):
    config = dataclasses.replace(SMALL, hands=512, rounds=6, eval_every=100)
    words = [sys.executable, "-m", "cpoker_env.train.selfplay", "--rules", "four_two"]
    words += ["--hands", "512", "--rounds", "6", "--batch", "128", "--memory", "3", "--threads"]
    words += ["1", "--snapshot-every", "1", "--eval-every", "100", "--eval-deals", "20"]
    words += ["--out", str(tmp_path / "run")]
    saved = tmp_path / "run" / "state.safetensors"
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not saved.exists():
        assert process.poll() is None
    process.kill()
    process.wait()
    ended = load_state(saved, config, Rules.preset("four_two"))
    assert 1 <= ended.round <= 6
    main(dataclasses.replace(config, resume=True, out=tmp_path / "run", eval_deals=20))
    whole = run_rounds(start_state(config, ended.learner.network.rules), config, 6)
    stored = load_checkpoint(str(tmp_path / "run" / "agent")).weights
    for name, tensor in whole.learner.average.state_dict().items():
        assert torch.equal(stored[name], tensor), name


def test_two_processes_learn_the_same_weights_and_deal_different_hands(tmp_path):
    script = """
import sys, torch
from safetensors.torch import save_file
from cpoker_env.rules import Rules
from cpoker_env.train import selfplay
from cpoker_env.train.ranks import Ranks
config = selfplay.Config(
    rules="mandarin", hands=1024, rounds=2, batch=128, memory=3, snapshot_every=1, threads=1
)
torch.set_num_threads(1)
with Ranks() as ranks:
    state = selfplay.start_state(config, Rules.preset("mandarin"))
    while state.round < 2:
        selfplay.play_round(state, config, ranks)
    arrays = {name: torch.from_numpy(a) for name, a in state.crowd.arrays().items()}
    save_file({**state.learner.average.state_dict(), **arrays}, f"{sys.argv[1]}/{ranks.rank}")
"""
    (tmp_path / "work.py").write_text(script, encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*torchrun, "--nproc-per-node", "2", str(tmp_path / "work.py"), str(tmp_path)],
        check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=240,
    )  # fmt: skip
    first, second = (load_file(tmp_path / str(rank)) for rank in (0, 1))
    config = dataclasses.replace(SMALL, rules="mandarin", rounds=2)
    alone = run_rounds(start_state(config, Rules.preset("mandarin")), config, 2)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(first["hands"], torch.from_numpy(alone.crowd.hands))
    # The first round's hands are played before anything is learned, so each process's half agrees.
    played = slice(SMALL.hands, 2 * SMALL.hands)
    assert torch.equal(first["strengths"][played], torch.from_numpy(alone.crowd.plays[0][played]))
    for name, single in alone.learner.average.named_parameters():
        assert not torch.equal(first[name], single)  # other batches, other weights


@pytest.mark.parametrize(
    ("players", "options"),
    [
        (3, {"topology": "banker", "banker": 0}), (2, {"topology": "pool"}),
        (3, {"topology": "pool"}),
    ],
)  # fmt: skip
def test_other_topologies_learn_in_their_own_form(players, options):
    rules = Rules.preset("italian", **options)
    config = dataclasses.replace(SMALL, players=players, tables=6)
    state = run_rounds(start_state(config, rules), config, 3)
    uniform = make_policy("uniform", rules, players)
    result = duel(state.policy(), uniform, rules, players, 100, 1)
    assert result.units - result.half_width > 0


@pytest.mark.parametrize(
    ("rules", "options"),
    [("mandarin", {}), ("italian", {"topology": "banker", "banker": 1}), ("four_two", {})],
)
def test_the_kernel_values_candidates_as_the_network_does(rules, options):
    read = Rules.preset(rules, **options)
    config = dataclasses.replace(SMALL, rounds=1)
    network = run_rounds(start_state(config, read), config, 1).learner.network
    hands = draw_hands(77, 40)
    banks = np.zeros(40, np.int8) if read.banker is None else np.resize([1, -1], 40).astype(np.int8)
    options = frontier(hands, read)
    values, surrender = Valuer(network).values(hands, banks, options)
    sides = network.side_index(banks)
    for hand in range(40):
        part = slice(options.starts[hand], options.starts[hand + 1])
        strengths = torch.from_numpy(options.strengths[part].astype(np.int64))[None]
        with torch.inference_mode():
            found = network(
                hand_inputs(hands[hand : hand + 1], banks[hand : hand + 1]),
                torch.from_numpy(sides[hand : hand + 1, None]), strengths,
            )  # fmt: skip
        side = np.repeat(sides[hand], part.stop - part.start)
        whole = found.corrections[0].numpy() + network.independent(options.strengths[part], side)
        np.testing.assert_allclose(values[part], whole, atol=2e-5)
        assert surrender[hand] == pytest.approx(found.surrender.item(), abs=1e-5)


def test_a_network_does_not_tell_suits_apart():
    hands = draw_hands(3, 200)
    renamed = -np.sort(-((hands & ~3) | np.array([2, 0, 3, 1])[hands & 3]), axis=1)
    none = np.zeros(200, np.int8)
    assert torch.equal(hand_inputs(hands, none), hand_inputs(renamed.astype(np.int8), none))
    other = hand_inputs(draw_hands(4, 200), none)
    assert not torch.equal(hand_inputs(hands, none), other)


def test_a_loss_that_is_no_number_stops_and_keeps_the_batch(tmp_path, monkeypatch):
    rules = Rules.preset("four_two")
    config = dataclasses.replace(SMALL, out=tmp_path)
    state = start_state(config, rules)
    before = [tensor.clone() for tensor in weights_of(state)]
    real = selfplay.join_lessons

    def spoiled(parts):
        lessons = real(parts)
        lessons.targets[5] = float("nan")
        return lessons

    monkeypatch.setattr(selfplay, "join_lessons", spoiled)
    with pytest.raises(ConfigError, match=r"no number.*bad-batch\.safetensors"):
        play_round(state, config, Ranks())
    kept = load_file(tmp_path / "bad-batch.safetensors")
    assert kept["targets"].isnan().any()
    assert kept["inputs"].shape == (128, 109)
    assert all(tensor.isfinite().all() for tensor in weights_of(state))
    moved = [not torch.equal(a, b) for a, b in zip(before, weights_of(state), strict=True)]
    assert any(moved), "the batches before the bad one were learned"


def test_bad_settings_raise_typed_errors(tmp_path):
    for changes, says in (
        ({"hands": 1000}, "multiple"), ({"rounds": 0}, "rounds 0"), ({"threads": 0}, "threads"),
        ({"width": 48}, "power of two"), ({"batch": 4096}, "divides 1024"),
        ({"device": "abacus"}, "cpu or cuda"), ({"seed": 2**63}, "seed"),
        ({"learning_rate": 2.0}, "between 0 and 1"), ({"latest_share": 1.5}, "chance"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=says):
            main(dataclasses.replace(SMALL, out=tmp_path, **changes))
    with pytest.raises(CheckpointError, match="no run to resume"):
        main(dataclasses.replace(SMALL, out=tmp_path, resume=True))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no GPU"):
            main(dataclasses.replace(SMALL, out=tmp_path, device="cuda"))

"""PPO: the shares of rows, advantages, learning, resuming, and the policy that comes of it."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import load_checkpoint
from cpoker_env.agents.placement import (
    SAME,
    PlacementNetwork,
    branches,
    decode,
    encode,
    list_choices,
    see_hands,
)
from cpoker_env.agents.ppo_policy import PlacementPolicy, best_choices
from cpoker_env.train import ppo, ppo_run, ppo_steps
from cpoker_env.train.evaluate import duel
from cpoker_env.train.rollout import LeaguePlayers, crowd_of, deal, make_env, play, settle

from cpoker_env.arrangements import evaluate
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.table import Table

SMALL = ppo_run.Config(
    rules="four_two", deals=256, copies=4, rounds=6, batch=64, width=16, hand_width=32, crowd=3,
    snapshot_every=2, league=2, save_every=1, eval_every=1000, exploit_every=1000, eval_deals=100,
    average=0.9, threads=1,
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


def decisions(size, rules="four_two", players=2):
    table = Table(Rules.of(rules), players)
    return table.decisions(table.deal(5, np.arange(size, dtype=np.uint64)), [0])


def run(config, rules, until, state=None):
    env = make_env(rules, config.players, config.deals * config.copies)
    state = state or ppo_run.start_state(config, rules)
    while state.round < until:
        scalars = ppo.play_round(state, env, config, rules)
        assert all(np.isfinite(value) for value in scalars.values())
    return state


def same_weights(mine, theirs):
    pairs = zip(mine.state_dict().items(), theirs.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for (_, one), other in pairs)


def test_codes_tell_where_placements_part():
    rows = np.array(
        [[0, 1, 2] + [2] * 4 + [1] * 4 + [0] * 2, [0, 1, 2] + [2] * 4 + [1] * 4 + [0] * 2]
    )
    rows[1, 12], rows[1, 4] = 1, 0
    codes = encode(rows)
    assert np.array_equal(decode(codes), rows)
    assert branches(codes[1:], codes[:1]).tolist() == [4 * 5 + 0]
    assert branches(codes[:1], codes[1:]).tolist() == [4 * 5 + 2]
    assert branches(codes, codes).tolist() == [SAME, SAME]
    declares = np.array([4 << 36])
    assert branches(declares, codes[:1]).tolist() == [4]


def test_hands_that_differ_in_suits_look_alike():
    batch = decisions(50)
    hands = batch.hands
    for names in ([1, 0, 2, 3], [3, 2, 0, 1]):
        renamed = (hands & ~3) | np.array(names, np.int8)[hands & 3]
        again = decisions_for(renamed, batch.rules)
        assert np.array_equal(see_hands(again), see_hands(batch))
    assert len(np.unique(see_hands(batch), axis=0)) == 50


def test_shares_of_rows_multiply_to_the_chance_of_the_placement():
    torch.manual_seed(3)
    batch = decisions(6, "mandarin")
    choices = list_choices(batch)
    assert {0, 1} <= set(choices.kinds.tolist())
    network = PlacementNetwork(batch.rules, 16, 32)
    torch.nn.init.normal_(network.heads.weight, std=2.0)
    rng = np.random.default_rng(4)
    chosen = rng.integers(choices.starts[:-1, None], choices.starts[1:, None], (6, 9))
    nothing = torch.zeros(6, 9, 13)
    rollout = ppo_steps.Rollout(choices, chosen, np.zeros((6, 9)), nothing, nothing, nothing)
    with torch.no_grad():
        steps = ppo_steps.read_steps(network, rollout.batch(np.arange(6), "cpu"), 0.7)
    scores = PlacementPolicy(network, batch.rules).scores(choices) / 0.7
    for hand in range(6):
        mine = slice(choices.starts[hand], choices.starts[hand + 1])
        logs = torch.log_softmax(torch.from_numpy(scores[mine]), dim=0)
        whole = logs[chosen[hand] - choices.starts[hand]]
        assert torch.allclose(steps.log_chances[hand].sum(dim=1), whole, atol=1e-4)
        first = decode(choices.codes[mine])[:, 0]
        for place, choice in enumerate(chosen[hand]):
            share = logs.exp()[first == decode(choices.codes[[choice]])[0, 0]].sum().log()
            assert float(steps.log_chances[hand, place, 0]) == pytest.approx(float(share), abs=1e-4)
        shares = torch.tensor([float(logs.exp()[first == row].sum()) for row in range(5)])
        entropy = -torch.special.xlogy(shares, shares).sum()
        assert torch.allclose(steps.entropy[hand, :, 0], entropy.expand(9), atol=1e-4)
    assert (steps.had_choice | (steps.log_chances == 0)).all()


def test_advantages_end_in_the_reward_and_pass_over_forced_steps():
    values = torch.tensor([[1.0, 2.0, 2.0, 5.0]])
    gained = torch.tensor([6.0])
    free = torch.tensor([[True, True, False, True]])
    whole = ppo_steps.advantages_of(values, gained, free, 1.0)
    assert whole.tolist() == [[5.0, 4.0, 4.0, 1.0]]
    faded = ppo_steps.advantages_of(values, gained, free, 0.5)
    # Steps 3 and 1 gain 1 and 3; step 2 is none, so step 1 looks but one choice ahead.
    assert faded.tolist() == [[1.0 + 0.5 * 3.5, 3.0 + 0.5 * 1.0, 3.5, 1.0]]


def test_crowd_settles_as_the_environment_does_on_average():
    rules = Rules.preset("mandarin")
    env = make_env(rules, 2, 800)
    players = env.learners.opponents[0]
    assert isinstance(players, LeaguePlayers)
    players.policies = [make_policy("greedy", rules)]
    batch, choices = deal(env, 77, 2)
    shown = np.where(choices.kinds == 0, choices.strengths.sum(axis=1), -1)
    best = best_choices(choices, shown)
    codes = np.repeat(choices.codes[best], 2)
    ended = play(env, decode(codes), np.random.default_rng(1))
    assert np.array_equal(ended.hands[::2, 0], batch.hands)
    assert np.array_equal(ended.units[::2], ended.units[1::2])
    crowd = crowd_of(ended, 2, rules)
    won = settle(ended, batch, crowd, 10_000, rules)
    own = ended.units[:, 0]
    assert won.std() < 0.8 * own.std()
    difference = won - own
    assert abs(difference.mean()) < 3 * difference[::2].std() / np.sqrt(400)


def test_ppo_beats_uniform_and_greedy_from_random_weights():
    config = dataclasses.replace(SMALL, deals=512, rounds=12, learning_rate=1e-2)
    rules = Rules.preset("four_two")
    state = run(config, rules, 12)
    policy = PlacementPolicy(state.average, rules)
    for name, least in (("uniform", 1.5), ("greedy", 0.3)):
        result = duel(policy, make_policy(name, rules), rules, 2, 1000, 9)
        assert result.units - result.half_width > least


def test_mandarin_learns_to_declare_and_to_surrender_where_that_is_cheap():
    rules = Rules.preset("mandarin", surrender_cost=1)
    config = dataclasses.replace(SMALL, deals=512, rounds=8, learning_rate=1e-2)
    state = run(config, rules, 8)
    policy, batch = PlacementPolicy(state.average, rules), decisions(4000, rules)
    actions = policy.act(batch, np.random.default_rng(1))
    natural = batch.naturals >= 0
    declared = actions.declarations == DECLARE
    assert declared[natural].mean() > 0.8
    assert not declared[~natural].any()
    assert 0.02 < (actions.declarations == SURRENDER).mean() < 0.6
    result = duel(policy, make_policy("greedy", rules), rules, 2, 1000, 9)
    assert result.units - result.half_width > 0.5


@pytest.mark.parametrize("rules", ["four_two", "mandarin", "italian"])
def test_policy_never_fouls_nor_declares_what_it_has_not(rules):
    read = Rules.preset(rules)
    torch.manual_seed(2)
    network = PlacementNetwork(read, 16, 32)
    torch.nn.init.normal_(network.heads.weight)
    batch = decisions(1200, rules)
    actions = PlacementPolicy(network, read).act(batch, np.random.default_rng(1))
    assert evaluate(batch.hands, actions.rows, read)[1].all()
    assert (batch.naturals >= 0)[actions.declarations == DECLARE].all()
    assert batch.can_surrender[actions.declarations == SURRENDER].all()
    assert (actions.declarations == SHOW).any()


@pytest.mark.parametrize(
    ("rules", "players", "crowd"), [("four_two", 4, 2), ("italian", 3, 0), ("mandarin", 4, 2)]
)
def test_more_seats_learn_too(rules, players, crowd):
    config = dataclasses.replace(SMALL, rules=rules, players=players, crowd=crowd, deals=64)
    assert run(config, Rules.preset(rules), 2).deals == 128


@pytest.mark.parametrize("options", [{"topology": "banker", "banker": 0}, {"topology": "pool"}])
def test_other_topologies_learn_without_a_hitch(options):
    rules = Rules.preset("italian", **options)
    assert run(SMALL, rules, 2).round == 2


@pytest.mark.parametrize("rules", ["four_two", "mandarin"])
def test_resumed_run_equals_the_uninterrupted_one(tmp_path, rules):
    config = dataclasses.replace(SMALL, rules=rules, deals=128)
    read = Rules.preset(rules)
    whole = run(config, read, 6)
    half = run(config, read, 3)
    ppo_run.save_state(tmp_path / "state.safetensors", half, config)
    resumed = ppo_run.load_state(tmp_path / "state.safetensors", config, read)
    assert resumed.league.names == half.league.names
    run(config, read, 6, resumed)
    assert same_weights(whole.network, resumed.network)
    assert same_weights(whole.average, resumed.average)
    assert resumed.league.names == whole.league.names
    assert resumed.deals == whole.deals
    other = dataclasses.replace(config, seed=2)
    with pytest.raises(CheckpointError, match="seed"):
        ppo_run.load_state(tmp_path / "state.safetensors", other, read)


def test_killed_run_goes_on_to_the_same_agent(tmp_path):
    config = dataclasses.replace(SMALL, deals=128, rounds=12, out=tmp_path / "whole")
    ppo.main(config)
    words = ["--rules", "four_two", "--out", str(tmp_path / "killed")]
    for name in (
        "deals", "copies", "rounds", "batch", "width", "hand_width", "crowd", "snapshot_every",
        "league", "save_every", "eval_every", "exploit_every", "eval_deals", "threads", "average",
    ):  # fmt: skip
        words += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    child = subprocess.Popen(
        [sys.executable, "-m", "cpoker_env.train.ppo", *words], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    saved = tmp_path / "killed" / "state.safetensors"
    deadline = time.monotonic() + 120
    while not saved.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    ppo.main(dataclasses.replace(config, out=tmp_path / "killed", resume=True))
    theirs, mine = (tmp_path / name / "agent.safetensors" for name in ("whole", "killed"))
    assert mine.read_bytes() == theirs.read_bytes()


def test_checkpoint_plays_under_both_names_and_refuses_other_rules(tmp_path):
    ppo.main(dataclasses.replace(SMALL, rounds=2, out=tmp_path / "run"))
    path = tmp_path / "run" / "agent"
    stored = load_checkpoint(str(path))
    assert stored.config["kind"] == "ppo"
    assert [result["opponent"] for result in stored.results] == ["uniform", "greedy", "balanced"]
    assert list((tmp_path / "run").glob("events.out.tfevents.*"))
    batch, rng = decisions(300), np.random.default_rng(1)
    played = [
        make_policy(f"{word}:{path}", "four_two").act(batch, rng) for word in ("ppo", "checkpoint")
    ]
    assert np.array_equal(played[0].rows, played[1].rows)
    with pytest.raises(CheckpointError, match="not basic"):
        make_policy(f"ppo:{path}", "basic")
    with pytest.raises(CheckpointError, match="holds no ppo"):
        make_policy("ppo:search-four_two", "four_two")
    with pytest.raises(CheckpointError, match="--resume"):
        ppo.main(dataclasses.replace(SMALL, rounds=2, out=tmp_path / "run"))
    record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    record["config"]["width"] = 8
    path.with_suffix(".json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(CheckpointError, match="does not fit"):
        make_policy(f"ppo:{path}", "four_two")


def test_loss_that_is_no_number_stops_with_its_batch(tmp_path):
    config = dataclasses.replace(SMALL, out=tmp_path)
    rules = Rules.preset("four_two")
    state = run(config, rules, 1)
    with torch.no_grad():
        state.network.heads.bias[1] = torch.nan
    with pytest.raises(ConfigError, match=r"round 1.*bad-batch\.safetensors"):
        run(config, rules, 2, state)
    batch = safetensors.torch.load_file(tmp_path / "bad-batch.safetensors")
    assert set(batch) == set(ppo_steps.Batch._fields)
    assert not batch["returns"].isfinite().all()


def test_bad_settings_raise_typed_errors(tmp_path):
    for changes, says in (
        ({"copies": 1}, "copies 1"), ({"rounds": 0}, "rounds 0"), ({"players": 5}, "2 to 4"),
        ({"device": "abacus"}, "cpu or cuda"),
        ({"gae_lambda": 2.0}, "gae_lambda"), ({"clip": 0.0}, "clip"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=says):
            ppo.main(dataclasses.replace(SMALL, out=tmp_path, **changes))
    with pytest.raises(CheckpointError, match="no run to resume"):
        ppo.main(dataclasses.replace(SMALL, out=tmp_path, resume=True))


def test_rules_that_ppo_would_learn_wrongly_are_refused(tmp_path):
    rules = tmp_path / "rules.json"
    for options, players, says in (
        ({"topology": "banker", "banker": 0}, 2, "use cpoker train"),
        ({"topology": "pool"}, 3, "--crowd 0"),
    ):
        rules.write_text(json.dumps(Rules.preset("italian", **options).to_dict()), encoding="utf-8")
        config = dataclasses.replace(SMALL, rules=str(rules), players=players, out=tmp_path / "run")
        with pytest.raises(ConfigError, match=says):
            ppo.main(config)

"""TorchRL's view of the tables: its own checks, masks, the same deals, a learner that learns."""

import gymnasium as gym
import numpy as np
import pytest

torchrl = pytest.importorskip("torchrl")

import torch  # noqa: E402
from cpoker_env.train.examples import torchrl_collector  # noqa: E402
from torchrl.collectors import Collector  # noqa: E402
from torchrl.envs import GymEnv, GymWrapper, check_env_specs  # noqa: E402

from cpoker_env.errors import ConfigError, OptionError, RulesError  # noqa: E402
from cpoker_env.rules import Rules  # noqa: E402
from cpoker_env.torchrl import FORMS, make_env, mask_actions  # noqa: E402

BANK = Rules.preset("italian", topology="banker", banker=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("rules", ["mandarin", "four_two", BANK], ids=str)
def test_specs_hold_without_a_warning(form, num_envs, rules):
    env = make_env(form, num_envs, rules=rules, num_players=3)
    check_env_specs(env)
    assert env.batch_size == (num_envs,)
    assert env.reset()["is_init"].all()
    env.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [True, False])
def test_a_single_table_of_the_library_takes_the_mask(form, kind):
    env = mask_actions(GymEnv(FORMS[form], categorical_action_encoding=kind, rules="four_two"))
    check_env_specs(env)
    played = env.rollout(20, break_when_any_done=False)
    assert played.batch_size == (20,)
    assert played["next", "done"].sum() == (20 if form == "candidates" else 1)


@pytest.mark.parametrize("form", FORMS)
def test_random_actions_keep_to_the_mask(form):
    env = make_env(form, 16, rules="mandarin", num_players=4)
    env.set_seed(1)
    played = env.rollout(40, break_when_any_done=False)
    mask, action = played["action_mask"], played["action"]
    assert mask.dtype == torch.bool
    assert mask.gather(-1, action[..., None]).all()
    assert not mask.all()
    assert action.unique().numel() > (3 if form == "sequential" else 20)


@pytest.mark.parametrize("form", FORMS)
def test_deals_and_rewards_are_those_of_the_vector_environment(form):
    size, steps = 6, 30
    env = make_env(form, size, rules="mandarin")
    tables = gym.make_vec(FORMS[form], num_envs=size, rules="mandarin")
    env.set_seed(7)
    state = env.reset()
    tables.reset(seed=7)  # TorchRL deals when it is seeded and again when it is reset
    seen, info = tables.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        for key, part in seen.items():
            assert (state[key].numpy() == part).all()
        assert (state["action_mask"].numpy() == info["action_mask"]).all()
        actions = tables.unwrapped.legal_actions(rng)
        told, state = env.step_and_maybe_reset(state.set("action", torch.as_tensor(actions)))
        seen, rewards, ended, _, info = tables.step(actions)
        assert told["next", "reward"][:, 0].tolist() == rewards.tolist()
        assert told["next", "terminated"][:, 0].tolist() == ended.tolist()


def test_a_collector_brings_whole_deals():
    env = make_env("sequential", 8, rules="four_two", mask="legal", opponents="greedy")
    collector = Collector(env, None, frames_per_batch=8 * 26, total_frames=2 * 8 * 26)
    batches = list(collector)
    collector.shutdown()
    assert len(batches) == 2
    for batch in batches:
        assert batch.batch_size == (8, 26)
        ends = batch["next", "done"].squeeze(-1)
        assert ends.sum() == 16
        assert ends[:, [12, 25]].all()
        assert (batch["next", "reward"].squeeze(-1)[~ends] == 0).all()
        # With legal masks nobody fouls: three lost rows and the majority are the worst.
        assert batch["next", "reward"].abs().max() <= 4


def test_bad_arguments_raise_typed_errors():
    with pytest.raises(ConfigError, match="form 'flat'"):
        make_env("flat")
    with pytest.raises(ConfigError, match="num_envs 0"):
        make_env("candidates", 0)
    with pytest.raises(ConfigError, match="autoreset_mode"):
        make_env(autoreset_mode="SameStep")
    with pytest.raises(RulesError, match="'whist'"):
        make_env(rules="whist")
    with pytest.raises(OptionError, match="unexpected keyword argument 'colour'"):
        make_env(colour="red")
    with pytest.raises(ConfigError, match="action space MultiDiscrete"):
        mask_actions(GymWrapper(gym.make("ChinesePokerFlat-v0")))


def test_the_example_learns_to_choose(capsys):
    # Random choice among 16 candidates loses 0.65 units a deal; `balanced` plays the first.
    told = torchrl_collector.main(deals=7_680, batch=256)
    assert len(told) == 30
    assert np.mean(told[:4]) < -0.4
    assert np.mean(told[-15:]) > -0.25
    assert "units a deal" in capsys.readouterr().out

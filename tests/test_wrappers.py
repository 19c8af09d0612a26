"""What people wrap around the environments, and copies of them in mid-episode."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import (
    FlattenObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformReward,
)
from gymnasium.wrappers.vector import NormalizeReward as VectorNormalizeReward
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorStatistics

import cpoker_env  # noqa: F401

FORMS = ("", "Flat", "Sequential", "Candidates")
IDS = (*(f"ChinesePoker{form}-v0" for form in FORMS), "ChinesePokerSession-v0")


def play(env, seed, steps):
    """Random masked steps: every reward and whether the episode went on."""
    env.action_space.seed(seed)
    _, info = env.reset(seed=seed)
    told = []
    for _ in range(steps):
        action = env.action_space.sample(mask=info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        told.append((reward, terminated, truncated, info))
        if terminated or truncated:
            _, info = env.reset()
    return told


@pytest.mark.parametrize("env_id", IDS)
def test_episode_statistics_are_the_units(env_id):
    env = RecordEpisodeStatistics(gym.make(env_id))
    total, count, ended = 0.0, 0, 0
    for reward, terminated, _, info in play(env, 3, 40):
        total, count = total + reward, count + 1
        if terminated:
            assert (info["episode"]["r"], info["episode"]["l"]) == (total, count)
            total, count, ended = 0.0, 0, ended + 1
    assert ended >= 1


@pytest.mark.parametrize("env_id", IDS)
def test_observations_flatten_to_one_vector(env_id):
    plain, flat = gym.make(env_id), FlattenObservation(gym.make(env_id))
    observation, _ = plain.reset(seed=5)
    vector, _ = flat.reset(seed=5)
    parts = [np.ravel(observation[key]) for key in sorted(observation)]
    np.testing.assert_array_equal(vector, np.concatenate(parts))
    assert flat.observation_space.contains(vector)
    play(flat, 5, 15)


@pytest.mark.parametrize("env_id", IDS)
def test_normalized_rewards_keep_their_sign(env_id):
    plain = play(gym.make(env_id), 4, 60)
    scaled = play(NormalizeReward(gym.make(env_id)), 4, 60)
    assert [np.sign(step[0]) for step in plain] == [np.sign(step[0]) for step in scaled]
    assert any(a[0] != b[0] for a, b in zip(plain, scaled, strict=True))
    half = play(TransformReward(gym.make(env_id), lambda units: units / 2), 4, 60)
    assert [step[0] / 2 for step in plain] == [step[0] for step in half]


def test_time_limit_truncates_a_hand():
    env = TimeLimit(gym.make("ChinesePokerSequential-v0", rules="basic"), 7)
    told = play(env, 2, 21)
    assert [step[2] for step in told] == ([False] * 6 + [True]) * 3
    assert not any(step[1] for step in told)


def make_sequential():
    """A scalar environment, made where it runs."""

    return gym.make("ChinesePokerSequential-v0", opponents="greedy")


@pytest.mark.parametrize("context", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_async_tables_equal_sync_and_native_ones(context):
    asynchronous = AsyncVectorEnv([make_sequential] * 2, context=context)
    try:
        envs = [
            asynchronous,
            SyncVectorEnv([make_sequential] * 2),
            gym.make_vec(
                "ChinesePokerSequential-v0", num_envs=2, opponents="greedy",
                autoreset_mode="NextStep",
            ),
        ]  # fmt: skip
        seen = [env.reset(seed=9)[0] for env in envs]
        rng = np.random.default_rng(9)
        for _ in range(30):
            assert all(data_equivalence(seen[0], other) for other in seen[1:])
            actions = rng.integers(0, 3, 2)
            steps = [env.step(actions) for env in envs]
            seen = [step[0] for step in steps]
            for step in steps[1:]:
                for mine, theirs in zip(steps[0][1:4], step[1:4], strict=True):
                    np.testing.assert_array_equal(mine, theirs)
    finally:
        asynchronous.close()


def test_vector_wrappers_take_the_native_environment():
    # Older statistics of Gymnasium count the steps of this mode only.
    made = gym.make_vec("ChinesePokerCandidates-v0", num_envs=8, autoreset_mode="NextStep")
    envs = VectorNormalizeReward(VectorStatistics(made))
    envs.reset(seed=1)
    for step in range(6):
        *_, terminated, _, info = envs.step(np.zeros(8, np.int64))
        assert (terminated == (step % 2 == 0)).all()
        if terminated.all():
            assert (info["episode"]["l"] == 1).all()
            np.testing.assert_array_equal(info["episode"]["r"], info["units"][:, 0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("env_id", IDS)
def test_copies_go_on_alike_in_mid_episode(env_id, copied):
    env = gym.make(env_id, opponents="uniform")
    env.action_space.seed(6)
    env.reset(seed=6)
    if env_id in ("ChinesePokerSequential-v0", "ChinesePokerSession-v0"):
        for _ in range(3):
            env.step(env.action_space.sample(mask=env.unwrapped._mask()))
    other = copied(env)
    for _ in range(20):
        action = env.action_space.sample(mask=env.unwrapped._mask())
        observation, reward, terminated, _, _ = env.step(action)
        same, same_reward, same_end, *_ = other.step(action)
        assert data_equivalence(observation, same)
        assert (reward, terminated) == (same_reward, same_end)
        if terminated:
            assert data_equivalence(env.reset()[0], other.reset()[0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("form", FORMS)
def test_copies_of_native_tables_go_on_alike(form, copied):
    envs = gym.make_vec(f"ChinesePoker{form}-v0", num_envs=3, opponents="uniform")
    envs.reset(seed=2)
    if form == "Sequential":
        envs.step(np.zeros(3, np.int64))
    other, rng = copied(envs), np.random.default_rng(2)
    for _ in range(20):
        actions = envs.unwrapped.legal_actions(rng)
        observation, rewards, *_ = envs.step(actions)
        same, same_rewards, *_ = other.step(actions)
        assert data_equivalence(observation, same)
        np.testing.assert_array_equal(rewards, same_rewards)


@pytest.mark.parametrize("env_id", IDS)
def test_pictures_are_of_one_size(env_id):
    env = gym.make(env_id, num_players=3, render_mode="rgb_array")
    env.action_space.seed(1)
    _, info = env.reset(seed=1)
    first = env.render()
    assert (first.dtype, first.ndim, first.shape[2]) == (np.uint8, 3, 3)
    for _ in range(13):
        *_, terminated, _, info = env.step(env.action_space.sample(mask=info["action_mask"]))
        last = env.render()
        assert last.shape == first.shape
        if terminated:
            break
    assert (first != last).any()

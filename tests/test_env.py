"""The Gymnasium environments: contract, determinism, no leaks, units, bad input."""

import pickle
import re
import subprocess
import sys
import warnings
from copy import deepcopy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cpoker_env
from cpoker_env.env import ChinesePokerEnv
from cpoker_env.errors import ActionError, CardError, CPokerError, PolicyError, ShowdownError
from cpoker_env.policy import Actions, register_policy
from cpoker_env.rules import PRESETS, Rules
from cpoker_env.session import ChinesePokerSessionEnv

IDS = ("ChinesePoker-v0", "ChinesePokerSession-v0")
BANK = Rules.preset("italian", topology="banker", banker=1)
POOL = Rules.preset("italian", topology="pool")


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("rules", ["mandarin", "basic", BANK, POOL], ids=str)
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_check_env_is_silent(env_id, rules, render_mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, rules=rules, num_players=3, render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_random_actions_run_and_sum_to_zero(rules, num_players):
    env = gym.make("ChinesePoker-v0", rules=rules, num_players=num_players, opponents="uniform")
    env.action_space.seed(num_players)
    env.reset(seed=num_players)
    for _ in range(300):
        _, info = env.reset()
        action = env.action_space.sample(mask=info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space
        assert terminated
        assert not truncated
        assert reward == info["units"][0]
        assert info["units"].sum() == 0


def rollout(seed):
    env = gym.make("ChinesePoker-v0", num_players=4, opponents=["uniform", "greedy", "balanced"])
    env.action_space.seed(seed)
    trace = b""
    for deal in range(30):
        observation, _ = env.reset(seed=seed if deal == 0 else None)
        trace += observation["cards"].tobytes()
        _, reward, _, _, info = env.step(env.action_space.sample())
        trace += repr((reward, info["units"].tolist(), info["arrangements"])).encode()
    return trace


def test_same_seed_gives_the_same_bytes_in_another_process():
    code = "import test_env, sys; sys.stdout.buffer.write(test_env.rollout(5))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert rollout(5) == other.stdout
    assert rollout(5) != rollout(6)


def test_observation_ignores_hidden_cards():
    mine = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"
    seen = []
    for seed in range(10):
        env = gym.make("ChinesePoker-v0", num_players=4)
        observation, info = env.reset(seed=seed, options={"hands": [mine]})
        seen.append(pickle.dumps((observation, info)))
    assert len(set(seen)) == 1


def test_fixed_hands_are_dealt_and_scored():
    hands = ["As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s", "Ah Kh Qh Jd Td 9d 8d 7d 6d 5d 4d 3d 2d"]
    env = gym.make("ChinesePoker-v0")
    observation, info = env.reset(seed=0, options={"hands": hands})
    assert observation["naturals"][2] == 1
    assert info["action_mask"]["declaration"].tolist() == [1, 1, 1]
    action = {"declaration": 2, "placement": np.repeat([2, 1, 0], [5, 5, 3])}
    _, reward, _, _, info = env.step(action)
    assert reward == -26  # red dragon over dragon
    assert info["statuses"] == ("natural", "natural")
    assert info["naturals"] == ("dragon", "colour_dragon")


def test_invalid_actions_have_the_documented_outcome():
    env = gym.make("ChinesePoker-v0", rules="basic")
    env.reset(seed=1)
    _, reward, _, _, info = env.step({"declaration": 1, "placement": np.zeros(13, int)})
    assert reward == -3
    assert "surrender is not available" in info["invalid_action"]
    assert "foul" in info["invalid_action"]


def test_strict_raises_and_keeps_the_deal_open():
    env = gym.make("ChinesePoker-v0", rules="basic", strict=True)
    observation, _ = env.reset(seed=1)
    for action in (
        {"declaration": 1, "placement": np.zeros(13, int)},
        {"declaration": 0, "placement": np.zeros(13, int)},
    ):
        with pytest.raises(ActionError):
            env.step(action)
    batch_hand = np.array([observation["cards"]])
    laid = cpoker_env.make_policy("greedy", "basic").act(
        _batch(batch_hand, Rules.preset("basic")), np.random.default_rng(0)
    )
    env.step({"declaration": 0, "placement": laid.rows[0]})


def _batch(hands, rules):
    from cpoker_env.policy import decisions_for

    return decisions_for(hands, rules)


@pytest.mark.parametrize(
    "action",
    [None, {}, {"declaration": 3, "placement": np.zeros(13, int)},
     {"declaration": 0, "placement": np.zeros(12, int)},
     {"declaration": 0, "placement": np.full(13, 3)}],
)  # fmt: skip
def test_actions_outside_the_space_raise(action):
    env = ChinesePokerEnv()
    env.reset(seed=1)
    with pytest.raises(ActionError):
        env.step(action)


def test_bad_arguments_and_options_raise_typed_errors():
    with pytest.raises(ShowdownError, match="5 seats"):
        ChinesePokerEnv(num_players=5)
    with pytest.raises(PolicyError, match="the policies are"):
        ChinesePokerEnv(opponents="nobody")
    with pytest.raises(PolicyError, match="2 opponents for 2 players"):
        ChinesePokerEnv(opponents=["greedy", "greedy"])
    with pytest.raises(CPokerError, match="the presets are"):
        ChinesePokerEnv(rules="norse")
    env = ChinesePokerEnv()
    with pytest.raises(ActionError, match="step without an open deal"):
        env.step({"declaration": 0, "placement": np.zeros(13, int)})
    with pytest.raises(ActionError, match="'hands'"):
        env.reset(options={"cards": 1})
    with pytest.raises(CardError, match="12 cards"):
        env.reset(options={"hands": ["As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c"]})


def test_a_policy_that_answers_out_of_shape_is_named():
    class Broken:
        def act(self, batch, rng):
            return Actions(np.zeros(3, np.int8), np.zeros((3, 13), np.int8))

    register_policy("broken", lambda rules, num_players: Broken())
    env = gym.make("ChinesePoker-v0", opponents="broken")
    env.reset(seed=0)
    with pytest.raises(PolicyError, match="Broken answered shapes"):
        env.step(env.action_space.sample())


def test_deepcopy_and_pickle_in_mid_episode_go_on_alike():
    env = ChinesePokerEnv(num_players=3)
    env.reset(seed=4)
    action = {"declaration": 0, "placement": np.repeat([2, 1, 0], [5, 5, 3])}
    twins = [deepcopy(env), pickle.loads(pickle.dumps(env))]
    rewards = {twin.step(action)[1] for twin in (env, *twins)}
    assert len(rewards) == 1


def test_ansi_picture_says_who_pays_whom():
    env = gym.make("ChinesePoker-v0", render_mode="ansi")
    env.reset(seed=4)
    assert "by suit" in env.render()
    env.step({"declaration": 0, "placement": np.repeat([2, 1, 0], [5, 5, 3])})
    picture = env.render()
    assert "North" in picture
    assert "East" in picture
    assert "♠" in picture


@pytest.mark.parametrize("env_class", [ChinesePokerEnv, ChinesePokerSessionEnv])
def test_docstring_tables_match_the_spaces(env_class):
    env = env_class(rules=BANK, num_players=3)
    docs = (ChinesePokerEnv.__doc__ or "") + (env_class.__doc__ or "")
    rows = dict(re.findall(r"\| `(\w+)` \| (\([\w, ]+\)) \|", docs))
    for name, space in env.observation_space.items():
        shape = eval(rows[name], {"num_players": 3})
        assert space.shape == shape, name
        assert f"| `{name}` | {rows[name]} | {space.dtype} |" in docs
    assert "`Discrete(3)`" in docs
    assert env.action_space["declaration"].n == 3
    assert env.action_space["placement"].nvec.tolist() == [3] * 13


def test_session_pays_rotates_the_bank_and_ends():
    env = gym.make("ChinesePokerSession-v0", rules=BANK, num_players=3, max_deals=7)
    observation, _ = env.reset(seed=2)
    env.action_space.seed(2)
    banks = [observation["bank"].argmax()]
    total, over, info = 0.0, False, {}
    while not over:
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        banks.append(observation["bank"].argmax())
        total += reward
        over = terminated or truncated
        assert sum(info["stacks"]) == 60
    assert info["stacks"][0] == 20 + total
    assert terminated == (min(info["stacks"]) <= 0)
    played = info["deals_played"]
    assert banks[:played] == [(1 + i) % 3 for i in range(played)]
    with pytest.raises(ActionError):
        env.step(env.action_space.sample())


def test_table_stakes_never_take_a_stack_below_zero():
    env = gym.make("ChinesePokerSession-v0", num_players=4, buy_in=5, money_policy="cap_prorata")
    env.action_space.seed(1)
    for seed in range(30):
        env.reset(seed=seed)
        info = env.step(env.action_space.sample())[4]
        assert min(info["stacks"]) >= 0
        assert sum(info["stacks"]) == 20


def test_session_refuses_a_surrender_the_stack_cannot_pay():
    env = ChinesePokerSessionEnv(num_players=3, buy_in=5)
    _, info = env.reset(seed=1)
    assert info["action_mask"]["declaration"][1] == 0
    _, info = env.reset(seed=1, options={"stacks": [6, 5, 5]})
    assert info["action_mask"]["declaration"][1] == 1


def test_import_loads_no_torch_and_registering_twice_is_silent():
    code = (
        "import warnings; warnings.simplefilter('error'); import sys, importlib, cpoker_env;"
        "importlib.reload(cpoker_env); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fouls_by_size_are_explained_and_drawn():
    env = gym.make("ChinesePoker-v0", opponents="uniform", render_mode="ansi", rules="western")
    env.reset(seed=7)
    *_, info = env.step({"declaration": 0, "placement": [2] * 13})
    assert "rows of 0, 0 and 13 cards: they take 3, 5 and 5" in info["pairwise"][0].reasons
    assert "fouls and pays" in env.render()


@pytest.mark.parametrize("seed", range(3))
def test_random_placements_can_be_drawn_and_told(seed):
    env = gym.make("ChinesePokerSession-v0", num_players=3, render_mode="ansi", buy_in=10**6)
    env.action_space.seed(seed)
    env.reset(seed=seed)
    for _ in range(20):
        *_, info = env.step(env.action_space.sample())
        assert env.render()
        assert all(pairing.summary for pairing in info["pairwise"])


@pytest.mark.parametrize(
    "options",
    [
        5, [1], "hands", {1: 2, "a": 3}, {"hands": 5}, {"hands": [5]},
        {"hands": np.array(5)}, {"hands": [np.array(5)]}, {"hands": {0: "As"}},
        {"hands": "As"}, {"hands": [[1, [2, 3]] + [1] * 11]}, {"hands": [None] * 3},
        {"hands": ["As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"] * 2},
    ],
)  # fmt: skip
def test_bad_reset_options_change_nothing(options):
    for make in (ChinesePokerEnv, ChinesePokerSessionEnv):
        env = make()
        env.reset(seed=3)
        seen, _ = env.reset()
        with pytest.raises((ActionError, CardError)):
            env.reset(seed=9, options=options)
        env.reset(seed=3)
        again, _ = env.reset()
        assert (seen["cards"] == again["cards"]).all()
        fresh = make()
        with pytest.raises((ActionError, CardError)):
            fresh.reset(seed=9, options=options)
        assert not np.array_equal(fresh.reset()[0]["cards"], make().reset(seed=9)[0]["cards"])


@pytest.mark.parametrize(
    "stacks", [5, ["a", "b"], [None, 1], [1j, 1], [10**400, 1], [0, 1], [1], [float("nan"), 1]]
)
def test_bad_stacks_change_nothing(stacks):
    env = ChinesePokerSessionEnv()
    env.reset(seed=3)
    before = env.stacks
    with pytest.raises(ShowdownError):
        env.reset(options={"stacks": stacks})
    assert env.stacks == before


def test_a_failed_reset_leaves_the_bank_where_it_was():
    rules = Rules.preset("western", topology="banker", banker=0)
    env = ChinesePokerSessionEnv(rules=rules, num_players=3, max_deals=1)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    pairs = [(p.a, p.b) for p in env.showdown.pairwise]
    with pytest.raises(CardError):
        env.reset(options={"hands": ["bad"]})
    assert [(p.a, p.b) for p in env.showdown.pairwise] == pairs == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_players": "2"}, {"num_players": None}, {"num_players": 2.0}, {"num_players": True},
        {"opponents": 5}, {"opponents": None}, {"opponents": object()},
        {"form": []}, {"form": "sequential", "mask": 3}, {"form": "sequential", "size": 3},
        {"strict": "yes"}, {"render_mode": 3}, {"rules": {"foul": 3}}, {"rules": None},
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_are_refused(arguments):
    with pytest.raises(CPokerError):
        ChinesePokerEnv(**arguments)


def test_a_class_is_no_opponent():
    class Mine:
        def act(self, batch, rng):
            raise AssertionError

    with pytest.raises(PolicyError, match="Mine"):
        ChinesePokerEnv(opponents=Mine)


def test_byte_order_of_actions_does_not_matter():
    env = ChinesePokerEnv(form="sequential")
    env.reset(seed=1)
    seen, *_ = env.step(np.array(1, ">i4"))
    assert seen["rows"][0] == 1
    with pytest.raises(ActionError):
        env.step(np.array(256, ">i4"))

"""The game for Stable-Baselines3: native tables as a VecEnv, models kept and played as policies."""

import json
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint

from cpoker_env import make_policy
from cpoker_env.errors import ActionError, CheckpointError, ConfigError
from cpoker_env.policy import check_actions, decisions_for
from cpoker_env.rules import Rules
from cpoker_env.table import Table

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from cpoker_env import sb3

IDS = {
    "flat": "ChinesePokerFlat-v0",
    "sequential": "ChinesePokerSequential-v0",
    "candidates": "ChinesePokerCandidates-v0",
}
OPTIONS = {"flat": {}, "sequential": {"mask": "legal"}, "candidates": {}}
BANK = Rules.preset("italian", topology="banker", banker=1)


def draw(form, masks, rng):
    """Random actions, of the rows any, of masked choices allowed ones."""
    if form == "flat":
        rows = rng.permuted(np.repeat([[0, 1, 2]], [3, 5, 5], axis=1).repeat(len(masks), 0), axis=1)
        return np.concatenate([np.zeros((len(masks), 1), np.int64), rows], axis=1)
    return (rng.random(masks.shape) * masks).argmax(axis=1)


@pytest.mark.parametrize("form", IDS)
def test_adapter_equals_make_vec_env(form):
    kwargs = {"rules": "western", "num_players": 3, "opponents": "uniform"}
    dummy = make_vec_env(IDS[form], n_envs=5, seed=7, env_kwargs=kwargs)
    native = sb3.native_vec_env(IDS[form], 5, 7, **kwargs)
    assert native.observation_space == dummy.observation_space
    assert native.action_space == dummy.action_space
    seen, told, rng, ended = native.reset(), dummy.reset(), np.random.default_rng(7), 0
    for _ in range(27):
        assert set(seen) == set(told)
        for key, part in seen.items():
            np.testing.assert_array_equal(part, told[key])
            assert part.dtype == told[key].dtype
        masks = get_action_masks(native)
        np.testing.assert_array_equal(masks, get_action_masks(dummy))
        actions = draw(form, masks, rng)
        seen, rewards, dones, infos = native.step(actions)
        told, other_rewards, other_dones, other_infos = dummy.step(actions)
        np.testing.assert_array_equal(rewards, other_rewards)
        np.testing.assert_array_equal(dones, other_dones)
        assert rewards.dtype == other_rewards.dtype == np.float32
        for i in range(5):
            assert ("episode" in infos[i]) == bool(dones[i])
            if not dones[i]:
                continue
            ended += 1
            last, other = (told_of[i]["terminal_observation"] for told_of in (infos, other_infos))
            assert all(np.array_equal(last[key], other[key]) for key in other)
            assert infos[i]["TimeLimit.truncated"] is other_infos[i]["TimeLimit.truncated"] is False
            for key in ("r", "l"):
                assert infos[i]["episode"][key] == other_infos[i]["episode"][key]
    assert ended >= 10


@pytest.mark.parametrize("form", IDS)
def test_check_env_of_the_library_passes(form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "use a symmetric box", for every Box
        check_env(gym.make(IDS[form]))


@pytest.mark.parametrize("native", [True, False])
def test_maskable_ppo_learns_on_the_sequential_form(native):
    kwargs = {"mask": "legal", "opponents": "uniform"}
    if native:
        envs = sb3.native_vec_env(IDS["sequential"], 16, 1, **kwargs)
    else:
        envs = make_vec_env(IDS["sequential"], n_envs=16, seed=1, env_kwargs=kwargs)
    assert is_masking_supported(envs)
    model = MaskablePPO("MultiInputPolicy", envs, n_steps=26, batch_size=104, seed=1, device="cpu")
    before = {key: part.clone() for key, part in model.policy.state_dict().items()}
    model.learn(416)
    assert model.num_timesteps == 416
    assert len(model.ep_info_buffer) >= 32
    assert any(not (part == before[key]).all() for key, part in model.policy.state_dict().items())


def test_ppo_learns_not_to_foul_on_the_flat_form():
    rules = {"rules": "four_two", "opponents": "uniform"}
    model = PPO(
        "MultiInputPolicy", sb3.native_vec_env(IDS["flat"], 512, 1, **rules), n_steps=16,
        batch_size=1024, n_epochs=6, learning_rate=1e-3, gamma=1.0, gae_lambda=1.0, seed=1,
        device="cpu", policy_kwargs={"net_arch": [128]},
    )  # fmt: skip
    others = sb3.native_vec_env(IDS["flat"], 512, 900, **rules)
    before, _ = evaluate_policy(model, others, n_eval_episodes=1024, warn=False)
    assert before < -3.5  # a foul pays 6, unless the other seat fouls too
    model.learn(600_000)
    after, _ = evaluate_policy(model, others, n_eval_episodes=1024, warn=False)
    assert after > -2


def test_ppo_runs_on_scalar_environments():
    envs = make_vec_env(IDS["flat"], n_envs=4, seed=1)
    model = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=64, seed=1, device="cpu")
    before = {key: part.clone() for key, part in model.policy.state_dict().items()}
    model.learn(64)
    assert any(not (part == before[key]).all() for key, part in model.policy.state_dict().items())


@pytest.fixture(scope="module")
def models():
    """A trained model by form."""
    made = {}
    for form, env_id in IDS.items():
        envs = sb3.native_vec_env(
            env_id, 8, 2, **({"mask": "legal"} if form == "sequential" else {})
        )
        kind = PPO if form == "flat" else MaskablePPO
        made[form] = kind(
            "MultiInputPolicy", envs, n_steps=26, batch_size=104, seed=2, device="cpu",
            policy_kwargs={"net_arch": [32, 24] if form == "flat" else [16]},
        ).learn(416)  # fmt: skip
    return made


@pytest.mark.parametrize("form", IDS)
def test_saved_policies_play_as_the_model(form, models, tmp_path):
    model = models[form]
    sb3.save_policy(model, tmp_path / "agent")
    policy = make_policy(f"sb3:{tmp_path / 'agent'}", "mandarin")
    same = make_policy(f"checkpoint:{tmp_path / 'agent'}", "mandarin")
    envs = sb3.native_vec_env(
        IDS[form],
        64,
        100,
        opponents="greedy",
        **({"mask": "legal"} if form == "sequential" else {}),
    )
    observation, units = envs.reset(), np.zeros(64)
    hands, ended = observation["cards"].copy(), np.zeros(64, np.bool_)
    while not ended.all():
        masks = {} if form == "flat" else {"action_masks": get_action_masks(envs)}
        actions, _ = model.predict(observation, deterministic=True, **masks)
        observation, rewards, dones, _ = envs.step(actions)
        units += np.where(dones & ~ended, rewards, 0)
        ended |= dones
    table = Table(Rules.preset("mandarin"), 2)
    deals = table.deal(np.arange(100, 164, dtype=np.uint64), np.zeros(64, np.uint64))
    np.testing.assert_array_equal(deals.hands[:, 0], hands)
    settled = table.play(deals, [policy, make_policy("greedy")], np.random.default_rng(0))
    np.testing.assert_array_equal(settled.units[:, 0], units)
    again = table.play(deals, [same, make_policy("greedy")], np.random.default_rng(0))
    np.testing.assert_array_equal(settled.units, again.units)


def test_a_policy_that_is_saved_again_is_read_again(models, tmp_path):
    for form in ("candidates", "sequential"):
        sb3.save_policy(models[form], tmp_path / "agent")
        policy = make_policy(f"sb3:{tmp_path / 'agent'}")
        assert policy.form == form
        assert make_policy(f"sb3:{tmp_path / 'agent'}") is policy


def test_saved_policies_answer_any_batch(models, tmp_path):
    sb3.save_policy(models["sequential"], tmp_path / "agent")
    policy = make_policy(f"sb3:{tmp_path / 'agent'}", num_players=4)
    rng = np.random.default_rng(3)
    hands = rng.permuted(np.arange(52)[None].repeat(5000, 0), axis=1)[:, :13]
    batch = decisions_for(hands, Rules.preset("mandarin"), 4, rng.integers(0, 4, 5000))
    whole = check_actions(policy.act(batch, rng), batch)
    part = decisions_for(hands[4990:], Rules.preset("mandarin"), 4)
    np.testing.assert_array_equal(policy.act(part, rng).rows, whole.rows[4990:])
    shown = whole.rows[whole.declarations == 0]
    assert (np.sort(shown, axis=1) == [0] * 3 + [1] * 5 + [2] * 5).all()
    assert len(policy.act(decisions_for(hands[:0], Rules.preset("mandarin")), rng).rows) == 0


def test_bank_is_part_of_a_policy(tmp_path):
    envs = sb3.native_vec_env(IDS["candidates"], 4, 1, rules=BANK, num_players=3)
    model = A2C("MultiInputPolicy", envs, device="cpu", policy_kwargs={"net_arch": []})
    sb3.save_policy(model, tmp_path / "bank")
    policy = make_policy(f"sb3:{tmp_path / 'bank'}", BANK, 3)
    deals = Table(BANK, 3).deal(5, np.arange(20, dtype=np.uint64))
    settled = Table(BANK, 3).play(deals, [policy] * 3, np.random.default_rng(0))
    assert settled.units.sum() == 0
    batches = [decisions_for(deals.hands[:, 0], BANK, 3, np.full(20, seat)) for seat in (0, 1)]
    against, bank = (policy.act(batch, np.random.default_rng(0)) for batch in batches)
    assert (against.rows != bank.rows).any()
    with pytest.raises(CheckpointError, match="3 players"):
        make_policy(f"sb3:{tmp_path / 'bank'}", BANK, 2)


def test_nothing_is_unpickled(models, tmp_path):
    models["flat"].save(tmp_path / "model.zip")
    with pytest.raises(CheckpointError, match="save_policy"):
        make_policy(f"sb3:{tmp_path / 'model.zip'}")
    sb3.save_policy(models["flat"], tmp_path / "agent")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "agent.json", "agent.safetensors", "model.zip",
    ]  # fmt: skip
    config = json.loads((tmp_path / "agent.json").read_text())["config"]
    assert (config["form"], config["algorithm"], config["steps"]) == ("flat", "PPO", 416)


def test_policies_of_other_rules_or_damaged_ones_are_refused(models, tmp_path):
    sb3.save_policy(models["flat"], tmp_path / "agent")
    name = f"sb3:{tmp_path / 'agent'}"
    with pytest.raises(CheckpointError, match="not western"):
        make_policy(name, "western")
    for bad in ("sb3", f"sb3:{tmp_path / 'nothing'}", "sb3:quick-mandarin"):
        with pytest.raises(CheckpointError):
            make_policy(bad)
    path = tmp_path / "agent.json"
    record = json.loads(path.read_text())
    changes = (
        {"num_layers": 2}, {"num_layers": "x"}, {"activation": "Sin"}, {"form": "structured"},
        {"form": "candidates"}, {"form_options": {"mask": "legal"}}, {"form_options": 3},
    )  # fmt: skip
    for place, change in enumerate(changes):
        other = tmp_path / f"other-{place}"
        other.with_suffix(".safetensors").write_bytes((tmp_path / "agent.safetensors").read_bytes())
        text = json.dumps(record | {"config": record["config"] | change})
        other.with_suffix(".json").write_text(text)
        with pytest.raises(CheckpointError, match="does not fit"):
            make_policy(f"sb3:{other}")


def test_models_that_cannot_be_kept_are_refused(models, tmp_path):
    envs = sb3.native_vec_env(IDS["candidates"], 2, 1)
    with pytest.raises(ConfigError, match="PPO, MaskablePPO and A2C"):
        sb3.save_policy(DQN("MultiInputPolicy", envs, buffer_size=50, device="cpu"), tmp_path / "a")
    scaled = VecNormalize(envs, norm_obs_keys=["candidates"])
    with pytest.raises(ConfigError, match="norm_obs=False"):
        sb3.save_policy(PPO("MultiInputPolicy", scaled, device="cpu"), tmp_path / "a")
    with pytest.raises(ConfigError, match="no environment of this package"):
        sb3.save_policy(PPO("MlpPolicy", "CartPole-v1", device="cpu"), tmp_path / "a")
    models["flat"].save(tmp_path / "model.zip")
    with pytest.raises(ConfigError, match="load it with env"):
        sb3.save_policy(PPO.load(tmp_path / "model.zip", device="cpu"), tmp_path / "a")


def test_models_that_diverged_are_refused(models, tmp_path):
    sb3.save_policy(models["flat"], tmp_path / "agent")
    kept = load_checkpoint(str(tmp_path / "agent"))
    for name, bad in (
        ("nan", torch.full((24,), torch.nan)),
        ("whole", torch.zeros(24, dtype=torch.int64)),
    ):
        weights = {**kept.weights, "1.bias": bad}
        save_checkpoint(tmp_path / name, weights, kept.rules, kept.config, [])
        with pytest.raises(CheckpointError, match=r"does not fit its network: 1\.bias: "):
            make_policy(f"sb3:{tmp_path / name}")
    envs = sb3.native_vec_env(IDS["candidates"], 2, 1)
    model = A2C("MultiInputPolicy", envs, device="cpu")
    with torch.no_grad():
        model.policy.action_net.weight.fill_(torch.inf)
    with pytest.raises(ConfigError, match="diverged"):
        sb3.save_policy(model, tmp_path / "a")


def test_paths_are_checked_and_endings_left_out(models, tmp_path):
    model = models["flat"]
    for bad in ("", "/", None, 5, str(tmp_path / "m.zip"), tmp_path / ("x" * 300), "/proc/x/y"):
        with pytest.raises(ConfigError):
            sb3.save_policy(model, bad)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.json"):
        sb3.save_policy(model, tmp_path / "folder")
    with pytest.raises(ConfigError, match="give one of Stable-Baselines3"):
        sb3.save_policy(None, tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]
    for ending in ("", ".json", ".safetensors"):
        sb3.save_policy(model, tmp_path / f"v1.5{ending}")
        make_policy(f"sb3:{tmp_path / f'v1.5{ending}'}")
    assert sorted(path.name for path in tmp_path.glob("v*")) == ["v1.5.json", "v1.5.safetensors"]


def test_masked_actions_follow_the_documented_rule():
    envs = sb3.native_vec_env(IDS["sequential"], 2, 1, rules="basic")
    envs.reset()
    assert get_action_masks(envs).tolist() == [[1, 1, 1, 0, 0]] * 2
    for _ in range(13):
        _, rewards, dones, _ = envs.step(np.array([3, 0]))
    assert dones.all()
    assert envs.env_method("showdown", indices=1)[0].statuses[0] == "foul"
    assert rewards[1] < 0
    strict = sb3.native_vec_env(IDS["sequential"], 2, 1, rules="basic", strict=True)
    strict.reset()
    with pytest.raises(ActionError, match="environment 0: surrender is not available"):
        strict.step(np.array([3, 0]))


def test_adapter_keeps_the_library_s_conventions():
    envs = sb3.native_vec_env(IDS["candidates"], 3, render_mode="ansi")
    with pytest.raises(ActionError, match="step_async"):
        envs.step_wait()
    with pytest.raises(ActionError, match="reset"):
        envs.env_method("action_masks")
    assert envs.seed(11) == [11, 12, 13]
    hand = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"
    envs.set_options({"hands": [hand]})
    first = envs.reset()
    assert (first["cards"] == first["cards"][0]).all()
    other = envs.reset()
    assert (other["cards"] != other["cards"][0]).any()
    assert len(envs.env_method("action_masks", indices=[0, 2])) == 2
    assert envs.get_attr("num_players") == [2, 2, 2]
    assert envs.get_attr("rules", indices=0) == [Rules.preset("mandarin")]
    assert not envs.has_attr("nothing")
    assert "by suit" in envs.env_method("render")[0]
    with pytest.raises(AttributeError, match="showdown"):
        envs.env_method("legal_actions")
    with pytest.raises(ActionError, match="all tables"):
        envs.set_attr("render_mode", None, indices=[0])
    copied = pickle.loads(pickle.dumps(envs))
    np.testing.assert_array_equal(copied.step(np.zeros(3, int))[1], envs.step(np.zeros(3, int))[1])
    envs.close()


def test_a_reset_starts_anew_and_goes_on_with_the_deals():
    envs = sb3.native_vec_env(IDS["sequential"], 2, 5)
    first = envs.reset()
    for _ in range(3):
        envs.step(np.zeros(2, int))
    second = envs.reset()
    assert (first["cards"] != second["cards"]).any(axis=1).all()
    for _ in range(13):
        *_, infos = envs.step(np.array([2, 2]))
    assert [info["episode"]["l"] for info in infos] == [13, 13]
    envs.set_options([{}, {"hands": [list(range(13))]}])
    with pytest.raises(ActionError, match="all tables take the same"):
        envs.reset()


def test_adapters_that_cannot_be_are_refused():
    for bad in (gym.make("ChinesePokerFlat-v0"), "ChinesePokerFlat-v0"):
        with pytest.raises(ConfigError, match="native_vec_env"):
            sb3.SB3VecEnv(bad)
    with pytest.raises(ConfigError, match="NextStep"):
        sb3.native_vec_env(IDS["flat"], 2, autoreset_mode="NextStep")
    with pytest.raises(ConfigError, match="no Dict actions"):
        sb3.native_vec_env("ChinesePoker-v0", 2)

"""The game for RLlib: masked observations, self-play, modules kept and played as policies."""

import importlib
import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from cpoker_env import decisions_for, extras, make_policy
from cpoker_env.errors import ActionError, CheckpointError, ConfigError, ExtraError, ShowdownError
from cpoker_env.rules import Rules
from cpoker_env.table import Table

pytest.importorskip("ray")
pytest.importorskip("ray.rllib")

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec

from cpoker_env.rllib import MaskedEnv, SelfPlayEnv, masked_module, save_policy

# RLlib registers its environments anew for every algorithm.
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:.*Overriding environment rllib-"),
]

IDS = {"sequential": "ChinesePokerSequential-v0", "candidates": "ChinesePokerCandidates-v0"}
CONFIGS = {
    "sequential": {"form": "sequential", "mask": "legal", "rules": "western"},
    "candidates": {"form": "candidates", "num_candidates": 8, "num_players": 3},
}
FORMS = pytest.mark.parametrize("form", sorted(CONFIGS))
BANK = Rules.preset("italian", topology="banker", banker=1)


@pytest.fixture(scope="module")
def cluster():
    """The processes RLlib asks for."""
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    yield
    ray.shutdown()


def make_module(env):
    """A module of random weights, wide enough that it does not always do the same."""
    torch.manual_seed(1)
    spec = masked_module((32, 16), "ReLU")
    spec.observation_space, spec.action_space = env.observation_space, env.action_space
    module = spec.build()
    for weights in module.scores.parameters():
        torch.nn.init.normal_(weights)
    return module


def pick(module, seen):
    """The module's most probable action in one observation."""
    batch = {Columns.OBS: {key: torch.from_numpy(part[None]) for key, part in seen.items()}}
    return int(module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS][0].argmax())


@FORMS
def test_masked_env_is_the_game_with_its_mask_in_the_observation(form):
    config = CONFIGS[form]
    options = {key: value for key, value in config.items() if key != "form"}
    masked, game = MaskedEnv(config), gym.make(IDS[form], **options).unwrapped
    rng = np.random.default_rng(3)
    seed, rewards = 5, []
    for _ in range(20):
        seen, info = masked.reset(seed=seed)
        expected, told = game.reset(seed=seed)
        seed, ended = None, False
        assert info == {}
        while True:
            assert masked.observation_space.contains(seen)
            assert seen["action_mask"].tolist() == told["action_mask"].tolist()
            flat = gym.spaces.flatten(game.observation_space, expected)
            assert seen["observations"].tolist() == flat.astype(np.float32).tolist()
            if ended:
                break
            action = rng.choice(np.flatnonzero(seen["action_mask"]))
            seen, reward, ended, cut, info = masked.step(action)
            expected, theirs, is_over, _, told = game.step(action)
            assert (reward, ended, cut, info) == (theirs, is_over, False, {})
        rewards.append(reward)
    assert np.std(rewards) > 0


def test_masked_actions_are_told_or_refused():
    config = {"form": "candidates", "rules": "western"}
    masked = MaskedEnv(config)
    masked.reset(seed=1)
    assert "no natural" in masked.step(33)[4]["invalid_action"]
    strict = MaskedEnv({**config, "strict": True})
    strict.reset(seed=1)
    with pytest.raises(ActionError, match="no natural"):
        strict.step(33)


@FORMS
def test_every_seat_plays_its_own_hand(form):
    env = SelfPlayEnv(CONFIGS[form])
    table = Table(env.game.rules, env.game.num_players)
    rng = np.random.default_rng(4)
    assert env.possible_agents == [f"player_{seat}" for seat in range(env.game.num_players)]
    won = []
    for deal in range(20):
        seen, _ = env.reset(seed=9 if deal == 0 else None)
        hands = table.deal(np.array([9], np.uint64), np.array([deal], np.uint64)).hands[0]
        first = seen["player_0"]["observations"].shape[0] - (13 + 52 + 10)
        place = 0 if form == "sequential" else first  # of `cards` among the sorted keys
        ended, total = {"__all__": False}, np.zeros(env.game.num_players)
        for agent, hand in zip(env.possible_agents, hands, strict=True):
            assert env.get_observation_space(agent).contains(seen[agent])
            assert seen[agent]["observations"][place : place + 13].tolist() == hand.tolist()
        while not ended["__all__"]:
            actions = {
                agent: rng.choice(np.flatnonzero(one["action_mask"])) for agent, one in seen.items()
            }
            seen, rewards, ended, cut, _ = env.step(actions)
            total += list(rewards.values())
            assert not any(cut.values())
        assert all(ended.values())
        won.append(total)
    assert np.abs(np.sum(won, axis=1)).max() == 0
    assert np.abs(won).max() > 0


@FORMS
def test_module_gives_masked_actions_no_chance(form):
    env = MaskedEnv(CONFIGS[form])
    module, num_actions = make_module(env), int(env.action_space.n)
    rng = np.random.default_rng(5)
    masks = rng.integers(0, 2, (200, num_actions)).astype(np.float32)
    masks[np.arange(200), rng.integers(0, num_actions, 200)] = 1
    seen = np.tile(env.reset(seed=2)[0]["observations"], (200, 1))
    batch = {
        Columns.OBS: {
            "observations": torch.from_numpy(seen), "action_mask": torch.from_numpy(masks)
        }
    }  # fmt: skip
    for forward in (module.forward_exploration, module.forward_inference, module.forward_train):
        scores = forward(batch)[Columns.ACTION_DIST_INPUTS]
        drawn = module.get_exploration_action_dist_cls().from_logits(scores)
        chances = torch.softmax(scores, -1).detach().numpy()
        assert chances[masks == 0].max() == 0
        assert scores.detach().numpy()[masks == 1].min() > -1e6
        assert torch.isfinite(drawn.entropy()).all()
        assert torch.isfinite(drawn.kl(drawn)).all()
        assert masks[np.arange(200), drawn.sample().numpy()].all()
    assert module.compute_values(batch).shape == (200,)


@pytest.mark.parametrize(
    "rules", ["western", "mandarin", BANK], ids=["western", "mandarin", "bank"]
)
@FORMS
def test_saved_policy_plays_what_the_module_would(form, rules, tmp_path):
    config = {**CONFIGS[form], "rules": rules}
    env = MaskedEnv(config)
    module = make_module(env)
    save_policy(module, tmp_path / "kept", env_config=config)
    policy = make_policy(f"rllib:{tmp_path / 'kept'}", rules, config.get("num_players", 2))
    named = make_policy(f"checkpoint:{tmp_path / 'kept'}", rules, config.get("num_players", 2))
    assert named is policy
    table = env.game.learners.table
    seeds, indices = np.full(30, 6, np.uint64), np.arange(30, dtype=np.uint64)
    deals = table.deal(seeds, indices)
    batch = decisions_for(deals.hands[:, 0], rules, table.num_players)
    actions, num_shown = policy.act(batch, np.random.default_rng(0)), 0
    assert policy.act(batch, np.random.default_rng(1)).rows.tolist() == actions.rows.tolist()
    for deal in range(30):
        seen, _ = env.reset(seed=6 if deal == 0 else None)
        ended = False
        while not ended:
            seen, _, ended, _, _ = env.step(pick(module, seen))
        showdown = env.game.showdown
        declared = {"surrender": 1, "natural": 2}.get(showdown.statuses[0], 0)
        assert declared == actions.declarations[deal]
        if declared == 0:
            rows = actions.rows[deal]
            placed = [deals.hands[deal, 0][rows == row].tolist() for row in range(3)]
            assert [sorted(row) for row in showdown.arrangements[0]] == [*map(sorted, placed)]
            num_shown += 1
    assert num_shown > 5


def test_policy_plays_without_ray(tmp_path):
    config = {"form": "sequential", "rules": "western"}
    save_policy(make_module(MaskedEnv(config)), tmp_path / "kept", env_config=config)
    record = json.loads((tmp_path / "kept.json").read_text())
    assert record["config"]["ray"] == ray.__version__
    words = ["evaluate", "--agents", f"rllib:{tmp_path / 'kept'},uniform", "--deals", "50"]
    words += ["--rules", "western"]
    script = (
        "import sys; sys.modules['ray'] = None; from cpoker_env.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "rllib" in ended.stdout


def test_ppo_learns_to_choose(cluster, tmp_path):
    from cpoker_env.train.examples import rllib_ppo

    config = rllib_ppo.Config(steps=8 * 2_048, out=tmp_path / "chooser")
    first, last = rllib_ppo.main(config)
    assert first < -0.8  # at random among 32
    assert last > first + 0.35
    assert last > -0.75
    policy = make_policy(f"rllib:{tmp_path / 'chooser'}")
    assert (policy.form, policy.form_options) == ("candidates", {"num_candidates": 32})


def test_a_module_in_every_seat_learns_to_choose(cluster, tmp_path):
    from cpoker_env.train.examples import rllib_selfplay

    config = rllib_selfplay.Config(steps=8 * 2_048, out=tmp_path / "everyone")
    before, after = rllib_selfplay.main(config)
    assert before < -0.6
    assert after > before + 0.35
    assert make_policy(f"rllib:{tmp_path / 'everyone'}").form == "candidates"


@FORMS
def test_all_seats_train_one_module(form, cluster, tmp_path):
    config = {**CONFIGS[form], "strict": True}  # a masked action would raise
    settings = (
        PPOConfig()
        .environment(SelfPlayEnv, env_config=config, disable_env_checking=True)
        .env_runners(num_env_runners=0)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"all": masked_module((16,))}))
        .training(train_batch_size_per_learner=130, minibatch_size=65, num_epochs=1)
    )
    algorithm = settings.build_algo()
    before = algorithm.get_module("all").scores[0].weight.detach().clone()
    result = algorithm.train()
    assert result["env_runners"]["num_env_steps_sampled"] >= 130
    assert abs(result["env_runners"]["episode_return_mean"]) < 1e-9
    assert not torch.equal(before, algorithm.get_module("all").scores[0].weight)
    with pytest.raises(ConfigError, match="'default_policy': the algorithm has no module"):
        save_policy(algorithm, tmp_path / "kept")
    save_policy(algorithm, tmp_path / "kept", "all")
    algorithm.stop()
    name = f"rllib:{tmp_path / 'kept'}"
    policy = make_policy(name, config.get("rules", "mandarin"), config.get("num_players", 2))
    assert policy.form == form
    assert json.loads((tmp_path / "kept.json").read_text())["config"]["algorithm"] == "PPO"


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="form 'flat'"):
        MaskedEnv({"form": "flat"})
    with pytest.raises(ConfigError, match="'opponents'"):
        SelfPlayEnv({"opponents": "greedy"})
    with pytest.raises(ConfigError, match="activation 'Sine'"):
        masked_module((8,), "Sine")
    with pytest.raises(ConfigError, match=r"hidden \[0\]"):
        masked_module((0,))
    for hidden, says in ((5, "widths of layers"), ("64", "widths"), ([10**12], "to 100,000")):
        with pytest.raises(ConfigError, match=says):
            masked_module(hidden)
    with pytest.raises(ConfigError, match="activation"):
        masked_module(activation=[])
    assert masked_module([np.int64(8)]).model_config["hidden"] == (8,)
    for make in (MaskedEnv, SelfPlayEnv):
        for config in ("x", 5, [1], {1: 2}, {"form": np.zeros(2)}, {"flatten": True}):
            with pytest.raises(ConfigError):
                make(config)
    with pytest.raises(ConfigError, match="option 'opponents'"):
        SelfPlayEnv({"opponents": "greedy"})
    module = make_module(MaskedEnv({"num_candidates": 8}))
    with pytest.raises(ConfigError, match="option 'bogus'"):
        save_policy(module, tmp_path / "kept", env_config={"num_candidates": 8, "bogus": 1})
    with pytest.raises(ShowdownError, match="'x' seats"):
        save_policy(module, tmp_path / "kept", env_config={"num_candidates": 8, "num_players": "x"})
    with pytest.raises(ConfigError, match="give env_config"):
        save_policy(module, tmp_path / "kept")
    with pytest.raises(ConfigError, match="are not those that the module takes"):
        save_policy(module, tmp_path / "kept", env_config={"num_candidates": 9})
    with pytest.raises(ConfigError, match="give a MaskedModule"):
        save_policy(torch.nn.Linear(1, 1), tmp_path / "kept", env_config={})
    assert list(tmp_path.iterdir()) == []
    save_policy(module, tmp_path / "kept", env_config={"num_candidates": 8})
    with pytest.raises(CheckpointError, match="not western"):
        make_policy(f"rllib:{tmp_path / 'kept'}", "western")
    with pytest.raises(CheckpointError, match="holds no sb3"):
        make_policy(f"sb3:{tmp_path / 'kept'}")
    with pytest.raises(CheckpointError, match="rllib:PATH"):
        make_policy("rllib")


def test_a_missing_or_unfit_ray_is_told_in_one_sentence(monkeypatch):
    monkeypatch.delitem(sys.modules, "cpoker_env.rllib")
    found = extras.version
    monkeypatch.setattr(extras, "version", lambda name: "2.40.0" if name == "ray" else found(name))
    with pytest.raises(ExtraError, match=r"^ray 2.40.0: .*ray>=.*,<.*\"cpoker-env\[rllib\]\"$"):
        importlib.import_module("cpoker_env.rllib")
    monkeypatch.setattr(extras, "version", found)
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExtraError, match=r"needs ray .*: pip install \"cpoker-env\[rllib\]\"$"):
        importlib.import_module("cpoker_env.rllib")

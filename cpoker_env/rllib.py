"""The game for RLlib: one learner or every seat, masked actions, modules kept as policies.

    >>> from ray.rllib.algorithms.ppo import PPOConfig
    >>> from cpoker_env.rllib import MaskedEnv, masked_module, save_policy
    >>> config = PPOConfig().environment(MaskedEnv, env_config={"form": "candidates"})
    >>> algorithm = config.rl_module(rl_module_spec=masked_module()).build_algo()
    >>> result = algorithm.train()
    >>> save_policy(algorithm, "runs/chooser")

`cpoker evaluate --agents rllib:runs/chooser,greedy` then plays it. Checkpoints that RLlib itself
writes are for going on with the training: they hold pickles, which this package does not read.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env.agents.checkpoint import save_checkpoint
from cpoker_env.agents.dense import check_dense, dense_network, dense_weights
from cpoker_env.agents.rllib_policy import KIND, mask_scores
from cpoker_env.env import ChinesePokerEnv
from cpoker_env.errors import ConfigError
from cpoker_env.extras import check_versions, not_importable
from cpoker_env.rules import Rules
from cpoker_env.scoring import check_num_seats
from cpoker_env.seats import Seats

try:
    import pettingzoo  # noqa: F401
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
except ImportError as error:
    raise not_importable("rllib", error) from error
check_versions("rllib")

from cpoker_env.parallel import parallel_env  # noqa: E402

FORMS = ("sequential", "candidates")
SEAT_OPTIONS = ("rules", "num_players", "strict", "mask", "num_candidates")
LEARNER_OPTIONS = (*SEAT_OPTIONS, "opponents", "render_mode")
"""What the environments take besides the form."""
Seen = dict[str, npt.NDArray[np.float32]]
SEEN, MASK = "observations", "action_mask"


class MaskedEnv(gym.Env[Any, Any]):
    """`ChinesePokerSequential-v0` or `ChinesePokerCandidates-v0`, its mask in the observation.

    ## Observation Space
    `Dict`, as RLlib's own examples of masked actions have it:

    | key | shape | type | meaning |
    |---|---|---|---|
    | `observations` | (W,) | float32 | the observation there, its keys in order, end to end |
    | `action_mask` | (A,) | float32 | 1 for actions that are allowed, never all 0 |

    Actions, rewards, seeds and ends of episodes are those of that environment; infos are empty but
    for `invalid_action`.

    RLlib gives table i of env runner w the seed s + w + i, so with `debugging(seed=s)` and several
    of both some tables play the same deals; without a seed none do.

    Args:
        config: `form`, `"candidates"` (default) or `"sequential"`, and what that environment takes:
            rules, num_players, opponents, strict, mask, num_candidates.

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        form, options = _read(config, LEARNER_OPTIONS)
        self.game = ChinesePokerEnv(form=form, **options)
        self.observation_space = _space(self.game.observation_space, self.game.action_space)
        self.action_space = self.game.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Deal the next hand, as the game's own `reset`."""
        seen, info = self.game.reset(seed=seed, options=options or None)
        return _with_mask(seen, info), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Play the action, as the game's own `step`."""
        seen, units, ended, cut, info = self.game.step(action)
        told = {key: info[key] for key in ("invalid_action",) if key in info}
        return _with_mask(seen, info), units, ended, cut, told


class SelfPlayEnv(MultiAgentEnv):
    """Every seat learns: `player_0`, `player_1`, ... act at once and see their own cards only.

    Each agent's observations and actions are as in `MaskedEnv`, its rewards and infos as in
    `cpoker_env.parallel.parallel_env`; the rewards of all sum to 0. In the sequential form a seat
    that has declared waits for the others with one allowed action that counts for nothing.

    Set `environment(..., disable_env_checking=True)`: RLlib's own check plays random actions,
    masked or not, which `strict=True` refuses, and resets every table to the seed 42, so that
    without a seed of yours all of them would play the same deals. Set also
    `env_runners(num_envs_per_env_runner=256)` or so: after every step RLlib 2.60 goes through all
    episodes it has finished since the last update, and these episodes are short.

    Args:
        config: As of `MaskedEnv`, without opponents.

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        form, options = _read(config, SEAT_OPTIONS)
        self.game = parallel_env(form=form, mask_in="info", **options)
        self.possible_agents = list(self.game.possible_agents)
        self.agents = list(self.possible_agents)
        self.observation_spaces = {
            agent: _space(self.game.observation_space(agent), self.game.action_space(agent))
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: self.game.action_space(agent) for agent in self.possible_agents
        }

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Seen], dict[str, Any]]:
        """Deal the next hands, as the game's own `reset`."""
        seen, infos = self.game.reset(seed=seed, options=options)
        return self._masked(seen, infos), infos

    def step(self, action_dict: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Play an action of every agent, as the game's own `step`."""
        seen, units, ended, cut, infos = self.game.step(action_dict)
        ended["__all__"] = all(ended.values())
        cut["__all__"] = False
        return self._masked(seen, infos), units, ended, cut, infos

    def _masked(self, seen: dict[str, Any], infos: dict[str, Any]) -> dict[str, Seen]:
        return {agent: _with_mask(seen[agent], infos[agent]) for agent in seen}


class MaskedModule(TorchRLModule, InferenceOnlyAPI, ValueFunctionAPI):
    """Two networks of dense layers: scores of the actions the mask allows, and a value.

    Takes the observations of `MaskedEnv` and `SelfPlayEnv`; for PPO and other algorithms that ask
    for `ACTION_DIST_INPUTS` and `compute_values`. Masked actions have probability 0, exploring or
    not. `masked_module` makes the spec.
    """

    def setup(self) -> None:
        """Make the networks; called by RLlib."""
        config = {"hidden": (256, 256), "activation": "Tanh", **(self.model_config or {})}
        (width,) = self.observation_space[SEEN].shape
        widths, activation = [int(width), *config["hidden"]], config["activation"]
        self.scores = dense_network([*widths, int(self.action_space.n)], activation)
        self.value = dense_network([*widths, 1], activation)
        self.activation = activation

    def get_non_inference_attributes(self) -> list[str]:
        """What workers that only play do without."""
        return ["value"]

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """(B,) expected units."""
        return self.value(batch[Columns.OBS][SEEN]).squeeze(-1)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        return {Columns.ACTION_DIST_INPUTS: mask_scores(self.scores(seen[SEEN]), seen[MASK])}


def masked_module(hidden: Sequence[int] = (256, 256), activation: str = "Tanh") -> RLModuleSpec:
    """The spec of a `MaskedModule`, for `config.rl_module(rl_module_spec=...)`.

    Args:
        hidden: Widths of the layers between.
        activation: "Tanh", "ReLU", "ELU", "GELU" or "SiLU".

    Raises:
        ConfigError: Another activation, or widths that are no whole numbers from 1 on.
    """
    if isinstance(hidden, str) or not isinstance(hidden, Sequence | np.ndarray):
        raise ConfigError(f"hidden {hidden!r}: give widths of layers, as (256, 256)")
    dense_network([1, *hidden, 1], activation)
    return RLModuleSpec(
        module_class=MaskedModule,
        model_config={"hidden": tuple(map(int, hidden)), "activation": activation},
    )


def save_policy(
    trained: Any,
    path: str | Path,
    module_id: str = "default_policy",
    env_config: dict[str, Any] | None = None,
) -> None:
    """Write PATH.safetensors and PATH.json, which `make_policy("rllib:PATH")` plays.

    Args:
        trained: An algorithm with a `MaskedModule`, or such a module. Connectors that change
            observations, such as those which normalize them, are not kept: train without.
        path: Without ending.
        module_id: Which of the algorithm's modules.
        env_config: What the environment was made with; None takes the algorithm's own.

    Raises:
        ConfigError: Another module, none of that name, weights that are not all finite, an
            `env_config` that does not fit it, or a path that cannot be written.
    """
    module, record = trained, {}
    if hasattr(trained, "get_module"):
        module = trained.get_module(module_id)
        record = {"algorithm": type(trained).__name__, "iterations": int(trained.iteration)}
        env_config = trained.config.env_config if env_config is None else env_config
    if module is None:
        raise ConfigError(f"module_id {module_id!r}: the algorithm has no module of that name")
    if hasattr(module, "unwrapped"):
        module = module.unwrapped()
    if not isinstance(module, MaskedModule):
        raise ConfigError(
            f"module {type(module).__name__}: give a MaskedModule, made with masked_module()"
        )
    if env_config is None:
        raise ConfigError("module without its environment: give env_config too")
    form, options = _read(env_config, LEARNER_OPTIONS)
    rules, num_players = Rules.of(options.get("rules", "mandarin")), options.get("num_players", 2)
    of_form: dict[str, Any] = {
        key: options[key] for key in ("mask", "num_candidates") if key in options
    }
    check_num_seats(num_players, rules)
    seats = Seats(rules, num_players, 1, form, of_form)
    expected = _space(seats.observation_space, seats.form.action_space)
    if module.observation_space != expected:
        raise ConfigError(
            f"env_config {dict(env_config)!r}: its observations are not those that the module "
            "takes; give what the environment was made with"
        )
    weights = dense_weights(module.scores)
    config = {
        "kind": KIND,
        "form": form,
        "form_options": {name: getattr(seats.form, name) for name in seats.form.options},
        "num_players": num_players,
        "activation": module.activation,
        "num_layers": len(weights) // 2,
        **record,
        "ray": version("ray"),
    }
    check_dense(weights)
    save_checkpoint(path, weights, rules, config, [])


def _read(config: Any, known: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """The form and the other options of an environment's config.

    Raises:
        ConfigError: No dict, a form whose action is not one index, or an option that is not known.
    """
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(f"env_config {config!r}: give a dict of options")
    options = dict(config or {})
    form = options.pop("form", "candidates")
    if not isinstance(form, str) or form not in FORMS:
        raise ConfigError(f"form {form!r}: RLlib masks one index an action; choose one of {FORMS}")
    for name in options:
        if name not in known:
            raise ConfigError(f"option {name!r}: the options are form, {', '.join(known)}")
    return form, options


def _space(seen: spaces.Space[Any], actions: spaces.Space[Any]) -> spaces.Dict:
    """The space of observations of one seat end to end, with a mask."""
    flat = spaces.flatten_space(seen)
    assert isinstance(flat, spaces.Box)
    assert isinstance(actions, spaces.Discrete)
    low, high = flat.low.astype(np.float32), flat.high.astype(np.float32)
    return spaces.Dict(
        {
            MASK: spaces.Box(0.0, 1.0, (int(actions.n),), np.float32),
            SEEN: spaces.Box(low, high, dtype=np.float32),
        }
    )


def _with_mask(seen: dict[str, npt.NDArray[Any]], info: dict[str, Any]) -> Seen:
    flat = [seen[key].ravel() for key in sorted(seen)]
    return {
        MASK: info["action_mask"].astype(np.float32),
        SEEN: np.concatenate(flat, dtype=np.float32),
    }

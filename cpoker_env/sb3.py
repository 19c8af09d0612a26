"""The game for Stable-Baselines3: thousands of tables as one `VecEnv`, models kept as policies.

    >>> from sb3_contrib import MaskablePPO
    >>> from cpoker_env.sb3 import native_vec_env, save_policy
    >>> envs = native_vec_env("ChinesePokerSequential-v0", n_envs=256, mask="legal")
    >>> model = MaskablePPO("MultiInputPolicy", envs, n_steps=64).learn(100_000)
    >>> save_policy(model, "runs/placer")

`cpoker evaluate --agents sb3:runs/placer,greedy` then plays it. The .zip that a model's own `save`
writes is for going on with the training: it holds pickles, which this package does not read.
"""

import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from cpoker_env.agents.checkpoint import save_checkpoint
from cpoker_env.agents.dense import ACTIVATIONS, check_dense
from cpoker_env.agents.sb3_policy import KIND, PLAYABLE_FORMS, policy_shape
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.extras import check_versions, not_importable
from cpoker_env.learners import read_seed
from cpoker_env.vector import Array, ChinesePokerVectorEnv

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise not_importable("sb3", error) from error
check_versions("sb3")

Indices = int | Iterable[int] | None


class SB3VecEnv(VecEnv):
    """The tables of a native vector environment as Stable-Baselines3 wants them.

    Environment i with the seed s + i plays the deals that `make_vec_env` has with the seed s.
    Infos are empty but for episodes that ended: those have `terminal_observation`,
    `TimeLimit.truncated` (always False) and `episode` as a monitor writes it, so that no
    `VecMonitor` is needed. `env_method("action_masks")` gives the masks, as MaskablePPO asks for
    them; `env_method("showdown", indices=i)` the account of the deal that environment i has just
    ended, `env_method("render")` texts.

    Args:
        envs: Made with `gym.make_vec` or `ChinesePokerVectorEnv`, to be used by nobody else;
            its autoreset must be in the same step.

    Raises:
        ConfigError: Another environment, autoreset mode, or a form with `Dict` actions.
    """

    def __init__(self, envs: ChinesePokerVectorEnv) -> None:
        if not isinstance(envs, ChinesePokerVectorEnv):
            raise ConfigError(
                f"envs {envs!r}: give a ChinesePokerVectorEnv, or call native_vec_env(id)"
            )
        if envs.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ConfigError(
                f"autoreset_mode {envs.autoreset_mode.value!r}: Stable-Baselines3 takes 'SameStep'"
            )
        form = envs.learners.form.name
        if form not in PLAYABLE_FORMS:
            raise ConfigError(
                f"form {form!r}: Stable-Baselines3 takes no Dict actions; choose one of "
                f"{', '.join(PLAYABLE_FORMS)}"
            )
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Array | None = None
        self._masks: Array | None = None
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, np.int64)
        self._started = time.time()

    def reset(self) -> dict[str, Array]:
        """Deal to all tables, with the seeds and options that were set before."""
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        first = self._options[0]
        if any(options != first for options in self._options):
            raise ActionError("options differ between environments: all tables take the same")
        observations, info = self.envs.reset(seed=seeds, options=first or None)
        self._masks = info["action_mask"]
        self._returns[:] = 0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Array) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[dict[str, Array], Array, Array, list[dict[str, Any]]]:
        """Play the actions: observations, float32 rewards, which episodes ended, infos.

        Raises:
            ActionError: As the native environment, or no actions were given.
        """
        if self._actions is None:
            raise ActionError("step_wait without actions: call step_async first")
        actions, self._actions = self._actions, None
        observations, rewards, ended, _, info = self.envs.step(actions)
        self._masks = info["action_mask"]
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        places = np.flatnonzero(ended)
        if len(places):
            last = list(info["final_obs"].items())
            passed = round(time.time() - self._started, 6)
            returns, lengths = self._returns.tolist(), self._lengths.tolist()
            for i in places.tolist():
                infos[i] = {
                    "terminal_observation": {key: part[i] for key, part in last},
                    "TimeLimit.truncated": False,
                    "episode": {"r": returns[i], "l": lengths[i], "t": passed},
                }
            self._returns[places] = 0
            self._lengths[places] = 0
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        """Close the native environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the native environment, once for each of `indices`."""
        return [getattr(self.envs, attr_name)] * len(self._places(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the native environment, for all tables.

        Raises:
            ActionError: For some tables only.
        """
        if len(self._places(indices)) != self.num_envs:
            raise ActionError(f"{attr_name!r} of some environments: all tables have the same")
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """What `action_masks`, `showdown` or `render` give for each of `indices`.

        Raises:
            AttributeError: Another method; the tables are stepped together.
        """
        places = self._places(indices)
        if method_name == "action_masks":
            return list(self._flat_masks()[places])
        if method_name == "showdown":
            return [self.envs.showdown(int(place)) for place in places]
        if method_name == "render":
            texts = self.envs.render()
            return [None if texts is None else texts[place] for place in places]
        raise AttributeError(
            f"env_method {method_name!r}: single tables have action_masks, showdown and render"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Whether episodes are told as by a wrapper: as by `Monitor`, yes; as by others, no."""
        return [issubclass(wrapper_class, Monitor)] * len(self._places(indices))

    def _flat_masks(self) -> Array:
        """(B, A) int8; of vector actions the masks of all parts end to end."""
        if self._masks is None:
            raise ActionError("action_masks without deals: call reset() first")
        return self._masks.reshape(self.num_envs, -1)

    def _places(self, indices: Indices) -> Array:
        return np.arange(self.num_envs)[list(self._get_indices(indices))]


def native_vec_env(
    env_id: str = "ChinesePokerSequential-v0",
    n_envs: int = 256,
    seed: int | None = None,
    **kwargs: Any,
) -> SB3VecEnv:
    """`n_envs` tables stepped together, in place of Stable-Baselines3's `make_vec_env`.

    Args:
        env_id: Of the flat, sequential or candidates form.
        n_envs: How many.
        seed: Environment i gets seed + i.
        **kwargs: Of the environment: rules, num_players, opponents, ...

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """
    made: Any = gym.make_vec(
        env_id, num_envs=n_envs, vectorization_mode="vector_entry_point", **kwargs
    )
    envs = SB3VecEnv(made.unwrapped)
    if seed is not None:
        envs.seed(read_seed(seed))
    return envs


def save_policy(model: Any, path: str | Path) -> None:
    """Write PATH.safetensors and PATH.json, which `make_policy("sb3:PATH")` plays.

    Args:
        model: PPO, MaskablePPO or A2C with the library's own network of dense layers, still with
            the environment it learned in.
        path: Without ending.

    Raises:
        ConfigError: A model that is not of this kind, or whose weights are not all finite; a path
            that cannot be written.
    """
    if not hasattr(model, "get_env") or not hasattr(model, "policy"):
        raise ConfigError(f"model {model!r}: give one of Stable-Baselines3")
    env = model.get_env()
    if env is None:
        raise ConfigError("model without an environment: load it with env=..., then save it")
    normalizer = model.get_vec_normalize_env()
    if normalizer is not None and normalizer.norm_obs:
        raise ConfigError("model of normalized observations: train with norm_obs=False")
    try:
        rules, num_players, learners = (
            env.get_attr(name)[0] for name in ("rules", "num_players", "learners")
        )
    except AttributeError:
        raise ConfigError(
            f"model of {env!r}: it learned in no environment of this package"
        ) from None
    tensors, activation = _policy_layers(model.policy)
    options = {name: getattr(learners.form, name) for name in learners.form.options}
    config = {
        "kind": KIND,
        "form": learners.form.name,
        "form_options": options,
        "num_players": num_players,
        "activation": activation,
        "num_layers": len(tensors) // 2,
        "algorithm": type(model).__name__,
        "steps": int(model.num_timesteps),
        "stable_baselines3": version("stable-baselines3"),
    }
    width, _ = policy_shape(rules, num_players, learners.form.name, options)
    if tensors["0.weight"].shape[1] != width:
        raise ConfigError(
            f"model of {tensors['0.weight'].shape[1]} inputs: observations of the form "
            f"{learners.form.name!r} have {width}; train without wrappers that change them"
        )
    check_dense(tensors)
    save_checkpoint(path, tensors, rules, config, [])


def _policy_layers(policy: Any) -> tuple[dict[str, Any], str]:
    """Weights and biases "0.weight", "0.bias", ... of the dense layers, and their activation.

    Raises:
        ConfigError: A policy that is made of something else.
    """
    state = policy.state_dict()
    hidden = [key for key in state if key.startswith("mlp_extractor.policy_net.")]
    others = [key for key in state if ".policy_net." not in key and key not in _OUTPUT]
    learned = [
        key for key in others if not key.startswith(("mlp_extractor.value_net.", "value_net."))
    ]
    activation = getattr(getattr(policy, "activation_fn", None), "__name__", "none")
    if learned or not all(key in state for key in _OUTPUT) or activation not in ACTIVATIONS:
        raise ConfigError(
            f"policy {type(policy).__name__} with {', '.join(learned) or activation}: give dense "
            f"layers with one of {', '.join(ACTIVATIONS)} between them, as MlpPolicy and "
            "MultiInputPolicy of PPO, MaskablePPO and A2C have them"
        )
    names = [*hidden, *_OUTPUT]
    kinds = ("weight", "bias")
    return {
        f"{i // 2}.{kinds[i % 2]}": state[key].detach().cpu() for i, key in enumerate(names)
    }, activation


_OUTPUT = ("action_net.weight", "action_net.bias")

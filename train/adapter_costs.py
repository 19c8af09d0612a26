"""What the adapters to other libraries cost, and what those libraries' own ways cost.

Modules of libraries are imported when a cost is prepared, as none of them need be installed.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from cpoker_env.train.costs import KEPT, SEED, Cost, Setup, drawn_rows
from cpoker_env.train.timing import Work

NUM_TABLES = 256
"""Environments stepped together."""


@dataclass(frozen=True)
class Stepped:
    """An environment as Stable-Baselines3 steps it.

    key: in names. form: of the id. num_steps: after each reset. options: of the environment.
    """

    key: str
    form: str
    num_steps: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def env_id(self) -> str:
        """Of the environment."""
        return f"ChinesePoker{self.form}-v0"

    def env_options(self, setup: Setup) -> dict[str, Any]:
        """What the environment is made with."""
        return {
            "rules": setup.rules, "num_players": setup.num_players, "opponents": "uniform",
            **dict(self.options),
        }  # fmt: skip

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.form.lower()} form{', legal mask' if self.options else ''}"


STEPPED = (
    Stepped("flat", "Flat", 4),
    Stepped("sequential", "Sequential", 26),
    Stepped("sequential-legal", "Sequential", 26, (("mask", "legal"),)),
    Stepped("candidates", "Candidates", 4),
)


def _parallel(setup: Setup) -> Work:
    """Whole games of PettingZoo's parallel environment, every seat's actions drawn beforehand."""
    module: Any = importlib.import_module("cpoker_env.parallel")
    env = module.parallel_env(setup.rules, setup.num_players)
    seeds = [SEED, *[None] * (setup.batch - 1)]
    plays: list[tuple[int | None, dict[str, Any]]] = []
    for seed in seeds:
        observations, _ = env.reset(seed=seed)
        hands = np.array([seen["observation"]["cards"] for seen in observations.values()])
        shown = np.zeros((len(hands), 1), np.int64)
        actions = np.concatenate([shown, drawn_rows(hands, setup)], axis=1)
        plays.append((seed, dict(zip(env.agents, actions, strict=True))))

    def play() -> None:
        for seed, actions in plays:
            env.reset(seed=seed)
            env.step(actions)

    return Work(setup.batch, play)


def native(stepped: Stepped, setup: Setup) -> Work:
    """Steps of our tables in Stable-Baselines3's clothes."""
    module: Any = importlib.import_module("cpoker_env.sb3")
    envs = module.native_vec_env(stepped.env_id, setup.batch, **stepped.env_options(setup))
    return _steps(envs, stepped, setup)


def dummy(stepped: Stepped, setup: Setup) -> Work:
    """The same steps of as many of our environments in its own `DummyVecEnv`."""
    util: Any = importlib.import_module("stable_baselines3.common.env_util")
    options = stepped.env_options(setup)
    envs = util.make_vec_env(stepped.env_id, NUM_TABLES, env_kwargs=options)
    return _steps(envs, stepped, setup)


def _steps(envs: Any, stepped: Stepped, setup: Setup) -> Work:
    """Steps of random legal actions, found by stepping our own tables through the same deals."""
    own: Any = gym.make_vec(
        stepped.env_id, envs.num_envs, vectorization_mode="vector_entry_point",
        **stepped.env_options(setup),
    )  # fmt: skip
    own.reset(seed=SEED)
    rng = np.random.default_rng(SEED)
    actions = []
    for _ in range(stepped.num_steps):
        actions.append(own.legal_actions(rng))
        own.step(actions[-1])

    def play() -> None:
        envs.seed(SEED)
        envs.reset()
        for action in actions:
            envs.step(action)

    return Work(stepped.num_steps * envs.num_envs, play)


def _cost(stepped: Stepped) -> Cost:
    prepare: Callable[[Setup], Work] = partial(native, stepped)
    what = f"Stable-Baselines3's steps of native tables, {stepped.title}"
    return Cost(f"sb3-{stepped.key}", what, "step", prepare, NUM_TABLES, how=KEPT)


ADAPTERS = (
    Cost("parallel", "PettingZoo's parallel environment, flat form", "deal", _parallel, 256,
         how=f"reset and step; {KEPT}"),
    *map(_cost, STEPPED),
)  # fmt: skip
"""Measured where a peer is held against them."""

"""A loop written by hand over PettingZoo's parallel API: all seats share one policy and learn.

Each seat chooses among candidate arrangements by a linear score of their features; REINFORCE moves
the weights by the units won, which are 0 on average.

    python -m cpoker_env.train.examples.pettingzoo_loop --deals 20000
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tyro

from cpoker_env.parallel import parallel_env


@dataclass(frozen=True)
class Config:
    """Settings of a run."""

    deals: int = 20_000
    """Deals of self-play."""
    num_players: int = 2
    """Seats."""
    rules: str = "mandarin"
    """House rules."""
    rate: float = 0.02
    """Step size."""
    seed: int = 1
    """Of the deals and the choices."""


def main(config: Config) -> tuple[float, float]:
    """Units per deal of the policy against random choices, before and after training."""
    env = parallel_env(config.rules, config.num_players, form="candidates")
    rng = np.random.default_rng(config.seed)
    weights = np.zeros(10)
    before = units_per_deal(weights, config)
    observations, _ = env.reset(seed=config.seed)
    for _ in range(config.deals):
        chosen, slopes = {}, {}
        for agent, seen in observations.items():
            chances, features = choices(weights, seen)
            chosen[agent] = int(rng.choice(len(chances), p=chances))
            slopes[agent] = features[chosen[agent]] - chances @ features
        _, rewards, _, _, _ = env.step(chosen)
        for agent, units in rewards.items():
            weights += config.rate * np.clip(units, -6, 6) * slopes[agent]
        observations, _ = env.reset()
    after = units_per_deal(weights, config)
    print(f"units per deal against random choices: {before:+.2f} before, {after:+.2f} after")
    return before, after


def choices(weights: Any, seen: dict[str, Any]) -> tuple[Any, Any]:
    """(A,) chances of the actions and (A, 10) features; declarations are left to others."""
    features = seen["observation"]["candidates"].astype(np.float64)
    scores = np.where(seen["observation"]["candidate_mask"], features @ weights, -np.inf)
    chances = np.exp(scores - scores.max())
    return chances / chances.sum(), features


def units_per_deal(weights: Any, config: Config, deals: int = 500) -> float:
    """Mean units of the first seat, the others choosing at random, on deals not trained on."""
    env = parallel_env(config.rules, config.num_players, form="candidates")
    rng, total = np.random.default_rng(config.seed), 0.0
    for deal in range(deals):
        observations, _ = env.reset(seed=10**9 if deal == 0 else None)
        actions = {}
        for agent, seen in observations.items():
            chances, _ = choices(weights if agent == "player_0" else 0 * weights, seen)
            actions[agent] = int(rng.choice(len(chances), p=chances))
        total += env.step(actions)[1]["player_0"]
    return total / deals


if __name__ == "__main__":
    main(tyro.cli(Config))

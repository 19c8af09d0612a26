"""MaskablePPO of sb3-contrib learns to place a hand card by card.

python -m cpoker_env.train.examples.sb3_maskable --steps 500000 --out runs/placer
cpoker evaluate --agents sb3:runs/placer,greedy
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpoker_env.sb3 import native_vec_env, save_policy

# isort: split
import numpy as np
import tyro
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks


@dataclass(frozen=True)
class Config:
    """Settings of a run."""

    steps: int = 500_000
    """Cards placed in training."""
    num_envs: int = 256
    """Tables stepped together."""
    rules: str = "mandarin"
    """House rules."""
    opponents: str = "uniform"
    """Who sits in the other seats."""
    mask: str = "legal"
    """"legal" keeps the learner from fouls, "capacity" from full rows only."""
    seed: int = 1
    """Of the deals and the network."""
    out: Path | None = None
    """Where the policy goes; nowhere if left out."""


def main(config: Config) -> tuple[float, float]:
    """Units per deal before and after training, over 2,000 deals or more each."""
    envs = native_vec_env(
        "ChinesePokerSequential-v0", config.num_envs, config.seed,
        rules=config.rules, opponents=config.opponents, mask=config.mask,
    )  # fmt: skip
    model = MaskablePPO(
        "MultiInputPolicy", envs, seed=config.seed, device="cpu",
        n_steps=26, batch_size=1024, learning_rate=1e-3, n_epochs=4, gamma=1.0, ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
    )  # fmt: skip
    before = units_per_deal(model, config)
    model.learn(config.steps)
    after = units_per_deal(model, config)
    print(f"units per deal against {config.opponents}: {before:+.2f} before, {after:+.2f} after")
    if config.out is not None:
        save_policy(model, config.out)
    return before, after


def units_per_deal(model: MaskablePPO, config: Config) -> float:
    """Mean reward of the most probable actions on deals that training never sees."""
    envs = native_vec_env(
        "ChinesePokerSequential-v0", 500, 10**9,
        rules=config.rules, opponents=config.opponents, mask=config.mask,
    )  # fmt: skip
    observation: Any = envs.reset()
    units = []
    for _ in range(4 * 13):
        masks = get_action_masks(envs)
        actions, _ = model.predict(observation, action_masks=masks, deterministic=True)
        observation, rewards, ended, _ = envs.step(actions)
        units.append(rewards[ended])
    return float(np.concatenate(units).mean())


if __name__ == "__main__":
    main(tyro.cli(Config))

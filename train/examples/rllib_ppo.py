"""PPO of RLlib learns which of the good arrangements to show.

python -m cpoker_env.train.examples.rllib_ppo --steps 40000 --out runs/chooser
cpoker evaluate --agents rllib:runs/chooser,greedy
"""

from dataclasses import dataclass
from pathlib import Path

from cpoker_env.rllib import MaskedEnv, masked_module, save_policy

# isort: split
import ray
import tyro
from ray.rllib.algorithms.ppo import PPOConfig


@dataclass(frozen=True)
class Config:
    """Settings of a run."""

    steps: int = 40_000
    """Actions in training."""
    batch: int = 2_048
    """Actions between updates."""
    rules: str = "mandarin"
    """House rules."""
    opponents: str = "balanced"
    """Who sits in the other seats."""
    num_candidates: int = 32
    """Arrangements to choose from, good ones first."""
    seed: int = 1
    """Of the deals and the network."""
    address: str = "local"
    """Of a running Ray cluster, or "local" to start one that ends with the run."""
    out: Path | None = None
    """Where the policy goes; nowhere if left out."""


def main(config: Config) -> tuple[float, float]:
    """Mean units per deal in the first and in the last batch."""
    settings = (
        PPOConfig()
        .environment(
            MaskedEnv,
            env_config={
                "form": "candidates",
                "rules": config.rules,
                "opponents": config.opponents,
                "num_candidates": config.num_candidates,
                "strict": True,
            },
        )
        .env_runners(num_env_runners=0, num_envs_per_env_runner=32)
        .rl_module(rl_module_spec=masked_module((64, 64)))
        .training(
            train_batch_size_per_learner=config.batch, minibatch_size=256, num_epochs=6,
            lr=1e-3, gamma=1.0, use_kl_loss=False, vf_clip_param=100.0,
        )
        .reporting(metrics_num_episodes_for_smoothing=config.batch)
        .debugging(seed=config.seed)
    )  # fmt: skip
    ray.init(config.address, ignore_reinit_error=True, log_to_driver=False)
    algorithm = settings.build_algo()
    means = []
    for _ in range(max(2, config.steps // config.batch)):
        means.append(algorithm.train()["env_runners"]["episode_return_mean"])
        print(f"{means[-1]:+.2f} units per deal against {config.opponents}", flush=True)
    if config.out is not None:
        save_policy(algorithm, config.out)
    algorithm.stop()
    return means[0], means[-1]


if __name__ == "__main__":
    main(tyro.cli(Config))

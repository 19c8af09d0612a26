"""PPO of RLlib: one module plays every seat of the table and learns from all of them.

python -m cpoker_env.train.examples.rllib_selfplay --steps 60000 --out runs/everyone
cpoker evaluate --agents rllib:runs/everyone,balanced
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import ray
import tyro
from cpoker_env.train.evaluate import duel
from ray.rllib.algorithms.ppo import PPOConfig

from cpoker_env.policy import make_policy
from cpoker_env.rllib import SelfPlayEnv, masked_module, save_policy
from cpoker_env.rules import Rules


@dataclass(frozen=True)
class Config:
    """Settings of a run."""

    steps: int = 60_000
    """Deals in training, in each of which every seat acts."""
    rules: str = "mandarin"
    """House rules."""
    players: int = 2
    """Seats."""
    rival: str = "balanced"
    """Whom it plays before and after, never in training."""
    seed: int = 1
    """Of the deals and the network."""
    address: str = "local"
    """Of a Ray cluster, or "local" for one of this run."""
    out: Path | None = None
    """Where the policy goes; nowhere if left out."""


def main(config: Config) -> tuple[float, float]:
    """Mean units per deal against the rival, before and after the training."""
    game = {"form": "candidates", "rules": config.rules, "num_players": config.players}
    settings = (
        PPOConfig()
        .environment(SelfPlayEnv, env_config=game, disable_env_checking=True)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda *args, **kwargs: "all")
        .rl_module(rl_module_spec=masked_module((64, 64)))
        .training(
            train_batch_size_per_learner=2_048, minibatch_size=256, num_epochs=6,
            lr=1e-3, gamma=1.0, use_kl_loss=False, vf_clip_param=100.0,
        )
        .debugging(seed=config.seed)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=256)
    )  # fmt: skip
    ray.init(config.address, ignore_reinit_error=True, log_to_driver=False)
    algorithm = settings.build_algo()
    rules = Rules.of(config.rules)
    rival = make_policy(config.rival, rules, config.players)

    def play(path: Path) -> float:
        save_policy(algorithm, path, "all")
        learned = make_policy(f"rllib:{path}", rules, config.players)
        return duel(learned, rival, rules, config.players, 5_000, config.seed + 1).units

    with TemporaryDirectory() as folder:
        before = play(Path(folder) / "before")
        for _ in range(config.steps // 2_048):
            algorithm.train()
        after = play(config.out or Path(folder) / "after")
    print(f"against {config.rival}: {before:+.2f} units per deal before, {after:+.2f} after")
    algorithm.stop()
    return before, after


if __name__ == "__main__":
    main(tyro.cli(Config))

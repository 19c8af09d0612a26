"""PPO in one file over the native vector environment: cards placed one by one, masked.

python -m cpoker_env.train.examples.cleanrl_ppo --steps 500000
"""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import nn


@dataclass(frozen=True)
class Config:
    """Settings of a run: cards placed, tables, who is played, and PPO's own."""

    steps: int = 500_000
    num_envs: int = 256
    opponents: str = "uniform"
    rate: float = 1e-3
    seed: int = 1


def main(config: Config) -> tuple[float, float]:
    """Mean units per deal in the first and in the last tenth of the training."""
    torch.manual_seed(config.seed)
    options: dict[str, Any] = {"opponents": config.opponents, "mask": "legal"}
    envs: Any = gym.make_vec("cpoker_env:ChinesePokerSequential-v0", config.num_envs, **options)
    width = gym.spaces.flatdim(envs.single_observation_space)
    layers = nn.Linear(width, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 6)
    net = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters(), config.rate)

    def evaluate(seen: torch.Tensor, masks: torch.Tensor) -> tuple[Any, torch.Tensor]:
        scores = net(seen)
        policy = torch.distributions.Categorical(logits=scores[:, :5].masked_fill(masks == 0, -1e9))
        return policy, scores[:, 5]

    def tensors(observation: dict[str, Any], info: dict[str, Any]) -> list[torch.Tensor]:
        flat = np.concatenate([observation[key] for key in sorted(observation)], axis=1)
        return [torch.tensor(flat, dtype=torch.float32), torch.from_numpy(info["action_mask"])]

    now, units = tensors(*envs.reset(seed=config.seed)), []
    for _ in range(config.steps // (26 * config.num_envs)):
        kept = []
        with torch.no_grad():
            for _ in range(26):
                policy, values = evaluate(*now)
                actions = policy.sample()
                observation, won, ended, _, info = envs.step(actions.numpy())
                result = torch.tensor(won, dtype=torch.float32), torch.tensor(~ended)
                kept.append([*now, actions, policy.log_prob(actions), values, *result])
                units += won[ended].tolist()
                now = tensors(observation, info)
            goal = evaluate(*now)[1]
            for step in reversed(kept):
                step[5] = goal = step[5] + goal * step[6]
        batch = [torch.cat(part) for part in zip(*kept, strict=True)]
        for part in torch.randperm(len(batch[0])).repeat(4).chunk(24):
            seen, masks, actions, chances, values, goal, _ = (each[part] for each in batch)
            gains = (goal - values - (goal - values).mean()) / (goal - values).std()
            policy, values = evaluate(seen, masks)
            ratio = (policy.log_prob(actions) - chances).exp()
            loss = -torch.min(gains * ratio, gains * ratio.clamp(0.8, 1.2)).mean()
            loss += 0.05 * (values - goal).square().mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    tenth = len(units) // 10
    first, last = float(np.mean(units[:tenth])), float(np.mean(units[-tenth:]))
    print(f"units per deal against {config.opponents}: {first:+.2f} at first, {last:+.2f} at last")
    return first, last


if __name__ == "__main__":
    main(tyro.cli(Config))

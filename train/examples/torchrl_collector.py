"""A TorchRL collector and a masked policy gradient that learns to choose among candidates.

One small network scores every candidate by its features; surrender and the declaration have a score
of their own. The policy is drawn from the scores that the mask leaves.

    python -m cpoker_env.train.examples.torchrl_collector --deals 20000
"""

from cpoker_env.torchrl import make_env

# isort: split
import torch
import tyro
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import MaskedCategorical, ProbabilisticActor


class Scores(nn.Module):
    """(..., K, 10) features of candidates to (..., K + 2) scores of actions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, width), nn.Tanh(), nn.Linear(width, 1))
        self.declarations = nn.Parameter(torch.zeros(2))

    def forward(self, candidates: torch.Tensor) -> torch.Tensor:
        shown = self.layers(candidates).squeeze(-1)
        return torch.cat([shown, self.declarations.expand(*shown.shape[:-1], 2)], -1)


def main(
    deals: int = 20_000,
    batch: int = 512,
    rules: str = "four_two",
    opponents: str = "balanced",
    seed: int = 0,
) -> list[float]:
    """Train; returns the mean units a deal of each batch."""
    torch.manual_seed(seed)
    env = make_env("candidates", batch, rules=rules, opponents=opponents, num_candidates=16)
    scores = TensorDictModule(Scores(), in_keys=["candidates"], out_keys=["logits"])
    policy = ProbabilisticActor(
        scores,
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        spec=env.action_spec,
    )
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.03)
    collector = Collector(env, policy, frames_per_batch=batch, total_frames=deals)
    collector.set_seed(seed)
    told = []
    for played in collector:
        units = played["next", "reward"].squeeze(-1)
        chances = policy.get_dist(played)
        gain = (units - units.mean()) / units.std()
        loss = -(gain * chances.log_prob(played["action"])).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        told.append(units.mean().item())
        print(f"{len(told) * batch:7,d} deals  {told[-1]:+.3f} units a deal")
    collector.shutdown()
    return told


if __name__ == "__main__":
    tyro.cli(main)

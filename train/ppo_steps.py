"""What PPO computes of plays: chances step by step, advantages, losses."""

from typing import NamedTuple

import numpy as np
import torch
from cpoker_env.agents.placement import NUM_ACTIONS, SAME, Choices, PlacementNetwork, branches
from cpoker_env.train.rollout import IntArray

from cpoker_env.cards import HAND_SIZE


class Batch(NamedTuple):
    """H hands played G times each, with their T choices.

    features (H, F) float32; hand_of, kinds (T,), strengths (T, 3) int64 as `Choices` has them;
    branch (T, G) int64, where each choice leaves each play; log_chances, advantages, returns
    (H, G, 13) float32.
    """

    features: torch.Tensor
    hand_of: torch.Tensor
    kinds: torch.Tensor
    strengths: torch.Tensor
    branch: torch.Tensor
    log_chances: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class Rollout(NamedTuple):
    """H hands with what they may do, the choices played (H, G), and what that won (H, G).

    log_chances, advantages and returns are (H, G, 13), see `Batch`.
    """

    choices: Choices
    chosen: IntArray
    won: IntArray
    log_chances: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def batch(self, hands: IntArray, device: str) -> Batch:
        """Some of the hands, on a device."""
        choices, chosen = self.choices, self.chosen[hands]
        sizes = np.diff(choices.starts)[hands]
        ends = np.cumsum(sizes)
        hand_of = np.repeat(np.arange(len(hands)), sizes)
        places = np.arange(ends[-1]) + (choices.starts[hands] - ends + sizes)[hand_of]
        codes = choices.codes
        arrays = (
            choices.features[hands], hand_of, choices.kinds[places], choices.strengths[places],
            branches(codes[places][:, None], codes[chosen][hand_of]),
        )  # fmt: skip
        there = [torch.from_numpy(array).to(device) for array in arrays]
        where = torch.from_numpy(hands)
        told = (self.log_chances, self.advantages, self.returns)
        return Batch(*there, *(part[where].to(device) for part in told))


class Steps(NamedTuple):
    """What a network makes of the 13 steps of H times G plays, (H, G, 13) each.

    log_chances of the actions taken, entropy of what could have been, values before the step, and
    whether there was a choice.
    """

    log_chances: torch.Tensor
    entropy: torch.Tensor
    values: torch.Tensor
    had_choice: torch.Tensor


def read_steps(network: PlacementNetwork, part: Batch, temperature: float) -> Steps:
    """Chances, entropy and values of the steps of plays.

    The choices that agree with a play before a step share out the chances of the step's actions by
    their weights; the state is worth their mean expectation.
    """
    scores, expected = network(part.features, part.hand_of, part.strengths, part.kinds)
    num_hands, copies = len(part.features), part.branch.shape[1]
    logits = scores / temperature
    top = torch.full((num_hands,), -torch.inf, device=scores.device)
    top = top.scatter_reduce(0, part.hand_of, logits.detach(), "amax")
    weights = (logits - top[part.hand_of]).exp()
    plays = part.hand_of[:, None] * copies + torch.arange(copies, device=scores.device)
    cells = (plays * (SAME + 1) + part.branch).reshape(-1)

    def gather(amounts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums (H, G, 1) of the choice played, and (H, G, 13, 5) by where others leave it."""
        each = amounts[:, None].expand(-1, copies).reshape(-1)
        sums = torch.zeros(num_hands * copies * (SAME + 1), device=scores.device)
        sums = sums.index_add(0, cells, each).reshape(num_hands, copies, SAME + 1)
        by_step = sums[..., :SAME].reshape(num_hands, copies, HAND_SIZE, NUM_ACTIONS)
        return sums[..., SAME:], by_step

    later = torch.ones(HAND_SIZE, HAND_SIZE, device=scores.device).tril(-1)
    own, others = gather(weights)
    leaving = others.sum(dim=3)
    after = (own + leaving @ later).clamp(min=1e-30)
    before = after + leaving
    shares = torch.cat([after[..., None], others], dim=3) / before[..., None]
    entropy = -(shares * shares.clamp(min=1e-9).log()).sum(dim=3)
    own_worth, others_worth = gather(weights.detach() * expected)
    worth_leaving = others_worth.sum(dim=3)
    values = (own_worth + worth_leaving @ later + worth_leaving) / before.detach()
    return Steps(after.log() - before.log(), entropy, values, leaving.detach() > 0)


def advantages_of(
    values: torch.Tensor, gained: torch.Tensor, had_choice: torch.Tensor, gae_lambda: float
) -> torch.Tensor:
    """Generalised advantage estimates (..., 13), undiscounted, of deals rewarded at their end.

    Args:
        values: (..., 13) the critic's, before each step.
        gained: (...) the reward after the last.
        had_choice: (..., 13) whether a step is one; the others do not fade what follows.
        gae_lambda: See `Config`.
    """
    advantages = torch.empty_like(values)
    following, later = gained, torch.zeros_like(gained)
    for step in reversed(range(values.shape[-1])):
        later = following - values[..., step] + later
        advantages[..., step] = later
        later = torch.where(had_choice[..., step], gae_lambda * later, later)
        following = values[..., step]
    return advantages


def losses_of(
    network: PlacementNetwork, part: Batch, temperature: float, clip: float
) -> tuple[torch.Tensor, list[float]]:
    """(3,) policy loss, value loss and entropy; then the KL divergence and the clipped share.

    Means are over plays, of sums over their steps.
    """
    steps = read_steps(network, part, temperature)
    change = steps.log_chances - part.log_chances
    ratio = change.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy = -torch.minimum(ratio * part.advantages, clipped * part.advantages)
    value = (steps.values - part.returns).square()
    losses = [
        torch.where(steps.had_choice, amount, 0.0).sum(dim=2).mean()
        for amount in (policy, value, steps.entropy)
    ]
    with torch.no_grad():
        # The estimate (r - 1) - log r, which is never negative: Schulman, "Approximating KL
        # Divergence", 2020.
        divergence = (ratio - 1 - change).mean().item()
        share = (ratio != clipped)[steps.had_choice].float().mean().item()
    return torch.stack(losses), [divergence, share]

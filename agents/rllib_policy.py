"""The policy of a module that RLlib trained, and the networks of that module; no RLlib in either.

`cpoker_env.rllib.save_policy` writes it: dense layers as safetensors, the rest as JSON.
"""

import torch
from cpoker_env.agents.sb3_policy import SB3Policy, load_dense

from cpoker_env.errors import CheckpointError
from cpoker_env.rules import Rules

KIND = "rllib"


def make_rllib(rules: Rules, num_players: int = 2, argument: str = "") -> SB3Policy:
    """The policy that `cpoker_env.rllib.save_policy` wrote to the path `argument`.

    It takes the most probable action that the mask allows.

    Raises:
        CheckpointError: None given, it cannot be read, is of another kind, of other rules, of
            another number of seats where the observations tell them, or does not fit itself.
    """
    if not argument:
        raise CheckpointError(
            "rllib without a name: write rllib:PATH, of cpoker_env.rllib.save_policy"
        )
    return load_dense(KIND, rules, num_players, argument)


def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Scores (B, A) with the least finite number where the mask (B, A) has 0: probability 0."""
    return scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)

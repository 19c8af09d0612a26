"""The policy of a module that RLlib trained, and the networks of that module; no RLlib in either.

`cpoker_env.rllib.save_policy` writes it: dense layers as safetensors, the rest as JSON.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from cpoker_env.agents.sb3_policy import ACTIVATIONS, SB3Policy, load_dense

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.rules import Rules

KIND = "rllib"
MOST_WIDTH = 100_000
"""Of a layer."""


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


def dense_network(widths: Sequence[int], activation: str) -> torch.nn.Sequential:
    """Dense layers from the first width to the last, an activation between each two.

    Raises:
        ConfigError: An unknown activation, or widths that are no whole numbers from 1 on.
    """
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ConfigError(f"activation {activation!r}: choose one of {', '.join(ACTIVATIONS)}")
    for width in widths:
        is_whole = isinstance(width, int | np.integer) and not isinstance(width, bool)
        if not is_whole or not 1 <= width <= MOST_WIDTH:
            raise ConfigError(
                f"hidden {list(widths[1:-1])!r}: give whole numbers from 1 to {MOST_WIDTH:,}"
            )
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [torch.nn.Linear(int(inputs), int(outputs)), ACTIVATIONS[activation]()]
    return torch.nn.Sequential(*layers[:-1])


def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Scores (B, A) with the least finite number where the mask (B, A) has 0: probability 0."""
    return scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)


def dense_weights(network: torch.nn.Sequential) -> dict[str, torch.Tensor]:
    """Weights and biases "0.weight", "0.bias", "1.weight", ... of the dense layers."""
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return {
        f"{i}.{kind}": getattr(layer, kind).detach().cpu()
        for i, layer in enumerate(layers)
        for kind in ("weight", "bias")
    }

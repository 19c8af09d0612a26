"""Networks of dense layers, as models of other libraries are kept: made, checked, taken apart."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch

from cpoker_env.errors import ConfigError

ACTIVATIONS = {
    "Tanh": torch.nn.Tanh,
    "ReLU": torch.nn.ReLU,
    "ELU": torch.nn.ELU,
    "GELU": torch.nn.GELU,
    "SiLU": torch.nn.SiLU,
}
MOST_WIDTH = 100_000
"""Of a layer."""


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


def dense_weights(network: torch.nn.Sequential) -> dict[str, torch.Tensor]:
    """Weights and biases "0.weight", "0.bias", "1.weight", ... of the dense layers."""
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return {
        f"{i}.{kind}": getattr(layer, kind).detach().cpu()
        for i, layer in enumerate(layers)
        for kind in ("weight", "bias")
    }


def network_of(
    weights: Mapping[str, torch.Tensor], num_layers: int, activation: str
) -> torch.nn.Sequential:
    """The network that `dense_weights` took apart.

    Raises:
        ConfigError: As `check_dense` and `dense_network`.
        KeyError, RuntimeError, ValueError: Weights that are missing or fit no layers.
    """
    check_dense(weights)
    outputs = [weights[f"{i}.weight"].shape[0] for i in range(num_layers)]
    _, inputs = weights["0.weight"].shape
    network = dense_network([inputs, *outputs], activation)
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    for i, layer in enumerate(layers):
        layer.load_state_dict({kind: weights[f"{i}.{kind}"] for kind in ("weight", "bias")})
    return network.eval()


def check_dense(weights: Mapping[str, torch.Tensor]) -> None:
    """Raise unless the weights of dense layers are numbers that can be played.

    Raises:
        ConfigError: Weights of another type, none at all, or some that are infinite or no number.
    """
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or not tensor.numel():
            raise ConfigError(f"{name}: {tuple(tensor.shape)} {tensor.dtype}; floats are needed")
        if not torch.isfinite(tensor).all():
            raise ConfigError(f"{name}: not all finite, so the training diverged; train anew")

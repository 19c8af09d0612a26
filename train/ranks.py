"""Several processes that train one network: who they are and what they tell each other.

`torchrun --nproc-per-node 2 -m cpoker_env.train.selfplay` starts them; without it a run is the only
one, and nothing here costs anything.
"""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed

Array = npt.NDArray[Any]


class Ranks:
    """The processes of a run: this one's number, how many there are."""

    def __init__(self) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))

    def __enter__(self) -> "Ranks":
        if self.size > 1:
            distributed.init_process_group("gloo")
        return self

    def __exit__(self, *_: object) -> None:
        if self.size > 1:
            distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def join(self, part: Array) -> Array:
        """Arrays of equal shape from all processes, one after the other."""
        if self.size == 1:
            return part
        # As bytes, since gloo does not know all types.
        mine = torch.from_numpy(np.ascontiguousarray(part).reshape(-1).view(np.uint8))
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        distributed.all_gather(parts, mine)
        return torch.cat(parts).numpy().view(part.dtype).reshape(-1, *part.shape[1:])

    def add(self, part: Array) -> Array:
        """The sum of the arrays of all processes."""
        if self.size == 1:
            return part
        total = torch.from_numpy(part.copy())
        distributed.all_reduce(total)
        return total.numpy()

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Put the mean of all processes' gradients in their place, the same everywhere."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).cpu()
        distributed.all_reduce(flat)
        flat /= self.size
        at = 0
        for gradient in gradients:
            part = flat[at : at + gradient.numel()]
            gradient.copy_(part.reshape(gradient.shape))
            at += gradient.numel()

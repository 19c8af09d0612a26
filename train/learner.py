"""The regression: a network, its optimizer, and the running mean of its weights that plays."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from cpoker_env.agents.network import ValueNetwork
from cpoker_env.train.lessons import Lessons
from cpoker_env.train.ranks import Ranks
from torch import nn

from cpoker_env.errors import ConfigError

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Regression:
    """How a round's lessons are learned.

    epochs: passes over them. batch: hands in a gradient step, of all processes together.
    level_weight: how much the level of a hand's lessons counts, where their differences count 1.
    kept: share that the running mean of the weights keeps in each step. device: cpu or cuda.
    """

    epochs: int
    batch: int
    level_weight: float
    kept: float
    device: str


class Learner:
    """A network that learns, `average` being the one that plays."""

    def __init__(self, network: ValueNetwork, how: Regression) -> None:
        self.how = how
        self.network = network.to(how.device)
        self.network.read_counts()
        self.average = copy.deepcopy(self.network)
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.steps = 0

    def learn(
        self, lessons: Lessons, hands: int, learning_rate: float, rng: np.random.Generator,
        ranks: Ranks, when_bad: Callable[[Lessons], str],
    ) -> float:  # fmt: skip
        """Regress on lessons; returns the mean loss of the last pass.

        Args:
            lessons: This process's.
            hands: Those of all processes, whether they became lessons or not.
            learning_rate: Of this round.
            rng: Shuffles them.
            ranks: The processes.
            when_bad: Keeps a batch whose loss is no number, and says where.

        Raises:
            ConfigError: The loss is no number.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        batch, steps = self.how.batch // ranks.size, hands // self.how.batch
        losses: list[float] = []
        with deterministic():
            for _ in range(self.how.epochs):
                # A few hands met nobody: every process takes as many steps all the same.
                order = np.resize(rng.permutation(len(lessons.targets)), steps * batch)
                losses = []
                for taken in np.split(order, steps):
                    picked = lessons.take(torch.from_numpy(taken), self.how.device)
                    losses.append(self._step(picked, ranks))
                    if math.isnan(losses[-1]):
                        raise ConfigError(
                            f"a loss that is no number, at learning_rate {learning_rate:g}: lower "
                            f"it; the batch is kept in {when_bad(picked)}"
                        )
        return float(np.mean(losses))

    def _step(self, lessons: Lessons, ranks: Ranks) -> float:
        """One step; returns the loss, NaN if no step was taken as it is no number somewhere."""
        loss = self._loss(lessons)
        value = loss.item()
        if ranks.add(np.array([not math.isfinite(value)], np.int64)).any():
            return math.nan
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        ranks.average_gradients(self.network.parameters())
        self.optimizer.step()
        self._follow()
        return value

    def _loss(self, lessons: Lessons) -> torch.Tensor:
        """Squared errors: of the differences between a hand's options, and of their level.

        Differences decide what is shown; the level only whether to surrender or declare, and most
        of its error is the luck of who was met.
        """
        found = self.network(lessons.inputs, lessons.side_index, lessons.strengths)
        errors = found.corrections + lessons.independent - lessons.targets
        level = (lessons.weights * errors).sum(dim=1, keepdim=True)
        differences = (lessons.weights * (errors - level) ** 2).sum(dim=1).mean()
        given_up = (found.surrender - lessons.surrender).square().mean()
        levels = level.square().mean() + given_up
        whole: torch.Tensor = differences + self.how.level_weight * levels
        return whole

    def _follow(self) -> None:
        """Move the running mean of the weights, faster at first."""
        self.steps += 1
        kept = min(self.how.kept, self.steps / (self.steps + 10))
        pairs = zip(self.average.parameters(), self.network.parameters(), strict=True)
        with torch.no_grad():
            for mean, new in pairs:
                mean.lerp_(new, 1 - kept)

    def tensors(self) -> Tensors:
        """Everything that changes, by name."""
        return pack(self.network, self.average, self.optimizer)

    def restore(self, tensors: Mapping[str, torch.Tensor], steps: int) -> None:
        """Take over what `tensors` gave.

        Raises:
            KeyError, RuntimeError, ValueError: They are not of such a learner.
        """
        unpack(tensors, self.network, self.average, self.optimizer)
        self.network.read_counts()
        self.average.read_counts()
        self.steps = steps


def pack(network: nn.Module, average: nn.Module, optimizer: torch.optim.Adam) -> Tensors:
    """All that changes in a network, the running mean of it and its optimizer, by name."""
    found = {f"network.{name}": part for name, part in network.state_dict().items()}
    found |= {f"average.{name}": part for name, part in average.state_dict().items()}
    for index, slot in optimizer.state_dict()["state"].items():
        found |= {f"adam.{index}.{key}": torch.as_tensor(v) for key, v in slot.items()}
    return found


def unpack(
    tensors: Mapping[str, torch.Tensor], network: nn.Module, average: nn.Module,
    optimizer: torch.optim.Adam,
) -> None:  # fmt: skip
    """Put back what `pack` gave; other tensors are left alone.

    Raises:
        KeyError, RuntimeError, ValueError: It was of others.
    """
    network.load_state_dict(under("network.", tensors))
    average.load_state_dict(under("average.", tensors))
    adam = optimizer.state_dict()
    for name, tensor in under("adam.", tensors).items():
        index, _, key = name.partition(".")
        adam["state"].setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict(adam)


def under(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """Those tensors whose names begin so, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


@contextmanager
def deterministic() -> Iterator[None]:
    """Gradients that do not depend on how threads meet, so that a seed decides the agent."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)

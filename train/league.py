"""The league: past versions of a learner, drawn as its opponents.

Who only plays its newest self forgets how to beat what it no longer meets. A league keeps snapshots
of the weights under names and draws opponents from them.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cpoker_env.errors import CheckpointError, ConfigError

Weights = dict[str, torch.Tensor]
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PREFIX = "league."


class League:
    """Snapshots by name, oldest first.

    A draw is the newest snapshot with chance `latest_share` and otherwise one of the older ones,
    each as likely as any other. A full league drops its oldest snapshot for a new one.

    Args:
        capacity: Snapshots kept at most.
        latest_share: Chance of the newest, 0 to 1; a league of one draws it always.

    Raises:
        ConfigError: A number out of range.
    """

    def __init__(self, capacity: int = 16, latest_share: float = 0.5) -> None:
        if capacity < 1:
            raise ConfigError(f"capacity {capacity}: a league keeps 1 snapshot or more")
        if not 0 <= latest_share <= 1:
            raise ConfigError(f"latest_share {latest_share}: give a chance between 0 and 1")
        self.capacity = capacity
        self.latest_share = latest_share
        self._snapshots: dict[str, Weights] = {}

    def __len__(self) -> int:
        return len(self._snapshots)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the snapshots, oldest first."""
        return tuple(self._snapshots)

    def add(self, name: str, weights: Mapping[str, torch.Tensor]) -> None:
        """Keep a copy of some weights as the newest snapshot.

        Raises:
            ConfigError: A name in use, or of other signs than letters, digits, `_` and `-`.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"snapshot {name!r}: use letters, digits, '_' and '-' alone")
        if name in self._snapshots:
            raise ConfigError(f"snapshot {name!r} is in the league: choose another name")
        self._snapshots[name] = {
            key: tensor.detach().cpu().clone() for key, tensor in weights.items()
        }
        if len(self) > self.capacity:
            del self._snapshots[self.names[0]]

    def weights(self, name: str) -> Weights:
        """The weights of a snapshot, not copied.

        Raises:
            ConfigError: No such snapshot.
        """
        if name not in self._snapshots:
            known = ", ".join(self.names) or "none yet"
            raise ConfigError(f"snapshot {name!r}: the league has {known}")
        return self._snapshots[name]

    def draw(self, rng: np.random.Generator, size: int) -> list[str]:
        """Names of `size` opponents, drawn one by one and put back.

        Raises:
            ConfigError: An empty league.
        """
        if not len(self):
            raise ConfigError("the league has no snapshot to draw: add one first")
        *older, newest = self.names
        is_newest = rng.random(size) < self.latest_share
        places = rng.integers(max(len(older), 1), size=size)
        if not older:
            return [newest] * size
        return [
            newest if newer else older[place]
            for newer, place in zip(is_newest, places, strict=True)
        ]

    def record(self) -> dict[str, Any]:
        """What a run's JSON record keeps of the league: its settings and names in order."""
        return {
            "capacity": self.capacity, "latest_share": self.latest_share,
            "names": list(self.names),
        }  # fmt: skip

    def tensors(self) -> Weights:
        """All weights as `league.NAME.PARAMETER`, to be stored among a run's tensors."""
        return {
            f"{_PREFIX}{name}.{key}": tensor
            for name, weights in self._snapshots.items()
            for key, tensor in weights.items()
        }

    @classmethod
    def restore(cls, record: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> "League":
        """The league that `record` and `tensors` were taken of.

        Args:
            record: What `record()` gave.
            tensors: What `tensors()` gave; other names among them are left alone.

        Raises:
            CheckpointError: The two do not belong together, or the record is none.
        """
        found: dict[str, Weights] = {}
        for key, tensor in tensors.items():
            if key.startswith(_PREFIX):
                name, _, parameter = key.removeprefix(_PREFIX).partition(".")
                found.setdefault(name, {})[parameter] = tensor
        try:
            league = cls(record["capacity"], record["latest_share"])
            names = list(record["names"])
            if sorted(names) != sorted(found) or len(names) > league.capacity:
                raise CheckpointError(
                    f"league of {names}: the file holds {sorted(found)}; start without resume"
                )
            for name in names:
                league.add(name, found[name])
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"no league to restore ({error}); start without resume") from None
        return league

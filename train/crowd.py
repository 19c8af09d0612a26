"""The crowd of self-play: hands of the last rounds as they were played, everyone's opponents."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.population import Plays, Population, draw_hands, gather, order_of

from cpoker_env import kernels
from cpoker_env.rules import Rules
from cpoker_env.valuation import TABLE_SIZES

IntArray = npt.NDArray[Any]


@dataclass
class Crowd:
    """Hands of the last rounds as they were played, round by round.

    hands, banks, plays, runs: (P, ...), the newest last.
    """

    hands: npt.NDArray[np.int8]
    banks: npt.NDArray[np.int8]
    plays: Plays
    runs: npt.NDArray[np.uint8]

    def arrays(self) -> dict[str, IntArray]:
        """Everything by name, to be stored."""
        rest = {"hands": self.hands, "banks": self.banks, "runs": self.runs}
        return {**rest, **self.plays._asdict()}

    @classmethod
    def of(cls, arrays: dict[str, IntArray]) -> "Crowd":
        """The crowd that `arrays` was taken of."""
        plays = Plays(*(arrays[name] for name in Plays._fields))
        return cls(arrays["hands"], arrays["banks"], plays, arrays["runs"])

    def follow(self, new: "Crowd", limit: int) -> "Crowd":
        """The newest `limit` hands of these and others that come after them."""

        def last(old: IntArray, added: IntArray) -> IntArray:
            return np.concatenate([old, added])[-limit:]

        mine, theirs = self.arrays(), new.arrays()
        return Crowd.of({name: last(mine[name], theirs[name]) for name in mine})

    def population(self, runs_home: bool) -> Population:
        """All hands to be met."""
        order = order_of(self.hands)
        runs = self.runs[order] if runs_home else None
        return gather(self.hands[order], self.plays.take(order), self.banks[order], runs)

    def counts(self, side: int) -> tuple[list[IntArray], float]:
        """How often a seat of this side sees each strength of a row, and how often any."""
        faced = self.banks == -side
        shows = faced & (self.plays.status == kernels.NORMAL)
        strengths = self.plays.strengths[shows]
        counts = [
            np.bincount(strengths[:, row], minlength=size) for row, size in enumerate(TABLE_SIZES)
        ]
        return counts, float(shows.sum() / max(faced.sum(), 1))


def deal_round(seed: int, number: int, size: int, rules: Rules) -> tuple[IntArray, IntArray]:
    """Hands (size, 13) of a round and their sides (size,) of the bank."""
    hands = draw_hands(seed, size, number * size)
    # Hands come sorted by their clubs: a seat drawn for each leaves no side a run of the others.
    banks = np.zeros(size, np.int8)
    if rules.banker is not None:
        banks[:] = np.where(np.random.default_rng([seed, number]).permutation(size) % 2, 1, -1)
    return hands, banks

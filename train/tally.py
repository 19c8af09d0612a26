"""Exact sums of units over duplicate deals, and the results with intervals that they give.

Sums are whole numbers, so any order of adding gives the same result, bit for bit.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Z95 = 1.96
"""Standard errors in half of a 95 % interval."""


@dataclass(frozen=True)
class Result:
    """Units per deal that an agent wins from its opponents, with the 95 % interval over deals.

    agent, opponent: who, and in words against whom.
    deals: different deals, each played several times.
    units: mean over all plays.
    half_width: of the interval, each deal counting once, as the mean of its plays.
    single_half_width: of the interval that playing each deal once would give.
    plain_deals: deals, each played once, that it would take for `half_width`; None if that is 0.
    """

    agent: str
    opponent: str
    deals: int
    units: float
    half_width: float
    single_half_width: float
    plain_deals: float | None

    def __str__(self) -> str:
        return f"{self.units:+.3f} ± {self.half_width:.3f}"

    def mirrored(self) -> "Result":
        """The same from the other side of the table, where there are two seats."""
        units = 0.0 - self.units  # no negative zero
        return replace(self, agent=self.opponent, opponent=self.agent, units=units)


@dataclass(frozen=True)
class Tally:
    """Sums over deals of what one agent won, in whole parts of a unit.

    total: over all plays. squares: of each deal's sum over its plays. play_squares: of each play.
    """

    total: int = 0
    squares: int = 0
    play_squares: int = 0

    @classmethod
    def of(cls, plays: npt.NDArray[np.int64]) -> "Tally":
        """Sums of plays (B, P): P plays of each of B deals."""
        deals = plays.sum(axis=1).tolist()
        return cls(sum(deals), sum(won * won for won in deals), int((plays * plays).sum()))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.total + other.total,
            self.squares + other.squares,
            self.play_squares + other.play_squares,
        )

    def result(
        self, agent: str, opponent: str, num_deals: int, num_plays: int, scale: int
    ) -> Result:
        """What the sums say.

        Args:
            num_deals: Deals summed, at least 2.
            num_plays: Plays of each deal.
            scale: Parts of a unit that the sums count.
        """
        size = num_deals * num_plays
        by_deal = _variance(self.total, self.squares, num_deals) / num_plays**2
        by_play = _variance(self.total, self.play_squares, size)
        return Result(
            agent,
            opponent,
            num_deals,
            units=float(Fraction(self.total, size * scale)),
            half_width=Z95 * math.sqrt(by_deal / num_deals) / scale,
            single_half_width=Z95 * math.sqrt(by_play / num_deals) / scale,
            plain_deals=float(by_play / by_deal * num_deals) if by_deal else None,
        )


def _variance(total: int, squares: int, size: int) -> Fraction:
    """Unbiased variance of `size` whole numbers."""
    return Fraction(size * squares - total * total, size * (size - 1))


def add_up(parts: Iterable[tuple[Tally, ...]]) -> tuple[Tally, ...]:
    """Tallies of several batches of deals, added one by one."""
    return tuple(sum(column, Tally()) for column in zip(*parts, strict=True))

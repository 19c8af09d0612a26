"""When surrendering, keeping a natural back or going for royalties is right, from sampled hands.

A policy that values its options plays many hands; what it does with them, and how close it was, is
told in figures and by examples.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.options import Estimates, choose
from cpoker_env.agents.population import draw_hands

from cpoker_env.arrangements import arrangement_of, describe_row
from cpoker_env.errors import ConfigError, PolicyError
from cpoker_env.policy import DecisionBatch, decisions_for
from cpoker_env.row_values import best_of
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.scoring import SHOW, SURRENDER
from cpoker_env.tables import (
    CATEGORIES,
    CATEGORY_STARTS,
    FRONT_TRIPS,
    FULL_HOUSE,
    QUADS,
    ROYAL_FLUSH,
    STRAIGHT_FLUSH,
    category_of,
)
from cpoker_env.valuation import TABLE_SIZES

FloatArray = npt.NDArray[np.float64]
CHUNK = 512
"""Hands valued at once."""
MARGIN = 0.1
"""Units around the price of a surrender within which a hand is a close call."""
NUM_EXAMPLES = 3


@runtime_checkable
class Estimating(Protocol):
    """A policy that says what every option is worth."""

    def estimate(self, batch: DecisionBatch) -> Estimates:
        """Units of every option of B decisions."""


@runtime_checkable
class Adaptable(Protocol):
    """A policy that can be told that other rules pay, against the same opponents."""

    def under(self, rules: Rules) -> Estimating:
        """The same view of opponents under other rules."""


class Sample(NamedTuple):
    """H hands and what a policy thinks of them, (H, ...) each.

    hands: (H, 13) int8. declarations: what it does. naturals: the best it may declare, -1 for none.
    rows: (H, 13), strengths: (H, 3), shown: of the best arrangement, its units.
    surrender, declare: units, NaN where a hand may not.
    strongest: the strongest back that any of its arrangements has.
    plain_strengths: (H, 3) of the best arrangement if royalties paid nothing, and plain_shown its
        units as they do pay; of length 0 where that is unknown.
    """

    hands: npt.NDArray[np.int8]
    declarations: npt.NDArray[np.int8]
    naturals: npt.NDArray[np.int8]
    rows: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    shown: FloatArray
    surrender: FloatArray
    declare: FloatArray
    strongest: npt.NDArray[np.int16]
    plain_strengths: npt.NDArray[np.int16]
    plain_shown: FloatArray

    @property
    def num_hands(self) -> int:
        """How many hands."""
        return len(self.hands)

    def row_counts(self) -> list[npt.NDArray[np.int64]]:
        """How often hands that are shown show each strength of each row."""
        shown = self.strengths[self.declarations == SHOW]
        return [np.bincount(shown[:, row], minlength=TABLE_SIZES[row]) for row in range(3)]


@dataclass(frozen=True)
class Example:
    """A hand as it would best be shown.

    rows: the cards. names: of the rows. shown: units of showing it; other: of the alternative.
    """

    rows: str
    names: tuple[str, ...]
    shown: float
    other: float


@dataclass(frozen=True)
class Surrendering:
    """When surrendering is right.

    share: of hands that surrender. price: mean units of surrendering for a close call.
    price_low, price_high: the same for 5 and 95 % of close calls. close: share of close calls.
    by_holding: (strongest back the hand could have, number of pairs in it, share of all hands,
        share of these that surrenders), those first that surrender most often among all hands.
    given_up: the strongest hands that surrender, by back, middle and front as best shown;
    kept: the weakest that do not.
    """

    share: float
    price: float
    price_low: float
    price_high: float
    close: float
    by_holding: tuple[tuple[str, int, float, float], ...]
    given_up: tuple[Example, ...]
    kept: tuple[Example, ...]


@dataclass(frozen=True)
class Natural:
    """What a natural is for.

    share: of hands whose best natural it is. declared: mean units of declaring; shown: of showing
        these hands as best one can.
    kept_back: share of these hands that are better shown. gain: mean units of that, where it is.
    by_back: (category of the back as best shown, hands, of these kept back).
    examples: where keeping back gains most.
    """

    name: str
    hands: int
    share: float
    declared: float
    shown: float
    kept_back: float
    gain: float
    by_back: tuple[tuple[str, int, int], ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Royalty:
    """How often a royalty is shown among hands that are shown.

    pays: units. without: how often by a policy told that royalties pay nothing, None if unknown.
    """

    name: str
    pays: int
    shown: float
    without: float | None


@dataclass(frozen=True)
class Royalties:
    """What royalties change.

    differs: share of shown hands that are laid otherwise for them; gain: mean units over all shown
        hands that this is worth. None if unknown.
    """

    rows: tuple[Royalty, ...]
    differs: float | None
    gain: float | None


@dataclass(frozen=True)
class Insights:
    """What a policy does with a sample of hands; None where the rules have no such thing."""

    hands: int
    shown: float
    surrendering: Surrendering | None
    naturals: tuple[Natural, ...]
    royalties: Royalties | None

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self)


def sample_hands(
    policy: Any,
    rules: Rules,
    num_players: int = 2,
    num_hands: int = 20_000,
    seed: int = 1,
    bank: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Sample:
    """Hands drawn at random, as a policy values and plays them.

    Args:
        policy: One that values its options.
        rules: The house rules.
        num_players: Seats at the table.
        num_hands: How many, from 1 on.
        seed: Names the hands.
        bank: The seat's side: 1 the bank, -1 against it, 0 without one.
        progress: Told how many more hands are done.

    Raises:
        ConfigError: No hands.
        PolicyError: The policy does not value options.
    """
    if num_hands < 1:
        raise ConfigError(f"sample {num_hands}: give 1 or more hands")
    if not isinstance(policy, Estimating):
        raise PolicyError(f"{type(policy).__name__} does not value options: choose equilibrium")
    hands = draw_hands(seed, num_hands)
    plain = None
    if rules.royalties != "off" and isinstance(policy, Adaptable):
        plain = policy.under(Rules.from_dict({**rules.to_dict(), "royalties": "off"}))
    seat = 0 if rules.banker is None else rules.banker if bank == 1 else (rules.banker + 1) % 2
    parts = []
    for start in range(0, num_hands, CHUNK):
        part = hands[start : start + CHUNK]
        batch = decisions_for(part, rules, num_players, np.full(len(part), seat))
        found = policy.estimate(batch)
        best, declarations = choose(found)
        options = found.options
        unpaid = best[:0] if plain is None else best_of(options, plain.estimate(batch).values)
        parts.append(
            Sample(
                part, declarations, batch.naturals, options.rows[best], options.strengths[best],
                found.values[best], found.surrender, found.declare,
                np.maximum.reduceat(options.strengths[:, 2], options.starts[:-1]),
                options.strengths[unpaid], found.values[unpaid],
            )
        )  # fmt: skip
        if progress is not None:
            progress(len(part))
    return Sample(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def insights_of(sample: Sample, rules: Rules) -> Insights:
    """What a sample of hands says about surrendering, naturals and royalties."""
    return Insights(
        hands=sample.num_hands,
        shown=float((sample.declarations == SHOW).mean()),
        surrendering=surrendering(sample) if rules.surrender_allowed else None,
        naturals=tuple(natural(sample, name) for name in rules.naturals_in_play),
        royalties=royalties(sample, rules) if rules.royalties != "off" else None,
    )


def surrendering(sample: Sample) -> Surrendering:
    """When hands of a sample surrender."""
    gives_up = sample.declarations == SURRENDER
    close = np.abs(sample.shown - sample.surrender) < MARGIN
    prices = sample.surrender[close if close.any() else np.ones(sample.num_hands, np.bool_)]
    low, high = np.quantile(prices, (0.05, 0.95))
    strongest = np.searchsorted(CATEGORY_STARTS, sample.strongest, side="right") - 1
    of_rank = (sample.hands[:, :, None] >> 2 == np.arange(13)).sum(axis=1)
    holdings = list(zip(strongest.tolist(), (of_rank == 2).sum(axis=1).tolist(), strict=True))
    held = Counter(holdings)
    gone = Counter(holding for holding, gives in zip(holdings, gives_up, strict=True) if gives)
    by_holding = [
        (CATEGORIES[category], pairs, held[category, pairs] / sample.num_hands,
         count / held[category, pairs])
        for (category, pairs), count in gone.most_common()
    ]  # fmt: skip
    order = np.lexsort(tuple(sample.strengths.T))  # by back, then middle, then front
    return Surrendering(
        share=float(gives_up.mean()),
        price=float(prices.mean()),
        price_low=float(low),
        price_high=float(high),
        close=float(close.mean()),
        by_holding=tuple(by_holding),
        given_up=_examples(sample, order[gives_up[order]][::-1], sample.surrender),
        kept=_examples(sample, order[(sample.declarations == SHOW)[order]], sample.surrender),
    )


def natural(sample: Sample, name: str) -> Natural:
    """How a natural does in a sample."""
    mine = np.flatnonzero(sample.naturals == PATTERNS.index(name))
    is_kept = sample.declarations[mine] == SHOW
    kept = mine[is_kept]
    gains = sample.shown[kept] - sample.declare[kept]
    backs, kept_backs = (
        Counter(CATEGORIES[category_of(back)] for back in sample.strengths[hands, 2].tolist())
        for hands in (mine, kept)
    )
    return Natural(
        name=name,
        hands=len(mine),
        share=len(mine) / sample.num_hands,
        declared=_mean(sample.declare[mine]),
        shown=_mean(sample.shown[mine]),
        kept_back=_mean(is_kept),
        gain=_mean(gains),
        by_back=tuple((name, backs[name], kept_backs[name]) for name in CATEGORIES if backs[name]),
        examples=_examples(sample, kept[np.argsort(-gains)], sample.declare),
    )


def royalties(sample: Sample, rules: Rules) -> Royalties:
    """How often hands that are shown show royalties, and how often if they paid nothing."""
    shows = sample.declarations == SHOW
    strengths = sample.strengths[shows]
    differs = gain = plain = None
    if len(sample.plain_strengths):
        plain = sample.plain_strengths[shows]
        differs = _mean((plain != strengths).any(axis=1))
        gain = _mean(sample.shown[shows] - sample.plain_shown[shows])
    lines = []
    for name, (row, first, last) in _ROYALTY_STRENGTHS.items():
        without = None if plain is None else _share(plain[:, row], first, last)
        shown = _share(strengths[:, row], first, last)
        lines.append(Royalty(name, rules.royalty_table[name], shown, without))
    return Royalties(tuple(lines), differs, gain)


_ROYALTY_STRENGTHS = {
    "front_trips": (0, FRONT_TRIPS, TABLE_SIZES[0] - 1),
    "middle_full": (1, FULL_HOUSE, QUADS - 1),
    "middle_quads": (1, QUADS, STRAIGHT_FLUSH - 1),
    "back_quads": (2, QUADS, STRAIGHT_FLUSH - 1),
    "middle_sf": (1, STRAIGHT_FLUSH, ROYAL_FLUSH),
    "back_sf": (2, STRAIGHT_FLUSH, ROYAL_FLUSH),
}


def _share(strengths: npt.NDArray[np.int16], first: int, last: int) -> float:
    return _mean((strengths >= first) & (strengths <= last))


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _examples(
    sample: Sample, places: npt.NDArray[np.int64], other: FloatArray
) -> tuple[Example, ...]:
    found = []
    for place in places[:NUM_EXAMPLES]:
        rows = arrangement_of(sample.hands[place].tolist(), sample.rows[place].tolist())
        names = tuple(map(describe_row, rows, sample.strengths[place].tolist()))
        found.append(Example(str(rows), names, float(sample.shown[place]), float(other[place])))
    return tuple(found)

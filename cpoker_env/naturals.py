"""The ten 13-card naturals: what they are called, which a hand holds, which is best."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.cards import Card
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.tables import tables_for

TITLES: dict[str, str] = {
    "pure_dragon": "pure dragon",
    "colour_dragon": "black or red dragon",
    "dragon": "dragon",
    "all_one_colour": "all one colour",
    "minor": "minor hand",
    "senior": "senior hand",
    "six_pairs": "six pairs",
    "three_flushes": "three flushes",
    "three_straights": "three straights",
    "no_figure": "no figure",
}
DESCRIPTIONS: dict[str, str] = {
    "pure_dragon": "ace to deuce in one suit",
    "colour_dragon": "ace to deuce in one colour",
    "dragon": "one card of every rank",
    "all_one_colour": "thirteen black or thirteen red cards",
    "minor": "every card from deuce to nine",
    "senior": "every card from ten to ace",
    "six_pairs": "six pairs and an odd card; quads are two pairs, trips a pair and the odd card",
    "three_flushes": "each row of one suit, the front too",
    "three_straights": "each row a straight, the front too (A-2-3 and Q-K-A count)",
    "no_figure": "no jack, queen or king",
}


def natural_bits(
    hands: npt.NDArray[np.int8], rules: Rules
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]:
    """Patterns that hands hold, and the best one each may declare.

    Args:
        hands: (M, 13) int8, each highest first.
        rules: Decide the six-pairs switches and the ladder.

    Returns:
        (M,) int16 bit sets, bit i = PATTERNS[i], in play or not; and (M,) int8 positions in
        PATTERNS of the highest one in play, -1 for none.
    """
    bits = np.empty(len(hands), np.int16)
    best = np.empty(len(hands), np.int8)
    kernels.naturals_into(hands, tables_for(rules).naturals, rules.packed, bits, best)
    return bits, best


def natural_patterns(hand: Sequence[Card], rules: Rules) -> tuple[str, ...]:
    """Names of all patterns a hand of 13 cards holds, in play or not, in the order of PATTERNS."""
    bits, _ = natural_bits(np.array([sorted(hand, reverse=True)], np.int8), rules)
    return tuple(name for i, name in enumerate(PATTERNS) if bits[0] >> i & 1)


def best_natural(hand: Sequence[Card], rules: Rules) -> str | None:
    """The highest natural on the ladder a hand may declare, or None."""
    _, best = natural_bits(np.array([sorted(hand, reverse=True)], np.int8), rules)
    return None if best[0] < 0 else PATTERNS[best[0]]

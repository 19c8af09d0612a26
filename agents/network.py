"""The network: a hand tower and three row towers whose sum a small head turns into units.

Row towers read a strength's features only, so they run once over the strength tables and every
candidate costs a gather and the head. Everything else a seat knows (its 13 cards, whether it is the
bank) enters through the hand tower.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from cpoker_env.rules import F_WHEEL_SECOND_HIGH, NUM_PATTERNS, PATTERNS, Rules
from cpoker_env.tables import (
    CATEGORIES,
    CATEGORY_SIZES,
    CATEGORY_STARTS,
    NUM_FRONT_STRENGTHS,
    NUM_STRENGTHS,
    category_of,
    front_category_of,
    strength_ranks,
)

NUM_HAND_FEATURES = 52 + 13 + 4 + 1
NUM_ROW_FEATURES = len(CATEGORIES) + 3 * 13 + 2


class ValueNetwork(nn.Module):
    """Expected units of candidate arrangements, of surrendering and of declaring a natural.

    Args:
        rules: Decide the order of the straights behind the row features.
        width: Units of every hidden layer.
    """

    def __init__(self, rules: Rules, width: int = 64) -> None:
        super().__init__()
        fronts, fives = row_features(bool(rules.packed[F_WHEEL_SECOND_HIGH]))
        self.front_features: torch.Tensor
        self.five_features: torch.Tensor
        self.register_buffer("front_features", torch.from_numpy(fronts), persistent=False)
        self.register_buffer("five_features", torch.from_numpy(fives), persistent=False)
        self.hand_tower = _tower(NUM_HAND_FEATURES, width)
        self.front_tower = _tower(NUM_ROW_FEATURES, width)
        self.middle_tower = _tower(NUM_ROW_FEATURES, width)
        self.back_tower = _tower(NUM_ROW_FEATURES, width)
        self.head = nn.Sequential(
            nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )
        price = float(-(rules.surrender_cost or 0))
        pays = [
            float(rules.natural_value(name)) if name in rules.naturals_in_play else 0.0
            for name in PATTERNS
        ]
        self.surrender: torch.Tensor
        self.natural: torch.Tensor
        self.natural_weight: torch.Tensor
        self.register_buffer("surrender", torch.tensor([price]))
        self.register_buffer("natural", torch.tensor(pays))
        self.register_buffer("natural_weight", torch.ones(NUM_PATTERNS))

    def forward(
        self, hand_features: torch.Tensor, hand_index: torch.Tensor, strengths: torch.Tensor
    ) -> torch.Tensor:
        """Expected units (M,) float32 of showing candidates.

        Args:
            hand_features: (H, NUM_HAND_FEATURES) float32, see `hand_features`.
            hand_index: (M,) int64, the hand of each candidate.
            strengths: (M, 3) int64 row strengths.
        """
        rows = (
            self.front_tower(self.front_features)[strengths[:, 0]]
            + self.middle_tower(self.five_features)[strengths[:, 1]]
            + self.back_tower(self.five_features)[strengths[:, 2]]
        )
        hidden = self.hand_tower(hand_features)[hand_index] + rows
        units: torch.Tensor = self.head(hidden).squeeze(1)
        return units

    def fit_declarations(
        self,
        surrender: npt.NDArray[np.float32],
        naturals: npt.NDArray[np.int64],
        natural_values: npt.NDArray[np.float32],
    ) -> None:
        """Move the values of surrendering and declaring to what hands of a round would have won.

        They depend on no arrangement, so least squares is a mean: of the round for the surrender,
        and for each pattern, as some are rare, of all rounds with older ones counting less.

        Args:
            surrender: (H,) units each hand would win by surrendering.
            naturals: (K,) patterns of the hands that hold one in play.
            natural_values: (K,) units each of those would win by declaring it.
        """
        if len(surrender):
            self.surrender[0] = float(surrender.mean(dtype=np.float64))
        counts = np.bincount(naturals, minlength=NUM_PATTERNS)
        sums = np.bincount(naturals, weights=natural_values, minlength=NUM_PATTERNS)
        for pattern in np.flatnonzero(counts):
            old = min(float(self.natural_weight[pattern]), 2.0 * counts[pattern])
            total = old * float(self.natural[pattern]) + sums[pattern]
            self.natural[pattern] = total / (old + counts[pattern])
            self.natural_weight[pattern] = old + counts[pattern]


def _tower(features: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width))


def hand_features(
    hands: npt.NDArray[np.int8], bank: npt.NDArray[np.int8]
) -> npt.NDArray[np.float32]:
    """(H, NUM_HAND_FEATURES) float32: 52 card bits, 13 rank counts, 4 suit counts, the bank."""
    size = len(hands)
    features = np.zeros((size, NUM_HAND_FEATURES), np.float32)
    features[np.arange(size)[:, None], hands] = 1.0
    cards = features[:, :52].reshape(size, 13, 4)
    features[:, 52:65] = cards.sum(axis=2) / 2
    features[:, 65:69] = cards.sum(axis=1) / 4
    features[:, 69] = bank
    return features


def row_features(
    second_high: bool,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """(455, F) and (7462, F) float32 features of every front and five-card strength.

    Category one-hot, the three leading ranks one-hot, place on the whole scale and in its category.
    """
    fronts, fives = strength_ranks(second_high)
    found = []
    for ranks, category, size in (
        (fronts, front_category_of, NUM_FRONT_STRENGTHS),
        (fives, category_of, NUM_STRENGTHS),
    ):
        features = np.zeros((size, NUM_ROW_FEATURES), np.float32)
        for strength in range(size):
            kind = category(strength)
            features[strength, kind] = 1.0
            for place in range(3):
                rank = ranks[strength, place]
                features[strength, len(CATEGORIES) + 13 * place + rank] = 1.0
            features[strength, -2] = strength / size
            start, span = CATEGORY_STARTS[kind], CATEGORY_SIZES[kind]
            features[strength, -1] = (strength - start) / span if size == NUM_STRENGTHS else 0.0
        found.append(features)
    return found[0], found[1]

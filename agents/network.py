"""The network: what independent rows are worth, and a correction learned from self-play.

By the rules alone an arrangement is worth something to a seat that knows how often opponents show
each row and takes rows to be won independently of each other and of its own cards. The network
keeps those counts of its own play and adds what they miss: one hidden layer over a part for the
hand and a part for each row. The part of a row is linear in what describes a strength: its category
and ranks, and its chance to win, cut into pieces between knots.

So a candidate costs three look-ups and one pass over the layer, and all of a hand some 5 us.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier
from cpoker_env.row_values import row_values_of
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
from cpoker_env.valuation import TABLE_SIZES, RowValues

NUM_INPUTS = 109
"""What is told of a hand, see `kernels.hand_inputs_into`."""
NUM_KNOTS = 24
NUM_PLAIN_FEATURES = len(CATEGORIES) + 3 * 13 + 2
NUM_ROW_FEATURES = NUM_PLAIN_FEATURES + NUM_KNOTS + 1
HAND_WIDTH = 128
LEVEL_WIDTH = 64


class Outputs(NamedTuple):
    """Units: of candidates, what they are corrected by (H, K); (H,) of surrendering."""

    corrections: torch.Tensor
    surrender: torch.Tensor


class ValueNetwork(nn.Module):
    """Expected units of candidate arrangements, of surrendering and of declaring a natural.

    Args:
        rules: The house rules.
        num_players: Seats at the table.
        width: Units of the hidden layer, a power of two.

    Raises:
        ValueError: Another width.
    """

    def __init__(self, rules: Rules, num_players: int = 2, width: int = 64) -> None:
        super().__init__()
        if width < 1 or width & (width - 1):
            raise ValueError(f"width {width}: give a power of two")
        self.rules = rules
        self.num_players = num_players
        self.sides = (0,) if rules.banker is None else (1, -1)
        self.width = width
        num_sides = len(self.sides)
        self.front_counts: torch.Tensor
        self.middle_counts: torch.Tensor
        self.back_counts: torch.Tensor
        self.ordinary: torch.Tensor
        self.natural: torch.Tensor
        self.natural_weight: torch.Tensor
        for name, size in zip(("front", "middle", "back"), TABLE_SIZES, strict=True):
            self.register_buffer(f"{name}_counts", torch.ones(num_sides, size, dtype=torch.int32))
        self.register_buffer("ordinary", torch.zeros(num_sides))
        pays = [
            float(rules.natural_value(name)) if name in rules.naturals_in_play else 0.0
            for name in PATTERNS
        ]
        self.register_buffer("natural", torch.tensor(pays))
        self.register_buffer("natural_weight", torch.ones(NUM_PATTERNS))
        self.hand_tower = nn.Sequential(
            nn.Linear(NUM_INPUTS, HAND_WIDTH), nn.ReLU(), nn.Linear(HAND_WIDTH, width)
        )
        self.level_tower = nn.Sequential(
            nn.Linear(NUM_INPUTS, LEVEL_WIDTH), nn.ReLU(),
            nn.Linear(LEVEL_WIDTH, LEVEL_WIDTH), nn.ReLU(), nn.Linear(LEVEL_WIDTH, 2),
        )  # fmt: skip
        self.row_parts = nn.ModuleList(nn.Linear(NUM_ROW_FEATURES, width) for _ in range(3))
        self.weights = nn.Linear(width, 1, bias=False)
        self._features: list[torch.Tensor] = []
        self._worth: list[RowValues] = []
        self.read_counts()

    def see(self, counts: Sequence[Sequence[npt.NDArray[np.integer[Any]]]], ordinary: Any) -> None:
        """Take over how often opponents show each strength.

        Args:
            counts: Of front, middle and back, as seen from each side, in the order of `sides`.
            ordinary: Share of opponents that show, by side.
        """
        # Whoever has seen nobody show takes all strengths to be as likely.
        buffers = (self.front_counts, self.middle_counts, self.back_counts)
        for side, rows in enumerate(counts):
            for buffer, row in zip(buffers, rows, strict=True):
                seen = row if row.any() else np.ones_like(row)
                buffer[side] = torch.from_numpy(seen.astype(np.int32))
        self.ordinary[:] = torch.as_tensor(ordinary, dtype=torch.float32)
        self.read_counts()

    def check(self) -> None:
        """Raise unless all weights are numbers and all counts could have been counted.

        Raises:
            ValueError: Says which are not.
        """
        for name, tensor in self.state_dict().items():
            if not tensor.isfinite().all():
                raise ValueError(f"{name} holds what is no number")
            if name.endswith("_counts") and not ((tensor >= 0).all() and tensor.any(dim=1).all()):
                raise ValueError(f"{name} are no counts")

    def read_counts(self) -> None:
        """Work out all that follows from the counts; needed after loading weights."""
        plain = plain_row_features(bool(self.rules.packed[F_WHEEL_SECOND_HIGH]))
        all_counts = (self.front_counts, self.middle_counts, self.back_counts)
        self._features = []
        for row, counts in enumerate(all_counts):
            fixed = plain[min(row, 1)]
            whole = [np.concatenate([fixed, _hats(side)], axis=1) for side in counts.cpu().numpy()]
            self._features.append(torch.from_numpy(np.stack(whole)).to(counts.device))
        self._worth = []
        for place, side in enumerate(self.sides):
            rows: list[npt.NDArray[np.floating[Any]]] = [
                counts[place].cpu().numpy().astype(np.float64) for counts in all_counts
            ]
            self._worth.append(row_values_of(rows, side, self.rules, self.num_players))

    def side_index(self, banks: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
        """(H,) places in `sides` of hands on these sides of the bank."""
        return (banks == -1).astype(np.int64) if len(self.sides) == 2 else np.zeros(len(banks), int)

    def independent(
        self, strengths: npt.NDArray[np.integer[Any]], side_index: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """(M,) units of candidates (M, 3) if rows were won independently."""
        shares = self.ordinary.tolist()
        if len(self.sides) == 1:
            return float(shares[0]) * self._worth[0].of(strengths)
        found = np.empty(len(strengths))
        for place, worth in enumerate(self._worth):
            mine = side_index == place
            found[mine] = shares[place] * worth.of(strengths[mine])
        return found

    def row_tables(self) -> list[torch.Tensor]:
        """Part of each front (S, 455, W), middle and back (S, 7462, W) in the hidden layer."""
        return [part(x) for part, x in zip(self.row_parts, self._features, strict=True)]

    def forward(
        self, inputs: torch.Tensor, side_index: torch.Tensor, strengths: torch.Tensor
    ) -> Outputs:
        """Corrections of K candidates of each of H hands.

        Args:
            inputs: (H, NUM_INPUTS) float32, see `hand_inputs`.
            side_index: (H, 1) int64.
            strengths: (H, K, 3) int64 row strengths.
        """
        hidden = self.hand_tower(inputs)[:, None]
        for row, table in enumerate(self.row_tables()):
            hidden = hidden + table[side_index, strengths[:, :, row]]
        level, surrender = self.level_tower(inputs).T
        return Outputs(self.weights(torch.relu(hidden)).squeeze(2) + level[:, None], surrender)

    def fit_naturals(self, counts: npt.NDArray[np.int64], sums: npt.NDArray[np.float64]) -> None:
        """Move what declaring each pattern is worth to the mean of all rounds, older ones less.

        Args:
            counts: (NUM_PATTERNS,) how many hands of a round hold one in play.
            sums: (NUM_PATTERNS,) units those win by declaring it.
        """
        for pattern in np.flatnonzero(counts):
            old = min(float(self.natural_weight[pattern]), 20.0 * counts[pattern])
            total = old * float(self.natural[pattern]) + sums[pattern]
            self.natural[pattern] = total / (old + counts[pattern])
            self.natural_weight[pattern] = old + counts[pattern]


class Valuer:
    """A network's values as fast as they come: a snapshot that does not follow its training."""

    def __init__(self, network: ValueNetwork) -> None:
        self.network = network
        with torch.inference_mode():
            self.tables = [table.cpu().numpy() for table in network.row_tables()]
        self.weights = network.weights.weight.detach().cpu().numpy()[0].copy()
        self.natural = network.natural.cpu().numpy().astype(np.float64)

    def values(
        self, hands: npt.NDArray[np.int8], banks: npt.NDArray[np.int8], options: Frontier
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(M,) units of showing each option of hands, (H,) of surrendering them."""
        sides = self.network.side_index(banks)
        inputs = hand_inputs(hands, banks).to(self.network.natural.device)
        with torch.inference_mode():
            hidden = self.network.hand_tower(inputs).cpu().numpy()
            level, surrender = self.network.level_tower(inputs).cpu().numpy().T
        found = self.network.independent(options.strengths, sides[options.hand_index])
        fronts, middles, backs = self.tables
        kernels.network_values_into(
            options.starts, options.strengths, sides, hidden, fronts, middles, backs, self.weights,
            np.ascontiguousarray(level), found,
        )  # fmt: skip
        return found, surrender.astype(np.float64)


def hand_inputs(hands: npt.NDArray[np.int8], banks: npt.NDArray[np.int8]) -> torch.Tensor:
    """(H, NUM_INPUTS) float32: cards, counts of ranks and suits, bank; suits in their own order."""
    inputs = np.empty((len(hands), NUM_INPUTS), np.float32)
    kernels.hand_inputs_into(hands, banks, inputs)
    return torch.from_numpy(inputs)


def _hats(counts: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
    """(S, NUM_KNOTS + 1) float32: chances to win, ties as halves, in pieces and as they are."""
    share = counts / counts.sum()
    chance = np.cumsum(share) - share / 2
    pieces = np.clip(1 - np.abs(chance[:, None] * (NUM_KNOTS - 1) - np.arange(NUM_KNOTS)), 0, 1)
    return np.concatenate([pieces, chance[:, None]], axis=1).astype(np.float32)


@lru_cache(maxsize=2)
def plain_row_features(
    second_high: bool,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """(455, F) and (7462, F) float32 of every front and five-card strength, whoever shows them.

    Category one-hot, the three leading ranks one-hot, place on the whole scale and in its category.
    """
    fronts, fives = strength_ranks(second_high)
    found = []
    for ranks, category, size in (
        (fronts, front_category_of, NUM_FRONT_STRENGTHS),
        (fives, category_of, NUM_STRENGTHS),
    ):
        features = np.zeros((size, NUM_PLAIN_FEATURES), np.float32)
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

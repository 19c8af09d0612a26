"""The network that places a card at a time, and what it sees.

A hand's features go through a deep tower once; every step adds to that what lies where, the next
card and the room left, as sums of learned vectors, and a short trunk reads the rest off. Suits are
renamed so that hands that differ by a renaming look alike: no row or pattern tells suits apart.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from cpoker_env.cards import HAND_SIZE
from cpoker_env.policy import DecisionBatch
from cpoker_env.rules import NUM_PATTERNS

NUM_ACTIONS = 5
"""Front, middle, back, surrender, declare."""
_COUNTS = (2, 3, 4)
_SUIT_COUNTS = tuple(range(1, 9))
_STRAIGHTS = np.array([[12, 0, 1, 2, 3], *([low + i for i in range(5)] for low in range(9))])
NUM_FEATURES = 52 + 13 * 3 + 4 * len(_SUIT_COUNTS) + 5 * len(_STRAIGHTS) + NUM_PATTERNS + 2
_ROOMS = 4 * 6 * 6


def rename_suits(hands: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """(B, 13) int64 hands with suits renamed, in the order the cards came.

    The suit of the most cards becomes 0, and of two as long the one of the higher ranks.
    """
    ranks, suits = hands.astype(np.int64) >> 2, hands & 3
    keys = np.zeros((len(hands), 4), np.int64)
    for suit in range(4):
        keys[:, suit] = ((suits == suit) * ((1 << 13) + (1 << ranks))).sum(axis=1)
    new_name = np.argsort(np.argsort(-keys, axis=1, kind="stable"), axis=1)
    renamed: npt.NDArray[np.int64] = 4 * ranks + np.take_along_axis(new_name, suits, axis=1)
    return renamed


def see_hands(batch: DecisionBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Renamed cards (B, 13) and features (B, NUM_FEATURES) float32 of decisions.

    Features: card bits, ranks held twice, three and four times, suits held at least 1..8 times,
    straights in any suits and in each suit, the best natural, the bank, whether one may surrender.
    """
    cards = rename_suits(batch.hands)
    held = np.zeros((len(cards), 52), np.bool_)
    held[np.arange(len(cards))[:, None], cards] = True
    grid = held.reshape(-1, 13, 4)
    of_rank, of_suit = grid.sum(axis=2), grid.sum(axis=1)
    straights = grid[:, _STRAIGHTS].all(axis=2)
    any_suits = (of_rank > 0)[:, _STRAIGHTS].all(axis=2)
    parts = [
        held,
        *(of_rank >= count for count in _COUNTS),
        *(of_suit >= count for count in _SUIT_COUNTS),
        straights.reshape(len(cards), -1),
        any_suits,
        batch.naturals[:, None] == np.arange(NUM_PATTERNS),
        batch.bank[:, None],
        batch.can_surrender[:, None],
    ]
    return cards, np.concatenate(parts, axis=1, dtype=np.float32)


class PlacementNetwork(nn.Module):
    """Preferences for the five actions of a step, and what the step is worth.

    Args:
        width: Units of every step's trunk.
        hand_width: Units of the hand's tower.
    """

    def __init__(self, width: int = 256, hand_width: int = 512) -> None:
        super().__init__()
        self.hand_tower = nn.Sequential(
            nn.Linear(NUM_FEATURES, hand_width), nn.ReLU(),
            nn.Linear(hand_width, hand_width), nn.ReLU(),
            nn.Linear(hand_width, width),
        )  # fmt: skip
        self.placed = nn.Embedding(3 * 52, width)
        self.next_card = nn.Embedding(52, width)
        self.room = nn.Embedding(_ROOMS, width)
        for table in (self.placed, self.next_card, self.room):
            nn.init.normal_(table.weight, std=0.1)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.actor = nn.Linear(width, NUM_ACTIONS)
        self.critic = nn.Linear(width, 1)
        for head in (self.actor, self.critic):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        self.register_buffer("before", torch.ones(HAND_SIZE, HAND_SIZE).tril(-1), persistent=False)
        self.before: torch.Tensor

    def read(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Preferences (..., 5) and values (...) of sums of vectors (..., width)."""
        hidden = torch.relu(hidden)
        hidden = hidden + torch.relu(self.first(hidden))
        hidden = hidden + torch.relu(self.second(hidden))
        return self.actor(hidden), self.critic(hidden).squeeze(-1)

    def step(
        self, laid: torch.Tensor, card: torch.Tensor, room: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Preferences (B, 5) and values (B,) of one step.

        Args:
            laid: (B, width), the hand's tower plus the vectors of what lies.
            card: (B,) int64, the renamed card to place.
            room: (B,) int64, see `room_index`.
        """
        return self.read(laid + self.next_card(card) + self.room(room))

    def lay(self, laid: torch.Tensor, card: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        """The sum (B, width) after a card went to a row, 0..2."""
        return laid + self.placed(52 * row + card)

    def hidden(
        self, features: torch.Tensor, cards: torch.Tensor, rows: torch.Tensor, rooms: torch.Tensor
    ) -> torch.Tensor:
        """Sums (H, G, 13, width) before every step of G ways to place each of H hands, for `read`.

        Args:
            features: (H, NUM_FEATURES) of the hands.
            cards: (H, 13) int64.
            rows: (H, G, 13) int64, 0..2.
            rooms: (H, G, 13) int64.
        """
        placed = self.placed(52 * rows + cards[:, None])
        seen = self.hand_tower(features)[:, None] + self.next_card(cards)
        laid: torch.Tensor = torch.matmul(self.before, placed)
        return laid + seen[:, None] + self.room(rooms)


def room_index(room: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Rooms (..., 3) of front, middle and back as one number each, 0..143."""
    wide = room.astype(np.int64)
    index: npt.NDArray[np.int64] = (wide[..., 0] * 6 + wide[..., 1]) * 6 + wide[..., 2]
    return index

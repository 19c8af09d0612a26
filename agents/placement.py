"""The network that places cards: what it prefers among the ways a hand may be laid.

It scores every choice of a hand, its non-dominated legal arrangements and what it may declare, from
the hand and the rows' strengths. That is a policy for the environment that places a card a step:
the chance of a row is the share that the arrangements with the card in that row have of all that
agree with the cards laid so far, an arrangement counting by the exponential of its score. Suits are
renamed so that hands that differ by a renaming look alike: no row or pattern tells suits apart.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.network import NUM_PLAIN_FEATURES, plain_row_features
from torch import nn

from cpoker_env.arrangements import frontier
from cpoker_env.cards import HAND_SIZE
from cpoker_env.policy import DecisionBatch
from cpoker_env.rules import F_WHEEL_SECOND_HIGH, NUM_PATTERNS, Rules

NUM_ACTIONS = 5
"""Front, middle, back, surrender, declare."""
SHOWS, SURRENDERS, DECLARES = range(3)
_BITS = 3
_FIRST = _BITS * (HAND_SIZE - 1)
_COUNTS = (2, 3, 4)
_SUIT_COUNTS = tuple(range(1, 9))
_STRAIGHTS = np.array([[12, 0, 1, 2, 3], *([low + i for i in range(5)] for low in range(9))])
NUM_FEATURES = 52 + 13 * 3 + 4 * len(_SUIT_COUNTS) + 5 * len(_STRAIGHTS) + NUM_PATTERNS + 2


@dataclass(frozen=True)
class Choices:
    """What H hands may do, ragged: those of hand h are ``starts[h]:starts[h + 1]``, T in all.

    starts: (H + 1,) int64. features: (H, NUM_FEATURES) float32. strengths: (T, 3) int64, zeros for
    declarations. kinds: (T,) int64, SHOWS, SURRENDERS or DECLARES. codes: (T,) int64, the actions
    of the 13 steps in three bits each, the first highest, zeros after a declaration.
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    strengths: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.features)

    def keep(self, where: npt.NDArray[np.bool_]) -> "Choices":
        """Without some of the choices; a hand must keep one."""
        starts = np.concatenate([[0], np.cumsum(where)])[self.starts]
        return Choices(
            starts, self.features, self.strengths[where], self.kinds[where], self.codes[where]
        )

    @property
    def hand_of(self) -> npt.NDArray[np.int64]:
        """(T,) int64: the hand of each choice."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


def list_choices(batch: DecisionBatch) -> Choices:
    """All choices of B decisions: arrangements first, then what may be declared."""
    options = frontier(batch.hands, batch.rules)
    offered = np.stack([batch.can_surrender, batch.naturals >= 0], axis=1)
    added = offered.sum(axis=1)
    starts = options.starts + np.concatenate([[0], np.cumsum(added)])
    total, found = int(starts[-1]), len(options.rows)
    places = np.arange(found) + (starts[:-1] - options.starts[:-1])[options.hand_index]
    strengths, kinds = np.zeros((total, 3), np.int64), np.zeros(total, np.int64)
    codes = np.zeros(total, np.int64)
    strengths[places] = options.strengths
    codes[places] = encode(options.rows)
    which, declared = np.nonzero(offered)
    at = starts[which + 1] - added[which] + np.where(declared == 1, offered[which, 0], 0)
    kinds[at] = declared + 1
    codes[at] = (declared + 3) << _FIRST
    return Choices(starts, see_hands(batch), strengths, kinds, codes)


def encode(actions: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """(M,) codes of the actions (M, 13) of whole hands."""
    codes = np.zeros(len(actions), np.int64)
    for step in range(HAND_SIZE):
        codes |= actions[:, step].astype(np.int64) << (_FIRST - _BITS * step)
    return codes


def decode(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(M, 13) actions of codes (M,)."""
    actions: npt.NDArray[np.int64] = codes[:, None] >> (_FIRST - _BITS * np.arange(HAND_SIZE)) & 7
    return actions


SAME = HAND_SIZE * NUM_ACTIONS
"""Branch of a choice that is the very one chosen."""


def branches(codes: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where codes leave others: ``step * NUM_ACTIONS + action`` of the first difference, or SAME.

    The action is that of `codes`; the two have or broadcast to one shape.
    """
    differ = codes ^ chosen
    # Below 2**53 a float knows its highest bit exactly.
    highest = np.frexp(differ.astype(np.float64))[1] - 1
    step = HAND_SIZE - 1 - highest // _BITS
    action = codes >> np.maximum(_FIRST - _BITS * step, 0) & 7
    return np.where(differ == 0, SAME, step * NUM_ACTIONS + action)


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


def see_hands(batch: DecisionBatch) -> npt.NDArray[np.float32]:
    """Features (B, NUM_FEATURES) of the hands of decisions.

    They are card bits, ranks held twice, three and four times, suits held at least 1..8 times,
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
    features: npt.NDArray[np.float32] = np.concatenate(parts, axis=1, dtype=np.float32)
    return features


class PlacementNetwork(nn.Module):
    """Scores of choices, in units, and what a critic expects of them.

    Args:
        rules: Decide the order of the straights behind the row features.
        width: Units of every hidden layer but the hand's.
        hand_width: Units of the hand's hidden layer.
    """

    def __init__(self, rules: Rules, width: int = 64, hand_width: int = 256) -> None:
        super().__init__()
        self.rules = rules
        fronts, fives = plain_row_features(bool(rules.packed[F_WHEEL_SECOND_HIGH]))
        self.front_features: torch.Tensor
        self.five_features: torch.Tensor
        self.register_buffer("front_features", torch.from_numpy(fronts), persistent=False)
        self.register_buffer("five_features", torch.from_numpy(fives), persistent=False)
        self.hand_tower = _tower(NUM_FEATURES, hand_width, width)
        self.front_tower = _tower(NUM_PLAIN_FEATURES, width, width)
        self.middle_tower = _tower(NUM_PLAIN_FEATURES, width, width)
        self.back_tower = _tower(NUM_PLAIN_FEATURES, width, width)
        self.kind = nn.Embedding(3, width)
        self.hidden = nn.Linear(width, width)
        self.heads = nn.Linear(width, 2)
        nn.init.zeros_(self.heads.weight)
        nn.init.zeros_(self.heads.bias)

    def row_vectors(self) -> tuple[torch.Tensor, ...]:
        """Vectors (S, width) of every front, middle and back, to score many choices by."""
        fives = self.five_features
        return (
            self.front_tower(self.front_features), self.middle_tower(fives), self.back_tower(fives)
        )  # fmt: skip

    def forward(
        self, features: torch.Tensor, hand_of: torch.Tensor, strengths: torch.Tensor,
        kinds: torch.Tensor, rows: tuple[torch.Tensor, ...] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Scores and expectations, (T,) each.

        Args:
            features: (H, NUM_FEATURES) float32 of the hands.
            hand_of: (T,) int64, the hand of each choice.
            strengths, kinds: As `Choices` has them.
            rows: What `row_vectors` gave; None works out what these choices need.
        """
        places = list(strengths.unbind(1))
        if rows is None:
            towers = (self.front_tower, self.middle_tower, self.back_tower)
            known = (self.front_features, self.five_features, self.five_features)
            found = []
            for row, (tower, each) in enumerate(zip(towers, known, strict=True)):
                used, places[row] = torch.unique(places[row], return_inverse=True)
                found.append(tower(each[used]))
            rows = tuple(found)
        parts = (*rows, self.kind.weight, self.hand_tower(features))
        first = np.cumsum([0, *(len(part) for part in parts[:-1])]).tolist()
        joined = torch.stack([*places, kinds, hand_of], dim=1)
        joined = joined + torch.tensor(first, device=joined.device)
        seen = nn.functional.embedding_bag(joined, torch.cat(parts), mode="sum")
        scores, expected = self.heads(torch.relu(self.hidden(torch.relu(seen)))).unbind(1)
        return scores, expected


def _tower(features: int, hidden: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, width))

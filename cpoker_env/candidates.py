"""The form that picks from a list of good arrangements."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import ConfigError
from cpoker_env.form import (
    NO_CANDIDATE,
    Array,
    Moves,
    declaration_problems,
    draw_masked,
    read_integers,
)
from cpoker_env.row_values import row_values, top_arrangements
from cpoker_env.rules import Rules
from cpoker_env.scoring import SHOW
from cpoker_env.table import Deals
from cpoker_env.valuation import TABLE_SIZES


class Candidates:
    """One step: pick one of up to K good arrangements, or surrender, or declare.

    The candidates are the K most valuable of the hand's non-dominated legal arrangements, most
    valuable first, by how often their rows win against hands played the same way
    (`cpoker_env.row_values`); a hand has 123 such arrangements on average. Candidate 0 is what the
    policy `balanced` shows.

    ## Action Space
    `Discrete(K + 2)`: 0..K-1 the candidate to show, K surrender, K + 1 declare the best natural.

    The mask leaves out candidates the hand does not have and declarations that are not available;
    choosing one of those shows candidate 0.

    ## Observation Space
    Adds

    | key | shape | type | range | meaning |
    |---|---|---|---|---|
    | `candidates` | (num_candidates, 10) | float32 | see below | features of each candidate |
    | `candidate_rows` | (num_candidates, 13) | int8 | 0..2 | row of each card of `cards` |
    | `candidate_mask` | (num_candidates,) | int8 | 0..1 | which candidates exist |

    Features: strength of front, middle, back as a share of the strongest (0..1), chance of each to
    win and of each to lose against one opponent (0..1), expected units against one opponent. In a
    pool: the chance of each row to beat all others, 0, and units of the whole table. Candidates
    that do not exist are all 0.
    """

    name: ClassVar[str] = "candidates"
    num_steps: ClassVar[int] = 1
    options: ClassVar[tuple[str, ...]] = ("num_candidates",)

    def __init__(self, rules: Rules, num_players: int, size: int, num_candidates: int = 32) -> None:
        check_num_candidates(num_candidates)
        self.num_players = num_players
        self.size = size
        self.num_candidates = num_candidates
        self.action_space: spaces.Space[Any] = spaces.Discrete(num_candidates + 2)
        self._features = np.zeros((size, num_candidates, 10), np.float32)
        self._rows = np.zeros((size, num_candidates, HAND_SIZE), np.int8)
        self._exists = np.zeros((size, num_candidates), np.int8)
        self._bound = np.float32(most_units(rules, num_players))
        self._everyone = np.arange(size)

    def observation_parts(self) -> dict[str, spaces.Space[Any]]:
        low = np.zeros((self.num_candidates, 10), np.float32)
        high = np.ones((self.num_candidates, 10), np.float32)
        low[:, 9], high[:, 9] = -self._bound, self._bound
        return {
            "candidates": spaces.Box(low, high),
            "candidate_rows": spaces.Box(0, 2, (self.num_candidates, HAND_SIZE), np.int8),
            "candidate_mask": spaces.MultiBinary(self.num_candidates),
        }

    def begin(
        self, hands: npt.NDArray[np.int8], where: npt.NDArray[np.bool_] | None, rules: Rules
    ) -> None:
        at = slice(None) if where is None else where
        listed = list_candidates(
            np.ascontiguousarray(hands[at]), rules, self.num_players, 0, self.num_candidates
        )
        self._features[at], self._rows[at], self._exists[at] = listed

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        return draw_masked(self.masks(available), rng)

    def state(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""

    def observe(self) -> dict[str, Array]:
        return {
            "candidates": self._features.copy(),
            "candidate_rows": self._rows.copy(),
            "candidate_mask": self._exists.copy(),
        }

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """(B, K + 2) int8."""
        return np.concatenate([self._exists, available[:, 1:]], axis=1)

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """(K + 2,) int8."""
        return self.masks(available)[0]

    def masks_of_each(self, available: npt.NDArray[np.int8]) -> list[Any]:
        """(K + 2,) int8 of each learner."""
        return list(self.masks(available))

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(K + 2,) int8."""
        return self.mask_of_one(available)

    def read(self, actions: Any) -> Array:
        return read_integers("action", actions, (self.size,), self.num_candidates + 1)

    def read_one(self, action: Any) -> Array:
        return self.read([action])

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        problems = declaration_problems(self._declarations(read), available)
        is_missing = self._exists[self._everyone, self._picked(read)] == 0
        problems[is_missing & (read < self.num_candidates)] = NO_CANDIDATE
        return problems

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        picked = np.where(problems, 0, self._picked(read))
        declarations = np.where(problems, SHOW, self._declarations(read))
        return Moves(active, declarations, self._rows[self._everyone, picked])

    def _picked(self, read: Array) -> Array:
        return np.where(read < self.num_candidates, read, 0)

    def _declarations(self, read: Array) -> Array:
        declarations: Array = np.maximum(read - self.num_candidates + 1, SHOW)
        return declarations


def check_num_candidates(num_candidates: Any) -> None:
    """Raise ConfigError unless so many candidates can be listed."""
    is_count = isinstance(num_candidates, int) and not isinstance(num_candidates, bool)
    if not is_count or not 1 <= num_candidates <= 1024:
        raise ConfigError(f"num_candidates {num_candidates!r}: give a whole number 1..1024")


class Listed(NamedTuple):
    """Candidates of H hands; places beyond those a hand has are 0.

    features: (H, K, 10) float32, as in the table of `Candidates`.
    rows: (H, K, 13) int8, the row of each card, highest card first.
    exists: (H, K) int8, which there are.
    """

    features: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int8]
    exists: npt.NDArray[np.int8]


def list_candidates(
    hands: npt.NDArray[np.int8], rules: Rules, num_players: int, seat: int, k: int
) -> Listed:
    """The k most valuable non-dominated arrangements of hands that one seat holds.

    Args:
        hands: (H, 13), each highest first.
        rules: The house rules.
        num_players: Seats at the table.
        seat: Whose hands they are; matters with a bank.
        k: Most candidates of a hand.
    """
    bound = np.float32(most_units(rules, num_players))
    side = 0 if rules.banker is None else 1 if rules.banker == seat else -1
    bank = np.full(len(hands), side, np.int8)
    rows, strengths, values, counts = top_arrangements(hands, rules, num_players, bank, k)
    exists = (np.arange(k) < counts[:, None]).astype(np.int8)
    tables = row_values(rules, num_players)[side]
    features = np.zeros((len(hands), k, 10), np.float32)
    for row, num_strengths in enumerate(TABLE_SIZES):
        strength = strengths[:, :, row]
        features[:, :, row] = strength / (num_strengths - 1)
        if tables.wins is not None:
            features[:, :, 3 + row] = tables.wins[row][strength]
        if tables.losses is not None:
            features[:, :, 6 + row] = tables.losses[row][strength]
    features[:, :, 9] = values
    features[exists == 0] = 0
    np.clip(features[:, :, :9], 0, 1, out=features[:, :, :9])
    np.clip(features[:, :, 9], -bound, bound, out=features[:, :, 9])
    return Listed(features, rows, exists)


def most_units(rules: Rules, num_players: int) -> float:
    """A bound on the units one row-by-row pairing, or a pool of `num_players`, can move."""
    royalties = sum(rules.royalty_table.values())
    return float((3 + royalties) * 3 + rules.scoop_extra + rules.overall_point + 6 * num_players)

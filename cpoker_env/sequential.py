"""The form that places a card a step."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.arrangements import ROW_SIZES
from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import ConfigError
from cpoker_env.form import (
    ACTION_FOULS,
    NO_NATURAL,
    NO_SURRENDER,
    ROW_FULL,
    Array,
    Moves,
    draw_masked,
    read_integers,
)
from cpoker_env.rules import Rules
from cpoker_env.table import Deals
from cpoker_env.tables import tables_for

NOT_PLACED = 3
ROW_ROOM = np.array(ROW_SIZES, np.int8)
_BITS = np.array([NO_SURRENDER, NO_NATURAL, ROW_FULL, ACTION_FOULS], np.int8)
"""What may be wrong with an action, in the order `kernels.step_problems_into` takes."""


class Sequential:
    """Thirteen steps: each places the next card, highest first; or one step, a declaration.

    ## Action Space
    `Discrete(5)`: 0 front, 1 middle, 2 back for the next card; 3 surrender and 4 declare the best
    natural, at the first step only.

    The mask leaves out rows that are full and declarations that are not available. With
    `mask="legal"` it also leaves out every row after which only fouls can be reached, so that a
    learner that keeps to it never fouls. A card put into a full row lies there all the same and
    the hand is a foul; a declaration that is not available puts the card into the first row with
    room. With `strict=True` both raise instead; rows filled out of order are a foul even then, as
    the last card has but one row to go to.

    ## Observation Space
    Adds

    | key | shape | type | range | meaning |
    |---|---|---|---|---|
    | `rows` | (13,) | int8 | 0..3 | row of each card of `cards`, 3 for not placed yet |
    | `room` | (3,) | int8 | 0..5 | cards each row still takes |
    | `next_card` | (52,) | int8 | 0..1 | the card to place as one bit; all 0 at the end |

    Rewards are 0 until the hand is complete.
    """

    name: ClassVar[str] = "sequential"
    num_steps: ClassVar[int] = HAND_SIZE
    options: ClassVar[tuple[str, ...]] = ("mask",)

    def __init__(self, rules: Rules, num_players: int, size: int, mask: str = "capacity") -> None:
        if not isinstance(mask, str) or mask not in ("capacity", "legal"):
            raise ConfigError(f"mask {mask!r}: choose 'capacity' or 'legal'")
        self.rules = rules
        self.size = size
        self.mask = mask
        self.action_space: spaces.Space[Any] = spaces.Discrete(5)
        self._hands = np.zeros((size, HAND_SIZE), np.int8)
        self._rows = np.full((size, HAND_SIZE), NOT_PLACED, np.int8)
        self._at = np.zeros(size, np.int64)
        self._room = np.tile(ROW_ROOM, (size, 1))
        self._open_rows: npt.NDArray[np.int8] | None = None
        self._any_rows = np.ones((size, 3), np.int8)

    def observation_parts(self) -> dict[str, spaces.Space[Any]]:
        return {
            "rows": spaces.Box(0, NOT_PLACED, (HAND_SIZE,), np.int8),
            "room": spaces.Box(0, 5, (3,), np.int8),
            "next_card": spaces.MultiBinary(52),
        }

    def begin(
        self, hands: npt.NDArray[np.int8], where: npt.NDArray[np.bool_] | None, rules: Rules
    ) -> None:
        at = slice(None) if where is None else where
        self._hands[at] = hands[at]
        self._rows[at] = NOT_PLACED
        self._at[at] = 0
        self._room[at] = ROW_ROOM
        self._open_rows = None

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        return draw_masked(self.masks(available), rng)

    def state(self) -> Any:
        return self._rows.copy(), self._at.copy(), self._room.copy()

    def restore(self, state: Any) -> None:
        self._rows, self._at, self._room = state
        self._open_rows = None

    def observe(self) -> dict[str, Array]:
        next_card = np.empty((self.size, 52), np.int8)
        kernels.see_next_into(self._hands, self._at, next_card)
        return {
            "rows": self._rows.copy(),
            "room": np.maximum(self._room, 0),
            "next_card": next_card,
        }

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """(B, 5) int8, never all zero: the rows are open again where nothing else is left."""
        if self._open_rows is None:
            self._open_rows = self._find_open_rows()
        masks = np.empty((self.size, 5), np.int8)
        kernels.step_masks_into(self._open_rows, available, self._at, masks)
        return masks

    def _find_open_rows(self) -> npt.NDArray[np.int8]:
        reachable = self._any_rows
        if self.mask == "legal":
            reachable = np.empty_like(self._room)
            tables = tables_for(self.rules)
            kernels.reachable_rows_into(
                self._hands, self._rows, self._at, tables.rows, tables.splits,
                self.rules.packed, reachable,
            )  # fmt: skip
        open_rows = np.empty_like(self._room)
        kernels.open_rows_into(self._room, reachable, open_rows)
        return open_rows

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """(5,) int8."""
        return self.masks(available)[0]

    def masks_of_each(self, available: npt.NDArray[np.int8]) -> list[Any]:
        """(5,) int8 of each learner."""
        return list(self.masks(available))

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(5,) int8."""
        return self.mask_of_one(available)

    def read(self, actions: Any) -> Array:
        return read_integers("action", actions, (self.size,), 4)

    def read_one(self, action: Any) -> Array:
        return self.read([action])

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        problems = np.empty(self.size, np.int8)
        actions = read.astype(np.int8)
        kernels.step_problems_into(actions, self.masks(available), self._room, _BITS, problems)
        return problems

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        finished = np.empty(self.size, np.bool_)
        declarations = np.empty(self.size, np.int8)
        shown = np.empty((self.size, HAND_SIZE), np.int8)
        kernels.place_into(
            read.astype(np.int8), problems, active, self._rows, self._room, self._at,
            finished, declarations, shown,
        )  # fmt: skip
        self._open_rows = None
        return Moves(finished, declarations, shown)

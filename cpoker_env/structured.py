"""The forms that say everything in one step: a declaration and a row for each card."""

from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import ActionError
from cpoker_env.form import (
    Array,
    Moves,
    declaration_problems,
    read_integers,
)
from cpoker_env.rules import Rules
from cpoker_env.scoring import SHOW
from cpoker_env.table import Deals
from cpoker_env.tables import tables_for

_ANY_ROWS = np.ones((HAND_SIZE, 3), np.int8)
_ANY_ROWS.setflags(write=False)


@cache
def _mask_parts(*said: int) -> tuple[Array, ...]:
    """The mask of a declaration, then of each card's row: read-only, as all hands share them."""
    masks = np.ones((1 + HAND_SIZE, 3), np.int8)
    masks[0] = said
    masks.flags.writeable = False
    return tuple(masks)


class Structured:
    """One step: a declaration, and a row for each card.

    ## Action Space
    `Dict`:

    | key | space | meaning |
    |---|---|---|
    | `declaration` | `Discrete(3)` | 0 show the rows, 1 surrender, 2 declare the best natural |
    | `placement` | `MultiDiscrete([3] * 13)` | row of the i-th card: 0 front, 1 middle, 2 back |

    The mask says which declarations are available; a placement cannot say "five cards a row" card
    by card, so its part is all ones.
    """

    name: ClassVar[str] = "structured"
    num_steps: ClassVar[int] = 1
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, rules: Rules, num_players: int, size: int) -> None:
        self.rules = rules
        self.size = size
        self.action_space: spaces.Space[Any] = spaces.Dict(
            {
                "declaration": spaces.Discrete(3),
                "placement": spaces.MultiDiscrete(np.full(HAND_SIZE, 3)),
            }
        )

    def observation_parts(self) -> dict[str, spaces.Space[Any]]:
        return {}

    def begin(
        self, hands: npt.NDArray[np.int8], where: npt.NDArray[np.bool_] | None, rules: Rules
    ) -> None:
        """Nothing to keep: one step is the whole hand."""

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random actions that never foul: arrangements drawn uniformly, no declarations."""
        hands = np.ascontiguousarray(deals.hands[:, 0])
        rows = np.empty((self.size, HAND_SIZE), np.int8)
        tables = tables_for(self.rules)
        kernels.uniform_into(
            hands, rng.integers(2**64, size=self.size, dtype=np.uint64), deals.indices,
            np.zeros(self.size, np.int64), tables.rows, tables.splits, self.rules.packed, rows,
        )  # fmt: skip
        return {"declaration": np.zeros(self.size, np.int8), "placement": rows}

    def state(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""

    def observe(self) -> dict[str, Array]:
        return {}

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """int8 masks (B, ...) shaped like the action space; `available` (B, 3) declarations."""
        any_rows = np.broadcast_to(_ANY_ROWS, (len(available), HAND_SIZE, 3))
        return {"declaration": available, "placement": any_rows}

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        return {"declaration": available[0], "placement": tuple(_ANY_ROWS.copy())}

    def masks_of_each(self, available: npt.NDArray[np.int8]) -> list[Any]:
        """A dict of each learner; its arrays are shared and read-only."""
        masks = [_mask_parts(*said) for said in available.tolist()]
        return [{"declaration": mask[0], "placement": mask[1:]} for mask in masks]

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        return self.mask_of_one(available)

    def read(self, actions: Any) -> tuple[Array, Array]:
        """Checked declarations (B,) and rows (B, 13).

        Raises:
            ActionError: Another shape or type, or a value out of its range.
        """
        try:
            declarations, rows = actions["declaration"], actions["placement"]
        except (KeyError, TypeError, IndexError, ValueError):
            raise ActionError(
                f"action {actions!r}: give {{'declaration': 0..2, 'placement': 13 rows}}"
            ) from None
        return (
            read_integers("declaration", declarations, (self.size,), 2),
            read_integers("placement", rows, (self.size, HAND_SIZE), 2),
        )

    def read_one(self, action: Any) -> tuple[Array, Array]:
        try:
            batch = {key: np.asarray(action[key])[None] for key in ("declaration", "placement")}
        except (KeyError, TypeError, IndexError, ValueError):
            batch = action
        return self.read(batch)

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        declarations, _ = read
        return declaration_problems(declarations, available)

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        declarations, rows = read
        if np.count_nonzero(problems):
            declarations = np.where(problems, SHOW, declarations)
        return Moves(active, declarations, rows)


class Flat(Structured):
    """One step: `Structured` as a single vector.

    ## Action Space
    `MultiDiscrete([3] * 14)`: the declaration, then the row of each card.

    The mask is a tuple of 14 arrays; `action_masks()` gives them end to end, (42,).
    """

    name: ClassVar[str] = "flat"

    def __init__(self, rules: Rules, num_players: int, size: int) -> None:
        super().__init__(rules, num_players, size)
        self.action_space = spaces.MultiDiscrete(np.full(1 + HAND_SIZE, 3))

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """(B, 14, 3) int8."""
        masks = np.ones((len(available), 1 + HAND_SIZE, 3), np.int8)
        masks[:, 0] = available
        return masks

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """14 arrays of three."""
        return (available[0], *_ANY_ROWS.copy())

    def masks_of_each(self, available: npt.NDArray[np.int8]) -> list[Any]:
        """14 arrays of three for each learner, shared and read-only."""
        return [_mask_parts(*said) for said in available.tolist()]

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(42,) int8, a new array."""
        return self.masks(available)[0].reshape(-1)

    def read(self, actions: Any) -> tuple[Array, Array]:
        """Checked declarations (B,) and rows (B, 13) of actions (B, 14)."""
        read = read_integers("action", actions, (self.size, 1 + HAND_SIZE), 2)
        return read[:, 0], read[:, 1:]

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random actions that never foul: arrangements drawn uniformly, no declarations."""
        drawn = super().draw(deals, available, rng)
        return np.concatenate([drawn["declaration"][:, None], drawn["placement"]], axis=1)

    def read_one(self, action: Any) -> tuple[Array, Array]:
        """As `read`, of a single action (14,)."""
        return self.read([action])

"""What a form of the action is: how B learners say what they do.

A form turns a learner's actions into a declaration and the rows of its cards, and adds to the
observation what choosing needs. All forms lead to the same arrangements and the same scoring.
"""

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.errors import ActionError
from cpoker_env.policy import is_within
from cpoker_env.rules import Rules
from cpoker_env.table import Deals

Array = npt.NDArray[Any]
NO_SURRENDER, NO_NATURAL, ROW_FULL, NO_CANDIDATE, ACTION_FOULS = 1, 2, 4, 8, 16
"""Bits of what is wrong with an action."""


class Moves(NamedTuple):
    """What B learners did.

    finished: (B,) bool, whose hand is complete, by its last card or by a declaration.
    declarations: (B,) integers, 0 show, 1 surrender, 2 natural.
    rows: (B, 13) integers, the row of each card; meaningful where finished.
    """

    finished: npt.NDArray[np.bool_]
    declarations: Array
    rows: Array


class Form(Protocol):
    """The form of the actions of B learners, made by ``form(rules, num_players, size, **options)``.

    name: in `gym.make(..., form=name)`. num_steps: at most so many make a hand.
    options: names of the arguments beyond the first three. action_space: of one learner.
    """

    name: ClassVar[str]
    num_steps: ClassVar[int]
    options: ClassVar[tuple[str, ...]]
    action_space: spaces.Space[Any]

    def observation_parts(self) -> dict[str, spaces.Space[Any]]:
        """Spaces this form adds to the observation."""

    def begin(
        self, hands: npt.NDArray[np.int8], where: npt.NDArray[np.bool_] | None, rules: Rules
    ) -> None:
        """Start on new hands (B, 13), all of them or those of the (B,) mask `where`."""

    def observe(self) -> dict[str, Array]:
        """What this form adds to the observations, by key, (B, ...) each; new arrays."""

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """int8 masks (B, ...) shaped like the action space, never all zero.

        Args:
            available: (B, 3) int8, which declarations each learner has.
        """

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """The mask of a single learner, as `action_space.sample(mask=...)` takes it; new arrays."""

    def masks_of_each(self, available: npt.NDArray[np.int8]) -> list[Any]:
        """As `mask_of_one`, of every learner; the arrays may be shared, read-only ones."""

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """The mask of a single learner as sb3-contrib takes it."""

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random legal actions of all learners."""

    def read(self, actions: Any) -> Any:
        """Checked actions of all learners.

        Raises:
            ActionError: Another shape or type, or a value out of its range.
        """

    def read_one(self, action: Any) -> Any:
        """As `read`, of a single learner's action."""

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """(B,) int8 bits of what the mask forbids about actions that were read."""

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        """Carry actions that were read out for the learners in `active` (B,) bool."""

    def state(self) -> Any:
        """What `restore` takes back: hands in the middle of several steps."""

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""


def draw_masked(masks: Array, rng: np.random.Generator) -> Array:
    """(B,) one place of each line of masks (B, A), uniformly among its ones."""
    drawn: Array = (rng.random(masks.shape) * masks).argmax(axis=1)
    return drawn


def declaration_problems(
    declarations: Array, available: npt.NDArray[np.int8]
) -> npt.NDArray[np.int8]:
    """(B,) int8 bit of each declaration that is not available, else 0."""
    problems = np.zeros(len(available), np.int8)
    if np.count_nonzero(declarations):
        said = declarations.astype(np.int8)
        kernels.missing_into(said, available, NO_SURRENDER, NO_NATURAL, problems)
    return problems


def read_integers(what: str, given: Any, shape: tuple[int, ...], high: int) -> Array:
    """int64 values 0..high of a shape whose first axis is the learners'.

    Raises:
        ActionError: Another shape or type, or a value out of range.
    """
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != shape or values.dtype.kind not in "iu":
        each = " x ".join(map(str, shape[1:])) or "one"
        raise ActionError(
            f"{what} {given!r}: give integers 0..{high}, {each} for each of {shape[0]} learners"
        )
    if not is_within(values, high):
        raise ActionError(f"{what} {given!r}: the range is 0..{high}")
    return values.astype(np.int64, copy=False)

"""The forms an action can take, each for B learners at once.

A form turns a learner's actions into a declaration and the rows of its cards, and adds to the
observation what choosing needs. All forms lead to the same arrangements and the same scoring:
`structured` and `flat` say everything in one step, `sequential` places a card a step, `candidates`
picks from a list of good arrangements.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.policy import is_within
from cpoker_env.row_values import row_values, top_arrangements
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.table import Deals
from cpoker_env.tables import NUM_FRONT_STRENGTHS, NUM_STRENGTHS, tables_for

Array = npt.NDArray[Any]
NO_SURRENDER, NO_NATURAL, ROW_FULL, NO_CANDIDATE, FOUL = 1, 2, 4, 8, 16
"""Bits of what is wrong with an action."""
NOT_PLACED = 3
ROW_ROOM = np.array([3, 5, 5], np.int8)
_BACK_FIRST = np.repeat(np.array([2, 1, 0], np.int8), [5, 5, 3])
_ANY_ROWS = np.ones((HAND_SIZE, 3), np.int8)
_ANY_ROWS.setflags(write=False)


class Moves(NamedTuple):
    """What B learners did.

    finished: (B,) bool, whose hand is complete, by its last card or by a declaration.
    declarations: (B,) integers, 0 show, 1 surrender, 2 natural.
    rows: (B, 13) integers, the row of each card; meaningful where finished.
    """

    finished: npt.NDArray[np.bool_]
    declarations: Array
    rows: Array


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

    name = "structured"
    num_steps: ClassVar[int] = 1

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
        """Spaces this form adds to the observation."""
        return {}

    def begin(self, deals: Deals, where: npt.NDArray[np.bool_] | None, rules: Rules) -> None:
        """Start on new deals, all of them or those of the (B,) mask `where`."""
        self.rules = rules

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
        """What `restore` takes back: a hand in the middle of several steps."""
        return None

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""

    def observe(self) -> dict[str, Array]:
        """What this form adds to the observations, by key, (B, ...) each; new arrays."""
        return {}

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """int8 masks (B, ...) shaped like the action space; `available` (B, 3) declarations."""
        any_rows = np.broadcast_to(_ANY_ROWS, (len(available), HAND_SIZE, 3))
        return {"declaration": available, "placement": any_rows}

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """The mask of a single learner, in the form `action_space.sample(mask=...)` takes."""
        return {"declaration": available[0], "placement": tuple(_ANY_ROWS.copy())}

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """The mask of a single learner as sb3-contrib takes it."""
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
            _integers("declaration", declarations, (self.size,), 2),
            _integers("placement", rows, (self.size, HAND_SIZE), 2),
        )

    def read_one(self, action: Any) -> tuple[Array, Array]:
        """As `read`, of a single learner's action."""
        try:
            batch = {key: np.asarray(action[key])[None] for key in ("declaration", "placement")}
        except (KeyError, TypeError, IndexError, ValueError):
            batch = action
        return self.read(batch)

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """(B,) int8 bits of what the mask forbids about actions that were read."""
        declarations, _ = read
        return _declaration_problems(declarations, available)

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        """Carry the actions out for the learners in `active` (B,) bool."""
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

    name = "flat"

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

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(42,) int8."""
        return np.concatenate(self.mask_of_one(available))

    def read(self, actions: Any) -> tuple[Array, Array]:
        """Checked declarations (B,) and rows (B, 13) of actions (B, 14)."""
        read = _integers("action", actions, (self.size, 1 + HAND_SIZE), 2)
        return read[:, 0], read[:, 1:]

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random actions that never foul: arrangements drawn uniformly, no declarations."""
        drawn = super().draw(deals, available, rng)
        return np.concatenate([drawn["declaration"][:, None], drawn["placement"]], axis=1)

    def read_one(self, action: Any) -> tuple[Array, Array]:
        """As `read`, of a single action (14,)."""
        return self.read([action])


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

    name = "sequential"
    num_steps: ClassVar[int] = HAND_SIZE

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
        self._everyone = np.arange(size)

    def observation_parts(self) -> dict[str, spaces.Space[Any]]:
        """Spaces this form adds to the observation."""
        return {
            "rows": spaces.Box(0, NOT_PLACED, (HAND_SIZE,), np.int8),
            "room": spaces.Box(0, 5, (3,), np.int8),
            "next_card": spaces.MultiBinary(52),
        }

    def begin(self, deals: Deals, where: npt.NDArray[np.bool_] | None, rules: Rules) -> None:
        """Start on new deals, all of them or those of the (B,) mask `where`."""
        at = slice(None) if where is None else where
        self.rules = rules
        self._hands[at] = deals.hands[at, 0]
        self._rows[at] = NOT_PLACED
        self._at[at] = 0

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random actions among those the mask leaves."""
        return _draw_masked(self.masks(available), rng)

    def state(self) -> Any:
        """What `restore` takes back: a hand in the middle of several steps."""
        return self._rows.copy(), self._at.copy()

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""
        self._rows, self._at = state

    def observe(self) -> dict[str, Array]:
        """What this form adds to the observations, by key, (B, ...) each; new arrays."""
        next_card = np.zeros((self.size, 52), np.int8)
        going = self._at < HAND_SIZE
        next_card[self._everyone, self._next_cards()] = going
        return {
            "rows": self._rows.copy(),
            "room": np.maximum(self._room(), 0),
            "next_card": next_card,
        }

    def masks(self, available: npt.NDArray[np.int8]) -> Any:
        """(B, 5) int8, never all zero: the rows are open again where nothing else is left."""
        has_room = (self._room() > 0).astype(np.int8)
        open_rows = has_room
        if self.mask == "legal":
            open_rows = np.empty_like(has_room)
            tables = tables_for(self.rules)
            kernels.reachable_rows_into(
                self._hands, self._rows, self._at, tables.rows, tables.splits,
                self.rules.packed, open_rows,
            )  # fmt: skip
            lost = ~open_rows.any(axis=1)
            open_rows[lost] = has_room[lost]
        open_rows[~open_rows.any(axis=1)] = 1
        declares = available[:, 1:] * (self._at == 0)[:, None]
        return np.concatenate([open_rows, declares], axis=1, dtype=np.int8)

    def mask_of_one(self, available: npt.NDArray[np.int8]) -> Any:
        """(5,) int8."""
        return self.masks(available)[0]

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(5,) int8."""
        return self.mask_of_one(available)

    def read(self, actions: Any) -> Array:
        """Checked actions (B,).

        Raises:
            ActionError: Another shape or type, or a value out of its range.
        """
        return _integers("action", actions, (self.size,), 4)

    def read_one(self, action: Any) -> Array:
        """As `read`, of a single action."""
        return self.read([action])

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """(B,) int8 bits of what the mask forbids about actions that were read."""
        first = self._at == 0
        problems = np.zeros(self.size, np.int8)
        problems[(read == 3) & ~(first & (available[:, SURRENDER] == 1))] = NO_SURRENDER
        problems[(read == 4) & ~(first & (available[:, DECLARE] == 1))] = NO_NATURAL
        is_row = read < 3
        full = self._room()[self._everyone, np.where(is_row, read, 0)] <= 0
        problems[is_row & full] = ROW_FULL
        if self.mask == "legal":
            open_rows = self.masks(available)[self._everyone, read]
            problems[is_row & ~full & (open_rows == 0)] = FOUL
        return problems

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        """Carry the actions out for the learners in `active` (B,) bool."""
        declares = active & (read >= 3) & (problems == 0)
        places = np.flatnonzero(active & ~declares)
        with_room = (self._room() > 0).argmax(axis=1)
        rows = np.where(read < 3, read, with_room)
        self._rows[places, self._at[places]] = rows[places]
        self._at[places] += 1
        declarations = np.where(declares, read - 2, SHOW)
        self._at[declares] = HAND_SIZE
        finished = active & (self._at == HAND_SIZE)
        return Moves(finished, declarations, np.where(declares[:, None], _BACK_FIRST, self._rows))

    def _next_cards(self) -> Array:
        cards: Array = self._hands[self._everyone, np.minimum(self._at, HAND_SIZE - 1)]
        return cards

    def _room(self) -> Array:
        placed = (self._rows[:, :, None] == np.arange(3)).sum(axis=1, dtype=np.int8)
        room: Array = ROW_ROOM - placed
        return room


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

    name = "candidates"
    num_steps: ClassVar[int] = 1

    def __init__(self, rules: Rules, num_players: int, size: int, num_candidates: int = 32) -> None:
        is_count = isinstance(num_candidates, int) and not isinstance(num_candidates, bool)
        if not is_count or not 1 <= num_candidates <= 1024:
            raise ConfigError(f"num_candidates {num_candidates!r}: give a whole number 1..1024")
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
        """Spaces this form adds to the observation."""
        low = np.zeros((self.num_candidates, 10), np.float32)
        high = np.ones((self.num_candidates, 10), np.float32)
        low[:, 9], high[:, 9] = -self._bound, self._bound
        return {
            "candidates": spaces.Box(low, high),
            "candidate_rows": spaces.Box(0, 2, (self.num_candidates, HAND_SIZE), np.int8),
            "candidate_mask": spaces.MultiBinary(self.num_candidates),
        }

    def begin(self, deals: Deals, where: npt.NDArray[np.bool_] | None, rules: Rules) -> None:
        """Start on new deals, all of them or those of the (B,) mask `where`."""
        at = slice(None) if where is None else where
        hands = np.ascontiguousarray(deals.hands[at, 0])
        side = 0 if rules.banker is None else 1 if rules.banker == 0 else -1
        bank = np.full(len(hands), side, np.int8)
        rows, strengths, values, counts = top_arrangements(
            hands, rules, self.num_players, bank, self.num_candidates
        )
        exists = np.arange(self.num_candidates) < counts[:, None]
        tables = row_values(rules, self.num_players)[side]
        features = np.zeros((len(hands), self.num_candidates, 10), np.float32)
        strongest = (NUM_FRONT_STRENGTHS - 1, NUM_STRENGTHS - 1, NUM_STRENGTHS - 1)
        for row, most in enumerate(strongest):
            strength = strengths[:, :, row]
            features[:, :, row] = strength / most
            if tables.wins is not None:
                features[:, :, 3 + row] = tables.wins[row][strength]
            if tables.losses is not None:
                features[:, :, 6 + row] = tables.losses[row][strength]
        features[:, :, 9] = values
        features[~exists] = 0
        np.clip(features[:, :, :9], 0, 1, out=features[:, :, :9])
        np.clip(features[:, :, 9], -self._bound, self._bound, out=features[:, :, 9])
        self._features[at], self._rows[at], self._exists[at] = features, rows, exists

    def draw(self, deals: Deals, available: npt.NDArray[np.int8], rng: np.random.Generator) -> Any:
        """Random actions among those the mask leaves."""
        return _draw_masked(self.masks(available), rng)

    def state(self) -> Any:
        """What `restore` takes back: nothing, as one step is the whole hand."""
        return None

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""

    def observe(self) -> dict[str, Array]:
        """What this form adds to the observations, by key, (B, ...) each; new arrays."""
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

    def flat_mask(self, available: npt.NDArray[np.int8]) -> Any:
        """(K + 2,) int8."""
        return self.mask_of_one(available)

    def read(self, actions: Any) -> Array:
        """Checked actions (B,).

        Raises:
            ActionError: Another shape or type, or a value out of its range.
        """
        return _integers("action", actions, (self.size,), self.num_candidates + 1)

    def read_one(self, action: Any) -> Array:
        """As `read`, of a single action."""
        return self.read([action])

    def problems(self, read: Any, available: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """(B,) int8 bits of what the mask forbids about actions that were read."""
        problems = _declaration_problems(self._declarations(read), available)
        is_missing = self._exists[self._everyone, self._picked(read)] == 0
        problems[is_missing & (read < self.num_candidates)] = NO_CANDIDATE
        return problems

    def play(
        self, read: Any, problems: npt.NDArray[np.int8], active: npt.NDArray[np.bool_]
    ) -> Moves:
        """Carry the actions out for the learners in `active` (B,) bool."""
        picked = np.where(problems, 0, self._picked(read))
        declarations = np.where(problems, SHOW, self._declarations(read))
        return Moves(active, declarations, self._rows[self._everyone, picked])

    def _picked(self, read: Array) -> Array:
        return np.where(read < self.num_candidates, read, 0)

    def _declarations(self, read: Array) -> Array:
        declarations: Array = np.maximum(read - self.num_candidates + 1, SHOW)
        return declarations


Form = Structured | Sequential | Candidates
FORMS: dict[str, type[Form]] = {
    form.name: form for form in (Structured, Flat, Sequential, Candidates)
}


def make_form(
    name: str, rules: Rules, num_players: int, size: int, options: dict[str, Any]
) -> Form:
    """A form by name for `size` learners.

    Raises:
        ConfigError: An unknown form, an option it does not take, or a value out of range.
    """
    if not isinstance(name, str) or name not in FORMS:
        raise ConfigError(f"form {name!r}: choose one of {', '.join(FORMS)}")
    takes = {"sequential": ("mask",), "candidates": ("num_candidates",)}.get(name, ())
    for option in options:
        if option not in takes:
            raise ConfigError(
                f"option {option!r} of form {name!r}: it takes {', '.join(takes) or 'none'}"
            )
    return FORMS[name](rules, num_players, size, **options)


def most_units(rules: Rules, num_players: int) -> float:
    """A bound on the units one row-by-row pairing, or a pool of `num_players`, can move."""
    royalties = sum(rules.royalty_table.values())
    return float((3 + royalties) * 3 + rules.scoop_extra + rules.overall_point + 6 * num_players)


def _draw_masked(masks: Array, rng: np.random.Generator) -> Array:
    """(B,) one place of each line of masks (B, A), uniformly among its ones."""
    drawn: Array = (rng.random(masks.shape) * masks).argmax(axis=1)
    return drawn


def _declaration_problems(
    declarations: Array, available: npt.NDArray[np.int8]
) -> npt.NDArray[np.int8]:
    """(B,) int8: the declaration where it is not available, else 0."""
    if np.count_nonzero(declarations) == 0:
        return np.zeros(len(available), np.int8)
    has_it = available[np.arange(len(available)), declarations]
    problems: npt.NDArray[np.int8] = declarations.astype(np.int8) * (1 - has_it)
    return problems


def _integers(what: str, given: Any, shape: tuple[int, ...], high: int) -> Array:
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
    return values

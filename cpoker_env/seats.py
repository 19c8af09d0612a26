"""B seats that each play their own hand in some form of the action.

What the forms do for a learner in seat 0, here for any seats at once: all of one table, or the
decisions of a batch.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env.cards import Card
from cpoker_env.form import Array
from cpoker_env.forms import make_form
from cpoker_env.learners import available_to, refuse
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.spaces import observation_space, observe
from cpoker_env.table import Deals, Table

MOST_AHEAD = 64
"""Deals that are made at once where they are wanted one by one."""


class Look(NamedTuple):
    """What H hands are before a card is placed.

    hands: (H, 13) int8, highest card first.
    bank: (H,) int8, see `DecisionBatch.bank`.
    available: (H, 3) int8, which declarations each has.
    seen: the part of the observations that the deal alone decides, (H, ...) each.
    """

    hands: npt.NDArray[np.int8]
    bank: npt.NDArray[np.int8]
    available: npt.NDArray[np.int8]
    seen: dict[str, Array]

    def part(self, start: int, end: int) -> "Look":
        """Some neighbours among the hands."""
        seen = {key: part[start:end] for key, part in self.seen.items()}
        at = slice(start, end)
        return Look(self.hands[at], self.bank[at], self.available[at], seen)


def look_at(batch: DecisionBatch, bits: npt.NDArray[np.int16] | None = None) -> Look:
    """What H hands are.

    Args:
        batch: H decisions.
        bits: (H,) bit sets of the naturals held; None looks for them.
    """
    rules, num_players = batch.rules, batch.num_players
    if bits is None:
        bits, _ = natural_bits(batch.hands, rules)
    seen = observe(batch.hands[:, None], bits[:, None], rules, num_players)
    if rules.banker is not None:
        relative = (rules.banker - batch.seats.astype(np.int64)) % num_players
        seen["bank"] = np.eye(num_players, dtype=np.int8)[relative]
    available = available_to(batch.can_surrender[:, None], batch.naturals[:, None])
    return Look(batch.hands, batch.bank, available, seen)


class Ahead:
    """The deals of a seed one after the other, made and looked at many at once.

    A deal is a pure function of (seed, index), so making it before its turn changes nothing. The
    first comes alone, then twice as many each time, up to MOST_AHEAD.
    """

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._seed = seed
        self._next = 0
        self._start, self._size = 0, 0

    def deal(self, fixed: Sequence[Sequence[Card] | None] | None = None) -> tuple[Deals, Look]:
        """The next deal, and the look of all its hands.

        Args:
            fixed: Hands of some seats, in place of what they would be dealt.
        """
        index, seats = self._next, self._table.num_players
        if fixed is not None:
            indices = np.array([index], np.uint64)
            deals = self._table.deal_around(fixed, self._seed, indices)
            self._next = index + 1
            return deals, self._look(deals)
        at = index - self._start
        if at >= self._size:
            size = min(max(1, 2 * self._size), MOST_AHEAD)
            indices = np.arange(index, index + size, dtype=np.uint64)
            self._deals = self._table.deal(self._seed, indices)
            self._looks = self._look(self._deals)
            self._start, self._size, at = index, size, 0
        self._next = index + 1
        return self._deals.part(at, at + 1), self._looks.part(at * seats, at * seats + seats)

    def _look(self, deals: Deals) -> Look:
        everyone = range(self._table.num_players)
        return look_at(self._table.decisions(deals, everyone), deals.bits.ravel())


class Seats:
    """The hands of B seats while they are placed, in as many steps as the form takes.

    A seat that is done before the others waits: its mask allows the first action only, which
    counts for nothing.

    Args:
        rules: The house rules.
        num_players: Seats at each table.
        size: B.
        form: Name of the form of the actions, see `cpoker_env.forms`.
        options: Of the form.

    Attributes:
        is_done: Whether every hand is complete.
        actions: What the seats do, once every hand is complete.
        problems: (B,) int8, bits of what was wrong with it, see `learners.PROBLEMS`.
        available: (B, 3) int8, which declarations each has.

    Raises:
        ConfigError: As `make_form`.
    """

    def __init__(
        self, rules: Rules, num_players: int, size: int, form: str, options: dict[str, Any]
    ) -> None:
        self.rules = rules
        self.num_players = num_players
        self.size = size
        self.form = make_form(form, rules, num_players, size, options)
        base = observation_space(rules, num_players)
        self.observation_space = spaces.Dict({**base.spaces, **self.form.observation_parts()})
        self.actions = Actions(np.zeros(size, np.int8), np.zeros((size, 13), np.int8))
        self.problems = np.zeros(size, np.int8)
        self.is_done = True
        self._everyone, self._nobody = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        self._done = self._everyone
        # Forms look at seat 0, so the bank is told as from the seat that looks.
        self._seen_by = {0: rules}
        if rules.banker is not None:
            self._seen_by = {1: replace(rules, banker=0), -1: replace(rules, banker=1)}

    def begin(self, look: Look) -> None:
        """Start on B new hands."""
        self.available = look.available
        self._look = look
        if self.rules.banker is None:
            self.form.begin(look.hands, None, self.rules)
        else:
            for side, rules in self._seen_by.items():
                where = look.bank == side
                if where.any():
                    self.form.begin(look.hands, where, rules)
        self.is_done, self._done = False, self._nobody
        if self.form.num_steps > 1:
            self.problems = np.zeros(self.size, np.int8)
            self.actions = Actions(np.zeros(self.size, np.int8), np.zeros((self.size, 13), np.int8))

    def observe(self) -> dict[str, Array]:
        """Observations by key, (B, ...) each, as `observation_space` describes.

        New arrays; where hands take one step, those of the look.
        """
        seen = self._look.seen.copy()
        if self.form.num_steps > 1:
            seen = {key: part.copy() for key, part in seen.items()}
        seen.update(self.form.observe())
        return seen

    def masks(self) -> Any:
        """int8 masks (B, ...) shaped like the action space, never all zero."""
        masks = self.form.masks(self.available)
        if self.form.num_steps > 1 and not self.is_done:
            masks[self._done] = np.arange(masks.shape[1]) == 0
        return masks

    def masks_of_each(self) -> list[Any]:
        """The mask of each seat by itself, as `action_space.sample` takes it."""
        if self.form.num_steps == 1:
            return self.form.masks_of_each(self.available)
        return list(self.masks())

    def step(self, read: Any, is_strict: bool = False) -> None:
        """Carry out actions that `form.read` has checked.

        Raises:
            ActionError: If strict and the action of a seat is masked, or is a whole hand that
                fouls; nothing has changed then.
        """
        active = self._everyone if self._done is self._nobody else ~self._done
        problems = self.form.problems(read, self.available)
        if is_strict:
            hands, whose = self._look.hands, "player_{}: "
            refuse(self.form, read, problems, active, hands, self.rules, whose)
        finished, declarations, rows = self.form.play(read, problems, active)
        if self.form.num_steps == 1:
            self.problems = problems
            self.actions = Actions(declarations.astype(np.int8), rows.astype(np.int8, copy=False))
            self.is_done, self._done = True, self._everyone
            return
        self.problems = self.problems | problems * active
        self.actions.declarations[finished] = declarations[finished]
        self.actions.rows[finished] = rows[finished]
        self._done = self._done | finished
        self.is_done = bool(self._done.all())

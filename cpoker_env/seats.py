"""B seats that each play their own hand in some form of the action.

What the forms do for a learner in seat 0, here for any seats at once: all of one table, or the
decisions of a batch.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env.form import Array
from cpoker_env.forms import make_form
from cpoker_env.learners import available_to, refuse
from cpoker_env.naturals import natural_bits
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.spaces import observation_space, observe
from cpoker_env.table import Deals


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
        self._done = np.ones(size, np.bool_)
        # Forms look at seat 0, so the bank is told as from the seat that looks.
        self._seen_by = {0: rules}
        if rules.banker is not None:
            self._seen_by = {1: replace(rules, banker=0), -1: replace(rules, banker=1)}

    @property
    def is_done(self) -> bool:
        """Whether every hand is complete, so that `actions` holds what the seats do."""
        return bool(self._done.all())

    def begin(self, batch: DecisionBatch, bits: npt.NDArray[np.int16] | None = None) -> None:
        """Start on new hands.

        Args:
            batch: B decisions.
            bits: (B,) bit sets of the naturals held; None looks for them.
        """
        if bits is None:
            bits, _ = natural_bits(batch.hands, self.rules)
        one_seat = Deals(
            batch.hands[:, None], bits[:, None], batch.naturals[:, None],
            batch.seeds, batch.indices, batch.can_surrender[:, None],
        )  # fmt: skip
        self.available = available_to(one_seat, 0)
        self._hands = batch.hands
        self._seen = observe(one_seat.hands, one_seat.bits, self.rules, self.num_players)
        if self.rules.banker is None:
            self.form.begin(one_seat, None, self.rules)
        else:
            relative = (self.rules.banker - batch.seats.astype(np.int64)) % self.num_players
            self._seen["bank"] = np.eye(self.num_players, dtype=np.int8)[relative]
            for side, rules in self._seen_by.items():
                where = batch.bank == side
                if where.any():
                    self.form.begin(one_seat, where, rules)
        self._done = np.zeros(self.size, np.bool_)
        self.problems = np.zeros(self.size, np.int8)
        self.actions = Actions(np.zeros(self.size, np.int8), np.zeros((self.size, 13), np.int8))

    def observe(self) -> dict[str, Array]:
        """Observations by key, (B, ...) each; what `observation_space` describes, new arrays."""
        seen = {key: part.copy() for key, part in self._seen.items()}
        seen.update(self.form.observe())
        return seen

    def masks(self) -> Any:
        """int8 masks (B, ...) shaped like the action space, never all zero."""
        masks = self.form.masks(self.available)
        if self.form.num_steps > 1 and not self.is_done:
            masks[self._done] = np.arange(masks.shape[1]) == 0
        return masks

    def step(self, read: Any, is_strict: bool = False) -> None:
        """Carry out actions that `form.read` has checked.

        Raises:
            ActionError: If strict and the action of a seat is masked, or is a whole hand that
                fouls; nothing has changed then.
        """
        active = ~self._done
        problems = self.form.problems(read, self.available)
        if is_strict:
            refuse(self.form, read, problems, active, self._hands, self.rules, "player_{}: ")
        moves = self.form.play(read, problems, active)
        if self.form.num_steps == 1:
            self.problems = problems
            self.actions = Actions(
                moves.declarations.astype(np.int8), moves.rows.astype(np.int8, copy=False)
            )
            self._done = active
            return
        self.problems = self.problems | problems * active
        finished = moves.finished
        self.actions.declarations[finished] = moves.declarations[finished]
        self.actions.rows[finished] = moves.rows[finished]
        self._done = self._done | finished

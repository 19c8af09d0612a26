"""B learners in seat 0 of as many tables: what every environment is made of.

One step of any environment, scalar or batched, is `Learners.step`; the environments add their
library's conventions only, so they cannot disagree about a deal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.arrangements import check_hands, evaluate
from cpoker_env.cards import Card, parse_hand
from cpoker_env.errors import ActionError, CardError, PolicyError
from cpoker_env.form import (
    ACTION_FOULS,
    NO_CANDIDATE,
    NO_NATURAL,
    NO_SURRENDER,
    ROW_FULL,
    Form,
)
from cpoker_env.forms import make_form
from cpoker_env.policy import Actions, Policy, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import SHOW, STATUSES, Settled
from cpoker_env.spaces import observation_space, observe
from cpoker_env.table import Deals, Table, seats_of

RulesLike = Rules | str
OpponentsLike = str | Policy | Sequence[str | Policy]
_MASK64 = 2**64 - 1
_IS_FOUL = STATUSES.index("foul")
_FOUL_BIT = np.int8(ACTION_FOULS)

PROBLEMS = {
    NO_SURRENDER: "surrender is not available: the rows are shown as placed",
    NO_NATURAL: "no natural to declare: the rows are shown as placed",
    ROW_FULL: "the row is full: the hand is a foul",
    NO_CANDIDATE: "no such candidate: the first one is shown",
    ACTION_FOULS: "a foul: the rows take 3, 5 and 5 cards, each stronger than the one before",
}
"""What is wrong with an action, by bit of `invalid_action`."""


@dataclass(slots=True, eq=False)
class Outcome:
    """Deals that were settled in a step.

    where: (B,) bool, which learners' deals; M of them.
    deals, actions, settled: M deals, as `Table` has them.
    problems: (M,) int8, bits of PROBLEMS.
    """

    where: npt.NDArray[np.bool_]
    deals: Deals
    actions: Actions
    settled: Settled
    problems: npt.NDArray[np.int8]


class Learners:
    """Seat 0 of B tables: deals, the form of the actions, the opponents' replies, settlement.

    Args:
        rules: House rules, or a preset's name.
        num_players: Seats at each table, 2-4.
        opponents: A policy's name, a policy, or one per other seat.
        size: B.
        strict: Raise on actions that the mask forbids and on rows that foul.
        form: Name of the form of the actions, see `cpoker_env.forms`.
        options: Of the form.

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """

    def __init__(
        self,
        rules: RulesLike,
        num_players: int,
        opponents: OpponentsLike,
        size: int,
        strict: bool,
        form: str,
        options: dict[str, Any],
    ) -> None:
        if not isinstance(strict, bool):
            raise ActionError(f"strict {strict!r}: give True or False")
        read = Rules.of(rules)
        self.table = Table(read, num_players)
        self.opponents = seat_opponents(opponents, read, num_players)
        self.seating = seats_of([None, *self.opponents])
        self.size = size
        self.strict = strict
        self.form = make_form(form, read, num_players, size, options)
        self.everyone = np.ones(size, np.bool_)
        self.seeds = np.zeros(size, np.uint64)
        self.indices = np.zeros(size, np.uint64)
        self.deals: Deals | None = None
        self._no_problems = np.zeros(size, np.int8)
        self._problems = self._no_problems
        self._seen: dict[str, npt.NDArray[Any]] | None = None
        self._available = np.ones((size, 3), np.int8)
        self._available[:, 1:] = 0

    @property
    def action_space(self) -> spaces.Space[Any]:
        """Of one learner."""
        return self.form.action_space

    def observation_space(self, has_stacks: bool = False) -> spaces.Dict:
        """Of one learner."""
        base = observation_space(self.table.rules, self.table.num_players, has_stacks)
        return spaces.Dict({**base.spaces, **self.form.observation_parts()})

    def deal(
        self,
        where: npt.NDArray[np.bool_] | None = None,
        hands: Sequence[Sequence[Card] | None] | None = None,
        can_surrender: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Deal number `indices` of `seeds` to all, or to those of the (B,) mask `where`.

        Args:
            where: Whom to deal to; None is everyone.
            hands: Cards of some seats, the same at every table dealt to.
            can_surrender: (M, N) bool; None leaves it to the rules.
        """
        # Seeds and indices are replaced whole, never changed in place, so deals may keep them.
        seeds, indices = self.seeds, self.indices
        if where is not None:
            seeds, indices = seeds[where], indices[where]
        if hands is None:
            new = self.table.deal(seeds, indices)
        else:
            new = self.table.deal_around(hands, seeds, indices)
        if can_surrender is not None:
            new.can_surrender[:] = can_surrender
        if where is None or self.deals is None:
            self.deals = new
            self._problems = self._no_problems
        else:
            self.deals = self.deals.put(where, new)
            self._problems = np.where(where, self._no_problems, self._problems)
        self._seen = None
        self._available = available_to(self.deals.can_surrender, self.deals.naturals)
        self.form.begin(self.deals.hands[:, 0], where, self.table.rules)

    def observe(self) -> dict[str, npt.NDArray[Any]]:
        """Observations by key, (B, ...) each, new arrays."""
        base = {key: part.copy() for key, part in self._see().items()}
        base.update(self.form.observe())
        return base

    def observe_one(self) -> dict[str, npt.NDArray[Any]]:
        """The observation of the first learner alone."""
        one = {key: part[0].copy() for key, part in self._see().items()}
        for key, part in self.form.observe().items():
            one[key] = part[0]
        return one

    def available(self) -> npt.NDArray[np.int8]:
        """(B, 3) int8: which declarations each learner has."""
        return self._available.copy()

    def step(
        self, read: Any, active: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> Outcome | None:
        """Carry out actions that `form.read` has checked; settle the hands they complete.

        Args:
            read: What `form.read` or `form.read_one` returned.
            active: (B,) bool, whose actions count.
            rng: For opponents that draw.

        Raises:
            ActionError: If strict and an active learner's action is masked, or is a whole hand
                that fouls.
            PolicyError: An opponent answered out of shape or range. Nothing has changed after
                either, nor when an opponent raises.
        """
        problems = self.form.problems(read, self._available)
        if self.strict:
            hands = self._dealt().hands[:, 0].copy()
            whose = "environment {}: " if self.size > 1 else ""
            refuse(self.form, read, problems, active, hands, self.table.rules, whose)
        before = self.form.state()
        finished, declarations, rows = self.form.play(read, problems, active)
        told = self._problems
        if np.count_nonzero(problems):
            told = told | problems * active
        num_finished = np.count_nonzero(finished)
        if num_finished == 0:
            self._problems = told
            return None
        whole = None if num_finished == self.size else finished
        try:
            outcome = self._settle(whole, declarations, rows, told, rng)
        except BaseException:
            self.form.restore(before)
            raise
        self._problems = told
        return outcome

    def _settle(
        self,
        finished: npt.NDArray[np.bool_] | None,
        declarations: npt.NDArray[Any],
        rows: npt.NDArray[Any],
        told: npt.NDArray[np.int8],
        rng: np.random.Generator,
    ) -> Outcome:
        """Let the opponents of finished hands, None for all, play, and score them."""
        deals = self._dealt()
        if finished is not None:
            deals = deals.take(finished)
            declarations, rows, told = declarations[finished], rows[finished], told[finished]
        actions = self.table.act(deals, self.seating, rng)
        actions.declarations[:, 0] = declarations
        actions.rows[:, 0] = rows
        settled = self.table.score(deals, actions)
        told = with_fouls(told, settled.status[:, 0])
        where = self.everyone if finished is None else finished
        return Outcome(where, deals, actions, settled, told)

    def _see(self) -> dict[str, npt.NDArray[Any]]:
        """The part of the observations that the deals alone decide, worked out once for them."""
        if self._seen is None:
            deals, table = self._dealt(), self.table
            self._seen = observe(deals.hands, deals.bits, table.rules, table.num_players)
        return self._seen

    def _dealt(self) -> Deals:
        assert self.deals is not None, "dealt before it is used"
        return self.deals


def refuse(
    form: Form,
    read: Any,
    problems: npt.NDArray[np.int8],
    active: npt.NDArray[np.bool_],
    hands: npt.NDArray[np.int8],
    rules: Rules,
    whose: str,
) -> None:
    """Raise where an action is masked, or is a whole hand that fouls.

    Args:
        form: That read the actions and found the problems.
        read, problems, active: As `form.play` takes them.
        hands: (B, 13) of those who act, each highest first.
        rules: The house rules.
        whose: Begins the message; `{}` in it becomes the place in the batch.

    Raises:
        ActionError: There is one.
    """
    problems = problems.copy()
    if form.num_steps == 1:
        _, declarations, rows = form.play(read, problems, active)
        _, is_legal = evaluate(hands, rows.astype(np.int8), rules)
        problems[(declarations == SHOW) & ~is_legal] |= ACTION_FOULS
    wrong = np.flatnonzero(active & (problems != 0))
    if len(wrong):
        raise ActionError(whose.format(wrong[0]) + problem_text(int(problems[wrong[0]])))


def available_to(
    can_surrender: npt.NDArray[np.bool_], naturals: npt.NDArray[np.int8], seat: int = 0
) -> npt.NDArray[np.int8]:
    """(B, 3) int8: which declarations a seat has; of can_surrender and naturals (B, N)."""
    available = np.empty((len(naturals), 3), np.int8)
    kernels.available_into(can_surrender, naturals, seat, available)
    return available


def with_fouls(
    problems: npt.NDArray[np.int8], status: npt.NDArray[np.int8]
) -> npt.NDArray[np.int8]:
    """(B,) bits of PROBLEMS, with that of a foul where the showdown found one."""
    is_foul = status == _IS_FOUL
    return problems | is_foul * _FOUL_BIT if np.count_nonzero(is_foul) else problems


@cache
def problem_text(problems: int) -> str:
    """What a value of `invalid_action` says, "" for nothing."""
    return "; ".join(text for bit, text in PROBLEMS.items() if problems & bit)


def seat_opponents(opponents: OpponentsLike, rules: Rules, num_players: int) -> list[Policy]:
    """Policies of seats 1.. of a table.

    Raises:
        PolicyError: Unknown name, something that is no policy, or not one per other seat.
    """
    given: list[Any]
    if isinstance(opponents, str) or hasattr(opponents, "act"):
        given = [opponents] * (num_players - 1)
    elif isinstance(opponents, list | tuple):
        given = list(opponents)
    else:
        raise PolicyError(f"opponents {opponents!r}: give a policy's name, a policy, or a list")
    if len(given) != num_players - 1:
        raise PolicyError(
            f"{len(given)} opponents for {num_players} players: give one, or {num_players - 1}"
        )
    made: dict[str, Policy] = {}
    seated: list[Policy] = []
    for one in given:
        if isinstance(one, str):
            made[one] = policy = made.get(one) or make_policy(one, rules, num_players)
        elif hasattr(one, "act") and not isinstance(one, type):
            policy = one
        else:
            raise PolicyError(f"opponent {one!r}: give a policy's name or an object with act()")
        seated.append(policy)
    return seated


def read_seed(seed: Any) -> int:
    """A seed as a plain int.

    Raises:
        ActionError: Not a whole number from 0 on.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ActionError(f"seed {seed!r}: give a whole number, 0 or more")
    return int(seed)


def seed_of(seed: int) -> np.uint64:
    """A seed as the deals take it, modulo 2**64."""
    return np.uint64(seed & _MASK64)


def read_hands(options: Any, table: Table) -> list[list[Card] | None] | None:
    """The option `hands` of a reset: cards of some seats, as text or 13 ints each, or None.

    Raises:
        ActionError: Another option.
        CardError: Hands that are not 13 different cards each, share cards, or are too many.
    """
    if not options:
        return None
    if not isinstance(options, dict):
        raise ActionError(f"reset options {options!r}: give a dict")
    for name in options:
        if name != "hands":
            raise ActionError(f"reset option {name!r}: the option is 'hands'")
    given = options["hands"]
    if given is None:
        return None
    if not _is_sequence(given):
        raise CardError(f"hands {given!r}: give a list of hands, one for each seat")
    hands = [None if hand is None else _read_hand(hand) for hand in given]
    table.check_fixed(hands)
    return hands


def _read_hand(hand: Any) -> list[Card]:
    if isinstance(hand, str):
        return parse_hand(hand)
    if not _is_sequence(hand):
        raise CardError(f"hand {hand!r}: give its cards as text or as 13 ints")
    if any(isinstance(card, str) for card in hand):
        return parse_hand(hand)
    return [int(card) for card in check_hands([hand])[0]]


def _is_sequence(given: Any) -> bool:
    return isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)

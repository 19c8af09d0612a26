"""`ChinesePokerSession-v0`: many deals with stacks on the table."""

import dataclasses
from typing import Any

import numpy as np

from cpoker_env.env import ChinesePokerEnv
from cpoker_env.errors import ActionError, ShowdownError
from cpoker_env.money import (
    BUY_IN_UNITS,
    MAX_MONEY,
    POLICIES,
    MoneyPolicy,
    may_surrender,
    settle_stacks,
)
from cpoker_env.scoring import SEAT_NAMES, Showdown, Units
from cpoker_env.spaces import MAX_STACK
from cpoker_env.table import Table


class ChinesePokerSessionEnv(ChinesePokerEnv):
    """Deals of `ChinesePoker-v0` with stacks, until a seat is broke or the deals are played.

    ## Description
    Every seat buys in for the same stack. Each step plays one deal as in `ChinesePokerEnv`, units
    are paid out of the stacks, and the next deal is dealt. With a bank (`topology="banker"`) the
    bank moves one seat on after each deal, starting at the seat the rules name.

    ## Action Space
    As `ChinesePokerEnv`. Surrender is also refused to a seat whose stack does not hold its price,
    cost x opponents x unit.

    ## Observation Space
    As `ChinesePokerEnv`, and

    | key | shape | type | range | meaning |
    |---|---|---|---|---|
    | `stacks` | (num_players,) | float32 | -1e6..1e6 | units, the learner's first, clipped |

    ## Rewards
    Change of the learner's stack in units, a float: the units won, or less where `money_policy`
    caps what can be paid.

    ## Info
    As `ChinesePokerEnv`; after a step also `stacks`, a list of all stacks in money, and
    `deals_played`. `action_mask` belongs to the next deal.

    ## Starting State
    Stacks of `buy_in` units; deal 0 of the seed as in `ChinesePokerEnv`. `reset()` without a seed
    starts over with the next deals of the same seed. `reset(options={"hands": ...})` fixes the
    first deal, `options={"stacks": [...]}` the stacks in money.

    ## Episode End
    Terminates when a seat's stack is 0 or less. Truncates after `max_deals` deals.

    ## Arguments
    As `ChinesePokerEnv`, and
    * `buy_in`: stack of each seat in units; default 20.
    * `unit`: price of one unit in money; default 1.
    * `money_policy`: `"uncapped"` (default: a loss may exceed the stack) or `"cap_prorata"` (table
      stakes: a net loser pays at most its stack, shared among the winners).
    * `max_deals`: deals in a session; default 100.

    ## Version History
    * v0: initial version.
    """

    def __init__(
        self,
        *args: Any,
        buy_in: int = BUY_IN_UNITS,
        unit: int = 1,
        money_policy: MoneyPolicy = "uncapped",
        max_deals: int = 100,
        **kwargs: Any,
    ) -> None:
        for name, value in (("buy_in", buy_in), ("unit", unit), ("max_deals", max_deals)):
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or not 1 <= value <= MAX_MONEY:
                raise ShowdownError(f"{name} {value!r}: give a whole number 1..{MAX_MONEY}")
        if not isinstance(money_policy, str) or money_policy not in POLICIES:
            raise ShowdownError(
                f"money_policy {money_policy!r}: choose one of {', '.join(POLICIES)}"
            )
        super().__init__(*args, **kwargs)
        self._first_rules = self.rules
        self.observation_space = self.learners.observation_space(has_stacks=True)
        self.buy_in, self.unit = buy_in, unit
        self.money_policy = money_policy
        self.max_deals = max_deals
        self.deals_played = 0
        self.stacks: list[Units] = [buy_in * unit] * self.num_players
        self._last_showdown: Showdown | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Buy in and deal.

        Raises:
            ActionError: An unknown option.
            CardError: Hands that are not 13 different cards each, or share cards.
            ShowdownError: Stacks that are not one positive amount a seat.
        """
        if not isinstance(options, dict | None):
            raise ActionError(f"reset options {options!r}: give a dict")
        options = dict(options or {})
        stacks = self._read_stacks(options.pop("stacks", None))
        before = self.stacks, self.rules, self.learners.table
        self._move_bank(0)
        self.stacks = stacks
        try:
            _, info = super().reset(seed=seed, options=options)
        except Exception:
            self.stacks, self.rules, self.learners.table = before
            raise
        self.deals_played = 0
        self._last_showdown = None
        return self._observation(), info

    def step(
        self, action: dict[str, Any]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play one deal, pay, deal the next.

        Raises:
            ActionError: As `ChinesePokerEnv.step`.
        """
        observation, _, terminated, truncated, info = super().step(action)
        if self._outcome is None:
            return observation, 0.0, terminated, truncated, info
        showdown = super().showdown
        assert showdown is not None
        before = self.stacks[0]
        self.stacks = settle_stacks(showdown.units, self.stacks, self.unit, self.money_policy)
        self.deals_played += 1
        self._last_showdown = showdown
        terminated = any(stack <= 0 for stack in self.stacks)
        truncated = not terminated and self.deals_played >= self.max_deals
        if not terminated and not truncated:
            self._move_bank(self.deals_played)
            self.learners.indices = self.learners.indices + np.uint64(1)
            self._deal(None)
        info["action_mask"] = self._mask()
        info["stacks"] = list(self.stacks)
        info["deals_played"] = self.deals_played
        reward = float((self.stacks[0] - before) / self.unit)
        return self._observation(), reward, terminated, truncated, info

    @property
    def showdown(self) -> Showdown | None:
        """The readable account of the deal just played, None before the first."""
        return super().showdown or self._last_showdown

    def render(self) -> Any:
        """The deal just played; in mode "ansi" with the stacks and the hand to play next."""
        told = super().render()
        if not isinstance(told, str) or self._last_showdown is None:
            return told
        stacks = ", ".join(
            f"{SEAT_NAMES[seat]} {float(stack):g}" for seat, stack in enumerate(self.stacks)
        )
        told = f"{told}\nStacks: {stacks}"
        if self._is_open and self.learners.deals is not None:
            from cpoker_env.render import hand_text

            told += f"\n\n{hand_text(self.learners.deals.hands[0, 0].tolist())}"
        return told

    def _read_stacks(self, given: Any) -> list[Units]:
        if given is None:
            return [self.buy_in * self.unit] * self.num_players
        problem = f"stacks {given!r}: give {self.num_players} amounts above 0, the learner's first"
        if not isinstance(given, list | tuple | np.ndarray) or len(given) != self.num_players:
            raise ShowdownError(problem)
        plain = [stack.item() if isinstance(stack, np.generic) else stack for stack in given]
        stacks = settle_stacks([0] * self.num_players, plain)
        if not all(0 < stack <= MAX_MONEY for stack in stacks):
            raise ShowdownError(f"{problem}, at most {MAX_MONEY:,} each")
        return stacks

    def _move_bank(self, deals_played: int) -> None:
        """Seat the bank for a deal; rules without one stay as they are."""
        if self._first_rules.banker is None:
            return
        bank = (self._first_rules.banker + deals_played) % self.num_players
        self.rules = dataclasses.replace(self._first_rules, banker=bank)
        self.learners.table = Table(self.rules, self.num_players)

    def _deal(self, hands: list[Any] | None) -> None:
        allowed = [
            may_surrender(self.rules, self.num_players, stack, self.unit) for stack in self.stacks
        ]
        self.learners.deal(hands=hands, can_surrender=np.array([allowed]))
        self._is_open = True
        self._outcome = None

    def _observation(self) -> dict[str, Any]:
        observation = super()._observation()
        units = [float(stack) / self.unit for stack in self.stacks]
        observation["stacks"] = np.clip(np.array(units, np.float32), -MAX_STACK, MAX_STACK)
        return observation

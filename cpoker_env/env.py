"""`ChinesePoker-v0`: one deal, one decision, one showdown."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import IntArray, check_hands, evaluate
from cpoker_env.cards import Card, parse_hand
from cpoker_env.errors import ActionError, CardError, PolicyError
from cpoker_env.policy import Actions, Policy, make_policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, STATUSES, SURRENDER, Settled, Showdown
from cpoker_env.spaces import action_mask, action_space, observation_space, observe
from cpoker_env.table import Deals, Table

RulesLike = Rules | str
OpponentsLike = str | Policy | Sequence[str | Policy]
_MASK64 = 2**64 - 1


def read_rules(rules: RulesLike) -> Rules:
    """Rules of a preset's name, or the rules themselves."""
    return rules if isinstance(rules, Rules) else Rules.preset(rules)


def seat_opponents(opponents: OpponentsLike, rules: Rules, num_players: int) -> list[Policy]:
    """Policies of seats 1.. of a table.

    Raises:
        PolicyError: Unknown name, something that is no policy, or not one per other seat.
    """
    if isinstance(opponents, str) or hasattr(opponents, "act"):
        given: list[Any] = [opponents] * (num_players - 1)
    else:
        given = list(opponents)
        if len(given) != num_players - 1:
            raise PolicyError(
                f"{len(given)} opponents for {num_players} players: give one, or {num_players - 1}"
            )
    made: dict[str, Policy] = {}
    seated: list[Policy] = []
    for one in given:
        if isinstance(one, str):
            made[one] = policy = made.get(one) or make_policy(one, rules, num_players)
        elif hasattr(one, "act"):
            policy = one
        else:
            raise PolicyError(f"opponent {one!r}: give a policy's name or an object with act()")
        seated.append(policy)
    return seated


class ChinesePokerEnv(gym.Env[dict[str, Any], dict[str, Any]]):
    """13-card Chinese Poker against seated opponents; one deal is one episode of one step.

    ## Description
    Two to four seats get 13 cards each and split them into a front of 3, a middle of 5 and a back
    of 5 cards, each row stronger than the one before. Rows are compared seat against seat; the
    house rules (`Rules`) add scoops, royalties, naturals, surrender, fouls, a bank or a pool. The
    learner sits in seat 0 and sees its own 13 cards only.

    ## Action Space
    `Dict`:

    | key | space | meaning |
    |---|---|---|
    | `declaration` | `Discrete(3)` | 0 show the rows, 1 surrender, 2 declare the best natural |
    | `placement` | `MultiDiscrete([3] * 13)` | row of the i-th card: 0 front, 1 middle, 2 back |

    Rows of the wrong size or out of order are a foul. A declaration that is not available shows
    the rows as placed. `info["invalid_action"]` says why; with `strict=True` both raise
    `ActionError` instead and the deal stays open.

    ## Observation Space
    `Dict`, never depending on hidden cards:

    | key | shape | type | range | meaning |
    |---|---|---|---|---|
    | `cards` | (13,) | int8 | 0..51 | own cards, 4 * rank + suit, highest first |
    | `hand` | (52,) | int8 | 0..1 | the same as one bit a card |
    | `naturals` | (10,) | int8 | 0..1 | patterns held, in the order of `rules.PATTERNS` |
    | `bank` | (num_players,) | int8 | 0..1 | seat of the bank, one-hot, the learner first |

    `bank` is there only with `topology="banker"`.

    ## Rewards
    Units won by the learner's seat under the rules, a float; the units of all seats sum to 0.

    ## Info
    `action_mask`: int8, shaped like the action space, in the form `action_space.sample(mask=...)`
    takes; never all zero, also after the end. After the step also `units` (num_players,) float64,
    `pairwise` (a tuple of `Pairing`: a, b, units, kind, and on demand summary and reasons),
    `statuses` and `arrangements` and `naturals` of every seat, and `invalid_action` if there was
    one.

    ## Starting State
    Deal number `index` of the seed: `reset(seed=s)` gives deal 0 of seed s, each `reset()` after it
    the next. A deal is a pure function of (s modulo 2**64, index). Without any seed one is drawn
    from the operating system. `reset(options={"hands": [...]})` gives the seats fixed cards, each
    hand as text or 13 ints; seats left out or None are dealt from the rest.

    ## Episode End
    Terminates after the one step; never truncates.

    ## Arguments
    * `rules`: a preset's name or a `Rules`; default `"mandarin"`.
    * `num_players`: 2-4; default 2.
    * `opponents`: a policy's name, a `Policy`, or one per other seat; default `"greedy"`.
    * `render_mode`: None or `"ansi"` (`render()` returns the table as text).
    * `strict`: raise on invalid actions; default False.

    ## Version History
    * v0: initial version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        rules: RulesLike = "mandarin",
        num_players: int = 2,
        opponents: OpponentsLike = "greedy",
        render_mode: str | None = None,
        strict: bool = False,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ActionError(
                f"render_mode {render_mode!r}: choose None or one of "
                f"{', '.join(self.metadata['render_modes'])}"
            )
        self.rules = read_rules(rules)
        self.num_players = num_players
        self.table = Table(self.rules, num_players)
        self.opponents = seat_opponents(opponents, self.rules, num_players)
        self.render_mode = render_mode
        self.strict = strict
        self.action_space = action_space()
        self.observation_space = observation_space(self.rules, num_players)
        self._deal_seed = 0
        self._deal_index = -1
        self._deals: Deals | None = None
        self._outcome: tuple[Actions, Settled] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Deal the next hand.

        Raises:
            ActionError: An unknown option.
            CardError: Hands that are not 13 different cards each, or share cards.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._deal_seed, self._deal_index = int(seed) & _MASK64, -1
        elif self._deal_index < 0:
            self._deal_seed = int(self.np_random_seed) & _MASK64
        self._deals = self._deal(self._deal_index + 1, options or {})
        self._deal_index += 1
        self._outcome = None
        return self._observation(), self._info()

    def step(
        self, action: dict[str, Any]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play the action, let the opponents play, settle.

        Raises:
            ActionError: An action out of the space, a step without a deal, or, if `strict`, rows
                that foul or a declaration that is not available.
        """
        if self._deals is None or self._outcome is not None:
            raise ActionError("step without an open deal: call reset() first")
        declaration, rows = self._read_action(action)
        deals = self._deals
        if self.strict:
            self._refuse(declaration, rows, deals)
        actions = self.table.act(deals, [None, *self.opponents], self.np_random)
        actions.declarations[0, 0] = declaration
        actions.rows[0, 0] = rows
        settled = self.table.score(deals, actions)
        self._outcome = actions, settled
        return self._observation(), float(settled.units[0, 0]), True, False, self._info()

    @property
    def showdown(self) -> Showdown | None:
        """The readable account of the last settled deal, None while a deal is open."""
        if self._deals is None or self._outcome is None:
            return None
        return self.table.showdown(self._deals, *self._outcome, 0)

    def render(self) -> str | None:
        """The table as text in mode "ansi": the hand, or after the step who pays whom and why."""
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environment with one")
            return None
        if self._deals is None:
            raise ActionError("render without a deal: call reset() first")
        # Rendering libraries load with the first picture, not with the environment.
        from cpoker_env.render import hand_text, showdown_text

        showdown = self.showdown
        if showdown is None:
            return hand_text(self._deals.hands[0, 0].tolist())
        return showdown_text(showdown)

    def action_masks(self) -> dict[str, Any]:
        """The mask of `info["action_mask"]`, for libraries that ask the environment."""
        can_surrender, has_natural = self._options()
        return action_mask(can_surrender, has_natural)

    # ------------------------------------------------------------------ parts of an episode

    def _deal(self, index: int, options: dict[str, Any]) -> Deals:
        unknown = set(options) - {"hands"}
        if unknown:
            raise ActionError(f"reset option {sorted(unknown)[0]!r}: the option is 'hands'")
        indices = np.array([index], np.uint64)
        if options.get("hands") is None:
            return self.table.deal(self._deal_seed, indices)
        hands = self._fixed_hands(options["hands"], indices)
        return self.table.seat(hands, np.array([self._deal_seed], np.uint64), indices)

    def _fixed_hands(
        self, given: Sequence[Any], indices: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int8]:
        if isinstance(given, str) or len(given) > self.num_players:
            raise CardError(f"hands {given!r}: give a list of at most {self.num_players} hands")
        fixed = [None if hand is None else _read_hand(hand) for hand in given]
        fixed += [None] * (self.num_players - len(fixed))
        taken = [card for hand in fixed if hand is not None for card in hand]
        if len(set(taken)) != len(taken):
            twice = next(card for card in taken if taken.count(card) > 1)
            raise CardError(f"card {twice} in two hands: each of the 52 cards exists once")
        whole_deck = Table(Rules.preset("basic"), 4).deal(self._deal_seed, indices).hands.ravel()
        rest = [int(card) for card in whole_deck if card not in set(taken)]
        hands = np.empty((1, self.num_players, 13), np.int8)
        for seat, hand in enumerate(fixed):
            if hand is None:
                hand, rest = rest[:13], rest[13:]
            hands[0, seat] = sorted(hand, reverse=True)
        return hands

    def _read_action(self, action: Any) -> tuple[int, npt.NDArray[np.int8]]:
        try:
            declaration = int(action["declaration"])
            rows = np.asarray(action["placement"])
        except (KeyError, TypeError, ValueError, IndexError):
            raise ActionError(
                f"action {action!r}: give {{'declaration': 0..2, 'placement': 13 rows}}"
            ) from None
        if not 0 <= declaration <= 2:
            raise ActionError(f"declaration {declaration}: 0 show, 1 surrender, 2 natural")
        if rows.shape != (13,) or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() > 2:
            raise ActionError(f"placement {rows!r}: give 13 integers 0 front, 1 middle, 2 back")
        return declaration, rows.astype(np.int8)

    def _options(self) -> tuple[bool, bool]:
        """(may surrender, may declare) for the learner in the current deal."""
        if self._deals is None:
            return False, False
        return bool(self._deals.can_surrender[0, 0]), bool(self._deals.naturals[0, 0] >= 0)

    def _refuse(self, declaration: int, rows: npt.NDArray[np.int8], deals: Deals) -> None:
        reason = self._unavailable(declaration)
        if not reason and declaration == SHOW:
            _, is_legal = evaluate(deals.hands[:, 0], rows[None], self.rules)
            if not is_legal[0]:
                reason = "the rows are a foul: sizes 3, 5, 5, each stronger than the one before"
        if reason:
            raise ActionError(reason)

    def _unavailable(self, declaration: int) -> str:
        can_surrender, has_natural = self._options()
        if declaration == SURRENDER and not can_surrender:
            return "surrender is not available: the rows are shown as placed"
        if declaration == DECLARE and not has_natural:
            return "no natural to declare: the rows are shown as placed"
        return ""

    def _observation(self) -> dict[str, Any]:
        assert self._deals is not None
        return observe(
            self._deals.hands[0, 0], int(self._deals.bits[0, 0]), self.rules, self.num_players
        )

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self.action_masks()}
        if self._outcome is None or self._deals is None:
            return info
        actions, settled = self._outcome
        showdown = self.table.showdown(self._deals, actions, settled, 0)
        info["units"] = settled.units[0].copy()
        info["pairwise"] = showdown.pairwise
        info["statuses"] = showdown.statuses
        info["arrangements"] = showdown.arrangements
        info["naturals"] = showdown.naturals
        reason = self._unavailable(int(actions.declarations[0, 0]))
        if STATUSES[settled.status[0, 0]] == "foul":
            sizes = np.bincount(actions.rows[0, 0], minlength=3).tolist()
            foul = (
                f"rows of {sizes} cards, not [3, 5, 5]: a foul"
                if sizes != [3, 5, 5]
                else "rows out of order: a foul"
            )
            reason = f"{reason}; {foul}" if reason else foul
        if reason:
            info["invalid_action"] = reason
        return info


def _read_hand(hand: str | Sequence[str] | Sequence[Card] | IntArray) -> list[Card]:
    if isinstance(hand, str) or any(isinstance(card, str) for card in hand):
        return parse_hand(hand)  # type: ignore[arg-type]
    return [int(card) for card in check_hands(np.asarray([hand]))[0]]

"""`ChinesePoker-v0`: one deal, one decision, one showdown."""

from typing import Any

import gymnasium as gym
import numpy as np

from cpoker_env.errors import ActionError
from cpoker_env.learners import (
    Learners,
    OpponentsLike,
    Outcome,
    RulesLike,
    problem_text,
    read_hands,
    read_seed,
    seed_of,
)
from cpoker_env.scoring import Showdown

_ONE = np.uint64(1)


class ChinesePokerEnv(gym.Env[dict[str, Any], Any]):
    """13-card Chinese Poker against seated opponents; one deal is one episode.

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
    `ActionError` instead and the deal stays open (the sequential form has an exception).

    The same deals are played with other actions under other names, or with the argument `form`;
    the classes in `cpoker_env.forms` specify what each adds:

    | id | form | action space | steps |
    |---|---|---|---|
    | `ChinesePoker-v0` | `"structured"` | as above | 1 |
    | `ChinesePokerFlat-v0` | `"flat"` | `MultiDiscrete([3] * 14)` | 1 |
    | `ChinesePokerSequential-v0` | `"sequential"` | `Discrete(5)` | 13, or 1 to declare |
    | `ChinesePokerCandidates-v0` | `"candidates"` | `Discrete(num_candidates + 2)` | 1 |

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
    takes; never all zero, also after the end. After the last step also `units` (num_players,)
    float64, `pairwise` (a tuple of `Pairing`: a, b, units, kind, and on demand summary and
    reasons), `statuses` and `arrangements` and `naturals` of every seat, and `invalid_action` if
    there was one. `action_masks()` returns the mask as sb3-contrib takes it, one vector where the
    action is one.

    ## Starting State
    Deal number `index` of the seed: `reset(seed=s)` gives deal 0 of seed s, each `reset()` after it
    the next. A deal is a pure function of (s modulo 2**64, index). Without any seed one is drawn
    from the operating system. `reset(options={"hands": [...]})` gives the seats fixed cards, each
    hand as text or 13 ints; seats left out or None are dealt from the rest.

    ## Episode End
    Terminates when the hand is complete, here after the one step; never truncates.

    ## Arguments
    * `rules`: a preset's name or a `Rules`; default `"mandarin"`.
    * `num_players`: 2-4; default 2.
    * `opponents`: a policy's name, a `Policy`, or one per other seat; default `"greedy"`.
    * `render_mode`: None, `"ansi"` or `"rgb_array"` (`render()` returns the table as text or as
      a picture).
    * `strict`: raise on invalid actions; default False.
    * `form`: `"structured"` (default), `"flat"`, `"sequential"` or `"candidates"`.
    * `mask`: of the sequential form, `"capacity"` (default) or `"legal"`.
    * `num_candidates`: of the candidates form; default 32.

    ## Version History
    * v0: initial version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        rules: RulesLike = "mandarin",
        num_players: int = 2,
        opponents: OpponentsLike = "greedy",
        render_mode: str | None = None,
        strict: bool = False,
        form: str = "structured",
        **form_options: Any,
    ) -> None:
        check_render_mode(render_mode, self.metadata)
        self.learners = Learners(rules, num_players, opponents, 1, strict, form, form_options)
        self.rules = self.learners.table.rules
        self.num_players = num_players
        self.render_mode = render_mode
        self.action_space = self.learners.action_space
        self.observation_space = self.learners.observation_space()
        self._is_seeded = False
        self._is_open = False
        self._outcome: Outcome | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Deal the next hand.

        Raises:
            ActionError: An unknown option, or a seed that is no whole number from 0 on.
            CardError: Hands that are not 13 different cards each, or share cards.
        """
        hands = read_hands(options, self.learners.table)
        given = None if seed is None else read_seed(seed)
        super().reset(seed=given)
        if given is not None or not self._is_seeded:
            name = drawn_seed(self) if given is None else given
            self.learners.seeds = np.array([seed_of(name)])
            self.learners.indices = np.zeros(1, np.uint64)
        else:
            self.learners.indices = self.learners.indices + _ONE
        self._deal(hands)
        self._is_seeded = True
        return self._observation(), {"action_mask": self._mask()}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play the action; when it completes the hand, let the opponents play and settle.

        Raises:
            ActionError: An action out of the space, a step without a deal, or, if `strict`, an
                action that is masked or a whole hand that fouls.
        """
        if not self._is_open:
            raise ActionError("step without an open deal: call reset() first")
        learners = self.learners
        outcome = learners.step(learners.form.read_one(action), learners.everyone, self.np_random)
        if outcome is None:
            return self._observation(), 0.0, False, False, {"action_mask": self._mask()}
        self._is_open = False
        self._outcome = outcome
        reward = float(outcome.settled.units[0, 0])
        return self._observation(), reward, True, False, self._info(outcome)

    @property
    def showdown(self) -> Showdown | None:
        """The readable account of the last settled deal, None while a deal is open."""
        if self._outcome is None:
            return None
        told = self._outcome
        return self.learners.table.showdown(told.deals, told.actions, told.settled, 0)

    def render(self) -> Any:
        """The table: the hand, or after the step all rows and units, with the reasons as text.

        In mode "ansi" a str, in mode "rgb_array" (H, W, 3) uint8, always of one size.
        """
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environment with one")
            return None
        if self.learners.deals is None:
            raise ActionError("render without a deal: call reset() first")
        hand, showdown = self.learners.deals.hands[0, 0].tolist(), self.showdown
        # Rendering libraries load with the first picture, not with the environment.
        if self.render_mode == "rgb_array":
            from cpoker_env.picture import hand_picture, showdown_picture

            if showdown is None:
                return hand_picture(hand, self.num_players)
            return showdown_picture(showdown)
        from cpoker_env.render import hand_text, showdown_text

        return hand_text(hand) if showdown is None else showdown_text(showdown)

    def action_masks(self) -> Any:
        """The mask as sb3-contrib takes it: a dict for Dict actions, else one int8 vector."""
        return self.learners.form.flat_mask(self.learners.available())

    def _deal(self, hands: list[Any] | None) -> None:
        self.learners.deal(hands=hands)
        self._is_open = True
        self._outcome = None

    def _observation(self) -> dict[str, Any]:
        return self.learners.observe_one()

    def _mask(self) -> Any:
        return self.learners.form.mask_of_one(self.learners.available())

    def _info(self, outcome: Outcome) -> dict[str, Any]:
        showdown = self.showdown
        assert showdown is not None
        info: dict[str, Any] = {
            "action_mask": self._mask(),
            "units": outcome.settled.units[0].copy(),
            "pairwise": showdown.pairwise,
            "statuses": showdown.statuses,
            "arrangements": showdown.arrangements,
            "naturals": showdown.naturals,
        }
        if outcome.problems[0]:
            info["invalid_action"] = problem_text(int(outcome.problems[0]))
        return info


def drawn_seed(env: Any) -> int:
    """A seed from the operating system, or from a generator that was put in by hand."""
    seed = env.np_random_seed
    return int(env.np_random.integers(2**63)) if seed is None or seed < 0 else int(seed)


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> None:
    """Raise ActionError unless an environment can draw itself so."""
    modes = metadata["render_modes"]
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode in modes):
        raise ActionError(f"render_mode {render_mode!r}: choose None or one of {', '.join(modes)}")

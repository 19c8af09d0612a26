"""The native vector environment: B tables a step, no Python per deal."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cpoker_env.env import check_render_mode, drawn_seed
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.learners import (
    Learners,
    OpponentsLike,
    Outcome,
    RulesLike,
    read_hands,
    read_seed,
    seed_of,
)
from cpoker_env.scoring import Showdown

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]


class ChinesePokerVectorEnv(VectorEnv[dict[str, Array], Any, Array]):
    """B independent tables of `ChinesePoker-v0`, in any of its forms, stepped together.

    `gym.make_vec("ChinesePoker-v0", num_envs=B)` makes it, as do the flat, sequential and
    candidates ids. Environment i reset with seed s equals the scalar environment with seed s + i,
    action for action, against opponents that draw from the names of their deals, as all of this
    package do; `ChinesePokerEnv` and the classes in `cpoker_env.forms` specify spaces, rules
    and rewards, and every part gets a first axis of length B.

    ## Seeding
    `reset(seed=s)` deals number 0 of the seeds s .. s + B - 1, `reset(seed=[...])` of the given
    ones (None leaves an environment with its next deal); `reset()` deals everyone the next. Deals
    do not depend on each other or on B; opponents that draw from `rng` share one generator, seeded
    by s or the first seed of the list.

    ## Autoreset
    `autoreset_mode` as in Gymnasium, declared in `metadata`:

    * `"SameStep"` (default): an episode that ends is followed by the next deal in the same step.
      The observation and `info["action_mask"]` belong to the new deal; `info["final_obs"]` and
      `info["final_info"]` to the one that ended.
    * `"NextStep"`: the step after the end deals and ignores its action.
    * `"Disabled"`: reset those that ended by `reset(options={"reset_mask": (B,) bool})`.

    ## Info
    `action_mask`, (B, ...) int8. Of deals that ended, in `final_info` with autoreset in the same
    step, else in the info itself, each with a mask `_key` (B,) bool as Gymnasium has it:

    | key | shape | type | meaning |
    |---|---|---|---|
    | `units` | (B, num_players) | float64 | units won by each seat |
    | `pairwise` | (B, num_players, num_players) | int32 | what the second seat owes the first |
    | `statuses` | (B, num_players) | int8 | index into `scoring.STATUSES` |
    | `naturals` | (B, num_players) | int8 | declared, index into `rules.PATTERNS`, -1 none |
    | `hands` | (B, num_players, 13) | int8 | cards of each seat, highest first |
    | `arrangements` | (B, num_players, 13) | int8 | row of each of those cards |
    | `invalid_action` | (B,) | int8 | bits of `learners.PROBLEMS`, 0 for none |

    `pairwise` is all 0 in a pool. `showdown(i)` gives the account a person can read.

    ## Arguments
    * `num_envs`: B.
    * `autoreset_mode`: see above, the enum or its value.
    * the others: as `ChinesePokerEnv`.

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        rules: RulesLike = "mandarin",
        num_players: int = 2,
        opponents: OpponentsLike = "greedy",
        render_mode: str | None = None,
        strict: bool = False,
        form: str = "structured",
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        **form_options: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigError(f"num_envs {num_envs!r}: give a whole number, 1 or more")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = ", ".join(repr(mode.value) for mode in AutoresetMode)
            raise ConfigError(f"autoreset_mode {autoreset_mode!r}: choose one of {modes}") from None
        check_render_mode(render_mode, self.metadata)
        self.learners = Learners(
            rules, num_players, opponents, num_envs, strict, form, form_options
        )
        self.num_envs = num_envs
        self.num_players = num_players
        self.rules = self.learners.table.rules
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.learners.observation_space()
        self.single_action_space = self.learners.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._everyone = np.ones(num_envs, np.bool_)
        self._is_open = np.zeros(num_envs, np.bool_)
        self._is_seeded = False
        self._outcome: Outcome | None = None
        self._ended = np.zeros(num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Deal to all, or to those of `options["reset_mask"]`.

        Args:
            seed: s for seeds s .. s + B - 1, or B seeds, or None for the next deals.
            options: `reset_mask` (B,) bool, whom to deal to; `hands`, cards of some seats as in
                `ChinesePokerEnv`, the same at every table dealt to.

        Raises:
            ActionError: An unknown option, a mask or seeds of another shape.
            CardError: Hands that are not 13 different cards each, or share cards.
        """
        if not isinstance(options, dict | None):
            raise ActionError(f"reset options {options!r}: give a dict")
        rest = dict(options or {})
        where = self._read_mask(rest.pop("reset_mask", None))
        hands = read_hands(rest, self.learners.table)
        whom = self._everyone if where is None else where
        self._name_deals(self._read_seeds(seed), whom)
        self.learners.deal(where, hands)
        self._is_seeded = True
        self._is_open = self._is_open | whom
        if self._outcome is not None:
            ended = self._outcome.where & ~whom
            self._ended = self._ended & ended
        info: dict[str, Any] = {}
        _add(info, "action_mask", self._masks(), whom)
        return self.learners.observe(), info

    def step(
        self, actions: Any
    ) -> tuple[dict[str, Array], Array, BoolArray, BoolArray, dict[str, Any]]:
        """Play one action at every table.

        Raises:
            ActionError: Actions out of the space; a table without an open deal; if `strict`, an
                action that is masked or fouls. Nothing has changed then.
        """
        learners, mode = self.learners, self.autoreset_mode
        active = self._is_open
        if not self._is_seeded or (mode != AutoresetMode.NEXT_STEP and not active.all()):
            closed = int((~active).argmax())
            raise ActionError(f"environment {closed} has no open deal: call reset() first")
        outcome = learners.step(learners.form.read(actions), active.copy(), self.np_random)
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        info: dict[str, Any] = {}
        if mode == AutoresetMode.NEXT_STEP and not active.all():
            self._deal_next(~active)
            self._is_open = self._everyone.copy()
        self._outcome, self._ended = outcome, terminated
        if outcome is not None:
            self._ended = outcome.where
            terminated = outcome.where
            rewards[terminated] = outcome.settled.units[:, 0]
            told = self._told(outcome)
            if mode == AutoresetMode.SAME_STEP:
                _add(told, "action_mask", self._masks(), terminated)
                _add(info, "final_info", told, terminated)
                _add(info, "final_obs", self._final_observations(terminated), terminated)
                self._deal_next(terminated)
            else:
                info.update(told)
                self._is_open = self._is_open & ~terminated
        _add(info, "action_mask", self._masks(), self._everyone)
        truncated = np.zeros(self.num_envs, np.bool_)
        return learners.observe(), rewards, terminated.copy(), truncated, info

    def action_masks(self) -> Any:
        """int8 masks (B, ...) shaped like the action space."""
        return self._masks()

    def legal_actions(self, rng: np.random.Generator) -> Any:
        """Random actions for all tables, as `step` takes them.

        In the structured and flat forms arrangements drawn uniformly among the legal ones, without
        declarations; in the sequential and candidates forms drawn from the masks.

        Raises:
            ActionError: No deals yet.
        """
        learners = self.learners
        if learners.deals is None:
            raise ActionError("legal_actions without deals: call reset() first")
        return learners.form.draw(learners.deals, learners.available(), rng)

    def showdown(self, index: int) -> Showdown:
        """The readable account of the deal of environment `index` that ended in the last step.

        Raises:
            ActionError: None of it ended there.
        """
        told = self._outcome
        is_whole = isinstance(index, int | np.integer) and not isinstance(index, bool)
        if not is_whole or not 0 <= index < self.num_envs:
            raise ActionError(f"environment {index!r}: there are 0..{self.num_envs - 1}")
        if told is None or not self._ended[index]:
            raise ActionError(f"environment {index} ended no deal in the last step: step first")
        place = int(np.count_nonzero(told.where[:index]))
        return self.learners.table.showdown(told.deals, told.actions, told.settled, place)

    def render(self) -> tuple[str, ...] | None:
        """In mode "ansi" a text per environment: the deal that just ended, or the hand to play."""
        if self.render_mode is None:
            logger.warn("render() without a render_mode: make the environment with one")
            return None
        if self.learners.deals is None:
            raise ActionError("render without deals: call reset() first")
        from cpoker_env.render import hand_text, showdown_text

        hands = self.learners.deals.hands
        return tuple(
            showdown_text(self.showdown(i)) if self._ended[i] else hand_text(hands[i, 0].tolist())
            for i in range(self.num_envs)
        )

    def _masks(self) -> Any:
        return self.learners.form.masks(self.learners.available())

    def _read_mask(self, given: Any) -> BoolArray | None:
        if given is None:
            return None
        try:
            where = np.asarray(given)
        except ValueError:
            where = np.empty(0)
        if where.shape != (self.num_envs,) or where.dtype != np.bool_ or not where.any():
            raise ActionError(f"reset_mask {given!r}: give ({self.num_envs},) bool, one at least")
        if not self._is_seeded and not where.all():
            raise ActionError("reset_mask before the first reset(): deal to everyone first")
        return where.copy()

    def _read_seeds(self, seed: Any) -> int | list[int | None] | None:
        """A seed, one for each environment, or None.

        Raises:
            ActionError: Not whole numbers from 0 on, or not as many as there are environments.
        """
        if seed is None:
            return None
        if not isinstance(seed, list | tuple) and not (
            isinstance(seed, np.ndarray) and seed.ndim == 1
        ):
            return read_seed(seed)
        if len(seed) != self.num_envs:
            raise ActionError(f"{len(seed)} seeds for {self.num_envs} environments: give as many")
        return [None if one is None else read_seed(one) for one in seed]

    def _name_deals(self, seed: int | list[int | None] | None, where: BoolArray) -> None:
        """Set the seeds and indices of the next deals of `where`."""
        places = np.arange(self.num_envs, dtype=np.uint64)
        known = self._everyone
        if isinstance(seed, list):
            given = [one for one in seed if one is not None]
            if given:
                super().reset(seed=given[0])
            known = np.array([one is not None for one in seed])
            seeds = places + seed_of(drawn_seed(self))
            seeds[known] = [seed_of(one) for one in given]
        elif seed is not None:
            super().reset(seed=seed)
            seeds = places + seed_of(seed)
        else:
            known = ~self._everyone
            seeds = places + seed_of(drawn_seed(self))
        fresh = where & (known | (not self._is_seeded))
        goes_on = where & ~fresh
        indices = self.learners.indices + goes_on.astype(np.uint64)
        self.learners.seeds = np.where(fresh, seeds, self.learners.seeds)
        self.learners.indices = np.where(fresh, np.uint64(0), indices)

    def _deal_next(self, where: BoolArray) -> None:
        self.learners.indices = self.learners.indices + where.astype(np.uint64)
        self.learners.deal(None if where.all() else where)

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        """What is known of deals that ended, (B, ...) each, with their masks."""
        settled = outcome.settled
        parts: dict[str, Array] = {
            "units": settled.units,
            "pairwise": settled.pairwise,
            "statuses": settled.status,
            "naturals": settled.naturals,
            "hands": outcome.deals.hands,
            "arrangements": outcome.actions.rows,
            "invalid_action": outcome.problems,
        }
        told: dict[str, Any] = {}
        for key, part in parts.items():
            whole = np.zeros((self.num_envs, *part.shape[1:]), part.dtype)
            whole[outcome.where] = part
            _add(told, key, whole, outcome.where)
        return told

    def _final_observations(self, where: BoolArray) -> "FinalObservations":
        return FinalObservations(where, self.learners.observe())


class FinalObservations(dict[Any, Array]):
    """Last observations of the episodes that ended in a step, (B, ...) by key, to be read where
    they ended.

    Indexed by environment too, as Gymnasium's object arrays are: `final_obs[i]` is that
    environment's observation, or None where none ended; `final_obs[mask]` an object array of them.
    """

    def __init__(self, where: BoolArray, observations: dict[str, Array]) -> None:
        super().__init__(observations)
        self._where = where.copy()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return super().__getitem__(index)
        places = np.arange(len(self._where))[index]
        if isinstance(places, np.ndarray):
            listed = np.empty(len(places), object)
            for i, place in enumerate(places):
                listed[i] = self[int(place)]
            return listed
        if not self._where[places]:
            return None
        return {key: part[places] for key, part in self.items()}

    def __reduce__(self) -> Any:
        return FinalObservations, (self._where, dict(self.items()))


def _add(info: dict[str, Any], key: str, value: Any, where: BoolArray) -> None:
    """Put a value and its mask into an info; a dict gets masks inside too."""
    if isinstance(value, dict) and not isinstance(value, FinalObservations):
        inside: dict[str, Any] = {}
        for name, part in value.items():
            if name.startswith("_"):
                inside[name] = part
            else:
                _add(inside, name, part, where)
        value = inside
    info[key], info[f"_{key}"] = value, where.copy()

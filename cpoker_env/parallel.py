"""The game for PettingZoo: every seat is an agent and plays its own hand.

>>> from cpoker_env.parallel import parallel_env
>>> env = parallel_env("mandarin", num_players=4, form="candidates")
>>> observations, infos = env.reset(seed=7)
"""

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import logger, spaces
from gymnasium.utils.seeding import np_random

from cpoker_env.env import check_render_mode
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.extras import check_versions, not_importable
from cpoker_env.learners import (
    RulesLike,
    problem_text,
    read_hands,
    read_seed,
    seed_of,
    with_fouls,
)
from cpoker_env.policy import Actions
from cpoker_env.rules import Rules
from cpoker_env.scoring import STATUSES, Settled, Showdown
from cpoker_env.seats import Ahead, Seats
from cpoker_env.table import Deals, Table

try:
    import pettingzoo
    from pettingzoo.utils import ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError as error:
    raise not_importable("pettingzoo", error) from error
check_versions("pettingzoo")

PerAgent = dict[str, Any]
MASKS_IN = ("observation", "info")
IDS = {
    "ChinesePoker-v0": "structured",
    "ChinesePokerFlat-v0": "flat",
    "ChinesePokerSequential-v0": "sequential",
    "ChinesePokerCandidates-v0": "candidates",
}
"""The form of each id, here and in Gymnasium."""


class ChinesePokerParallelEnv(ParallelEnv[str, Any, Any]):
    """13-card Chinese Poker in which all seats act at once; one deal is one episode.

    ## Description
    The game of `cpoker_env.env.ChinesePokerEnv` without seated opponents: `player_0` to
    `player_3` are the seats in deal order, each sees its own 13 cards only, and all show their
    rows together. The same seed deals the same cards as there and the same rows earn the same
    units.

    ## Action Space
    Of each agent, by `form`; the classes in `cpoker_env.forms` specify each:

    | form | action space | steps |
    |---|---|---|
    | `"flat"` | `MultiDiscrete([3] * 14)`: a declaration, the row of each card | 1 |
    | `"structured"` | the same as `Dict` | 1 |
    | `"candidates"` | `Discrete(num_candidates + 2)` | 1 |
    | `"sequential"` | `Discrete(5)`, a card of every seat a step | 13, or 1 if all declare |

    In the sequential form a seat that surrenders or declares at the first step waits for the
    others: its mask then allows action 0 only, and whatever it does counts for nothing. Actions
    that the mask forbids have the outcome their form documents and are told in
    `info["invalid_action"]`; with `strict=True` they raise `ActionError`, as rows that foul do, and
    the deal stays open.

    ## Observation Space
    Of each agent, `Dict`:

    | key | shape | type | meaning |
    |---|---|---|---|
    | `observation` | `Dict` | | own cards, as the observation of `ChinesePokerEnv` in this form |
    | `action_mask` | as the form's mask | int8 | what `action_space(agent).sample(mask)` takes |

    The mask is (A,) for `Discrete` actions, a tuple of 14 arrays (3,) in the flat form, a dict of
    such in the structured one, read-only in both; never all zero. With `flatten=True` the
    observation is one vector, what `gymnasium.spaces.flatten` makes of it. With `mask_in="info"`
    the observation stands alone and the mask is in the info only. Nothing in it depends on hidden
    cards.

    ## Rewards
    Units won by each seat under the rules, floats that sum to 0; 0 before the last step.

    ## Info
    Of each agent `action_mask`, the array that is in its observation too; in forms of one step the
    last step's are those of the reset. After the last step also `status`, what became of its hand
    (one of `scoring.STATUSES`), and `invalid_action` if its own action was one.
    `env.unwrapped.showdown` has the whole account: units, who owes whom and why, everybody's rows
    and naturals.

    ## Starting State
    Deal number `index` of the seed: `reset(seed=s)` gives deal 0 of seed s, each `reset()` after it
    the next. A deal is a pure function of (s modulo 2**64, index). Without any seed one is drawn
    from the operating system. `reset(options={"hands": [...]})` gives seats fixed cards; other
    options are ignored, as callers of PettingZoo expect.

    ## Episode End
    All agents terminate together once every hand is complete; none is ever truncated.

    ## Arguments
    * `rules`: a preset's name or a `Rules`; default `"mandarin"`.
    * `num_players`: 2-4; default 2.
    * `render_mode`: None or `"ansi"` (`render()` returns the table as text).
    * `strict`: raise on invalid actions; default False.
    * `form`: see above; default `"flat"`.
    * `flatten`: observations as vectors; default False.
    * `mask_in`: `"observation"` (default) or `"info"`.
    * `mask`: of the sequential form, `"capacity"` (default) or `"legal"`.
    * `num_candidates`: of the candidates form; default 32.

    ## Version History
    * v0: initial version.

    Raises:
        CPokerError: An argument out of its range, of the class that fits it.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "chinese_poker_v0",
        "render_modes": ["ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        rules: RulesLike = "mandarin",
        num_players: int = 2,
        render_mode: str | None = None,
        strict: bool = False,
        form: str = "flat",
        flatten: bool = False,
        mask_in: str = "observation",
        **form_options: Any,
    ) -> None:
        check_render_mode(render_mode, self.metadata)
        for name, value in (("strict", strict), ("flatten", flatten)):
            if not isinstance(value, bool):
                raise ConfigError(f"{name} {value!r}: give True or False")
        if not isinstance(mask_in, str) or mask_in not in MASKS_IN:
            raise ConfigError(f"mask_in {mask_in!r}: choose 'observation' or 'info'")
        self.rules = Rules.of(rules)
        self.num_players = num_players
        self.render_mode = render_mode
        self.strict = strict
        self.flatten = flatten
        self.mask_in = mask_in
        self.table = Table(self.rules, num_players)
        self.seats = Seats(self.rules, num_players, num_players, form, form_options)
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self.agents: list[str] = []
        self._names = set(self.possible_agents)
        self._observation_spaces = {agent: self._space() for agent in self.possible_agents}
        # A space of its own for each agent, as each is seeded for itself.
        self._action_spaces = {
            agent: deepcopy(self.seats.form.action_space) for agent in self.possible_agents
        }
        self._ahead: Ahead | None = None
        self._deals: Deals | None = None
        self._settled: Settled | None = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions, always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[PerAgent, dict[str, dict[str, Any]]]:
        """Deal the next hands.

        Raises:
            ActionError: A seed that is no whole number from 0 on, or options that are no dict.
            CardError: Hands that are not 13 different cards each, or share cards.
        """
        if options is not None and not isinstance(options, dict):
            raise ActionError(f"reset options {options!r}: give a dict")
        given = {"hands": options["hands"]} if options and "hands" in options else None
        hands = read_hands(given, self.table)
        if seed is not None or self._ahead is None:
            name = np_random()[1] if seed is None else read_seed(seed)
            self._ahead = Ahead(self.table, int(seed_of(name)))
        self._deals, look = self._ahead.deal(hands)
        self.seats.begin(look)
        self._settled = None
        self.agents = self.possible_agents[:]
        self._look()
        return self._observations.copy(), self._infos()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        PerAgent, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Play an action of every agent; when that completes all hands, settle.

        Raises:
            ActionError: Not an action of the space for each agent, a step without a deal, or, if
                `strict`, an action that is masked or a whole hand that fouls.
        """
        if not self.agents:
            raise ActionError("step without an open deal: call reset() first")
        seats, names = self.seats, self.possible_agents
        seats.step(seats.form.read(self._stack(actions)), self.strict)
        is_over = seats.is_done
        if seats.form.num_steps > 1:
            self._look()
        infos = self._infos()
        if is_over:
            rewards = dict(zip(names, self._settle(infos), strict=True))
            self.agents = []
        else:
            rewards = dict.fromkeys(names, 0.0)
        over, cut = dict.fromkeys(names, is_over), dict.fromkeys(names, False)
        return self._observations.copy(), rewards, over, cut, infos

    @property
    def showdown(self) -> Showdown | None:
        """The readable account of the last settled deal, None while a deal is open."""
        if self._settled is None or self._deals is None:
            return None
        return self.table.showdown(self._deals, self._actions(), self._settled, 0)

    def render(self) -> str | None:
        """The table as text in mode "ansi": all hands, or after the end who pays whom and why."""
        if self.render_mode is None:
            logger.warn("render() without a render_mode: make the environment with one")
            return None
        if self._deals is None:
            raise ActionError("render without a deal: call reset() first")
        from cpoker_env.render import hand_text, showdown_text

        showdown = self.showdown
        if showdown is not None:
            return showdown_text(showdown)
        hands = self._deals.hands[0].tolist()
        return "\n".join(
            f"{agent}\n{hand_text(hand)}"
            for agent, hand in zip(self.possible_agents, hands, strict=True)
        )

    def close(self) -> None:
        """Nothing is held."""

    def _stack(self, actions: dict[str, Any]) -> Any:
        """What `form.read` takes, of an action by agent."""
        names = self.possible_agents
        if not isinstance(actions, dict) or actions.keys() != self._names:
            given = ", ".join(map(str, actions)) if isinstance(actions, dict) else repr(actions)
            raise ActionError(f"actions of {given or 'nobody'}: give one of each of {names}")
        listed = [actions[agent] for agent in names]
        if isinstance(self.seats.form.action_space, spaces.Discrete):
            # One by one, as numpy would find a type that holds all of them.
            for agent, one in zip(names, listed, strict=True):
                if isinstance(one, bool | np.bool_):
                    raise ActionError(f"action {one!r} of {agent}: give an integer")
            return [int(one) if isinstance(one, np.integer) else one for one in listed]
        if not isinstance(self.seats.form.action_space, spaces.Dict):
            return listed
        try:
            return {
                key: [one[key] for one in listed] for key in self.seats.form.action_space.spaces
            }
        except (KeyError, TypeError, IndexError):
            raise ActionError(
                f"actions {actions!r}: give {{'declaration': 0..2, 'placement': 13 rows}} each"
            ) from None

    def _settle(self, infos: dict[str, dict[str, Any]]) -> list[float]:
        """Units of every seat; each agent's info gets what became of it."""
        assert self._deals is not None
        self._settled = settled = self.table.score(self._deals, self._actions())
        words = [STATUSES[status] for status in settled.status[0].tolist()]
        told = self.seats.problems
        if "foul" in words:
            told = with_fouls(told, settled.status[0])
        for info, word, problem in zip(infos.values(), words, told.tolist(), strict=True):
            info["status"] = word
            if problem:
                info["invalid_action"] = problem_text(problem)
        units: list[float] = settled.units[0].tolist()
        return units

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: {"action_mask": mask} for agent, mask in self._masks.items()}

    def _actions(self) -> Actions:
        declarations, rows = self.seats.actions
        return Actions(declarations[None], rows[None])

    def _look(self) -> None:
        """Set the observation and the mask of each agent."""
        batch = self.seats.observe()
        if self.flatten:
            flat = [batch[key].reshape(self.num_players, -1) for key in sorted(batch)]
            seen: list[Any] = list(np.concatenate(flat, axis=1))
        else:
            seen = [
                dict(zip(batch, parts, strict=True)) for parts in zip(*batch.values(), strict=True)
            ]
        masks = self.seats.masks_of_each()
        self._masks = dict(zip(self.possible_agents, masks, strict=True))
        if self.mask_in == "observation":
            seen = [
                {"observation": one, "action_mask": mask}
                for one, mask in zip(seen, masks, strict=True)
            ]
        self._observations = dict(zip(self.possible_agents, seen, strict=True))

    def _space(self) -> spaces.Space[Any]:
        seen: spaces.Space[Any] = self.seats.observation_space
        seen = spaces.flatten_space(seen) if self.flatten else deepcopy(seen)
        if self.mask_in == "info":
            return seen
        mask = _mask_space(self.seats.form.action_space)
        return spaces.Dict({"observation": seen, "action_mask": mask})


def _mask_space(action_space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of the masks that `action_space.sample` takes."""
    if isinstance(action_space, spaces.Dict):
        return spaces.Dict({key: _mask_space(part) for key, part in action_space.spaces.items()})
    if isinstance(action_space, spaces.MultiDiscrete):
        return spaces.Tuple([spaces.MultiBinary(int(count)) for count in action_space.nvec])
    assert isinstance(action_space, spaces.Discrete)
    return spaces.MultiBinary(int(action_space.n))


def parallel_env(*args: Any, **kwargs: Any) -> ChinesePokerParallelEnv:
    """The environment of `ChinesePokerParallelEnv`, which says what it takes."""
    return ChinesePokerParallelEnv(*args, **kwargs)


def raw_env(*args: Any, **kwargs: Any) -> Any:
    """The same turn by turn: the agents act one after the other and see nothing of each other."""
    return parallel_to_aec(parallel_env(*args, **kwargs))


def env(*args: Any, **kwargs: Any) -> Any:
    """As `raw_env`, which already comes in PettingZoo's wrapper that enforces the order."""
    return raw_env(*args, **kwargs)


def _register() -> None:
    """Put the environments into PettingZoo's registries, under the ids they have in Gymnasium.

    PettingZoo has registries from 1.27 on.
    """
    if not hasattr(pettingzoo, "register"):
        return
    registries = {
        "parallel": (pettingzoo.parallel_registry, "parallel_env"),
        "aec": (pettingzoo.aec_registry, "env"),
    }
    for name, form in IDS.items():
        for kind, (registry, maker) in registries.items():
            if name not in registry:
                pettingzoo.register(
                    kind, name, entry_point=f"{__name__}:{maker}", kwargs={"form": form}
                )


_register()

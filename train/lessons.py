"""What self-play learns from: options of hands, settled exactly against what a crowd plays."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.network import ValueNetwork, Valuer, hand_inputs
from cpoker_env.agents.neural import NeuralPolicy
from cpoker_env.agents.options import Estimates, choose
from cpoker_env.agents.population import (
    Plays,
    Population,
    Responses,
    respond,
    runs_of,
    unvalued,
)
from cpoker_env.train.exploitability import play_hands
from cpoker_env.train.whole_tables import add_tables, are_tied, deal_tables, seat_plays

from cpoker_env.row_values import select_top
from cpoker_env.rules import NUM_PATTERNS, Rules
from cpoker_env.scoring import SHOW

IntArray = npt.NDArray[Any]


class Lessons(NamedTuple):
    """Candidates of H hands, K each, and what they are worth.

    inputs: (H, NUM_INPUTS) float32.
    side_index: (H, 1) int64.
    strengths: (H, K, 3) int64.
    independent: (H, K) float32 units if rows were won independently.
    targets: (H, K) float32 units.
    weights: (H, K) float32, how much each counts; 1 for a hand in all.
    surrender: (H,) float32 units of giving up.
    """

    inputs: torch.Tensor
    side_index: torch.Tensor
    strengths: torch.Tensor
    independent: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    surrender: torch.Tensor

    def take(self, where: torch.Tensor, device: str) -> "Lessons":
        """Some of the hands, on a device."""
        return Lessons(*(part[where].to(device) for part in self))


class Taught(NamedTuple):
    """What hands play, how likely they are to make a home run of a scoop, and their lessons.

    gains: (H,) units that a best response would have won more, chosen and valued on other halves of
        the crowd; NaN for hands that met too few.
    naturals, declare: (N,) patterns held and (N,) units of declaring them.
    """

    plays: Plays
    runs: npt.NDArray[np.uint8]
    gains: npt.NDArray[np.float64]
    naturals: npt.NDArray[np.int64]
    declare: npt.NDArray[np.float64]
    lessons: Lessons


class Selection(NamedTuple):
    """Which options of a hand become lessons.

    best: the best by what they are worth. others: drawn from all. focus: units below the best at
    which a lesson counts 1 / e as much.
    """

    best: int
    others: int
    focus: float


def valued(valuer: Valuer, hands: IntArray, banks: IntArray, found: Responses) -> Estimates:
    """What a network thinks of the options of hands, in `found`."""
    values, surrender = valuer.values(hands, banks, found.options)
    may = valuer.network.rules.surrender_allowed
    return Estimates(
        found.options,
        values,
        surrender if may else np.full(len(hands), np.nan),
        np.where(found.naturals >= 0, valuer.natural[found.naturals % NUM_PATTERNS], np.nan),
    )


def teach(
    hands: IntArray, banks: IntArray, player: Valuer, learner: ValueNetwork, found: Responses,
    selection: Selection, rng: np.random.Generator,
) -> Taught:  # fmt: skip
    """Play hands as `player` would, and make lessons for `learner` of what their options are worth.

    Args:
        hands: (H, 13) int8, each highest first.
        banks: (H,) int8 sides.
        player: A network, maybe of another time.
        learner: Who learns; independent rows are worth what its own counts say.
        found: What the options are worth.
        selection: Of them, which to learn.
        rng: Draws some.
    """
    rules = learner.rules
    chosen, declarations = choose(valued(player, hands, banks, found))
    mean = found.mean()
    runs = runs_of(mean.scoops[0][chosen] * (declarations == SHOW))
    gains = np.zeros(len(hands))
    for half in range(2):
        best = found.best(half, rules)
        other = 1 - half
        gains += found.value_of(other, *best) - found.value_of(other, chosen, declarations)
    known = found.met.min(axis=0) > 0
    holds = known & (found.naturals >= 0)
    return Taught(
        found.plays(chosen, declarations), runs, np.where(known, gains / 2, np.nan),
        found.naturals[holds].astype(np.int64), mean.declare[0][holds],
        _lessons(hands, banks, learner, mean, known, selection, rng),
    )  # fmt: skip


def _lessons(
    hands: IntArray, banks: IntArray, learner: ValueNetwork, mean: Responses,
    known: npt.NDArray[np.bool_], selection: Selection, rng: np.random.Generator,
) -> Lessons:  # fmt: skip
    options, values = mean.options, mean.values[0]
    top = select_top(options, values, selection.best)
    sizes = np.diff(options.starts)
    places = (rng.random((len(hands), selection.others)) * sizes[:, None]).astype(np.int64)
    others = options.starts[:-1, None] + places
    strengths = np.concatenate([top.strengths, options.strengths[others]], axis=1)
    targets = np.concatenate([top.values, values[others]], axis=1)
    weights = np.exp((targets - targets[:, :1]) / selection.focus)
    weights[:, : selection.best][np.arange(selection.best) >= top.counts[:, None]] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    sides = learner.side_index(banks)
    per_candidate = np.repeat(sides, strengths.shape[1])
    independent = learner.independent(strengths.reshape(-1, 3), per_candidate)

    def kept(part: IntArray, dtype: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(part[known], dtype))

    return Lessons(
        hand_inputs(hands, banks)[torch.from_numpy(known)],
        kept(sides[:, None], np.int64),
        kept(strengths, np.int64),
        kept(independent.reshape(targets.shape), np.float32),
        kept(targets, np.float32),
        kept(weights, np.float32),
        kept(mean.surrender[0], np.float32),
    )


def join_lessons(parts: list[Lessons]) -> Lessons:
    """Lessons of several batches of hands as one."""
    return Lessons(*map(torch.cat, zip(*parts, strict=True)))


def answers(
    hands: IntArray, banks: IntArray, player: Valuer, population: Population | None,
    num_players: int, num_tables: int, key: int, first: int,
) -> Responses:  # fmt: skip
    """What every option of hands is worth against the crowd.

    Pairings are settled against the population. A pool of three or four ties the opponents of a
    deal together: whole tables are dealt around each hand, and `player` sits everywhere.

    Args:
        hands: (H, 13) int8, each highest first.
        banks: (H,) int8 sides.
        player: Who sits at whole tables.
        population: None where whole tables tell everything.
        num_players: Seats.
        num_tables: Whole tables around a hand, where they are needed.
        key: Names the deals, with the number of the hand.
        first: Number of the first hand.
    """
    rules = player.network.rules
    if population is not None:
        return respond(hands, population, rules, banks)
    dealt = deal_tables(hands, banks, rules, num_players, num_tables, key, first)
    policy = NeuralPolicy(player)
    others = play_hands(policy, dealt.opponents(), dealt.sides(rules), rules, num_players, 1, key)
    size = len(hands)
    nothing = Plays(
        np.zeros((size, 3), np.int16), np.zeros(size, np.int8), np.full(size, -1, np.int8),
        np.zeros(size, np.int64),
    )  # fmt: skip
    shown = seat_plays(dealt, others, nothing)
    return add_tables(unvalued(hands, rules), dealt, shown, np.zeros(size, np.bool_), rules)


def needs_tables(rules: Rules, num_players: int) -> bool:
    """Whether nothing of a deal is settled in pairs."""
    return rules.topology == "pool" and are_tied(rules, num_players)


def runs_home(rules: Rules, num_players: int) -> bool:
    """Whether hands of the crowd are asked how likely they are to make a home run."""
    return rules.topology != "pool" and are_tied(rules, num_players)

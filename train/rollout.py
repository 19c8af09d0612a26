"""Rollouts of PPO: whole deals of `ChinesePokerSequential-v0`, each played several times.

A deal is named by its seed, so a rollout starts from nothing and needs no state of the environment.
What a play won is settled against a crowd as well: the opponents' hands of the last rounds that
share no card with it are as likely its opponents as the one it met, and their mean has far less
luck in it. It is the same reward in expectation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from cpoker_env.agents.placement import Choices, decode, list_choices
from cpoker_env.agents.population import resolve
from cpoker_env.agents.ppo_policy import take

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE
from cpoker_env.policy import Actions, DecisionBatch, Policy
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, STATUSES, SURRENDER
from cpoker_env.tables import tables_for
from cpoker_env.vector import ChinesePokerVectorEnv

IntArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
_NORMAL, _FOUL, _SURRENDER, _NATURAL = range(len(STATUSES))


class LeaguePlayers:
    """Opponents: each deal is played by one of some policies, all plays of a deal alike."""

    def __init__(self, policies: Sequence[Policy] = ()) -> None:
        self.policies = policies

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions, those for the same hand asked for once."""
        names = np.stack([batch.seeds, batch.indices, batch.seats.astype(np.uint64)], axis=1)
        _, first, again = np.unique(names, axis=0, return_index=True, return_inverse=True)
        actions = Actions(np.empty(len(first), np.int8), np.empty((len(first), 13), np.int8))
        share = batch.seeds[first] % np.uint64(len(self.policies))
        for place, policy in enumerate(self.policies):
            mine = np.flatnonzero(share == place)
            if len(mine):
                found = policy.act(take(batch, first[mine]), rng)
                actions.declarations[mine], actions.rows[mine] = found.declarations, found.rows
        again = again.reshape(-1)
        return Actions(actions.declarations[again], actions.rows[again])


def make_env(rules: Rules, num_players: int, num_plays: int) -> ChinesePokerVectorEnv:
    """As many tables as a rollout has plays; their opponents are seated round by round."""
    env = gym.make_vec(
        "ChinesePokerSequential-v0", num_plays, rules=rules, num_players=num_players,
        opponents=LeaguePlayers(),
    )  # fmt: skip
    return cast(ChinesePokerVectorEnv, env)


def seat_opponents(env: ChinesePokerVectorEnv, policies: Sequence[Policy]) -> None:
    """Let policies play the other seats, each its share of the deals."""
    cast(LeaguePlayers, env.learners.opponents[0]).policies = policies


@dataclass(frozen=True)
class Ended:
    """What the environment told of B deals as they ended: (B, ...) of each seat.

    units (B, N), hands (B, N, 13), rows (B, N, 13), statuses (B, N) index into STATUSES.
    """

    units: FloatArray
    hands: npt.NDArray[np.int8]
    rows: npt.NDArray[np.int8]
    statuses: npt.NDArray[np.int8]

    @property
    def declarations(self) -> npt.NDArray[np.int8]:
        """(B, N) what was declared."""
        found = np.full(self.statuses.shape, SHOW, np.int8)
        found[self.statuses == _SURRENDER] = SURRENDER
        found[self.statuses == _NATURAL] = DECLARE
        return found


def deal(env: ChinesePokerVectorEnv, first: int, copies: int) -> tuple[DecisionBatch, Choices]:
    """Deal the seeds from `first` on, each to `copies` tables; the learner's hands once each."""
    num_deals = env.num_envs // copies
    env.reset(seed=[first + number for number in range(num_deals) for _ in range(copies)])
    deals = env.learners.deals
    assert deals is not None, "reset deals"
    batch = env.learners.table.decisions(deals, [0])
    batch = take(batch, np.arange(0, len(batch), copies))
    return batch, list_choices(batch)


def draw(
    choices: Choices, weights: FloatArray, copies: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """(H, G) indices of choices, G for each hand, drawn by their weights (T,).

    To draw a whole arrangement and lay its cards is to draw every row by its chance given those
    before.
    """
    rising = np.cumsum(weights)
    upper = rising[choices.starts[1:] - 1]
    lower = np.concatenate([[0.0], upper[:-1]])
    points = lower[:, None] + rng.random((len(choices), copies)) * (upper - lower)[:, None]
    found = np.searchsorted(rising, points, side="right")
    bounds = choices.starts[:-1, None], choices.starts[1:, None] - 1
    drawn: npt.NDArray[np.int64] = np.clip(found, *bounds)
    return drawn


def play(
    env: ChinesePokerVectorEnv, actions: npt.NDArray[np.int64], rng: np.random.Generator
) -> Ended:
    """Carry out the actions (B, 13) of deals that are dealt, step by step."""
    size, seats = env.num_envs, env.num_players
    ended = Ended(
        np.zeros((size, seats)), np.zeros((size, seats, HAND_SIZE), np.int8),
        np.zeros((size, seats, HAND_SIZE), np.int8), np.zeros((size, seats), np.int8),
    )  # fmt: skip
    alive = np.ones(size, np.bool_)
    for step in range(HAND_SIZE):
        # A table whose learner declared has dealt again and never comes to an end here.
        _, _, terminated, _, info = env.step(np.where(alive, actions[:, step], 2))
        done = terminated & alive
        if done.any():
            told = info["final_info"]
            ended.units[done] = told["units"][done]
            ended.hands[done] = told["hands"][done]
            ended.rows[done] = told["arrangements"][done]
            ended.statuses[done] = told["statuses"][done]
        alive &= ~terminated
    return ended


class Crowd(NamedTuple):
    """P opponents' hands as they were played.

    masks (P,) uint64 card sets; bank (P,) int8; strengths (P, 3) int16; status, naturals (P,) int8;
    keys (P,) int64.
    """

    masks: npt.NDArray[np.uint64]
    bank: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    status: npt.NDArray[np.int8]
    naturals: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]


def crowd_of(ended: Ended, copies: int, rules: Rules) -> Crowd:
    """The opponents' hands of deals that were played `copies` times each."""
    hands = ended.hands[::copies, 1:].reshape(-1, HAND_SIZE)
    plays = resolve(
        hands, ended.rows[::copies, 1:].reshape(-1, HAND_SIZE),
        ended.declarations[::copies, 1:].reshape(-1), rules,
    )  # fmt: skip
    bank = np.zeros(len(hands), np.int8)
    if rules.banker is not None:
        seats = np.arange(len(hands)) % (ended.units.shape[1] - 1) + 1
        bank = np.where(seats == rules.banker, 1, -1).astype(np.int8)
    sets = (np.uint64(1) << hands.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return Crowd(sets, bank, *plays)


def settle(ended: Ended, batch: DecisionBatch, crowd: Crowd, most: int, rules: Rules) -> FloatArray:
    """(B,) mean units of plays against the hands of a crowd that share no card with theirs.

    A hand that meets none keeps what it won from its own opponents.

    Args:
        ended: B plays of H hands, those of a hand side by side.
        batch: The H decisions.
        crowd: The opponents.
        most: Of whom a hand meets at most so many.
        rules: The house rules.
    """
    size, num_hands = len(ended.units), len(batch)
    copies = size // num_hands
    won = ended.units[:, 0] / (ended.units.shape[1] - 1)
    mine = resolve(ended.hands[:, 0], ended.rows[:, 0], ended.declarations[:, 0], rules)
    shown = np.empty(size, np.float32)
    surrender, declare = np.empty(num_hands, np.float32), np.empty(num_hands, np.float32)
    met = np.empty(num_hands, np.int32)
    kernels.population_values_into(
        batch.hands, np.arange(0, size + 1, copies), mine.strengths, batch.naturals, batch.bank,
        *crowd, most, tables_for(rules).naturals, rules.packed, shown, surrender, declare, met,
    )  # fmt: skip
    by_status = np.stack([shown, won, surrender.repeat(copies), declare.repeat(copies)])
    told = by_status[ended.statuses[:, 0], np.arange(size)]
    return np.where((met > 0).repeat(copies), told, won)


def actions_of(choices: Choices, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(H * G, 13) actions of the chosen (H, G)."""
    return decode(choices.codes[chosen.reshape(-1)])

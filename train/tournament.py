"""Every agent against every other on duplicate deals.

A deal is given out once. Every agent decides what it would do with each of its hands, and these
decisions are then settled in every seating of every pair and table, so that all agents hold all
hands against the same opponents' hands, and adding an agent costs its own decisions only.

Deals are played in chunks of a fixed size, the shards of a run, and what an agent draws at random
depends on the seed, its name and the chunk alone. Chunks are added up exactly. So the result does
not depend on who plays which chunk.
"""

import zlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import partial
from itertools import combinations, permutations
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.external import External, Failures
from cpoker_env.train.keep import Shard
from cpoker_env.train.recipes import Recipe, count_failures, made
from cpoker_env.train.shards import Runner, cut
from cpoker_env.train.tally import Result, Tally, add_up

from cpoker_env.policy import Actions, Policy
from cpoker_env.rules import Rules
from cpoker_env.table import Deals, Table

CHUNK = 256
"""Deals played at once."""


@dataclass(frozen=True)
class Schedule:
    """Who plays whom on which deals: all that a process needs to play any part of it.

    agents: their names in the results.
    recipes: of their policies; None for one that is given as an object.
    tables: whether different agents sit together too.
    """

    agents: tuple[str, ...]
    recipes: tuple[Recipe | None, ...]
    rules: Rules
    num_players: int
    num_deals: int
    seed: int
    tables: bool

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """One agent and who takes all other seats; with two seats in one order only."""
        if self.num_players == 2:
            return list(combinations(range(len(self.agents)), 2))
        return list(permutations(range(len(self.agents)), 2))

    @property
    def lineups(self) -> list[tuple[int, ...]]:
        """Every choice of different agents for a full table; with two seats these are the pairs."""
        if not self.tables or self.num_players == 2:
            return []
        return list(combinations(range(len(self.agents)), self.num_players))

    def made(self) -> dict[str, Policy]:
        """The policies by agent, all of which have recipes, made once in this process."""
        return {
            agent: made(recipe)
            for agent, recipe in zip(self.agents, self.recipes, strict=True)
            if recipe is not None
        }


class Results(NamedTuple):
    """Results of each pair, of each lineup, of each agent over all lineups; failures by agent."""

    pairs: list[Result]
    tables: list[list[Result]]
    standings: list[Result]
    failures: dict[str, Failures]


def play(schedule: Schedule, policies: Mapping[str, Policy], runner: Runner) -> Results:
    """Results of a schedule.

    Args:
        policies: Of every agent; workers make their own.
        runner: Who plays.

    Raises:
        PolicyError: A policy answered out of shape or range.
        WorkerError: Some deals could not be played.
    """
    work = partial(play_deals, schedule, policies if runner.executor.is_here else None)
    done = runner.run(work, cut(schedule.num_deals, CHUNK), "playing", "deals")
    failures: dict[str, Failures] = {}
    for part in done:
        for agent, record in part["failures"].items():
            failures.setdefault(agent, Failures()).extend(Failures.from_dict(record))
    tallies = add_up(tuple(Tally(*sums) for sums in part["tallies"]) for part in done)
    return _results(schedule, tallies, failures)


def play_deals(
    schedule: Schedule, policies: Mapping[str, Policy] | None, shard: Shard
) -> dict[str, Any]:
    """Play a chunk of the deals; None makes the policies, once in this process.

    Returns:
        tallies: Of each pair, then of each agent of each lineup, then of each agent over all
            lineups: the three sums of each. failures: of each external agent.
    """
    if policies is None:
        policies = schedule.made()
    table = Table(schedule.rules, schedule.num_players)
    deals = table.deal(schedule.seed, np.arange(*shard, dtype=np.uint64))
    everywhere = list(range(schedule.num_players))
    decisions: list[Actions] = []
    failures: dict[str, Any] = {}
    for name in schedule.agents:
        policy = policies[name]
        counted = count_failures(policy)
        words = [schedule.seed, zlib.crc32(name.encode()), shard.start // CHUNK]
        decisions.append(table.act(deals, [(policy, everywhere)], np.random.default_rng(words)))
        if isinstance(policy, External):
            failures[name] = counted.to_dict()

    def settle(seating: tuple[int, ...]) -> npt.NDArray[np.int64]:
        return _settle(table, deals, [decisions[agent] for agent in seating])

    tallies = []
    for agent, other in schedule.pairs:
        plays = [
            settle(tuple(agent if s == seat else other for s in everywhere))[:, seat]
            for seat in everywhere
        ]
        tallies.append(Tally.of(np.stack(plays, axis=1)))
    won: dict[int, list[npt.NDArray[np.int64]]] = {a: [] for a in range(len(schedule.agents))}
    for lineup in schedule.lineups:
        seatings = [(seating, settle(seating)) for seating in permutations(lineup)]
        for agent in lineup:
            columns = [units[:, seating.index(agent)] for seating, units in seatings]
            won[agent].append(np.stack(columns, axis=1))
            tallies.append(Tally.of(won[agent][-1]))
    if schedule.lineups:
        tallies += [Tally.of(np.concatenate(plays, axis=1)) for plays in won.values()]
    return {"tallies": [astuple(tally) for tally in tallies], "failures": failures}


def _settle(table: Table, deals: Deals, decisions: list[Actions]) -> npt.NDArray[np.int64]:
    """(B, N) whole parts of a unit, every seat doing what its agent decided there."""
    actions = Actions(
        np.stack([made.declarations[:, seat] for seat, made in enumerate(decisions)], axis=1),
        np.stack([made.rows[:, seat] for seat, made in enumerate(decisions)], axis=1),
    )
    units = table.score(deals, actions).units * table.rules.unit_scale
    return np.rint(units).astype(np.int64)


def _results(
    schedule: Schedule, tallies: tuple[Tally, ...], failures: dict[str, Failures]
) -> Results:
    names, seats = schedule.agents, schedule.num_players
    left = iter(tallies)

    def result(agent: str, opponent: str, num_plays: int) -> Result:
        return next(left).result(
            agent, opponent, schedule.num_deals, num_plays, schedule.rules.unit_scale
        )

    pairs = [result(names[agent], names[other], seats) for agent, other in schedule.pairs]
    orders = factorial(seats)
    tables = []
    for lineup in schedule.lineups:
        others = {a: " + ".join(names[other] for other in lineup if other != a) for a in lineup}
        tables.append([result(names[agent], others[agent], orders) for agent in lineup])
    standings = []
    if tables:
        num_lineups = comb(len(names) - 1, seats - 1)
        standings = [result(name, "every table", num_lineups * orders) for name in names]
    return Results(pairs, tables, standings, failures)

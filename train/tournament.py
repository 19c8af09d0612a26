"""Every agent against every other on duplicate deals, in this process or in several.

A deal is given out once. Every agent decides what it would do with each of its hands, and these
decisions are then settled in every seating of every pair and table, so that all agents hold all
hands against the same opponents' hands, and adding an agent costs its own decisions only.

Deals are played in chunks of a fixed size, and what an agent draws at random depends on the seed,
its name and the chunk alone. Chunks are added up exactly. So the result does not depend on who
plays which chunk.
"""

import contextlib
import os
import signal
import zlib
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations, repeat
from math import comb, factorial
from multiprocessing import active_children, get_context
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.external import External, Failures
from cpoker_env.agents.program import stop_programs
from cpoker_env.train.tally import Result, Tally, add_up
from rich.console import Console
from rich.progress import track

from cpoker_env.errors import WorkerError
from cpoker_env.policy import Actions, Policy, make_policy, register_policy
from cpoker_env.rules import Rules
from cpoker_env.table import Deals, Table

CHUNK = 256
"""Deals played at once."""


@dataclass(frozen=True)
class Schedule:
    """Who plays whom on which deals: all that a process needs to play any part of it.

    agents: their names in the results.
    policies: what make_policy makes of each; None for one that is given as an object.
    factories: of the policies, as pairs of a word and an import string, for other processes.
    tables: whether different agents sit together too.
    timeout: seconds that an external program has for a line.
    """

    agents: tuple[str, ...]
    policies: tuple[str | None, ...]
    factories: tuple[tuple[str, str], ...]
    rules: Rules
    num_players: int
    num_deals: int
    seed: int
    tables: bool
    timeout: float

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

    @property
    def num_chunks(self) -> int:
        return -(-self.num_deals // CHUNK)

    def make(self, agent: int) -> Policy:
        """The policy of an agent with a name.

        Raises:
            PolicyError, CheckpointError: It cannot be made.
        """
        name = self.policies[agent]
        assert name is not None
        options = {"timeout": self.timeout} if name.partition(":")[0] == "external" else {}
        return make_policy(name, self.rules, self.num_players, **options)


class Played(NamedTuple):
    """What came of a chunk of deals.

    tallies: of each pair, then of each agent of each lineup, then of each agent over all lineups.
    failures: of each external agent.
    """

    tallies: tuple[Tally, ...]
    failures: dict[str, Failures]


class Results(NamedTuple):
    """Results of each pair, of each lineup, of each agent over all lineups; failures by agent."""

    pairs: list[Result]
    tables: list[list[Result]]
    standings: list[Result]
    failures: dict[str, Failures]


def play(
    schedule: Schedule, policies: Mapping[str, Policy], workers: int, progress: bool
) -> Results:
    """Results of a schedule.

    Args:
        policies: Of every agent; with several workers each makes its own.
        workers: Processes that play.
        progress: Show a bar on standard error.

    Raises:
        PolicyError: A policy answered out of shape or range.
        WorkerError: A worker died.
    """
    played: Generator[Played, None, None]
    if workers == 1:
        played = (play_chunk(schedule, policies, c) for c in range(schedule.num_chunks))
    else:
        played = _play_in_workers(schedule, workers)
    with contextlib.closing(played):
        done = list(
            track(
                played, "playing", schedule.num_chunks,
                console=Console(stderr=True), disable=not progress,
            )
        )  # fmt: skip
    failures: dict[str, Failures] = {}
    for part in done:
        for agent, more in part.failures.items():
            failures.setdefault(agent, Failures()).extend(more)
    return _results(schedule, add_up(part.tallies for part in done), failures)


def play_chunk(schedule: Schedule, policies: Mapping[str, Policy], chunk: int) -> Played:
    """Play some of the deals."""
    table = Table(schedule.rules, schedule.num_players)
    start = chunk * CHUNK
    indices = np.arange(start, min(start + CHUNK, schedule.num_deals), dtype=np.uint64)
    deals = table.deal(schedule.seed, indices)
    everywhere = list(range(schedule.num_players))
    decisions: list[Actions] = []
    failures: dict[str, Failures] = {}
    with _one_thread():
        for name in schedule.agents:
            policy = policies[name]
            if isinstance(policy, External):
                policy.failures = failures[name] = Failures()
            rng = np.random.default_rng([schedule.seed, zlib.crc32(name.encode()), chunk])
            decisions.append(table.act(deals, [(policy, everywhere)], rng))

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
    return Played(tuple(tallies), failures)


def _settle(table: Table, deals: Deals, decisions: list[Actions]) -> npt.NDArray[np.int64]:
    """(B, N) whole parts of a unit, every seat doing what its agent decided there."""
    actions = Actions(
        np.stack([made.declarations[:, seat] for seat, made in enumerate(decisions)], axis=1),
        np.stack([made.rows[:, seat] for seat, made in enumerate(decisions)], axis=1),
    )
    units = table.score(deals, actions).units * table.rules.unit_scale
    return np.rint(units).astype(np.int64)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Networks in one thread, as sums of floats may depend on how many share them out."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def _play_in_workers(schedule: Schedule, workers: int) -> Generator[Played, None, None]:
    """What comes of every chunk, in order."""
    others = set(active_children())
    pool = ProcessPoolExecutor(
        min(workers, schedule.num_chunks), get_context("spawn"), _start_worker
    )
    try:
        yield from pool.map(_play_by_name, repeat(schedule), range(schedule.num_chunks))
    except BrokenProcessPool:
        raise WorkerError(
            f"one of {workers} workers died: see above, or use 1 worker to see why; a script that "
            'plays with several starts under `if __name__ == "__main__":`'
        ) from None
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    # An interrupt from the keyboard reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: object) -> None:
    # Told twice, it would wait for a lock that it holds itself.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stop_programs()
    os._exit(1)


def _play_by_name(schedule: Schedule, chunk: int) -> Played:
    return play_chunk(schedule, _made(schedule), chunk)


@cache
def _made(schedule: Schedule) -> dict[str, Policy]:
    """The policies of a worker, made once."""
    for word, factory in schedule.factories:
        register_policy(word, factory, overwrite=True)
    return {agent: schedule.make(place) for place, agent in enumerate(schedule.agents)}

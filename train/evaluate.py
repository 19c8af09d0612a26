"""`cpoker evaluate`: agents against each other on duplicate deals, with intervals by deal.

Each deal is played once for every seat the agent can take, its opponents in the other seats, so
that both sides hold every hand; the deal's result is the mean of these plays, which takes most of
the luck of the cards out. Intervals are 1.96 standard errors over deals.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from cpoker_env.agents.checkpoint import write_bytes
from rich.console import Console
from rich.progress import track
from rich.table import Table as RichTable

from cpoker_env.errors import ConfigError
from cpoker_env.policy import Policy, make_policy
from cpoker_env.rules import Rules, read_rules
from cpoker_env.table import Table

CHUNK = 2048
"""Deals played at once; results do not depend on it for policies that use the batch's streams."""


@dataclass(frozen=True)
class Config:
    """Agents against each other, all pairs, on duplicate deals with seats rotated."""

    agents: str = "balanced,greedy,uniform"
    """Names separated by commas, each as make_policy takes it."""
    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    players: int = 2
    """Seats at the table, 2-4; one holds the first agent, the others the second."""
    deals: int = 5000
    """Deals for each pair, each played once per seat."""
    seed: int = 1
    """Names the deals: the same seed gives every pair the same cards."""
    json: Path | None = None
    """Also write the results to this file."""


@dataclass(frozen=True)
class Result:
    """Units per deal that `agent` wins from `opponent`s in all other seats.

    half_width: of the 95 % interval, over deals, after averaging each deal's rotations.
    single_half_width: of the interval the same number of plays would give without duplication.
    """

    agent: str
    opponent: str
    deals: int
    units: float
    half_width: float
    single_half_width: float

    def __str__(self) -> str:
        return f"{self.units:+.3f} ± {self.half_width:.3f}"


def duel(
    agent: Policy,
    opponent: Policy,
    rules: Rules,
    num_players: int,
    num_deals: int,
    seed: int,
    names: tuple[str, str] = ("agent", "opponent"),
) -> Result:
    """One agent against copies of another, every seat rotation of every deal.

    Args:
        agent: Sits in each seat once per deal.
        opponent: Sits in all other seats.
        num_deals: At least 2.
        seed: Names the deals 0..num_deals - 1.

    Raises:
        ConfigError: Fewer than 2 deals.
    """
    if num_deals < 2:
        raise ConfigError(f"deals {num_deals}: an interval needs 2 or more")
    table = Table(rules, num_players)
    plays = np.empty((num_deals, num_players))
    for start in range(0, num_deals, CHUNK):
        indices = np.arange(start, min(start + CHUNK, num_deals), dtype=np.uint64)
        deals = table.deal(seed, indices)
        rng = np.random.default_rng([seed, start])
        for seat in range(num_players):
            policies = [agent if s == seat else opponent for s in range(num_players)]
            settled = table.play(deals, policies, rng)
            plays[start : start + len(indices), seat] = settled.units[:, seat]
    means = plays.mean(axis=1)
    half_width = 1.96 * means.std(ddof=1) / np.sqrt(num_deals)
    single = 1.96 * plays.std(ddof=1) / np.sqrt(plays.size)
    return Result(*names, num_deals, float(means.mean()), float(half_width), float(single))


def evaluate(
    names: Sequence[str], rules: Rules, num_players: int, num_deals: int, seed: int,
    progress: bool = False,
) -> list[Result]:  # fmt: skip
    """Every agent against every other, in the order of `names`.

    Raises:
        ConfigError: Fewer than two agents.
        PolicyError, CheckpointError: An agent that cannot be made.
    """
    if len(names) < 2:
        raise ConfigError(f"agents {','.join(names)!r}: name at least two, separated by commas")
    made = {name: make_policy(name, rules, num_players) for name in names}
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    if num_players > 2:
        pairs += [(b, a) for a, b in pairs]
    steps = track(pairs, "evaluating", console=Console(stderr=True), disable=not progress)
    return [duel(made[a], made[b], rules, num_players, num_deals, seed, (a, b)) for a, b in steps]


def results_table(results: Sequence[Result], title: str) -> RichTable:
    """Results as a table to print."""
    table = RichTable(title=title, title_justify="left")
    table.add_column("agent")
    table.add_column("against")
    table.add_column("units a deal, 95 %", justify="right")
    table.add_column("deals", justify="right")
    table.add_column("interval without duplication", justify="right")
    for result in results:
        table.add_row(
            result.agent, result.opponent, str(result), f"{result.deals:,}",
            f"± {result.single_half_width:.3f}",
        )  # fmt: skip
    return table


def main(config: Config) -> None:
    """Evaluate and print the table.

    Raises:
        ConfigError: A setting out of range.
    """
    rules = read_rules(config.rules)
    names = [name.strip() for name in config.agents.split(",") if name.strip()]
    results = evaluate(names, rules, config.players, config.deals, config.seed, progress=True)
    title = (
        f"{config.rules}, {config.players} seats, seed {config.seed}: "
        f"each deal played {config.players} times, seats rotated"
    )
    Console().print(results_table(results, title))
    if config.json is not None:
        record = {
            "rules": rules.to_dict(), "players": config.players, "deals": config.deals,
            "seed": config.seed, "results": [asdict(result) for result in results],
        }  # fmt: skip
        write_bytes(config.json, (json.dumps(record, indent=2) + "\n").encode())


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Config))

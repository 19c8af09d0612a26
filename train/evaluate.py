"""`cpoker evaluate`: agents against each other on duplicate deals, with intervals by deal.

All pairs: one agent against copies of another, which take all other seats. Full tables: every
choice of as many different agents as there are seats. Each deal is played in every seating, so that
all sides hold every hand; the deal's result is the mean of these plays, which takes most of the
luck of the cards out. Intervals are 1.96 standard errors over deals. Beside each stands the
interval that playing each deal once would give, and how many deals it would take in that way.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cpoker_env.agents.checkpoint import check_targets, write_bytes
from cpoker_env.agents.external import External, Failures
from cpoker_env.train.keep import Keep, partial_of
from cpoker_env.train.matrix import (
    by_pair,
    check_plotting,
    failure_lines,
    heat_map,
    labels_of,
    matrix_table,
    results_table,
    wide_console,
)
from cpoker_env.train.recipes import check_portable, recipe_of
from cpoker_env.train.shards import open_runner
from cpoker_env.train.tally import Result
from cpoker_env.train.tournament import Schedule, play

from cpoker_env import __version__
from cpoker_env.errors import ConfigError, PolicyError
from cpoker_env.policy import Policy
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import check_num_seats

MOST_TABLES = 4
"""Full tables that are printed one by one; the JSON file has all."""


@dataclass(frozen=True)
class Config:
    """Agents against each other on duplicate deals, all pairs and full tables."""

    agents: str = "balanced,greedy,uniform"
    """Names separated by commas, each as make_policy takes it. `external:COMMAND` seats a program
    in any language; commas inside quotes belong to it: "greedy,external:./bot --weights '1,2'"."""
    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    players: int = 2
    """Seats at the table, 2-4; in a pair one holds the first agent, the others the second."""
    deals: int = 5000
    """Deals, each played in every seating of every pair and table."""
    seed: int = 11
    """Names the deals: the same seed gives everybody the same cards. Agents that ship learned from
    the deals of seed 1."""
    tables: bool = True
    """Also seat different agents together, where seats are more than two and agents enough."""
    workers: int = 1
    """Processes that play; the results are the same for any number, given that external programs
    answer a hand the same way whatever they were asked before."""
    ray: str | None = None
    """Play on a Ray cluster instead, given its address, or "local" for one of `workers` workers on
    this machine; needs the extra "ray". Every machine has the same versions of everything."""
    keep: Path | None = None
    """Keep what is played in this file, from which the same command goes on; by default
    JSON.partial where `json` is given, until the run is complete."""
    timeout: float = 10.0
    """Seconds an external program has for a hand."""
    json: Path | None = None
    """Also write the results to this file."""
    plot: Path | None = None
    """Also draw the pairs as a heat map, a PNG picture; needs matplotlib (the extra "plot")."""


@dataclass(frozen=True)
class Evaluation:
    """What agents won from each other.

    pairs: one agent against copies of another; with two seats each pair once, in the order of the
        agents, else in both roles.
    tables: the results of every choice of different agents for a full table.
    standings: of each agent over all these tables.
    failures: what went wrong with each external agent; it is asked once for every hand and used
        that answer in every seating.
    """

    agents: tuple[str, ...]
    rules: Rules
    num_players: int
    num_deals: int
    seed: int
    pairs: list[Result]
    tables: list[list[Result]]
    standings: list[Result]
    failures: dict[str, Failures]

    @property
    def num_hands(self) -> int:
        """Hands each agent decided."""
        return self.num_deals * self.num_players

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return {
            "version": __version__,
            "rules": self.rules.to_dict(),
            "players": self.num_players,
            "deals": self.num_deals,
            "seed": self.seed,
            "agents": list(self.agents),
            "results": [asdict(result) for result in self.pairs],
            "tables": [[asdict(result) for result in table] for table in self.tables],
            "standings": [asdict(result) for result in self.standings],
            "failures": {
                agent: {"hands": self.num_hands, **found.to_dict()}
                for agent, found in self.failures.items()
            },
        }


def evaluate(
    agents: str | Sequence[str] | Mapping[str, str | Policy],
    rules: Rules | str = "mandarin",
    num_players: int = 2,
    num_deals: int = 5000,
    seed: int = 11,
    *,
    tables: bool = True,
    workers: int = 1,
    timeout: float = 10.0,
    progress: bool = False,
    ray: str | None = None,
    keep: Path | None = None,
) -> Evaluation:
    """Every agent against every other, and at full tables.

    Args:
        agents: Two or more names as make_policy takes them, or one text of them with commas; or,
            under any names, such names and policies.
        rules: The house rules.
        num_players: Seats, 2-4.
        num_deals: Deals 0..num_deals - 1 of the seed, at least 2.
        seed: Names the deals.
        tables: Whether full tables are played, where seats are more than two and agents enough.
        workers: Processes that play; more than one take policies by name only.
        timeout: Seconds an external program has for a line.
        progress: Show a bar on standard error.
        ray: Address of a Ray cluster that plays instead, or "local", see `open_runner`.
        keep: File in which what is played is kept, and from which the same evaluation goes on;
            policies by name only.

    Raises:
        ConfigError: A setting out of range, fewer than two agents, or no such cluster.
        ShowdownError: Not 2-4 seats, or a bank's seat that is not taken.
        PolicyError, CheckpointError: An agent that cannot be made, or that answered out of shape;
            or a file that is damaged or of another evaluation.
        WorkerError: Some deals could not be played.
    """
    rules = Rules.of(rules)
    check_num_seats(num_players, rules)
    for name, value, least in (
        ("deals", num_deals, 2), ("workers", workers, 1), ("seed", seed, 0)
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**64:
            raise ConfigError(f"{name} {value!r}: give a whole number from {least} on")
    if isinstance(agents, str):
        agents = split_agents(agents)
    given = agents if isinstance(agents, Mapping) else dict(zip(agents, agents, strict=True))
    if len(given) < max(2, len(agents)):
        raise ConfigError(f"agents {','.join(agents)!r}: name at least two, each once")
    for agent, item in given.items():
        if not isinstance(item, str | Policy):
            raise PolicyError(f"agent {agent!r}: {item!r} is neither a name nor has it act()")
    recipes = {
        agent: recipe_of(item, rules, num_players, timeout) if isinstance(item, str) else None
        for agent, item in given.items()
    }
    for option, is_given in ((f"workers {workers}", workers > 1), ("ray", ray), ("keep", keep)):
        if is_given:
            for agent, recipe in recipes.items():
                check_portable(agent, recipe, option)
    schedule = Schedule(
        tuple(given), tuple(recipes.values()), rules, num_players, num_deals, seed, tables
    )
    kept = Keep(keep, _settings(schedule)) if keep else None
    policies: dict[str, Policy] = {}
    try:
        with open_runner(workers, ray, kept, progress) as runner:
            # Made here even if workers make their own, so that what cannot be made is known at
            # once; meanwhile they start.
            for agent, item in given.items():
                policies[agent] = (
                    recipe_of(item, rules, num_players, timeout).make()
                    if isinstance(item, str)
                    else item
                )
            results = play(schedule, policies, runner)
    finally:
        for agent, policy in policies.items():
            if isinstance(policy, External) and policy is not given[agent]:
                policy.close()
    return Evaluation(schedule.agents, rules, num_players, num_deals, seed, *results)


def _settings(schedule: Schedule) -> dict[str, Any]:
    """All that decides what comes of a schedule whose agents have names."""
    return {
        "command": "evaluate",
        "agents": [
            [agent, *recipe.identity]
            for agent, recipe in zip(schedule.agents, schedule.recipes, strict=True)
            if recipe is not None
        ],
        "rules": schedule.rules.to_dict(),
        "players": schedule.num_players,
        "deals": schedule.num_deals,
        "seed": schedule.seed,
        "tables": schedule.tables,
    }


def duel(
    agent: Policy,
    opponent: Policy,
    rules: Rules,
    num_players: int,
    num_deals: int,
    seed: int,
    names: tuple[str, str] = ("agent", "opponent"),
) -> Result:
    """What one agent wins from copies of another in all other seats, as in `evaluate`.

    Args:
        agent: Sits in each seat once per deal.
        opponent: Sits in all other seats.
        num_deals: At least 2.
        seed: Names the deals 0..num_deals - 1.

    Raises:
        ConfigError: Fewer than 2 deals.
    """
    given = {names[0]: agent, names[1]: opponent}
    return evaluate(given, rules, num_players, num_deals, seed, tables=False).pairs[0]


_AGENT = re.compile(r"""(?:[^,"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


def split_agents(text: str) -> list[str]:
    """Names separated by commas; those inside quotes separate nothing where a program is named.

    Raises:
        ConfigError: A quote that is not closed.

    Example:
        >>> split_agents("greedy,external:./bot --weights '1,2',uniform")
        ['greedy', "external:./bot --weights '1,2'", 'uniform']
    """
    if "external:" not in text:
        found = text.split(",")
    elif _AGENT.sub("", text).strip(","):
        raise ConfigError(f"agents {text!r}: close every quote")
    else:
        found = _AGENT.findall(text)
    return [name.strip() for name in found if name.strip()]


def main(config: Config) -> None:
    """Evaluate, print the tables, write the files.

    Raises:
        ConfigError: A setting out of range, a file that cannot be written, or no matplotlib.
        RulesError, ShowdownError, PolicyError, CheckpointError, WorkerError: As `evaluate`.
    """
    rules = read_rules(config.rules)
    agents = split_agents(config.agents)
    if config.plot is not None:
        check_plotting()
    check_targets(json=config.json, plot=config.plot, keep=config.keep)
    found = evaluate(
        agents, rules, config.players, config.deals, config.seed, tables=config.tables,
        workers=config.workers, timeout=config.timeout, progress=True, ray=config.ray,
        keep=config.keep or (partial_of(config.json) if config.json else None),
    )  # fmt: skip
    title = f"{config.rules}, {config.players} seats, {config.deals:,} deals, seed {config.seed}"
    # Files first, as whoever reads the output may stop reading.
    if config.json is not None:
        write_bytes(config.json, (json.dumps(found.to_dict(), indent=2) + "\n").encode())
        if config.keep is None:
            partial_of(config.json).unlink(missing_ok=True)
    if config.plot is not None:
        pairs = by_pair(found.pairs, config.players)
        write_bytes(config.plot, heat_map(found.agents, pairs, labels_of(found.agents), title))
    show(found, title)


def show(found: Evaluation, title: str) -> None:
    """Print an evaluation."""
    labels = labels_of(found.agents)
    pairs = by_pair(found.pairs, found.num_players)
    console = wide_console()
    whom = "another" if found.num_players == 2 else "copies of another in all other seats"
    console.print(f"{title}; pairs are one agent against {whom}", highlight=False)
    console.print(matrix_table(found.agents, pairs, labels, "units a deal, row against column"))
    console.print(results_table(found.pairs, "pairs, each deal played from every seat", labels))
    if found.tables:
        shown = found.standings if len(found.tables) > 1 else []
        if len(found.tables) <= MOST_TABLES:
            shown = [*shown, *(result for table in found.tables for result in table)]
        console.print(results_table(shown, "full tables, each deal in every seating", labels))
    for line in [
        *(f"{label} is {agent}" for agent, label in labels.items() if label != agent),
        *failure_lines(found.failures, found.num_hands, labels),
    ]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Config))

"""Fictitious play over whole hands: a population that nobody can exploit by much, and its tables.

The population starts as `balanced` plays it. Each round a share of its hands is replayed as the
exact best response to all of it, card removal included; shares fall like 1 / round, so that the
population is the average of all rounds, until a floor keeps it moving. What a round's best
responses gain over the hands they replace shows how exploitable it still is; a little less than
it is, as those hands were answers to much the same population.

In the end `cpoker_env.train.tables` fits the small tables of `equilibrium` to the population.

    python -m cpoker_env.train.fictitious_play --rules four_two
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.checkpoint import load_run, save_checkpoint, save_run
from cpoker_env.agents.population import (
    IntArray,
    Plays,
    Population,
    draw_hands,
    gather,
    respond,
    runs_of,
    sides_of,
)
from cpoker_env.train import tables
from cpoker_env.train.exploitability import in_parts, play_hands
from cpoker_env.train.gains import Gains, gains_of, interval, join_gains
from cpoker_env.train.keep import Shard, pack, unpack
from cpoker_env.train.scripts import check_folder, run_script
from cpoker_env.train.shards import Runner, cut, open_runner
from rich.console import Console
from rich.progress import Progress

from cpoker_env import kernels
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import SHOW, check_num_seats

CHUNK = 512
"""Hands that one thread answers at a time."""
SHARD = 4 * CHUNK
"""Hands that a worker answers at a time."""


@dataclass(frozen=True)
class Config:
    """Play a population towards equilibrium and store it."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    hands: int = 300_000
    """Hands of the population."""
    players: int = 2
    """Seats at the table; only home runs, made at four, play differently there."""
    rounds: int = 24
    """Rounds of best responses."""
    least_share: float = 0.06
    """Share of the hands replayed in late rounds."""
    tables_hands: int = 30_000
    """Hands whose options are valued to fit the tables; 0 leaves them out."""
    seed: int = 1
    """Names the hands and what is replayed when."""
    out: Path | None = None
    """Folder for the result and logs; default runs/RULES-equilibrium."""
    resume: bool = False
    """Go on from the last finished round in the folder."""
    threads: int = 2
    """Threads of each worker that answer hands, up to 4."""
    workers: int = 1
    """Processes that answer hands; neither these nor threads change the result."""
    ray: str | None = None
    """Answer them on a Ray cluster instead, given its address, or "local" for one of `workers`
    workers on this machine; needs the extra "ray"."""

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        seats = f"-{self.players}" if self.players != 2 else ""
        usual = Path("runs") / f"{Path(self.rules).stem}{seats}-equilibrium"
        return self.out if self.out is not None else usual


@dataclass
class State:
    """A run between two rounds."""

    hands: IntArray
    population: Population
    round: int = 0
    seconds: float = 0.0


def start_state(config: Config, rules: Rules) -> State:
    """The population as `balanced` plays it."""
    balanced = make_policy("balanced", rules, config.players)
    hands = draw_hands(config.seed, config.hands)
    sides = sides_of(rules, len(hands))
    plays = play_hands(balanced, hands, sides, rules, config.players, config.threads)
    runs = _first_runs(plays) if _runs_home(config, rules) else None
    return State(hands, gather(hands, plays, sides, runs))


def _runs_home(config: Config, rules: Rules) -> bool:
    return config.players == 4 and rules.scoop == "shot_homerun"


def _first_runs(plays: Plays) -> npt.NDArray[np.uint8]:
    """Chances of hands to make a home run of a scoop, rows taken to be independent."""
    shows = plays.status == kernels.NORMAL
    chances = shows * shows.mean()
    for row in range(3):
        seen = np.sort(plays.strengths[shows, row])
        chances *= np.searchsorted(seen, plays.strengths[:, row]) / len(seen)
    return runs_of(chances)


def play_round(state: State, config: Config, rules: Rules, runner: Runner | None = None) -> Gains:
    """Replay a share of the hands; what the best responses gain over what stood there.

    Raises:
        WorkerError: Some hands could not be answered; the state is as before.
    """
    started = time.perf_counter()
    rng = np.random.default_rng([config.seed, state.round])
    share = max(1 / (state.round + 2), config.least_share)
    chosen = np.sort(
        rng.choice(len(state.hands), max(int(share * len(state.hands)), 1), replace=False)
    )
    work = _Answers(state.hands[chosen], chosen, state.population, rules, config.threads)
    shards = cut(len(chosen), SHARD)
    answered = (runner or Runner()).run(work, shards, f"round {state.round + 1}", "replayed hands")
    for shard, part in zip(shards, answered, strict=True):
        where = chosen[slice(*shard)]
        state.population.plays.put(where, Plays(**{n: unpack(part[n]) for n in Plays._fields}))
        if len(state.population.runs):
            state.population.runs[where] = unpack(part["runs"])
    state.round += 1
    state.seconds += time.perf_counter() - started
    return join_gains([Gains.from_dict(part["gains"]) for part in answered])


@dataclass(frozen=True, eq=False)
class _Answers:
    """Best responses of shards of hands, which stand at some places of a population, to it."""

    hands: IntArray
    places: IntArray
    population: Population
    rules: Rules
    threads: int

    def __call__(self, shard: Shard) -> dict[str, Any]:
        parts = in_parts(self._answer, shard, CHUNK, self.threads)
        found = {
            name: pack(np.concatenate([plays[name] for plays, _ in parts])) for name in parts[0][0]
        }
        return {**found, "gains": join_gains([gains for _, gains in parts]).to_dict()}

    def _answer(self, part: slice) -> tuple[dict[str, IntArray], Gains]:
        """Plays and home runs of some hands, and what they gain."""
        places = self.places[part]
        before, banks = self.population.plays.take(places), self.population.banks[places]
        found = respond(self.hands[part], self.population, self.rules, banks, extra=before)
        mean = found.mean()
        best, declarations = mean.best(0, self.rules)
        runs = runs_of(mean.scoops[0][best] * (declarations == SHOW))
        plays = {**mean.plays(best, declarations)._asdict(), "runs": runs}
        return plays, gains_of(found, before, self.rules)


def save_state(path: Path, state: State, config: Config, rules: Rules) -> None:
    """Write a run's state to one file, whole or not at all."""
    settings = {**_identity(config), "options": rules.to_dict()}
    record = {"round": state.round, "seconds": state.seconds, "config": settings}
    arrays = {**state.population.plays._asdict(), "runs": state.population.runs}
    save_run(path, record, {name: torch.from_numpy(array) for name, array in arrays.items()})


def load_state(path: Path, config: Config, rules: Rules) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, {**_identity(config), "options": rules.to_dict()})
    try:
        runs = tensors.pop("runs").numpy()
        plays = Plays(**{name: tensor.numpy() for name, tensor in tensors.items()})
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: no run to resume ({error}); start without resume") from None
    hands = draw_hands(config.seed, config.hands)
    population = gather(hands, plays, sides_of(rules, len(hands)), runs)
    return State(hands, population, record["round"], record["seconds"])


def _identity(config: Config) -> dict[str, Any]:
    """Settings that decide the result."""
    loose = ("out", "resume", "threads", "workers", "ray")
    return {name: value for name, value in asdict(config).items() if name not in loose}


def check_config(config: Config) -> None:
    """Raise unless every number is in range.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    for name, limit in {"hands": 1000, "rounds": 1, "seed": 0, "threads": 1}.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    if config.tables_hands != 0 and config.tables_hands < 1000:
        raise ConfigError(f"tables_hands {config.tables_hands}: give 1000 or more, or 0 for none")
    if not 0 < config.least_share <= 1:
        raise ConfigError(f"least_share {config.least_share}: give a share above 0, at most 1")


def main(config: Config) -> None:
    """Play the rounds, save after each, store the result.

    Raises:
        ConfigError: A setting out of range.
        ShowdownError: Not 2-4 seats, or a bank's seat that is not taken.
        CheckpointError: Nothing to resume, or a run already in the folder.
        WorkerError: Some hands could not be answered; the run can be resumed.
    """
    from torch.utils.tensorboard import SummaryWriter  # heavy, and only a run needs it

    check_config(config)
    rules = read_rules(config.rules)
    check_num_seats(config.players, rules)
    saved = config.folder / "state.safetensors"
    check_folder(saved, config.resume)
    state = load_state(saved, config, rules) if config.resume else start_state(config, rules)
    console = Console()
    console.print(f"fictitious play of {config.rules} into {config.folder}")
    with (
        Progress(console=Console(stderr=True)) as progress,
        SummaryWriter(str(config.folder), purge_step=state.round + 1) as writer,
        open_runner(config.workers, config.ray, threads=config.threads) as runner,
    ):
        task = progress.add_task("rounds", total=config.rounds, completed=state.round)
        while state.round < config.rounds:
            gains = play_round(state, config, rules, runner)
            save_state(saved, state, config, rules)
            lower, upper = interval(gains.lower), interval(gains.upper)
            writer.add_scalar("eval/exploitability_lower", lower.mean, state.round)
            writer.add_scalar("eval/exploitability_upper", upper.mean, state.round)
            writer.add_scalar("eval/share_replayed_otherwise", gains.differs.mean(), state.round)
            progress.update(task, advance=1)
            console.print(
                f"round {state.round}: exploitability {lower} to {upper}, "
                f"{gains.differs.mean():.1%} of hands replayed otherwise, {state.seconds:.0f} s"
            )
    _finish(state, config, rules)
    console.print(f"play it as search:{config.folder / 'agent'}")
    if config.tables_hands:
        store_tables(state.population, rules, config)
        console.print(f"and its tables as equilibrium:{config.folder / 'tables'}")


def store_tables(population: Population, rules: Rules, config: Config) -> None:
    """Fit tables to the population and store them beside it."""
    started = time.perf_counter()
    fitting = tables.Config(hands=config.tables_hands, seed=config.seed, threads=config.threads)
    tensors = tables.fit(population, rules, fitting)
    stored = {
        "kind": "tables", "fictitious_play": _identity(config), **tables.identity_of(fitting),
        "seconds": round(time.perf_counter() - started, 1),
    }  # fmt: skip
    save_checkpoint(config.folder / "tables", tensors, rules, stored, [])


def _finish(state: State, config: Config, rules: Rules) -> None:
    plays, runs = state.population.plays, state.population.runs
    weights = {
        "strengths": torch.from_numpy(plays.strengths),
        "status": torch.from_numpy(plays.status),
        "declared": torch.from_numpy(plays.declared),
    }
    if len(runs):
        weights["runs"] = torch.from_numpy(runs)
    stored = {"kind": "population", **_identity(config), "seconds": round(state.seconds, 1)}
    save_checkpoint(config.folder / "agent", weights, rules, stored, [])


if __name__ == "__main__":
    run_script(Config, main)

"""Self-play: a network learns what its own options would have won against what it plays itself.

Neural fictitious play over whole hands. Each round, snapshots of the network drawn from a league,
mostly the newest, play fresh hands, which join a crowd of the last rounds' hands. Every option of
the fresh hands (arrangements, surrender, natural) is settled exactly against the crowd's hands that
share no card with it, and the network regresses on these units. As the crowd is an average of many
rounds, play converges instead of cycling. The network that plays is a running mean of the weights.

Weights start at random, and nothing is seen but deals of its own play. Home runs count as often as
hands of the crowd make them; a pool of three or four seats is learned at whole tables, where the
newest players sit everywhere instead of the crowd.

    python -m cpoker_env.train.selfplay --rules four_two --preset quick
    torchrun --nproc-per-node 2 -m cpoker_env.train.selfplay --threads 1
"""

import copy
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import load_run, save_checkpoint, save_run, write_bytes
from cpoker_env.agents.network import ValueNetwork, Valuer
from cpoker_env.agents.neural import NeuralPolicy
from cpoker_env.agents.population import Plays
from cpoker_env.train.crowd import Crowd, IntArray, deal_round
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import play_hands
from cpoker_env.train.journal import Journal
from cpoker_env.train.league import League
from cpoker_env.train.learner import Learner, Regression, under
from cpoker_env.train.lessons import (
    Lessons,
    Selection,
    Taught,
    answers,
    join_lessons,
    needs_tables,
    runs_home,
    teach,
)
from cpoker_env.train.matrix import results_table
from cpoker_env.train.ranks import Ranks
from cpoker_env.train.scripts import MOST_SEED, check_device, check_folder, run_script
from rich.console import Console

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import make_policy
from cpoker_env.rules import NUM_PATTERNS, Rules, read_rules
from cpoker_env.scoring import check_num_seats

CHUNK = 512
"""Hands that one thread plays and values at a time."""


@dataclass(frozen=True)
class Config:
    """Train an agent by self-play, then show it against the heuristics."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    players: int = 2
    """Seats at the table; only home runs, made at four, and the pool play differently there."""
    preset: Literal["quick", "standard"] = "quick"
    """How long: quick takes some minutes, standard up to half an hour."""
    out: Path | None = None
    """Folder for the checkpoint and logs; default runs/RULES-PRESET."""
    resume: bool = False
    """Go on from the last finished round in the folder."""
    seed: int = 1
    """Names the deals and the first weights; the same seed gives the same agent."""
    rounds: int | None = None
    """Rounds of play and learning; default by preset."""
    hands: int = 16_384
    """New hands a round."""
    memory: int = 20
    """Rounds of hands the crowd keeps."""
    tables: int = 16
    """Whole tables dealt around a hand, in a pool of three or four seats; few make lucky options
    look better than they are."""
    best_options: int = 8
    """Lessons of a hand: its best options."""
    other_options: int = 4
    """Lessons of a hand: options drawn from all of them."""
    focus: float = 0.2
    """Units below a hand's best option at which a lesson counts 1 / e as much."""
    level_weight: float = 0.1
    """How much the level of a hand's lessons counts, where their differences count 1."""
    epochs: int = 2
    """Passes over a round's lessons."""
    batch: int = 1024
    """Hands in a gradient step; a share of `hands`."""
    width: int = 64
    """Units of the network's hidden layer, a power of two."""
    learning_rate: float = 3e-3
    """Adam's first step size; falls to a fiftieth along a cosine."""
    average: float = 0.998
    """Share that the running mean of the weights keeps in each gradient step."""
    snapshot_every: int = 8
    """Rounds between two snapshots for the league."""
    league_size: int = 8
    """Snapshots the league keeps."""
    latest_share: float = 0.9
    """Share of hands that the newest snapshot plays."""
    eval_deals: int = 4000
    """Deals of each closing match, each played in both seats."""
    eval_every: int = 10
    """Rounds between the measurements that are logged."""
    threads: int = 2
    """Threads for the simulator and for torch."""
    device: str = "cpu"
    """Where gradients are computed: cpu, or cuda with a GPU."""

    @property
    def num_rounds(self) -> int:
        """Rounds to play in all."""
        usual = {"quick": 30, "standard": 120}[self.preset]
        return self.rounds if self.rounds is not None else usual

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        seats = f"-{self.players}" if self.players != 2 else ""
        usual = Path("runs") / f"{Path(self.rules).stem}{seats}-{self.preset}"
        return self.out if self.out is not None else usual


@dataclass
class State:
    """A run between two rounds."""

    learner: Learner
    crowd: Crowd
    league: League
    round: int = 0
    seconds: float = 0.0
    _players: dict[str, Valuer] = field(default_factory=dict)

    def policy(self) -> NeuralPolicy:
        """How the run plays now."""
        return NeuralPolicy(Valuer(self.learner.average))

    def players(self, names: set[str]) -> dict[str, Valuer]:
        """Snapshots of the league as they play."""
        kept = {name: self._players[name] for name in names & {*self._players}}
        for name in names - {*kept}:
            network = copy.deepcopy(self.learner.average)
            network.load_state_dict(self.league.weights(name))
            network.read_counts()
            kept[name] = Valuer(network)
        self._players = {**self._players, **kept}
        for gone in {*self._players} - {*self.league.names}:
            del self._players[gone]
        return kept


def start_state(config: Config, rules: Rules) -> State:
    """A run before its first round: weights drawn from the seed, and a crowd they play."""
    learner = _new_learner(config, rules)
    hands, banks = deal_round(config.seed, 0, config.hands, rules)
    policy = NeuralPolicy(Valuer(learner.average))
    plays = play_hands(policy, hands, banks, rules, config.players, config.threads)
    crowd = Crowd(hands, banks, plays, np.zeros(len(hands), np.uint8))
    state = State(learner, crowd, League(config.league_size, config.latest_share))
    _see_crowd(state)
    state.league.add("round-0", learner.average.state_dict())
    return state


def _new_learner(config: Config, rules: Rules) -> Learner:
    torch.manual_seed(config.seed)
    how = Regression(
        config.epochs, config.batch, config.level_weight, config.average, config.device
    )
    return Learner(ValueNetwork(rules, config.players, config.width), how)


def play_round(state: State, config: Config, ranks: Ranks) -> dict[str, float]:
    """One round: deal, play, settle, learn. Returns the scalars to log."""
    started = time.perf_counter()
    number = state.round + 1
    rules = state.learner.network.rules
    hands, banks = deal_round(config.seed, number, config.hands, rules)
    taught, is_newest = _play(state, config, ranks, hands, banks)
    progress = state.round / max(config.num_rounds - 1, 1)
    learning_rate = config.learning_rate * (0.51 + 0.49 * math.cos(math.pi * progress))
    loss = state.learner.learn(
        join_lessons([part.lessons for part in taught]), config.hands, learning_rate,
        np.random.default_rng([config.seed, number, CHUNK, ranks.rank]), ranks,
        lambda batch: _keep_batch(config, batch),
    )  # fmt: skip
    _hear_naturals(state, ranks, taught)
    columns = zip(*(part.plays for part in taught), strict=True)
    plays = Plays(*(ranks.join(np.concatenate(column)) for column in columns))
    runs, gains = (
        ranks.join(np.concatenate([getattr(part, name) for part in taught]))
        for name in ("runs", "gains")
    )
    state.crowd = state.crowd.follow(Crowd(hands, banks, plays, runs), config.memory * config.hands)
    _see_crowd(state)
    if number % config.snapshot_every == 0:
        state.league.add(f"round-{number}", state.learner.average.state_dict())
    state.round = number
    seconds = time.perf_counter() - started
    state.seconds += seconds
    scalars = {
        "charts/deals": number * config.hands,
        "charts/SPS": config.hands / seconds,
        "charts/seconds": state.seconds,
        "losses/value": loss,
        "losses/learning_rate": learning_rate,
    }
    told = gains[is_newest & ~np.isnan(gains)]
    if len(told):
        scalars["losses/units_below_best"] = float(told.mean())
    return scalars


def _play(
    state: State, config: Config, ranks: Ranks, hands: IntArray, banks: IntArray
) -> tuple[list[Taught], npt.NDArray[np.bool_]]:
    """Play and value this process's share of a round's hands, CHUNK by CHUNK.

    With it comes which hands (H,) of all processes the newest player plays: the running mean of the
    weights as it is now, in the place of the newest snapshot.
    """
    rules, number = state.learner.network.rules, state.round + 1
    names = state.league.draw(np.random.default_rng([config.seed, number]), len(hands) // CHUNK)
    newest = state.league.names[-1]
    players = state.players({*names} - {newest}) | {newest: Valuer(state.learner.average)}
    by_tables = needs_tables(rules, config.players)
    crowd = None if by_tables else state.crowd.population(runs_home(rules, config.players))
    selection = Selection(config.best_options, config.other_options, config.focus)

    def work(at: int) -> Taught:
        part = slice(at * CHUNK, (at + 1) * CHUNK)
        player = players[names[at]]
        found = answers(
            hands[part], banks[part], player, crowd, config.players, config.tables,
            config.seed + TABLES_SEED, number * config.hands + part.start,
        )  # fmt: skip
        rng = np.random.default_rng([config.seed, number, at])
        learner = state.learner.network
        return teach(hands[part], banks[part], player, learner, found, selection, rng)

    share = len(names) // ranks.size
    with ThreadPoolExecutor(config.threads) as pool:
        taught = list(pool.map(work, range(ranks.rank * share, (ranks.rank + 1) * share)))
    return taught, np.repeat([name == newest for name in names], CHUNK)


TABLES_SEED = 2_000_003
"""Added to the seed for whole tables, so that they are other deals than the hands are."""


def _see_crowd(state: State) -> None:
    """Tell both networks how often the crowd shows each row."""
    seen = [state.crowd.counts(side) for side in state.learner.network.sides]
    for network in (state.learner.network, state.learner.average):
        network.see([counts for counts, _ in seen], [ordinary for _, ordinary in seen])


def _hear_naturals(state: State, ranks: Ranks, taught: list[Taught]) -> None:
    patterns = np.concatenate([part.naturals for part in taught])
    units = np.concatenate([part.declare for part in taught])
    counts = ranks.add(np.bincount(patterns, minlength=NUM_PATTERNS))
    sums = ranks.add(np.bincount(patterns, units, minlength=NUM_PATTERNS))
    for network in (state.learner.network, state.learner.average):
        network.fit_naturals(counts, sums)


def _keep_batch(config: Config, lessons: Lessons) -> str:
    path = config.folder / "bad-batch.safetensors"
    tensors = {name: part.contiguous().cpu() for name, part in lessons._asdict().items()}
    write_bytes(path, safetensors.torch.save(tensors))
    return str(path)


def save_state(path: Path, state: State, config: Config) -> None:
    """Write a run's state to one file, whole or not at all."""
    rules = state.learner.network.rules
    crowd = {f"crowd.{name}": torch.from_numpy(a) for name, a in state.crowd.arrays().items()}
    record = {
        "round": state.round, "steps": state.learner.steps, "seconds": state.seconds,
        "league": state.league.record(), "config": _identity(config, rules),
    }  # fmt: skip
    save_run(path, record, {**state.learner.tensors(), **crowd, **state.league.tensors()})


def load_state(path: Path, config: Config, rules: Rules) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, _identity(config, rules))
    learner = _new_learner(config, rules)
    try:
        learner.restore(tensors, int(record["steps"]))
        arrays = {name: tensor.numpy() for name, tensor in under("crowd.", tensors).items()}
        league = League.restore(record["league"], tensors)
        done, seconds = int(record["round"]), float(record["seconds"])
        return State(learner, Crowd.of(arrays), league, done, seconds)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no run to resume ({error}); start without resume") from None


def _identity(config: Config, rules: Rules) -> dict[str, Any]:
    """Settings that decide the result."""
    loose = ("out", "resume", "eval_deals", "eval_every", "threads", "rounds")
    kept = {k: v for k, v in asdict(config).items() if k not in loose}
    return {
        **kept, "num_rounds": config.num_rounds, "processes": Ranks().size,
        "options": rules.to_dict(),
    }  # fmt: skip


def check_config(config: Config, ranks: Ranks) -> None:
    """Raise unless every number is in range.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    if config.num_rounds < 1:
        raise ConfigError(f"rounds {config.num_rounds}: give 1 or more")
    least = {
        "hands": CHUNK, "memory": 1, "tables": 2, "best_options": 1, "other_options": 0,
        "epochs": 1, "width": 1, "eval_deals": 2, "eval_every": 1, "threads": 1,
        "seed": 0, "snapshot_every": 1,
    }  # fmt: skip
    for name, limit in least.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    if config.hands % (CHUNK * ranks.size):
        raise ConfigError(f"hands {config.hands}: give a multiple of {CHUNK * ranks.size}")
    if config.batch < 1 or config.batch % ranks.size or config.hands % config.batch:
        raise ConfigError(
            f"batch {config.batch}: give a multiple of {ranks.size} that divides {config.hands}"
        )
    if config.seed >= MOST_SEED:
        raise ConfigError(f"seed {config.seed}: give less than {MOST_SEED}")
    if config.width & (config.width - 1):
        raise ConfigError(f"width {config.width}: give a power of two")
    open_ranges = {"learning_rate": 1.0, "average": 1.0, "focus": 1e3, "level_weight": 1e3}
    for name, bound in open_ranges.items():
        if not 0 < getattr(config, name) < bound:
            raise ConfigError(
                f"{name} {getattr(config, name)}: give a number between 0 and {bound:g}"
            )
    check_device(config.device)


def main(config: Config) -> None:
    """Train, save, and print the table against the heuristics.

    Raises:
        ConfigError: A setting out of range, or a loss that is no number.
        ShowdownError: Not 2-4 seats, or a bank's seat that is not taken.
        CheckpointError: Nothing to resume, or a run already in the folder.
    """
    with Ranks() as ranks:
        check_config(config, ranks)
        rules = read_rules(config.rules)
        check_num_seats(config.players, rules)
        torch.set_num_threads(config.threads)
        saved = config.folder / "state.safetensors"
        check_folder(saved, config.resume)
        state = load_state(saved, config, rules) if config.resume else start_state(config, rules)
        with Journal(config.folder, config.num_rounds, state.round, ranks.is_first) as journal:
            journal.say(f"training {rules.name} ({config.preset}) into {config.folder}")
            while state.round < config.num_rounds:
                scalars = play_round(state, config, ranks)
                if ranks.is_first:
                    save_state(saved, state, config)
                    if state.round % config.eval_every == 0:
                        scalars |= journal.examine(
                            state.policy(),
                            config.players,
                            config.seed,
                            state.round,
                            config.threads,
                        )
                journal.write(state.round, scalars)
        if ranks.is_first:
            _finish(state, config, rules)


def _finish(state: State, config: Config, rules: Rules) -> None:
    """Store the agent and show what it wins."""
    policy = state.policy()
    results = [
        duel(policy, make_policy(name, rules, config.players), rules, config.players,
             config.eval_deals, config.seed + EVAL_SEED, ("trained", name))
        for name in ("uniform", "greedy", "balanced")
    ]  # fmt: skip
    stored = {
        "kind": "network", **_identity(config, rules), "deals": state.round * config.hands,
        "threads": config.threads, "seconds": round(state.seconds, 1),
    }  # fmt: skip
    del stored["options"]  # the rules are stored anyway
    weights = state.learner.average.state_dict()
    save_checkpoint(
        config.folder / "agent", weights, rules, stored, [asdict(result) for result in results]
    )
    deals = f"{stored['deals']:,} deals of self-play"
    console = Console()
    console.print(results_table(results, f"{rules.name}, {config.players} seats, after {deals}"))
    console.print(
        f"saved {config.folder / 'agent'}.safetensors and .json; play it as "
        f"neural:{config.folder / 'agent'}"
    )


EVAL_SEED = 1_000_003
"""Added to the seed for matches, so that they use deals no round trained on."""


if __name__ == "__main__":
    run_script(Config, main)

"""Self-play: a network learns from the units its own candidates would have won.

Each round, the newest hands are arranged by the current network and join a population that keeps
the hands of the last rounds, so that play answers an average of the recent past. Then every new
hand is a lesson: some of its candidates, surrendering and declaring are settled exactly against the
population's hands that share no card with it, and the network regresses on the mean units. It
starts from random weights and sees nothing but deals it plays itself.

Opponents are met one at a time; the coupling of a home run is not learned, and a pool is learned as
two seats play it.

    python -m train.selfplay --preset quick
"""

import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import load_run, save_checkpoint, write_bytes
from cpoker_env.agents.network import ValueNetwork, hand_features
from cpoker_env.agents.neural import NeuralPolicy, choose_declarations
from cpoker_env.train.evaluate import duel
from cpoker_env.train.matrix import results_table
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cpoker_env import kernels
from cpoker_env.arrangements import Frontier, frontier
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.row_values import best_of
from cpoker_env.rules import Rules, read_rules
from cpoker_env.table import Table
from cpoker_env.tables import tables_for

IntArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Config:
    """Train an agent by self-play, then show it against the heuristics."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    preset: Literal["quick", "standard"] = "quick"
    """How long: quick takes at most 3 minutes on 2 cores, standard about 20."""
    out: Path | None = None
    """Folder for the checkpoint and logs; default runs/RULES-PRESET."""
    resume: bool = False
    """Go on from the last finished round in the folder."""
    seed: int = 1
    """Names the deals and the first weights; the same seed gives the same agent."""
    rounds: int | None = None
    """Rounds of play and learning; default by preset."""
    hands: int = 8192
    """New hands a round."""
    memory: int = 5
    """Rounds of hands the population keeps."""
    opponents: int = 200
    """Opponents each candidate is settled against, at most."""
    candidates: int = 16
    """Candidates of a hand that become lessons: half the best by the network, half at random."""
    epochs: int = 2
    """Passes over a round's lessons."""
    batch: int = 4096
    """Lessons in a gradient step."""
    width: int = 64
    """Units of the network's hidden layers."""
    learning_rate: float = 2e-3
    """Adam's first step size; falls to a twentieth along a cosine."""
    eval_deals: int = 4000
    """Deals of each closing match, each played in both seats."""
    eval_every: int = 5
    """Rounds between the short matches against greedy that are logged."""
    threads: int = 2
    """Threads for the simulator and for torch."""

    @property
    def num_rounds(self) -> int:
        """Rounds to play in all."""
        return (
            self.rounds if self.rounds is not None else {"quick": 20, "standard": 240}[self.preset]
        )

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        return (
            self.out
            if self.out is not None
            else Path("runs") / f"{Path(self.rules).stem}-{self.preset}"
        )


class Population(NamedTuple):
    """P hands as they were played, ready to be opponents.

    masks (P,) uint64 card sets; bank (P,) int8; strengths (P, 3) int16; status, naturals (P,) int8;
    keys (P,) int64.
    """

    masks: npt.NDArray[np.uint64]
    bank: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    status: npt.NDArray[np.int8]
    naturals: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]


class Lessons(NamedTuple):
    """Targets of one round.

    hand_index (L,), strengths (L, 3) int64 and targets (L,) float32 of candidates; surrender (H,)
    and natural_values (H,) float32 with naturals (H,) int64, -1 where a hand has none.
    """

    hand_index: npt.NDArray[np.int64]
    strengths: npt.NDArray[np.int64]
    targets: npt.NDArray[np.float32]
    surrender: npt.NDArray[np.float32]
    naturals: npt.NDArray[np.int64]
    natural_values: npt.NDArray[np.float32]


@dataclass
class State:
    """Everything a run carries from round to round."""

    network: ValueNetwork
    optimizer: torch.optim.Adam
    population: list[Population]
    round: int = 0
    deals: int = 0
    seconds: float = 0.0


def start_state(config: Config, rules: Rules) -> State:
    """A run before its first round, weights drawn from the seed."""
    torch.manual_seed(config.seed)
    network = ValueNetwork(rules, config.width)
    return State(network, torch.optim.Adam(network.parameters(), lr=config.learning_rate), [])


def play_round(state: State, config: Config, rules: Rules) -> dict[str, float]:
    """One round: deal, arrange, settle, learn. Returns the scalars to log."""
    rng = np.random.default_rng([config.seed, state.round])
    started = time.perf_counter()
    first = state.round * config.hands // 2
    indices = np.arange(first, first + config.hands // 2, dtype=np.uint64)
    hands = Table(Rules.preset("basic"), 2).deal(config.seed, indices).hands.reshape(-1, 13)
    bank = np.zeros(len(hands), np.int8)
    if rules.topology == "banker":
        bank[0::2], bank[1::2] = 1, -1
    parts = [slice(at, at + CHUNK) for at in range(0, len(hands), CHUNK)]
    policy = NeuralPolicy(state.network, rules)
    with ThreadPoolExecutor(config.threads) as pool:
        played = list(pool.map(lambda p: _arrange(hands[p], bank[p], policy), parts))
        state.population.append(_join([hands for *_, hands in played]))
        del state.population[: -config.memory]
        opponents = _join(state.population)
        draws = [np.random.default_rng([config.seed, state.round, at.start]) for at in parts]
        taught = list(
            pool.map(
                lambda p, arranged, draw: _teach(hands[p], bank[p], arranged, opponents, config,
                                                 rules, draw),
                parts, played, draws,
            )
        )  # fmt: skip
    with _deterministic():
        loss = _learn(state, config, hands, bank, _join_lessons(taught), rng)
    state.round += 1
    state.deals += len(indices)
    seconds = time.perf_counter() - started
    state.seconds += seconds
    return {
        "charts/deals": state.deals,
        "charts/SPS": config.hands / seconds,
        "charts/surrender_value": state.network.surrender.item(),
        "losses/value": loss,
        "losses/learning_rate": state.optimizer.param_groups[0]["lr"],
    }


@contextmanager
def _deterministic() -> Iterator[None]:
    """Gradients that do not depend on how threads meet, so that a seed decides the agent."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


CHUNK = 512
"""Hands that one thread arranges at a time."""
_Arranged = tuple[Frontier, npt.NDArray[np.float32], Population]


def _arrange(hands: IntArray, bank: IntArray, policy: NeuralPolicy) -> _Arranged:
    """Frontiers of hands, what the network thinks of them, and what it plays."""
    rules = policy.rules
    options = frontier(hands, rules)
    values = policy.values(hands, bank, options)
    best = best_of(options, values.candidates)
    decisions = decisions_for(hands, rules)
    declarations = choose_declarations(
        values, values.candidates[best], decisions.naturals, decisions.can_surrender
    )
    size = len(hands)
    population = Population(
        (np.uint64(1) << hands.astype(np.uint64)).sum(axis=1, dtype=np.uint64),
        bank,
        np.empty((size, 3), np.int16),
        np.empty(size, np.int8),
        np.empty(size, np.int8),
        np.empty(size, np.int64),
    )
    kernels.resolve_into(
        hands, options.rows[best], declarations, decisions.naturals, decisions.can_surrender,
        tables_for(rules).rows, tables_for(rules).naturals, rules.packed,
        population.strengths, population.status,
        population.naturals, population.keys,
    )  # fmt: skip
    return options, values.candidates, population


def _teach(
    hands: IntArray, bank: IntArray, arranged: _Arranged, opponents: Population, config: Config,
    rules: Rules, rng: np.random.Generator,
) -> Lessons:  # fmt: skip
    """Exact mean units of some options of every hand against the population."""
    options, thought, _ = arranged
    chosen = _choose_candidates(options, thought, config.candidates, rng)
    hand_index = options.hand_index[chosen]
    starts = np.searchsorted(hand_index, np.arange(len(hands) + 1))
    naturals = decisions_for(hands, rules).naturals
    targets = np.empty(len(chosen), np.float32)
    surrender = np.empty(len(hands), np.float32)
    natural_values = np.empty(len(hands), np.float32)
    met = np.empty(len(hands), np.int32)
    kernels.population_values_into(
        hands, starts, options.strengths[chosen], naturals, bank, *opponents, config.opponents,
        tables_for(rules).naturals, rules.packed, targets, surrender, natural_values, met,
    )  # fmt: skip
    known = met > 0
    kept = known[hand_index]
    return Lessons(
        hand_index[kept],
        options.strengths[chosen][kept].astype(np.int64),
        targets[kept],
        np.where(known, surrender, np.nan).astype(np.float32),
        np.where(known, naturals, -1).astype(np.int64),
        natural_values,
    )


def _choose_candidates(
    options: Frontier, thought: npt.NDArray[np.float32], limit: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Indices of each hand's lessons: the better half by the network, the rest at random."""
    order = np.lexsort((-thought, options.hand_index))
    place = np.arange(len(order)) - options.starts[options.hand_index[order]]
    luck = rng.random(len(order))
    luck[place < limit // 2] = -1.0
    by_luck = order[np.lexsort((luck, options.hand_index[order]))]
    return np.sort(by_luck[place < limit])


def _join(parts: list[Population]) -> Population:
    return Population(*map(np.concatenate, zip(*parts, strict=True)))


def _join_lessons(taught: list[Lessons]) -> Lessons:
    shifted = [
        part._replace(hand_index=part.hand_index + at * CHUNK) for at, part in enumerate(taught)
    ]
    return Lessons(*map(np.concatenate, zip(*shifted, strict=True)))


def _learn(
    state: State, config: Config, hands: IntArray, bank: IntArray, lessons: Lessons,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """Regress on a round's lessons; returns the mean squared error of its last pass."""
    network, optimizer = state.network, state.optimizer
    progress = state.round / max(config.num_rounds - 1, 1)
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate * (0.525 + 0.475 * math.cos(math.pi * progress))
    features = torch.from_numpy(hand_features(hands, bank))
    strengths = torch.from_numpy(lessons.strengths)
    hand_index = torch.from_numpy(lessons.hand_index)
    targets = torch.from_numpy(lessons.targets)
    with_natural = lessons.naturals >= 0
    network.fit_declarations(
        lessons.surrender[~np.isnan(lessons.surrender)],
        lessons.naturals[with_natural],
        lessons.natural_values[with_natural],
    )
    losses: list[float] = []
    for _ in range(config.epochs):
        losses = []
        order = torch.from_numpy(rng.permutation(len(targets)))
        for at in range(0, len(order), config.batch):
            batch = order[at : at + config.batch]
            used, local = torch.unique(hand_index[batch], return_inverse=True)
            found = network(features[used], local, strengths[batch])
            loss = torch.nn.functional.mse_loss(found, targets[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
    mean = float(np.mean(losses))
    if not np.isfinite(mean):
        raise ConfigError(
            f"loss {mean} in round {state.round}: lower learning_rate ({config.learning_rate})"
        )
    return mean


def save_state(path: Path, state: State, config: Config) -> None:
    """Write a run's state to one file, whole or not at all."""
    tensors = {f"network.{k}": v for k, v in state.network.state_dict().items()}
    for i, slot in state.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{i}.{k}": torch.as_tensor(v) for k, v in slot.items()}
    for i, population in enumerate(state.population):
        for name, array in population._asdict().items():
            kept = array.view(np.int64) if array.dtype == np.uint64 else array
            tensors[f"population.{i}.{name}"] = torch.from_numpy(np.ascontiguousarray(kept))
    record = {
        "round": state.round, "deals": state.deals, "seconds": state.seconds,
        "memory": len(state.population), "config": _identity(config),
    }  # fmt: skip
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(tensors, {"state": json.dumps(record)}))


def load_state(path: Path, config: Config, rules: Rules) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, _identity(config))
    state = start_state(config, rules)
    state.network.load_state_dict(_under("network.", tensors))
    adam = state.optimizer.state_dict()
    slots = _under("adam.", tensors)
    for name, tensor in slots.items():
        index, _, key = name.partition(".")
        adam["state"].setdefault(int(index), {})[key] = tensor
    state.optimizer.load_state_dict(adam)
    for i in range(record["memory"]):
        arrays = {k: v.numpy() for k, v in _under(f"population.{i}.", tensors).items()}
        arrays["masks"] = arrays["masks"].view(np.uint64)
        state.population.append(Population(**arrays))
    state.round, state.deals, state.seconds = record["round"], record["deals"], record["seconds"]
    return state


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _identity(config: Config) -> dict[str, Any]:
    """Settings that decide the result."""
    loose = ("out", "resume", "eval_deals", "eval_every", "threads", "rounds")
    kept = {k: v for k, v in asdict(config).items() if k not in loose}
    return {**kept, "num_rounds": config.num_rounds}


def check_config(config: Config) -> None:
    """Raise unless every number is in range.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    least = {
        "hands": CHUNK, "memory": 1, "opponents": 1, "candidates": 2, "epochs": 1, "batch": 1,
        "width": 1, "eval_deals": 2, "eval_every": 1, "threads": 1, "num_rounds": 1, "seed": 0,
    }  # fmt: skip
    for name, limit in least.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    if config.hands % CHUNK:
        raise ConfigError(f"hands {config.hands}: give a multiple of {CHUNK}")
    if not 0 < config.learning_rate < 1:
        raise ConfigError(f"learning_rate {config.learning_rate}: give a number between 0 and 1")


def main(config: Config) -> None:
    """Train, save, and print the table against the heuristics.

    Raises:
        ConfigError: A setting out of range, or a loss that is no number.
        CheckpointError: Nothing to resume, or a run already in the folder.
    """
    from torch.utils.tensorboard import SummaryWriter  # heavy, and only a run needs it

    check_config(config)
    rules = read_rules(config.rules)
    torch.set_num_threads(config.threads)
    saved = config.folder / "state.safetensors"
    if config.resume:
        state = load_state(saved, config, rules)
    elif saved.exists():
        raise CheckpointError(f"{saved} exists: add --resume to go on, or choose another --out")
    else:
        state = start_state(config, rules)
    console = Console()
    console.print(f"training {config.rules} ({config.preset}) into {config.folder}")
    greedy = make_policy("greedy", rules)
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TextColumn("loss {task.fields[loss]:.3f}  v greedy {task.fields[units]:+.2f}"),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with (
        Progress(*columns, console=Console(stderr=True)) as progress,
        SummaryWriter(str(config.folder), purge_step=state.round) as writer,
    ):
        task = progress.add_task(
            "rounds", total=config.num_rounds, completed=state.round, loss=0.0, units=0.0
        )
        while state.round < config.num_rounds:
            scalars = play_round(state, config, rules)
            save_state(saved, state, config)
            if state.round % config.eval_every == 0:
                policy = NeuralPolicy(state.network, rules)
                short = duel(policy, greedy, rules, 2, 500, config.seed + EVAL_SEED)
                scalars["eval/units_vs_greedy"] = short.units
                scalars["eval/units_vs_greedy_95"] = short.half_width
                progress.update(task, units=short.units)
            for name, value in scalars.items():
                writer.add_scalar(name, value, state.round)
            progress.update(task, advance=1, loss=scalars["losses/value"])
    _finish(state, config, rules, console)


EVAL_SEED = 1_000_003
"""Added to the seed for matches, so that they use deals no round trained on."""


def _finish(state: State, config: Config, rules: Rules, console: Console) -> None:
    policy = NeuralPolicy(state.network, rules)
    results = [
        duel(policy, make_policy(name, rules), rules, 2, config.eval_deals,
             config.seed + EVAL_SEED, ("trained", name))
        for name in ("uniform", "greedy", "balanced")
    ]  # fmt: skip
    stored = {**_identity(config), "deals": state.deals, "seconds": round(state.seconds, 1)}
    save_checkpoint(
        config.folder / "agent", state.network.state_dict(), rules, stored,
        [asdict(result) for result in results],
    )  # fmt: skip
    title = f"{config.rules}, 2 seats, after {state.deals:,} deals of self-play"
    console.print(results_table(results, title))
    console.print(
        f"saved {config.folder / 'agent'}.safetensors and .json; play it as "
        f"checkpoint:{config.folder / 'agent'}"
    )


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Config))

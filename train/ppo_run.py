"""A run of PPO: its settings, what it carries from round to round, and how that is kept."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from cpoker_env.agents.checkpoint import load_run, save_run
from cpoker_env.agents.placement import PlacementNetwork
from cpoker_env.train.league import League
from cpoker_env.train.learner import pack, under, unpack
from cpoker_env.train.rollout import Crowd
from cpoker_env.train.scripts import MOST_SEED, check_device

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.rules import Rules


@dataclass(frozen=True)
class Config:
    """Train an agent by PPO against a league of itself, then show it against the heuristics."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    preset: Literal["quick", "standard"] = "quick"
    """How long: quick takes some minutes, standard up to half an hour."""
    out: Path | None = None
    """Folder for the checkpoint and logs; default runs/RULES-PRESET-ppo."""
    resume: bool = False
    """Go on from the last state saved in the folder."""
    seed: int = 1
    """Names the deals and the first weights; the same seed gives the same agent."""
    players: int = 2
    """Seats at the table; the reward is units per opponent."""
    rounds: int | None = None
    """Rollouts in all; default by preset."""
    deals: int = 2048
    """Deals of a rollout."""
    copies: int = 8
    """Times each deal is played, 2 or more."""
    crowd: int | None = None
    """Rounds of opponents' hands that a play is settled against; 0 for its own deal's alone,
    default by preset: a short run must forget its first opponents sooner."""
    opponents: int = 800
    """Hands of the crowd that a play meets at most."""
    epochs: int = 4
    """Passes over a rollout."""
    batch: int = 128
    """Hands of a gradient step, each with all its plays."""
    learning_rate: float = 3e-3
    """Adam's first step size; falls to a fiftieth along a cosine."""
    clip: float = 0.2
    """How far the ratio of new to old chances counts."""
    gae_lambda: float = 0.95
    """How far the advantage looks past the critic, 1 to the end of the deal."""
    temperature: float = 0.05
    """Units that make e times likelier, and that a unit of entropy is worth, at first."""
    temperature_end: float = 0.003
    """The same at the end; in between it falls by a constant factor a round."""
    value_weight: float = 0.5
    """Weight of the critic's squared error in the loss."""
    max_norm: float = 0.5
    """Largest norm of a gradient."""
    average: float = 0.995
    """Share of the running mean of the weights that a gradient step leaves."""
    width: int = 64
    """Units of the network's hidden layers."""
    hand_width: int = 256
    """Units of the hidden layer that reads the hand."""
    league: int = 8
    """Snapshots the league keeps."""
    latest_share: float = 0.7
    """Chance that an opponent is the newest snapshot."""
    snapshot_every: int = 10
    """Rounds between snapshots."""
    opponents_drawn: int = 4
    """Snapshots drawn for a rollout; each plays its share of the deals."""
    save_every: int = 20
    """Rounds between saved states."""
    eval_every: int = 20
    """Rounds between short matches that are logged."""
    exploit_every: int = 200
    """Rounds between small measurements of exploitability."""
    eval_deals: int = 4000
    """Deals of each closing match, each played in both seats."""
    device: str = "cpu"
    """Where the network learns, such as cuda."""
    threads: int = 2
    """Threads for torch."""

    @property
    def num_rounds(self) -> int:
        """Rollouts to play in all."""
        return (
            self.rounds if self.rounds is not None else {"quick": 90, "standard": 600}[self.preset]
        )

    @property
    def num_crowd(self) -> int:
        """Rounds of opponents' hands that are kept."""
        return self.crowd if self.crowd is not None else {"quick": 12, "standard": 32}[self.preset]

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        seats = f"-{self.players}" if self.players != 2 else ""
        return (
            self.out
            if self.out is not None
            else Path("runs") / f"{Path(self.rules).stem}{seats}-{self.preset}-ppo"
        )

    def temperature_at(self, number: int) -> float:
        """The temperature of a round."""
        progress = number / max(self.num_rounds - 1, 1)
        return self.temperature * float((self.temperature_end / self.temperature) ** progress)


@dataclass
class State:
    """Everything a run carries from round to round."""

    network: PlacementNetwork
    average: PlacementNetwork
    optimizer: torch.optim.Adam
    league: League
    crowd: list[Crowd]
    round: int = 0
    deals: int = 0
    seconds: float = 0.0


def start_state(config: Config, rules: Rules) -> State:
    """A run before its first round, weights drawn from the seed."""
    torch.manual_seed(config.seed)
    average = PlacementNetwork(rules, config.width, config.hand_width)
    network = PlacementNetwork(rules, config.width, config.hand_width).to(config.device)
    network.load_state_dict(average.state_dict())
    league = League(config.league, config.latest_share)
    league.add("round-0", average.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    return State(network, average, optimizer, league, [])


def save_state(path: Path, state: State, config: Config) -> None:
    """Write a run's state to one file, whole or not at all."""
    tensors = pack(state.network, state.average, state.optimizer)
    for i, crowd in enumerate(state.crowd):
        for name, array in crowd._asdict().items():
            kept = array.view(np.int64) if array.dtype == np.uint64 else array
            tensors[f"crowd.{i}.{name}"] = torch.from_numpy(np.ascontiguousarray(kept))
    record = {
        "round": state.round, "deals": state.deals, "seconds": state.seconds,
        "crowd": len(state.crowd), "league": state.league.record(),
        "config": identity(config, state.average.rules),
    }  # fmt: skip
    save_run(path, record, {**tensors, **state.league.tensors()})


def load_state(path: Path, config: Config, rules: Rules) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, identity(config, rules))
    state = start_state(config, rules)
    try:
        unpack(tensors, state.network, state.average, state.optimizer)
        for i in range(record["crowd"]):
            arrays = {k: v.numpy() for k, v in under(f"crowd.{i}.", tensors).items()}
            arrays["masks"] = arrays["masks"].view(np.uint64)
            state.crowd.append(Crowd(**arrays))
        state.league = League.restore(record["league"], tensors)
        state.round, state.deals = int(record["round"]), int(record["deals"])
        state.seconds = float(record["seconds"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no run to resume ({error}); start without resume") from None
    return state


def identity(config: Config, rules: Rules) -> dict[str, Any]:
    """Settings that decide the result."""
    loose = (
        "out", "resume", "eval_deals", "eval_every", "exploit_every", "save_every", "threads",
        "rounds",
    )  # fmt: skip
    kept = {k: v for k, v in asdict(config).items() if k not in loose}
    return {
        **kept, "crowd": config.num_crowd, "num_rounds": config.num_rounds,
        "options": rules.to_dict(),
    }  # fmt: skip


def check_config(config: Config, rules: Rules) -> None:
    """Raise unless every number is in range and the rules can be learned.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    if rules.topology == "banker":
        raise ConfigError(
            "topology 'banker': the learner sits in one seat, and the bank's is another game than "
            "the others'; use cpoker train"
        )
    if rules.topology == "pool" and config.players > 2 and config.num_crowd:
        raise ConfigError(
            f"topology 'pool' with {config.players} players: a crowd is met one at a time; "
            "add --crowd 0"
        )
    check_device(config.device)
    if config.num_rounds < 1:
        raise ConfigError(f"rounds {config.num_rounds}: give 1 or more")
    if config.num_crowd < 0:
        raise ConfigError(f"crowd {config.num_crowd}: give 0 or more")
    if config.seed >= MOST_SEED:
        raise ConfigError(f"seed {config.seed}: give less than {MOST_SEED}")
    least = {
        "deals": 1, "copies": 2, "opponents": 1, "epochs": 1, "batch": 1,
        "width": 1, "hand_width": 1, "league": 1, "snapshot_every": 1, "opponents_drawn": 1,
        "save_every": 1, "eval_every": 1, "exploit_every": 1, "eval_deals": 2, "threads": 1,
        "seed": 0,
    }  # fmt: skip
    for name, limit in least.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    open_intervals = {
        "learning_rate": (0, 1), "clip": (0, 1), "temperature": (0, 10), "temperature_end": (0, 10),
        "max_norm": (0, math.inf), "value_weight": (0, math.inf),
    }  # fmt: skip
    for name, (low, high) in open_intervals.items():
        if not low < getattr(config, name) < high:
            raise ConfigError(
                f"{name} {getattr(config, name)}: give a number between {low} and {high}"
            )
    for name in ("gae_lambda", "average", "latest_share"):
        if not 0 <= getattr(config, name) <= 1:
            raise ConfigError(f"{name} {getattr(config, name)}: give a number from 0 to 1")
    if config.players not in (2, 3, 4):
        raise ConfigError(f"players {config.players}: a table has 2 to 4")

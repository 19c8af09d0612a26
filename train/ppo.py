"""PPO on `ChinesePokerSequential-v0`: a network learns to place a card a step against its own past.

Each round plays whole deals against snapshots from a league, estimates advantages and takes clipped
steps on them. Two things keep the luck of the cards out of what an action is credited with; neither
depends on the action, so the gradient's mean stays what it is:

* every deal is played several times, and a play is credited with what it wins more than the others
  do on average; hands whose plays all win the same teach next to nothing and are left out;
* what a play wins is its mean over the opponents' hands of the last rounds that share no card with
  it, each settled by the rules; `--crowd 0` takes the environment's reward alone.

Opponents are met one at a time, so with a crowd the coupling of a home run is not learned. The
weights that play, in the league and at the end, are a running mean of those that learn.

    python -m train.ppo --rules four_two --preset quick
"""

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import load_run, save_checkpoint, write_bytes
from cpoker_env.agents.placement import NUM_ACTIONS, SAME, Choices, PlacementNetwork, branches
from cpoker_env.agents.ppo_policy import PlacementPolicy
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import interval, measure
from cpoker_env.train.league import League
from cpoker_env.train.matrix import results_table
from cpoker_env.train.rollout import (
    Crowd,
    IntArray,
    actions_of,
    crowd_of,
    deal,
    draw,
    make_env,
    play,
    seat_opponents,
    settle,
)
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import Policy, make_policy
from cpoker_env.render import showdown_text
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import STATUSES
from cpoker_env.table import Table
from cpoker_env.vector import ChinesePokerVectorEnv


@dataclass(frozen=True)
class Config:
    """Train an agent by PPO against a league of itself, then show it against the heuristics."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    preset: Literal["quick", "standard"] = "quick"
    """How long: quick takes at most 3 minutes on 2 cores, standard at most 30."""
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
    crowd: int = 32
    """Rounds of opponents' hands that a play is settled against; 0 for its own deal's alone."""
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
            self.rounds if self.rounds is not None else {"quick": 100, "standard": 600}[self.preset]
        )

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        return (
            self.out
            if self.out is not None
            else Path("runs") / f"{Path(self.rules).stem}-{self.preset}-ppo"
        )

    def temperature_at(self, number: int) -> float:
        """The temperature of a round."""
        progress = number / max(self.num_rounds - 1, 1)
        return self.temperature * (self.temperature_end / self.temperature) ** progress


RARE = 1e-4
"""Share of the likeliest choice's chance below which a choice is left out of a rollout."""


class Batch(NamedTuple):
    """H hands played G times each, with their T choices.

    features (H, F) float32; hand_of, kinds (T,), strengths (T, 3) int64 as `Choices` has them;
    branch (T, G) int64, where each choice leaves each play; log_chances, advantages, returns
    (H, G, 13) float32.
    """

    features: torch.Tensor
    hand_of: torch.Tensor
    kinds: torch.Tensor
    strengths: torch.Tensor
    branch: torch.Tensor
    log_chances: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class Rollout(NamedTuple):
    """H hands with what they may do, the choices played (H, G), and what that won (H, G).

    log_chances, advantages and returns are (H, G, 13), see `Batch`.
    """

    choices: Choices
    chosen: IntArray
    won: IntArray
    log_chances: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def batch(self, hands: IntArray, device: str) -> Batch:
        """Some of the hands, on a device."""
        choices, chosen = self.choices, self.chosen[hands]
        sizes = np.diff(choices.starts)[hands]
        ends = np.cumsum(sizes)
        hand_of = np.repeat(np.arange(len(hands)), sizes)
        places = np.arange(ends[-1]) + (choices.starts[hands] - ends + sizes)[hand_of]
        codes = choices.codes
        arrays = (
            choices.features[hands], hand_of, choices.kinds[places], choices.strengths[places],
            branches(codes[places][:, None], codes[chosen][hand_of]),
        )  # fmt: skip
        there = [torch.from_numpy(array).to(device) for array in arrays]
        where = torch.from_numpy(hands)
        told = (self.log_chances, self.advantages, self.returns)
        return Batch(*there, *(part[where].to(device) for part in told))


class Steps(NamedTuple):
    """What a network makes of the 13 steps of H times G plays, (H, G, 13) each.

    log_chances of the actions taken, entropy of what could have been, values before the step, and
    whether there was a choice.
    """

    log_chances: torch.Tensor
    entropy: torch.Tensor
    values: torch.Tensor
    had_choice: torch.Tensor


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


def draw_opponents(
    state: State, config: Config, rules: Rules, rng: np.random.Generator
) -> list[Policy]:
    """Snapshots from the league, ready to play."""
    made: dict[str, Policy] = {}
    names = state.league.draw(rng, config.opponents_drawn)
    for name in set(names):
        network = PlacementNetwork(rules, config.width, config.hand_width)
        network.load_state_dict(state.league.weights(name))
        made[name] = PlacementPolicy(network.eval(), rules)
    return [made[name] for name in names]


@torch.no_grad()
def collect(
    env: ChinesePokerVectorEnv, state: State, config: Config, rules: Rules,
    rng: np.random.Generator,
) -> tuple[Rollout, dict[str, float]]:  # fmt: skip
    """Play a rollout; returns it with the scalars to log."""
    seat_opponents(env, draw_opponents(state, config, rules, rng))
    first = ((config.seed + 1) << 40) + state.round * config.deals
    decisions, choices = deal(env, first, config.copies)
    acting = PlacementPolicy(state.network, rules)
    scores = acting.scores(choices).astype(np.float64) / config.temperature_at(state.round)
    top = np.maximum.reduceat(scores, choices.starts[:-1])
    weights = np.exp(scores - top[choices.hand_of])
    choices, weights = choices.keep(weights > RARE), weights[weights > RARE]
    chosen = draw(choices, weights, config.copies, rng)
    ended = play(env, actions_of(choices, chosen), rng)
    won = ended.units[:, 0] / (config.players - 1)
    shares = np.bincount(ended.statuses[:, 0], minlength=len(STATUSES)) / len(won)
    scalars = {"charts/units": float(won.mean())}
    scalars |= {f"charts/{name}": share for name, share in zip(STATUSES, shares, strict=True)}
    if config.crowd:
        state.crowd.append(crowd_of(ended, config.copies, rules))
        del state.crowd[: -config.crowd]
        crowd = Crowd(*map(np.concatenate, zip(*state.crowd, strict=True)))
        won = settle(ended, decisions, crowd, config.opponents, rules)
    won = won.reshape(chosen.shape)
    nothing = torch.zeros(*chosen.shape, HAND_SIZE)
    rollout = Rollout(choices, chosen, won, nothing, nothing.clone(), nothing.clone())
    return rollout, scalars


@torch.no_grad()
def add_advantages(rollout: Rollout, state: State, config: Config, hands: IntArray) -> None:
    """Fill in what the acting network makes of some hands' plays, and their advantages."""
    copies = rollout.won.shape[1]
    others = (rollout.won.sum(axis=1, keepdims=True) - rollout.won) / (copies - 1)
    gained = torch.from_numpy((rollout.won - others).astype(np.float32))
    for at in range(0, len(hands), config.batch):
        part = hands[at : at + config.batch]
        steps = read_steps(
            state.network, rollout.batch(part, config.device), config.temperature_at(state.round)
        )
        where = torch.from_numpy(part)
        advantages = advantages_of(
            steps.values.cpu(), gained[where], steps.had_choice.cpu(), config.gae_lambda
        )
        rollout.log_chances[where] = steps.log_chances.cpu()
        rollout.advantages[where] = advantages
        rollout.returns[where] = advantages + steps.values.cpu()


def read_steps(network: PlacementNetwork, part: Batch, temperature: float) -> Steps:
    """Chances, entropy and values of the steps of plays.

    The choices that agree with a play before a step share out the chances of the step's actions by
    their weights; the state is worth their mean expectation.
    """
    scores, expected = network(part.features, part.hand_of, part.strengths, part.kinds)
    num_hands, copies = len(part.features), part.branch.shape[1]
    logits = scores / temperature
    top = torch.full((num_hands,), -torch.inf, device=scores.device)
    top = top.scatter_reduce(0, part.hand_of, logits.detach(), "amax")
    weights = (logits - top[part.hand_of]).exp()
    plays = part.hand_of[:, None] * copies + torch.arange(copies, device=scores.device)
    cells = (plays * (SAME + 1) + part.branch).reshape(-1)

    def gather(amounts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums (H, G, 1) of the choice played, and (H, G, 13, 5) by where others leave it."""
        each = amounts[:, None].expand(-1, copies).reshape(-1)
        sums = torch.zeros(num_hands * copies * (SAME + 1), device=scores.device)
        sums = sums.index_add(0, cells, each).reshape(num_hands, copies, SAME + 1)
        by_step = sums[..., :SAME].reshape(num_hands, copies, HAND_SIZE, NUM_ACTIONS)
        return sums[..., SAME:], by_step

    later = torch.ones(HAND_SIZE, HAND_SIZE, device=scores.device).tril(-1)
    own, others = gather(weights)
    leaving = others.sum(dim=3)
    after = (own + leaving @ later).clamp(min=1e-30)
    before = after + leaving
    shares = torch.cat([after[..., None], others], dim=3) / before[..., None]
    entropy = -(shares * shares.clamp(min=1e-9).log()).sum(dim=3)
    own_worth, others_worth = gather(weights.detach() * expected)
    worth_leaving = others_worth.sum(dim=3)
    values = (own_worth + worth_leaving @ later + worth_leaving) / before.detach()
    return Steps(after.log() - before.log(), entropy, values, leaving.detach() > 0)


def advantages_of(
    values: torch.Tensor, gained: torch.Tensor, had_choice: torch.Tensor, gae_lambda: float
) -> torch.Tensor:
    """Generalised advantage estimates (..., 13), undiscounted, of deals rewarded at their end.

    Args:
        values: (..., 13) the critic's, before each step.
        gained: (...) the reward after the last.
        had_choice: (..., 13) whether a step is one; the others do not fade what follows.
        gae_lambda: See `Config`.
    """
    advantages = torch.empty_like(values)
    following, later = gained, torch.zeros_like(gained)
    for step in reversed(range(values.shape[-1])):
        later = following - values[..., step] + later
        advantages[..., step] = later
        later = torch.where(had_choice[..., step], gae_lambda * later, later)
        following = values[..., step]
    return advantages


def update(
    state: State, rollout: Rollout, config: Config, rng: np.random.Generator
) -> dict[str, float]:
    """Improve the network on a rollout; returns the scalars to log."""
    progress = state.round / max(config.num_rounds - 1, 1)
    rate = config.learning_rate * (0.51 + 0.49 * math.cos(math.pi * progress))
    temperature = config.temperature_at(state.round)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    hands = np.flatnonzero(np.ptp(rollout.won, axis=1) > 0)
    add_advantages(rollout, state, config, hands)
    told: list[list[float]] = []
    for _ in range(config.epochs):
        order = rng.permutation(hands)
        for at in range(0, len(order), config.batch):
            part = rollout.batch(order[at : at + config.batch], config.device)
            losses, others = losses_of(state.network, part, temperature, config.clip)
            loss = losses[0] + config.value_weight * losses[1] - temperature * losses[2]
            if not torch.isfinite(loss):
                _stop(part, loss.item(), state, config)
            state.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(state.network.parameters(), config.max_norm)
            state.optimizer.step()
            _follow(state.average, state.network, config.average)
            told.append([*losses.tolist(), *others])
    names = ("policy", "value", "entropy", "approx_kl", "clip_fraction")
    means = np.mean(told, axis=0) if told else np.zeros(len(names))
    return {
        **{f"losses/{name}": float(mean) for name, mean in zip(names, means, strict=True)},
        "losses/learning_rate": rate,
        "losses/temperature": temperature,
        "charts/hands_that_teach": len(hands) / config.deals,
    }


def losses_of(
    network: PlacementNetwork, part: Batch, temperature: float, clip: float
) -> tuple[torch.Tensor, list[float]]:
    """(3,) policy loss, value loss and entropy; then the KL divergence and the clipped share.

    Means are over plays, of sums over their steps.
    """
    steps = read_steps(network, part, temperature)
    change = steps.log_chances - part.log_chances
    ratio = change.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy = -torch.minimum(ratio * part.advantages, clipped * part.advantages)
    value = (steps.values - part.returns).square()
    losses = [
        torch.where(steps.had_choice, amount, 0.0).sum(dim=2).mean()
        for amount in (policy, value, steps.entropy)
    ]
    with torch.no_grad():
        # The estimate (r - 1) - log r, which is never negative: Schulman, "Approximating KL
        # Divergence", 2020.
        divergence = (ratio - 1 - change).mean().item()
        share = (ratio != clipped)[steps.had_choice].float().mean().item()
    return torch.stack(losses), [divergence, share]


@torch.no_grad()
def _follow(average: PlacementNetwork, network: PlacementNetwork, share: float) -> None:
    """Move the running mean of the weights."""
    for mean, new in zip(average.parameters(), network.parameters(), strict=True):
        mean.lerp_(new.to(mean.device), 1 - share)


def _stop(part: Batch, loss: float, state: State, config: Config) -> NoReturn:
    path = config.folder / "bad-batch.safetensors"
    tensors = {name: t.detach().cpu().contiguous() for name, t in part._asdict().items()}
    write_bytes(path, safetensors.torch.save(tensors))
    raise ConfigError(
        f"loss {loss} in round {state.round}: its batch is in {path}; lower learning_rate "
        f"({config.learning_rate}) and start again"
    )


def play_round(
    state: State, env: ChinesePokerVectorEnv, config: Config, rules: Rules
) -> dict[str, float]:
    """One round: draw opponents, play, learn. Returns the scalars to log."""
    rng = np.random.default_rng([config.seed, state.round])
    started = time.perf_counter()
    with _deterministic():
        rollout, scalars = collect(env, state, config, rules, rng)
        played = time.perf_counter()
        scalars |= update(state, rollout, config, rng)
    state.round += 1
    state.deals += config.deals
    if state.round % config.snapshot_every == 0:
        state.league.add(f"round-{state.round}", state.average.state_dict())
    seconds = time.perf_counter() - started
    state.seconds += seconds
    return {
        **scalars,
        "charts/deals": state.deals,
        "charts/SPS": rollout.chosen.size * HAND_SIZE / seconds,
        "charts/share_of_playing": (played - started) / seconds,
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


def save_state(path: Path, state: State, config: Config) -> None:
    """Write a run's state to one file, whole or not at all."""
    tensors = {f"network.{k}": v for k, v in state.network.state_dict().items()}
    tensors |= {f"average.{k}": v for k, v in state.average.state_dict().items()}
    for i, slot in state.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{i}.{k}": torch.as_tensor(v) for k, v in slot.items()}
    for i, crowd in enumerate(state.crowd):
        for name, array in crowd._asdict().items():
            kept = array.view(np.int64) if array.dtype == np.uint64 else array
            tensors[f"crowd.{i}.{name}"] = torch.from_numpy(np.ascontiguousarray(kept))
    record = {
        "round": state.round, "deals": state.deals, "seconds": state.seconds,
        "crowd": len(state.crowd), "league": state.league.record(), "config": identity(config),
    }  # fmt: skip
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    tensors |= state.league.tensors()
    write_bytes(path, safetensors.torch.save(tensors, {"state": json.dumps(record)}))


def load_state(path: Path, config: Config, rules: Rules) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, identity(config))
    state = start_state(config, rules)
    try:
        state.network.load_state_dict(_under("network.", tensors))
        state.average.load_state_dict(_under("average.", tensors))
        adam = state.optimizer.state_dict()
        for name, tensor in _under("adam.", tensors).items():
            index, _, key = name.partition(".")
            adam["state"].setdefault(int(index), {})[key] = tensor
        state.optimizer.load_state_dict(adam)
        for i in range(record["crowd"]):
            arrays = {k: v.numpy() for k, v in _under(f"crowd.{i}.", tensors).items()}
            arrays["masks"] = arrays["masks"].view(np.uint64)
            state.crowd.append(Crowd(**arrays))
        state.league = League.restore(record["league"], tensors)
        state.round, state.deals = int(record["round"]), int(record["deals"])
        state.seconds = float(record["seconds"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no run to resume ({error}); start without resume") from None
    return state


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def identity(config: Config) -> dict[str, Any]:
    """Settings that decide the result."""
    loose = (
        "out", "resume", "eval_deals", "eval_every", "exploit_every", "save_every", "threads",
        "rounds",
    )  # fmt: skip
    kept = {k: v for k, v in asdict(config).items() if k not in loose}
    return {**kept, "num_rounds": config.num_rounds}


def check_config(config: Config) -> None:
    """Raise unless every number is in range.

    Raises:
        ConfigError: Names the field, the limit and the fix.
    """
    least = {
        "deals": 1, "copies": 2, "crowd": 0, "opponents": 1, "epochs": 1, "batch": 1, "width": 1,
        "hand_width": 1, "league": 1, "snapshot_every": 1, "opponents_drawn": 1, "save_every": 1,
        "eval_every": 1, "exploit_every": 1, "eval_deals": 2, "threads": 1, "num_rounds": 1,
        "seed": 0,
    }  # fmt: skip
    for name, limit in least.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    open_intervals = {
        "learning_rate": (0, 1), "clip": (0, 1), "temperature": (0, 10), "temperature_end": (0, 10),
        "max_norm": (0, math.inf),
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
    if config.device.startswith("cuda"):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # so that it is deterministic
    saved = config.folder / "state.safetensors"
    if config.resume:
        state = load_state(saved, config, rules)
    elif saved.exists():
        raise CheckpointError(f"{saved} exists: add --resume to go on, or choose another --out")
    else:
        state = start_state(config, rules)
    env = make_env(rules, config.players, config.deals * config.copies)
    console = Console()
    console.print(f"training {config.rules} ({config.preset}) by PPO into {config.folder}")
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TextColumn(
            "{task.fields[speed]:,.0f} steps/s  v greedy {task.fields[greedy]:+.3f}  "
            "v balanced {task.fields[balanced]:+.3f}"
        ),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with (
        Progress(*columns, console=Console(stderr=True)) as progress,
        SummaryWriter(str(config.folder), purge_step=state.round) as writer,
    ):
        task = progress.add_task(
            "rounds", total=config.num_rounds, completed=state.round, speed=0, greedy=0, balanced=0
        )
        while state.round < config.num_rounds:
            scalars = play_round(state, env, config, rules)
            if state.round % config.save_every == 0 or state.round == config.num_rounds:
                save_state(saved, state, config)
            if state.round % config.eval_every == 0:
                scalars |= evaluate_shortly(state, config, rules)
                progress.update(
                    task, greedy=scalars["eval/units_vs_greedy"],
                    balanced=scalars["eval/units_vs_balanced"],
                )  # fmt: skip
                writer.add_text("hand", picture(state, config, rules), state.round)
            if state.round % config.exploit_every == 0:
                scalars["eval/exploitability"] = exploitability(state, config, rules)
            for name, value in scalars.items():
                writer.add_scalar(name, value, state.round)
            progress.update(task, advance=1, speed=scalars["charts/SPS"])
    _finish(state, config, rules, console)


EVAL_SEED = 1_000_003
"""Added to the seed for matches, so that they use deals no round trained on."""
SHORT_DEALS = 500
"""Deals of a match that is only logged."""


def evaluate_shortly(state: State, config: Config, rules: Rules) -> dict[str, float]:
    """Short matches against the heuristics."""
    policy = PlacementPolicy(state.average, rules)
    scalars = {}
    for name in ("greedy", "balanced"):
        opponent = make_policy(name, rules, config.players)
        short = duel(policy, opponent, rules, config.players, SHORT_DEALS, config.seed + EVAL_SEED)
        scalars[f"eval/units_vs_{name}"] = short.units
        scalars[f"eval/units_vs_{name}_95"] = short.half_width
    return scalars


def exploitability(state: State, config: Config, rules: Rules) -> float:
    """The upper figure of a small measurement."""
    policy = PlacementPolicy(state.average, rules)
    _, gains = measure(policy, rules, config.players, 100, 200, config.seed, 1, num_tables=50)
    return interval(gains.upper).mean


def picture(state: State, config: Config, rules: Rules) -> str:
    """A deal that the agent plays in all seats, as Markdown shows plain text."""
    table = Table(rules, config.players)
    deals = table.deal(config.seed + EVAL_SEED, np.array([state.round], np.uint64))
    policy = PlacementPolicy(state.average, rules)
    rng = np.random.default_rng(config.seed)
    actions = table.act(deals, [(policy, list(range(config.players)))], rng)
    shown = table.showdown(deals, actions, table.score(deals, actions), 0)
    text = showdown_text(shown, colour=False)
    return "\n".join("    " + line for line in text.splitlines())


def _finish(state: State, config: Config, rules: Rules, console: Console) -> None:
    policy = PlacementPolicy(state.average, rules)
    results = [
        duel(policy, make_policy(name, rules, config.players), rules, config.players,
             config.eval_deals, config.seed + EVAL_SEED, ("trained", name))
        for name in ("uniform", "greedy", "balanced")
    ]  # fmt: skip
    stored = {
        **identity(config), "kind": "ppo", "deals_played": state.deals,
        "seconds": round(state.seconds, 1),
    }  # fmt: skip
    save_checkpoint(
        config.folder / "agent", state.average.state_dict(), rules, stored,
        [asdict(result) for result in results],
    )  # fmt: skip
    title = f"{config.rules}, {config.players} seats, after {state.deals:,} deals of PPO"
    console.print(results_table(results, title))
    console.print(
        f"saved {config.folder / 'agent'}.safetensors and .json; play it as "
        f"ppo:{config.folder / 'agent'}"
    )


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Config))

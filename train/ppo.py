"""PPO on `ChinesePokerSequential-v0`: a network learns to place a card a step against its own past.

A rollout is whole deals, so a run needs no state of the environment: deal h of round r is named by
the seed, r and h. Its opponents are snapshots from a league. Two things keep the luck of the cards
out of what an action is credited with, and neither depends on the action, so both leave the
gradient's mean where it is:

* every deal is played several times, and a play is credited with what it wins more than the others
  do on average; hands whose plays all agree teach nothing and are left out of the update;
* what a play wins is its mean over the opponents' hands of the last rounds that share no card with
  it, each settled by the rules; `--crowd 0` takes the environment's reward alone.

The critic learns what is left. The weights that play, in the league and at the end, are a running
mean of those that learn.

    python -m train.ppo --rules four_two --preset quick
"""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import load_run, save_checkpoint, write_bytes
from cpoker_env.agents.placement import PlacementNetwork, room_index, see_hands
from cpoker_env.agents.population import resolve
from cpoker_env.agents.ppo_policy import PlacementPolicy, take
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import interval, measure
from cpoker_env.train.league import League
from cpoker_env.train.matrix import results_table
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import Actions, DecisionBatch, Policy, make_policy
from cpoker_env.render import showdown_text
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import DECLARE, SHOW, STATUSES, SURRENDER
from cpoker_env.table import Table
from cpoker_env.tables import tables_for
from cpoker_env.vector import ChinesePokerVectorEnv

IntArray = npt.NDArray[Any]
_NORMAL, _FOUL, _SURRENDER, _NATURAL = range(len(STATUSES))


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
    mask: Literal["legal", "capacity"] = "legal"
    """Rows open to learners: those a legal hand can follow, or, faster, all with room."""
    deals: int = 2048
    """Deals of a rollout."""
    copies: int = 4
    """Times each deal is played."""
    crowd: int = 16
    """Rounds of opponents' hands that a play is settled against; 0 for its own deal's alone."""
    opponents: int = 400
    """Hands of the crowd that a play meets at most."""
    epochs: int = 2
    """Passes over a rollout."""
    batch: int = 256
    """Hands of a gradient step, each with all its copies."""
    learning_rate: float = 1e-3
    """Adam's first step size; falls to a fiftieth along a cosine."""
    clip: float = 0.2
    """How far the ratio of new to old chances counts."""
    gae_lambda: float = 0.95
    """How far the advantage looks past the critic, 1 to the end of the deal."""
    entropy: float = 0.1
    """Units that an action's surprise is worth at first."""
    entropy_end: float = 0.002
    """The same at the end; in between it falls by a constant factor a round."""
    value_weight: float = 0.5
    """Weight of the critic's squared error in the loss."""
    max_norm: float = 0.5
    """Largest norm of a gradient."""
    average: float = 0.995
    """Share of the running mean of the weights that a gradient step leaves."""
    width: int = 256
    """Units of the trunk of every step."""
    hand_width: int = 512
    """Units of the tower over the hand."""
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
            self.rounds if self.rounds is not None else {"quick": 80, "standard": 800}[self.preset]
        )

    @property
    def folder(self) -> Path:
        """Where everything goes."""
        return (
            self.out
            if self.out is not None
            else Path("runs") / f"{Path(self.rules).stem}-{self.preset}-ppo"
        )


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


class Rollout(NamedTuple):
    """H deals played G times each; steps after a declaration are not `free`.

    features (H, F), cards (H, 13), rows (H, G, 13) 0..2, rooms (H, G, 13), actions (H, G, 13) 0..4,
    masks (H, G, 13, 5) bool, log_chances, values, advantages, returns (H, G, 13), free (H, G, 13)
    bool, whether there was a choice.
    """

    features: torch.Tensor
    cards: torch.Tensor
    rows: torch.Tensor
    rooms: torch.Tensor
    actions: torch.Tensor
    masks: torch.Tensor
    log_chances: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    free: torch.Tensor

    def take(self, where: torch.Tensor) -> "Rollout":
        """Some of the hands."""
        return Rollout(*(part[where] for part in self))


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


class LeaguePlayers:
    """Opponents: each deal is played by one of some snapshots, the copies of a deal alike."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = policies

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        keys = np.stack([batch.seeds, batch.indices, batch.seats.astype(np.uint64)], axis=1)
        _, first, again = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        actions = Actions(np.empty(len(first), np.int8), np.empty((len(first), 13), np.int8))
        share = (batch.seeds[first] % np.uint64(len(self.policies))).astype(np.int64)
        for place, policy in enumerate(self.policies):
            mine = np.flatnonzero(share == place)
            if len(mine):
                found = policy.act(take(batch, first[mine]), rng)
                actions.declarations[mine], actions.rows[mine] = found.declarations, found.rows
        again = again.reshape(-1)
        return Actions(actions.declarations[again], actions.rows[again])


def start_state(config: Config) -> State:
    """A run before its first round, weights drawn from the seed."""
    torch.manual_seed(config.seed)
    network = PlacementNetwork(config.width, config.hand_width).to(config.device)
    average = PlacementNetwork(config.width, config.hand_width)
    average.load_state_dict(network.state_dict())
    league = League(config.league, config.latest_share)
    league.add("round-0", average.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5)
    return State(network, average, optimizer, league, [])


def make_env(config: Config, rules: Rules) -> ChinesePokerVectorEnv:
    """Tables for a whole rollout; their opponents are seated round by round."""
    env = gym.make_vec(
        "ChinesePokerSequential-v0", config.deals * config.copies, rules=rules,
        num_players=config.players, opponents=LeaguePlayers([]), mask=config.mask,
    )  # fmt: skip
    return cast(ChinesePokerVectorEnv, env)


def seat_opponents(
    env: ChinesePokerVectorEnv, state: State, config: Config, rules: Rules,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Draw snapshots and let them play the other seats."""
    policies: dict[str, Policy] = {}
    names = state.league.draw(rng, config.opponents_drawn)
    for name in names:
        if name not in policies:
            network = PlacementNetwork(config.width, config.hand_width)
            network.load_state_dict(state.league.weights(name))
            policies[name] = PlacementPolicy(network.eval(), rules)
    players = cast(LeaguePlayers, env.learners.opponents[0])
    players.policies = [policies[name] for name in names]


@torch.no_grad()
def collect(
    env: ChinesePokerVectorEnv, state: State, config: Config, rules: Rules,
    rng: np.random.Generator,
) -> tuple[Rollout, dict[str, float]]:  # fmt: skip
    """Play a rollout; returns it with the scalars to log."""
    num_deals, copies, device = config.deals, config.copies, config.device
    size = num_deals * copies
    first = ((config.seed + 1) << 40) + state.round * num_deals
    seeds = [first + deal for deal in range(num_deals) for _ in range(copies)]
    obs, info = env.reset(seed=seeds)
    mask = info["action_mask"].astype(np.bool_)
    batch = _learners_decisions(env, copies)
    cards, features = see_hands(batch)
    features_there = torch.from_numpy(features).to(device)
    cards_there = torch.from_numpy(cards).to(device)
    each_card = cards_there.repeat_interleave(copies, dim=0)
    laid = state.network.hand_tower(features_there).repeat_interleave(copies, dim=0)

    shape = (size, HAND_SIZE)
    actions, rooms = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    masks = np.ones((*shape, 5), np.bool_)
    log_chances = torch.zeros(shape, device=device)
    values = torch.zeros(shape, device=device)
    alive = np.ones(size, np.bool_)
    free = np.zeros(shape, np.bool_)
    ended = _Ended(size, config.players)
    for step in range(HAND_SIZE):
        rooms[:, step], masks[:, step] = room_index(obs["room"]), mask
        free[:, step] = alive & (mask.sum(axis=1) > 1)
        preferences, values[:, step] = state.network.step(
            laid, each_card[:, step], torch.from_numpy(rooms[:, step]).to(device)
        )
        log_all = masked_log_chances(preferences, torch.from_numpy(mask).to(device))
        luck = torch.from_numpy(rng.random(size, np.float32)).to(device)
        action = draw_actions(log_all, luck)
        log_chances[:, step] = log_all.gather(1, action[:, None]).squeeze(1)
        laid = state.network.lay(laid, each_card[:, step], action.clamp(max=2))
        actions[:, step] = action.cpu().numpy()
        obs, _, terminated, _, info = env.step(actions[:, step])
        ended.keep(info, terminated & alive)
        alive &= ~terminated
        mask = info["action_mask"].astype(np.bool_)

    won, scalars = _settle(ended, batch, state, config, rules)
    by_copy = won.reshape(num_deals, copies)
    others = (by_copy.sum(axis=1, keepdims=True) - by_copy) / max(copies - 1, 1)
    gained = (by_copy - others if copies > 1 else by_copy).reshape(-1)
    length = np.where(actions[:, 0] > 2, 1, HAND_SIZE)
    advantages = advantages_of(
        values, torch.from_numpy(gained.astype(np.float32)).to(device),
        torch.from_numpy(length).to(device), config.gae_lambda,
    )  # fmt: skip

    def grouped(array: IntArray) -> torch.Tensor:
        return torch.from_numpy(array).to(device).reshape(num_deals, copies, *array.shape[1:])

    by_deal = (num_deals, copies, HAND_SIZE)
    rollout = Rollout(
        features_there, cards_there, grouped(np.minimum(actions, 2)), grouped(rooms),
        grouped(actions), grouped(masks), log_chances.reshape(by_deal), values.reshape(by_deal),
        advantages.reshape(by_deal), (advantages + values).reshape(by_deal), grouped(free),
    )  # fmt: skip
    if copies > 1:
        teaches = torch.from_numpy(np.ptp(by_copy, axis=1) > 0).to(device)
        rollout = rollout.take(teaches)
    scalars["charts/hands_that_teach"] = len(rollout.cards) / num_deals
    return rollout, scalars


def _learners_decisions(env: ChinesePokerVectorEnv, copies: int) -> DecisionBatch:
    """What the learners' seats of the deals see, each deal once."""
    deals = env.learners.deals
    assert deals is not None, "reset before it is read"
    whole = env.learners.table.decisions(deals, [0])
    return take(whole, np.arange(0, len(whole), copies))


class _Ended:
    """What the environment told of deals as they ended, (B, ...) each."""

    def __init__(self, size: int, players: int) -> None:
        self.units = np.zeros((size, players))
        self.hands = np.zeros((size, players, HAND_SIZE), np.int8)
        self.rows = np.zeros((size, players, HAND_SIZE), np.int8)
        self.statuses = np.zeros((size, players), np.int8)

    def keep(self, info: dict[str, Any], where: npt.NDArray[np.bool_]) -> None:
        if where.any():
            told = info["final_info"]
            self.units[where] = told["units"][where]
            self.hands[where] = told["hands"][where]
            self.rows[where] = told["arrangements"][where]
            self.statuses[where] = told["statuses"][where]


def _declarations(statuses: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Declarations behind statuses."""
    found = np.full(statuses.shape, SHOW, np.int8)
    found[statuses == _SURRENDER] = SURRENDER
    found[statuses == _NATURAL] = DECLARE
    return found


def _settle(
    ended: _Ended, batch: DecisionBatch, state: State, config: Config, rules: Rules
) -> tuple[npt.NDArray[np.float64], dict[str, float]]:
    """Units per opponent of every play, the crowd having been joined by the new opponents."""
    won = ended.units[:, 0] / (config.players - 1)
    fouls = ended.statuses[:, 0] == _FOUL
    scalars = {
        "charts/units": float(won.mean()),
        "charts/fouls": float(fouls.mean()),
        "charts/surrenders": float((ended.statuses[:, 0] == _SURRENDER).mean()),
        "charts/declared": float((ended.statuses[:, 0] == _NATURAL).mean()),
    }
    if not config.crowd:
        return won, scalars
    once = slice(None, None, config.copies)
    hands = ended.hands[once, 1:].reshape(-1, HAND_SIZE)
    plays = resolve(
        hands, ended.rows[once, 1:].reshape(-1, HAND_SIZE),
        _declarations(ended.statuses[once, 1:]).reshape(-1), rules,
    )  # fmt: skip
    bank = np.zeros(len(hands), np.int8)
    if rules.banker is not None:
        seats = np.tile(np.arange(1, config.players), config.deals)
        bank = np.where(seats == rules.banker, 1, -1).astype(np.int8)
    sets = (np.uint64(1) << hands.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    state.crowd.append(Crowd(sets, bank, *plays))
    del state.crowd[: -config.crowd]
    crowd = Crowd(*map(np.concatenate, zip(*state.crowd, strict=True)))
    mine = resolve(ended.hands[:, 0], ended.rows[:, 0], _declarations(ended.statuses[:, 0]), rules)
    size, num_deals = len(won), config.deals
    values = np.empty(size, np.float32)
    surrender = np.empty(num_deals, np.float32)
    declare = np.empty(num_deals, np.float32)
    met = np.empty(num_deals, np.int32)
    kernels.population_values_into(
        batch.hands, np.arange(0, size + 1, config.copies), mine.strengths, batch.naturals,
        batch.bank, *crowd, config.opponents, tables_for(rules).naturals, rules.packed,
        values, surrender, declare, met,
    )  # fmt: skip
    by_status = np.stack(
        [values, won, surrender.repeat(config.copies), declare.repeat(config.copies)]
    )
    told = by_status[ended.statuses[:, 0], np.arange(size)]
    return np.where((met > 0).repeat(config.copies), told, won), scalars


def masked_log_chances(preferences: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Logarithms of the chances (..., 5) of actions, very low where masked."""
    return torch.log_softmax(preferences.masked_fill(~mask, -1e9), dim=-1)


def draw_actions(log_chances: torch.Tensor, luck: torch.Tensor) -> torch.Tensor:
    """Actions (B,) int64 by chances (B, 5) and numbers (B,) drawn from 0 to 1."""
    rising = log_chances.exp().cumsum(dim=1)
    drawn = (rising < luck[:, None] * rising[:, -1:]).sum(dim=1).clamp(max=4)
    is_open = log_chances.gather(1, drawn[:, None]).squeeze(1) > -1e8
    return torch.where(is_open, drawn, log_chances.argmax(dim=1))


def advantages_of(
    values: torch.Tensor, gained: torch.Tensor, length: torch.Tensor, gae_lambda: float
) -> torch.Tensor:
    """Generalised advantage estimates (B, 13), undiscounted, of deals rewarded at their end.

    Args:
        values: (B, 13) the critic's.
        gained: (B,) the reward at the last step.
        length: (B,) int64 steps; later ones get 0.
        gae_lambda: See `Config`.
    """
    advantages = torch.zeros_like(values)
    after = torch.zeros_like(gained)
    following = torch.zeros_like(gained)
    for step in reversed(range(values.shape[1])):
        is_last, is_played = length == step + 1, length > step
        target = torch.where(is_last, gained, following)
        delta = target - values[:, step]
        after = torch.where(is_played, delta + gae_lambda * torch.where(is_last, 0.0, after), 0.0)
        following = values[:, step]
        advantages[:, step] = after
    return advantages


def update(
    state: State, rollout: Rollout, config: Config, rng: np.random.Generator
) -> dict[str, float]:
    """Improve the network on a rollout; returns the losses."""
    progress = state.round / max(config.num_rounds - 1, 1)
    rate = config.learning_rate * (0.51 + 0.49 * math.cos(math.pi * progress))
    entropy_weight = config.entropy * (config.entropy_end / config.entropy) ** progress
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    told: list[list[float]] = []
    for _ in range(config.epochs):
        order = torch.from_numpy(rng.permutation(len(rollout.cards))).to(config.device)
        for at in range(0, len(order), config.batch):
            part = rollout.take(order[at : at + config.batch])
            losses, scalars = losses_of(state.network, part, config.clip)
            loss = losses[0] + config.value_weight * losses[1] - entropy_weight * losses[2]
            if not torch.isfinite(loss):
                _stop(part, loss, state, config)
            state.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(state.network.parameters(), config.max_norm)
            state.optimizer.step()
            _follow(state.average, state.network, config.average)
            told.append([*losses.tolist(), *scalars])
    names = ("policy", "value", "entropy", "approx_kl", "clip_fraction")
    means = np.mean(told, axis=0) if told else np.zeros(len(names))
    found = {f"losses/{name}": float(mean) for name, mean in zip(names, means, strict=True)}
    return {**found, "losses/learning_rate": rate, "losses/entropy_weight": entropy_weight}


def losses_of(
    network: PlacementNetwork, part: Rollout, clip: float
) -> tuple[torch.Tensor, list[float]]:
    """(3,) policy loss, value loss and entropy; then the mean KL divergence and clipped share."""
    free = part.free
    hidden = network.hidden(part.features, part.cards, part.rows, part.rooms)[free]
    preferences, values = network.read(hidden)
    log_all = masked_log_chances(preferences, part.masks[free])
    log_chance = log_all.gather(1, part.actions[free][:, None]).squeeze(1)
    change = log_chance - part.log_chances[free]
    ratio = change.exp()
    advantage = part.advantages[free]
    policy = -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
    value = (values - part.returns[free]).square().mean()
    entropy = -(log_all.exp() * log_all).sum(dim=1).mean()
    with torch.no_grad():
        # The estimate (r - 1) - log r, which is never negative: Schulman, "Approximating KL
        # Divergence", 2020.
        divergence = (ratio - 1 - change).mean().item()
        clipped = ((ratio - 1).abs() > clip).float().mean().item()
    return torch.stack([policy, value, entropy]), [divergence, clipped]


@torch.no_grad()
def _follow(average: PlacementNetwork, network: PlacementNetwork, share: float) -> None:
    """Move the running mean of the weights."""
    for mean, new in zip(average.parameters(), network.parameters(), strict=True):
        mean.lerp_(new.to(mean.device), 1 - share)


def _stop(part: Rollout, loss: torch.Tensor, state: State, config: Config) -> None:
    path = config.folder / "bad-batch.safetensors"
    tensors = {name: t.detach().cpu().contiguous() for name, t in part._asdict().items()}
    write_bytes(path, safetensors.torch.save(tensors))
    raise ConfigError(
        f"loss {loss.item()} in round {state.round}: the batch is in {path}; lower learning_rate "
        f"({config.learning_rate}) and start again"
    )


def play_round(
    state: State, env: ChinesePokerVectorEnv, config: Config, rules: Rules
) -> dict[str, float]:
    """One round: draw opponents, play, learn. Returns the scalars to log."""
    rng = np.random.default_rng([config.seed, state.round])
    started = time.perf_counter()
    with _deterministic():
        seat_opponents(env, state, config, rules, rng)
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
        "charts/SPS": config.deals * config.copies * HAND_SIZE / seconds,
        "charts/share_of_play": (played - started) / seconds,
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


def load_state(path: Path, config: Config) -> State:
    """A run's state as `save_state` wrote it.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    record, tensors = load_run(path, identity(config))
    state = start_state(config)
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
        "deals": 1, "copies": 1, "crowd": 0, "opponents": 1, "epochs": 1, "batch": 1, "width": 1,
        "hand_width": 1, "league": 1, "snapshot_every": 1, "opponents_drawn": 1, "save_every": 1,
        "eval_every": 1, "exploit_every": 1, "eval_deals": 2, "threads": 1, "num_rounds": 1,
        "seed": 0,
    }  # fmt: skip
    for name, limit in least.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{name} {getattr(config, name)}: give {limit} or more")
    open_intervals = {
        "learning_rate": (0, 1), "clip": (0, 1), "entropy": (0, 10), "entropy_end": (0, 10),
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
        state = load_state(saved, config)
    elif saved.exists():
        raise CheckpointError(f"{saved} exists: add --resume to go on, or choose another --out")
    else:
        state = start_state(config)
    env = make_env(config, rules)
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

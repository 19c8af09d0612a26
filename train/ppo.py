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

    python -m cpoker_env.train.ppo --rules four_two --preset quick
"""

import math
import time
from dataclasses import asdict
from typing import NoReturn

import numpy as np
import safetensors.torch
import torch
from cpoker_env.agents.checkpoint import save_checkpoint, write_bytes
from cpoker_env.agents.placement import PlacementNetwork
from cpoker_env.agents.ppo_policy import PlacementPolicy
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import measure
from cpoker_env.train.gains import interval
from cpoker_env.train.learner import deterministic
from cpoker_env.train.matrix import results_table
from cpoker_env.train.ppo_run import (
    Config,
    State,
    check_config,
    identity,
    load_state,
    save_state,
    start_state,
)
from cpoker_env.train.ppo_steps import Batch, Rollout, advantages_of, losses_of, read_steps
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
from cpoker_env.train.scripts import check_folder, run_script
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import ConfigError
from cpoker_env.policy import Policy, make_policy
from cpoker_env.render import showdown_text
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import STATUSES
from cpoker_env.table import Table
from cpoker_env.vector import ChinesePokerVectorEnv

RARE = 1e-4
"""Share of the likeliest choice's chance below which a choice is left out of a rollout."""


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
    if config.num_crowd:
        state.crowd.append(crowd_of(ended, config.copies, rules))
        del state.crowd[: -config.num_crowd]
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
    with deterministic():
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
        "charts/seconds": state.seconds,
        "charts/SPS": rollout.chosen.size * HAND_SIZE / seconds,
        "charts/share_of_playing": (played - started) / seconds,
    }


def main(config: Config) -> None:
    """Train, save, and print the table against the heuristics.

    Raises:
        ConfigError: A setting out of range, or a loss that is no number.
        CheckpointError: Nothing to resume, or a run already in the folder.
    """
    from torch.utils.tensorboard import SummaryWriter  # heavy, and only a run needs it

    rules = read_rules(config.rules)
    check_config(config, rules)
    torch.set_num_threads(config.threads)
    saved = config.folder / "state.safetensors"
    check_folder(saved, config.resume)
    state = load_state(saved, config, rules) if config.resume else start_state(config, rules)
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
        SummaryWriter(str(config.folder), purge_step=state.round + 1) as writer,
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
        **identity(config, rules), "kind": "ppo", "deals_played": state.deals,
        "threads": config.threads, "seconds": round(state.seconds, 1),
    }  # fmt: skip
    del stored["options"]  # the rules are stored anyway
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
    run_script(Config, main)

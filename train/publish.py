"""Put a trained agent among the checkpoints: its files, what was measured, its model card.

    python -m cpoker_env.train.publish --checkpoint runs/western-standard/agent \
        --name neural-western --measured exploit.json --matches evaluate.json
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cpoker_env.agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, write_bytes
from cpoker_env.train import fictitious_play, ppo_run, selfplay, tables
from cpoker_env.train.scripts import run_script
from rich.console import Console

from cpoker_env.errors import CheckpointError, ConfigError

METHODS = {
    "population": (
        "Fictitious play over whole hands. {hands:,} random hands start as `balanced` plays them; "
        "each of {rounds} rounds replays a share of them as the exact best response, card removal "
        "included, to all. `search` plays the best response to this population."
    ),
    "tables": (
        "Tables of row chances, with what the hand's own cards change, fitted by ridge regression "
        "to exact values of every option of {hands:,} hands against the population that `search` "
        "plays against. `equilibrium` plays the option they value highest."
    ),
    "network": (
        "Self-play from random weights, {deals:,} deals. Each of {num_rounds} rounds deals "
        "{hands:,} hands, settles all their options exactly against what the network played in the "
        "last {memory} rounds, and regresses on these units; {width} hidden units correct what "
        "independent rows are worth. `neural` plays the option it values highest."
    ),
    "ppo": (
        "PPO in self-play on `ChinesePokerSequential-v0`: {num_rounds:,} rounds of {deals:,} "
        "deals, each played {copies} times against snapshots of itself from a league, from random "
        "weights. `ppo` plays the placement its network prefers."
    ),
}
"""What is told of an agent, by the kind its configuration names."""
DATA = {
    "population": "row strengths and declarations; the hands are dealt again from the seed",
    "tables": "counts of strengths, coefficients, units of declarations",
    "network": "the weights, counts of the rows it met, units of naturals",
    "ppo": "the network's weights",
}
MATCH = ("opponent", "units", "half_width")
"""What is kept of a match."""
KEPT = ("players", "hands", "samples", "tables", "seed", "opponents", "deviation", "differs")
"""What is kept of a measurement beside its two intervals."""


@dataclass(frozen=True)
class Config:
    """Store a trained agent with its measurements and a model card."""

    checkpoint: Path
    """Path of the agent, without ending."""
    name: str
    """What it is called from now on, such as search-western."""
    measured: tuple[Path, ...] = ()
    """Files that `cpoker exploit --json` wrote of it."""
    matches: tuple[Path, ...] = ()
    """Files that `cpoker evaluate --json` wrote, the agent named first."""
    command: str = ""
    """What re-creates it; default the command that trained it, with its settings."""
    commit: str = ""
    """Of the code that trained it."""
    folder: Path = Path("checkpoints")
    """Where checkpoints are."""
    machine: str = ""
    """What trained it, in words, for the card."""
    overwrite: bool = False
    """Replace an agent of that name."""


def main(config: Config) -> None:
    """Write NAME.safetensors, NAME.json and NAME.md.

    Raises:
        ConfigError: An agent of a kind that has no card, a name that is taken, or a file that is
            no measurement.
        CheckpointError: No such agent, or a measurement of other rules.
    """
    stored = load_checkpoint(str(config.checkpoint))
    kind = stored.config.get("kind")
    if kind not in METHODS:
        raise ConfigError(f"{config.checkpoint} is of kind {kind!r}: give one of {list(METHODS)}")
    results = [_read(path, stored) for path in config.measured]
    results += [match for path in config.matches for match in _read_matches(path, stored)]
    if config.commit:
        stored.config["commit"] = config.commit
    target = config.folder / config.name
    if target.with_name(target.name + ".json").exists() and not config.overwrite:
        raise ConfigError(f"{target}.json exists: choose another name, or add --overwrite")
    if config.machine:
        stored.config["machine"] = config.machine
    save_checkpoint(target, stored.weights, stored.rules, stored.config, results)
    card = card_of(config.name, load_checkpoint(str(target)), config.command or _command(stored))
    write_bytes(target.with_name(target.name + ".md"), card.encode())
    Console().print(f"wrote {target}.safetensors, .json and .md")


def _read(path: Path, stored: Checkpoint) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kept = {name: found[name] for name in ("lower", "upper", *KEPT)}
        rules = found["options"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: no result of cpoker exploit --json ({error})") from None
    if rules != stored.rules.to_dict():
        raise CheckpointError(f"{path}: measured under other rules than {stored.rules.name}")
    return {"measure": "exploitability", **kept}


def _read_matches(path: Path, stored: Checkpoint) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        agent = found["agents"][0]
        shared = {name: found[name] for name in ("players", "deals", "seed")}
        matches = [
            {"measure": "units", **shared, **{name: pair[name] for name in MATCH}}
            for pair in found["results"]
            if pair["agent"] == agent
        ]
        rules = found["rules"]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ConfigError(f"{path}: no result of cpoker evaluate --json ({error})") from None
    if rules != stored.rules.to_dict():
        raise CheckpointError(f"{path}: played under other rules than {stored.rules.name}")
    return matches


def _command(stored: Checkpoint) -> str:
    """The command that made it: its settings that are not the usual ones."""
    settings = stored.config.get("fictitious_play", stored.config)
    script, usual = "fictitious_play", asdict(fictitious_play.Config(rules=""))
    if stored.config["kind"] == "network":
        script, usual = "selfplay", asdict(selfplay.Config(rules=""))
        usual["rounds"] = selfplay.Config(preset=settings["preset"]).num_rounds
        settings = {**settings, "rounds": settings["num_rounds"]}
    elif stored.config["kind"] == "ppo":
        script, usual = "ppo", asdict(ppo_run.Config())
        usual["rounds"] = ppo_run.Config(preset=settings["preset"]).num_rounds
        settings = {**settings, "rounds": settings["num_rounds"]}
    elif "population" in settings:
        script, usual = "tables", asdict(tables.Config(population=""))
    words = [
        f"--{name.replace('_', '-')} {settings[name]}"
        for name, value in usual.items()
        if name in settings and settings[name] != value
    ]
    return " ".join([f"python -m cpoker_env.train.{script}", *words])


def card_of(name: str, stored: Checkpoint, command: str) -> str:
    """The model card, Markdown."""
    settings = stored.config
    agent, _, of = name.partition("-")
    if of not in (stored.rules.name, f"{stored.rules.name}-{settings.get('players', 2)}"):
        agent = f"checkpoint:{name}"
    threads = settings.get("threads", 2)
    machine = settings.get("machine", f"{threads} CPU core{'s' * (threads > 1)}")
    lines = [
        f"# {name}\n",
        f"- Method: {METHODS[settings['kind']].format(**settings)}",
        f"- Rules: `{stored.rules.name}`.",
        f"- Training: seed {settings['seed']}, {settings['seconds']:.0f} s on {machine}; "
        f"`{command}`.",
    ]
    if "commit" in settings:
        lines[-1] = lines[-1][:-1] + f" at commit {settings['commit']}."
    for result in stored.results:
        told = _exploitability if result["measure"] == "exploitability" else _match
        lines.append("- " + told(result, agent, stored.rules.name))
    lines.append(
        "- Limits: the lower figure chooses on half of the opponents, which is why it can be "
        "negative for an agent close to perfect. For these rules only."
    )
    lines.append(
        f"- Data: `{name}.safetensors` holds {DATA[settings['kind']]}; its SHA-256 is "
        f"`{stored.sha256}`. Settings and results are in `{name}.json`."
    )
    return "\n".join(lines) + "\n"


def _exploitability(result: dict[str, Any], agent: str, rules: str) -> str:
    lower, upper = (
        f"{result[side]['mean']:.5f} ± {result[side]['half_width']:.5f}"
        for side in ("lower", "upper")
    )
    whole = f" and {result['tables']:,} whole tables" if result["tables"] else ""
    deviation = result["deviation"]
    spread = "" if deviation is None else f"; a pairing's standard deviation is {deviation:.2f}"
    extra = f" --tables {result['tables']}" if result["tables"] else ""
    return (
        f"Exploitability at {result['players']} seats, units per deal and opponent with 95 % "
        f"intervals: at least {lower}, at most {upper}; {result['hands']:,} hands that meet "
        f"{result['opponents']:,.0f} opponents{whole} each{spread}. "
        f"`cpoker exploit --agent {agent} --rules {rules} --players "
        f"{result['players']} --hands {result['hands']} --samples {result['samples']}{extra} "
        f"--seed {result['seed']}`"
    )


def _match(result: dict[str, Any], agent: str, rules: str) -> str:
    return (
        f"Against `{result['opponent']}`, {result['players']} seats: {result['units']:+.4f} ± "
        f"{result['half_width']:.4f} units a deal, {result['deals']:,} deals played from every "
        f"seat. `cpoker evaluate --agents {agent},{result['opponent']} --rules {rules} --players "
        f"{result['players']} --deals {result['deals']} --seed {result['seed']}`"
    )


if __name__ == "__main__":
    run_script(Config, main)

"""Put a trained agent among the checkpoints: its files, what was measured, its model card.

    python -m train.publish --checkpoint runs/western-equilibrium/agent --name search-western \
        --measured exploit.json
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cpoker_env.agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, write_bytes
from cpoker_env.train import fictitious_play, ppo_run, tables
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
    "ppo": "the network's weights",
}
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
    command: str = ""
    """What re-creates it; default the command of fictitious play with its settings."""
    folder: Path = Path("checkpoints")
    """Where checkpoints are."""


def main(config: Config) -> None:
    """Write NAME.safetensors, NAME.json and NAME.md.

    Raises:
        ConfigError: An agent of a kind that has no card, or a file that is no measurement.
        CheckpointError: No such agent, or a measurement of other rules.
    """
    stored = load_checkpoint(str(config.checkpoint))
    kind = stored.config.get("kind")
    if kind not in METHODS:
        raise ConfigError(f"{config.checkpoint} is of kind {kind!r}: give one of {list(METHODS)}")
    results = [_read(path, stored) for path in config.measured]
    matches = [result for result in stored.results if "opponent" in result]
    target = config.folder / config.name
    card = card_of(config.name, stored, results, config.command or _command(stored), matches)
    save_checkpoint(target, stored.weights, stored.rules, stored.config, [*matches, *results])
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


def _command(stored: Checkpoint) -> str:
    """The command that made it: its settings that are not the usual ones."""
    settings = stored.config.get("fictitious_play", stored.config)
    script, usual = "fictitious_play", asdict(fictitious_play.Config(rules=""))
    if "population" in settings:
        script, usual = "tables", asdict(tables.Config(population=""))
    if settings.get("kind") == "ppo":
        script, usual = "ppo", asdict(ppo_run.Config())
    words = [
        f"--{name.replace('_', '-')} {settings[name]}"
        for name, value in usual.items()
        if name in settings and settings[name] != value
    ]
    return " ".join([f"python -m cpoker_env.train.{script}", *words])


def card_of(
    name: str, stored: Checkpoint, results: list[dict[str, Any]], command: str,
    matches: Sequence[dict[str, Any]] = (),
) -> str:  # fmt: skip
    """The model card, Markdown.

    Args:
        name: Of the agent.
        stored: It.
        results: Its measurements.
        command: What re-creates it.
        matches: What it won at the end of its training.
    """
    settings = stored.config
    agent = name.split("-")[0]
    lines = [
        f"# {name}\n",
        f"- Method: {METHODS[settings['kind']].format(**settings)}",
        f"- Rules: `{stored.rules.name}`.",
        f"- Training: seed {settings['seed']}, {settings['seconds']:.0f} s on 2 shared CPU cores "
        f"that also ran other work; `{command}`.",
    ]
    lines += [
        f"- Against `{match['opponent']}`: {match['units']:+.4f} ± {match['half_width']:.4f} units "
        f"a deal, 95 % interval; {match['deals']:,} deals, each played in both seats."
        for match in matches
    ]
    for result in results:
        lower, upper = (
            f"{result[side]['mean']:.5f} ± {result[side]['half_width']:.5f}"
            for side in ("lower", "upper")
        )
        whole = f" and {result['tables']:,} whole tables" if result["tables"] else ""
        deviation = result["deviation"]
        spread = "" if deviation is None else f"; a pairing's standard deviation is {deviation:.2f}"
        extra = f" --tables {result['tables']}" if result["tables"] else ""
        lines.append(
            f"- Exploitability at {result['players']} seats, units per deal and opponent with 95 % "
            f"intervals: at least {lower}, at most {upper}; {result['hands']:,} hands that meet "
            f"{result['opponents']:,.0f} opponents{whole} each{spread}. "
            f"`cpoker exploit --agent {agent} --rules {stored.rules.name} --players "
            f"{result['players']} --hands {result['hands']} --samples {result['samples']}{extra} "
            f"--seed {result['seed']}`"
        )
    lines.append(
        "- Limits: the lower figure chooses on half of the opponents, which is why it can be "
        "negative for an agent close to perfect."
    )
    lines.append(f"- Data: `{name}.safetensors` holds {DATA[settings['kind']]}. Hash and settings")
    return "\n".join(lines) + f" in `{name}.json`.\n"


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Config))

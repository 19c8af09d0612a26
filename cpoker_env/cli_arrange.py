"""`cpoker arrange`: how an agent sets hands, from arguments or a stream of lines."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import tyro

from cpoker_env.agents.accounts import Explains
from cpoker_env.agents.explain import explain, option_text, plain_dict, plain_text
from cpoker_env.arrangements import Arrangement, arrangement_of
from cpoker_env.cards import HAND_SIZE, Card, format_cards, parse_hand
from cpoker_env.errors import ConfigError, CPokerError, PolicyError
from cpoker_env.policy import DecisionBatch, check_actions, decisions_for, make_policy
from cpoker_env.rules import PATTERNS, Rules, read_rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER, check_num_seats

CHUNK = 512
"""Lines answered at once, at most; a slow pipe is answered as its lines come."""
LONGEST_LINE = 4096
"""Bytes of a line that are kept; a hand takes 38."""


@dataclass(frozen=True)
class Config:
    """Set hands of 13 cards: prints front|middle|back, surrender, or declare NAME and the rows."""

    hands: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Hands such as "As Kd ... 2c"; without any, one a line from standard input."""
    agent: str | None = None
    """Policy by name, or checkpoint:PATH-OR-NAME; balanced, and equilibrium with --tables."""
    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    players: int = 2
    """Seats at the table, 2-4."""
    top: int = 0
    """Also list this many options with their expected units, for agents that value options; those
    that can explain themselves add how often each row wins, and why the best is the best."""
    json: bool = False
    """Print one JSON object a line."""
    seed: int = 0
    """For agents that draw, and for the hands of --tables."""
    tables: bool = False
    """Set no hands: print how often rows win near equilibrium, and when it is right to surrender,
    to keep a natural back and to go for royalties."""
    sample: int = 20_000
    """Hands that --tables plays."""
    plot: Path | None = None
    """With --tables, also draw how often rows win, a PNG picture; needs matplotlib (the extra
    "plot")."""


def main(config: Config) -> int:
    """Answer every hand; 1 if any line was bad.

    Raises:
        ConfigError, ShowdownError: A setting out of range.
        PolicyError, RulesError, CheckpointError: The agent cannot be made.
    """
    if config.top < 0:
        raise ConfigError(f"top {config.top}: give 0 or more")
    if not 0 <= config.seed < 2**64:
        raise ConfigError(f"seed {config.seed}: give 0..2**64 - 1")
    rules = read_rules(config.rules)
    check_num_seats(config.players, rules)
    if config.tables:
        _print_tables(config, rules)
        return 0
    if config.plot is not None:
        raise ConfigError(f"plot {config.plot}: it draws what --tables prints; add --tables")
    agent = config.agent or "balanced"
    policy = make_policy(agent, rules, config.players)
    if config.top and not hasattr(policy, "candidates"):
        raise PolicyError(f"agent {agent!r} does not value options: leave out --top")
    rng = np.random.default_rng(config.seed)
    status = answered = 0
    source = "hand" if config.hands else "line"
    for chunk in _chunks(config.hands):
        hands: list[list[Card]] = []
        for number, line in chunk:
            try:
                hands.append(parse_hand(line))
            except CPokerError as error:
                status = 1
                print(f"{source} {number}: {error}", file=sys.stderr)
        if hands:
            batch = decisions_for(np.array(hands), rules, config.players, seed=config.seed)
            # Streams are named by the hand's place, so they must not begin again at each chunk.
            _answer(
                replace(batch, indices=batch.indices + np.uint64(answered)), policy, config, rng
            )
            answered += len(hands)
        sys.stdout.flush()
    return status


def _print_tables(config: Config, rules: Rules) -> None:
    if config.hands or config.top:
        raise ConfigError("tables: they are about all hands; leave out hands and --top")
    # Tables load torch and rich, which hands do without.
    from cpoker_env.cli_tables import run

    run(
        config.agent or "equilibrium", rules, config.players, config.sample, config.seed,
        config.json, config.plot,
    )  # fmt: skip


def _chunks(hands: tuple[str, ...]) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines that hold something, some at a time."""
    if len(hands) == HAND_SIZE and all(len(word.split()) == 1 for word in hands):
        hands = (" ".join(hands),)
    number = 0
    for lines in [list(hands)] if hands else _read_stdin():
        for start in range(0, len(lines), CHUNK):
            texts = [line.strip() for line in lines[start : start + CHUNK]]
            numbered = list(enumerate(texts, start=number + 1))
            number += len(texts)
            yield [(n, text) for n, text in numbered if text and not text.startswith("#")]


def _read_stdin() -> Iterator[list[str]]:
    """Whole lines as they arrive, in constant memory."""
    source = getattr(sys.stdin, "buffer", None)
    if source is None:
        yield list(sys.stdin)
        return
    rest = b""
    while data := source.read1(1 << 15):
        *whole, rest = (rest + data).split(b"\n")
        rest = rest[:LONGEST_LINE]
        yield [line.decode("utf-8", "replace") for line in whole]
    yield [rest.decode("utf-8", "replace")]


def _answer(batch: DecisionBatch, policy: Any, config: Config, rng: np.random.Generator) -> None:
    actions = check_actions(policy.act(batch, rng), batch, config.agent or "balanced")
    told = _tell(batch, policy, config)
    for h, hand in enumerate(batch.hands.tolist()):
        arrangement = arrangement_of(hand, actions.rows[h].tolist())
        declaration = int(actions.declarations[h])
        if (declaration == DECLARE and batch.naturals[h] < 0) or (
            declaration == SURRENDER and not batch.can_surrender[h]
        ):
            declaration = SHOW
        natural = PATTERNS[batch.naturals[h]] if declaration == DECLARE else None
        if config.json:
            print(json.dumps(_record(hand, arrangement, declaration, natural) | told[h].record))
            continue
        if declaration == SURRENDER:
            print("surrender")
        else:
            print(f"declare {natural} {arrangement}" if natural else arrangement)
        for line in told[h].lines:
            print(f"  {line}")


class _Told(NamedTuple):
    """What `--top` adds to an answer, in JSON and as lines."""

    record: dict[str, Any]
    lines: list[str]


def _tell(batch: DecisionBatch, policy: Any, config: Config) -> list[_Told]:
    if not config.top:
        return [_Told({}, [])] * len(batch)
    if isinstance(policy, Explains):
        return [
            _Told(
                {"options": [option.to_dict() for option in options], "why": why},
                [*map(option_text, options), f"why: {why}"],
            )
            for options, why in explain(policy, batch, config.top)
        ]
    return [
        _Told(
            {"options": [plain_dict(hand, option) for option in options]},
            [plain_text(hand, option) for option in options],
        )
        for hand, options in zip(
            batch.hands.tolist(), policy.candidates(batch, config.top), strict=True
        )
    ]


def _record(
    hand: list[Card], arrangement: Arrangement, declaration: int, natural: str | None
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "hand": format_cards(hand),
        "action": ("show", "surrender", "declare")[declaration],
        "declaration": natural,
        "front": format_cards(arrangement.front),
        "middle": format_cards(arrangement.middle),
        "back": format_cards(arrangement.back),
    }
    if natural:
        record["natural"] = natural
    return record

"""`cpoker arrange`: how an agent sets hands, from arguments or a stream of lines."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import numpy as np
import tyro

from cpoker_env.arrangements import Arrangement, arrangement_of
from cpoker_env.cards import HAND_SIZE, Card, format_cards, parse_hand
from cpoker_env.errors import CPokerError, PolicyError
from cpoker_env.policy import check_actions, decisions_for, make_policy
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.scoring import DECLARE, SURRENDER

CHUNK = 256
"""Lines read before an answer; a terminal is answered line by line."""


@dataclass(frozen=True)
class Config:
    """Set hands of 13 cards: prints front|middle|back, surrender, or declare NAME and the rows."""

    hands: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Hands such as "As Kd ... 2c"; without any, one a line from standard input."""
    agent: str = "balanced"
    """Policy by name, or checkpoint:PATH-OR-NAME."""
    rules: str = "mandarin"
    """Preset of house rules."""
    players: int = 2
    """Seats at the table, 2-4."""
    top: int = 0
    """Also list this many options with their expected units, for agents that value options."""
    json: bool = False
    """Print one JSON object a line."""
    seed: int = 0
    """For agents that draw."""


def main(config: Config) -> int:
    """Answer every hand; 1 if any line was bad.

    Raises:
        PolicyError, RulesError, CheckpointError: The agent cannot be made.
    """
    policy = make_policy(config.agent, Rules.preset(config.rules), config.players)
    if config.top and not hasattr(policy, "candidates"):
        raise PolicyError(f"agent {config.agent!r} does not value options: leave out --top")
    rng = np.random.default_rng(config.seed)
    size = CHUNK if config.hands or not sys.stdin.isatty() else 1
    status = 0
    for chunk in _chunks(_lines(config.hands), size):
        hands: list[list[Card]] = []
        for number, line in chunk:
            try:
                hands.append(parse_hand(line))
            except CPokerError as error:
                status = 1
                print(f"line {number}: {error}", file=sys.stderr)
        if hands:
            _answer(hands, policy, config, rng)
        sys.stdout.flush()
    return status


def _lines(hands: tuple[str, ...]) -> Iterable[tuple[int, str]]:
    if len(hands) == HAND_SIZE and all(len(word.split()) == 1 for word in hands):
        hands = (" ".join(hands),)
    given: Iterable[str] = hands or sys.stdin
    for number, line in enumerate(given, start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield number, text


def _chunks(lines: Iterable[tuple[int, str]], size: int) -> Iterator[list[tuple[int, str]]]:
    rest = iter(lines)
    while chunk := list(islice(rest, size)):
        yield chunk


def _answer(
    hands: list[list[Card]], policy: Any, config: Config, rng: np.random.Generator
) -> None:
    rules = Rules.preset(config.rules)
    batch = decisions_for(np.array(hands), rules, config.players, seed=config.seed)
    actions = check_actions(policy.act(batch, rng), batch, config.agent)
    listed = policy.candidates(batch, config.top) if config.top else [[]] * len(hands)
    for h, hand in enumerate(batch.hands.tolist()):
        arrangement = arrangement_of(hand, actions.rows[h].tolist())
        declaration = int(actions.declarations[h])
        natural = PATTERNS[batch.naturals[h]] if declaration == DECLARE else None
        if config.json:
            print(json.dumps(_record(hand, arrangement, declaration, natural, listed[h])))
            continue
        if declaration == SURRENDER:
            print("surrender")
        else:
            print(f"declare {natural} {arrangement}" if natural else arrangement)
        for label, rows, units in listed[h]:
            laid = "" if rows is None else f" {arrangement_of(hand, rows.tolist())}"
            print(f"  {units:+.3f} {label}{laid}")


def _record(
    hand: list[Card],
    arrangement: Arrangement,
    declaration: int,
    natural: str | None,
    options: list[Any],
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "hand": format_cards(hand),
        "action": ("show", "surrender", "declare")[declaration],
        "front": format_cards(arrangement.front),
        "middle": format_cards(arrangement.middle),
        "back": format_cards(arrangement.back),
    }
    if natural:
        record["natural"] = natural
    if options:
        record["options"] = [
            {"action": label, "units": units}
            | ({} if rows is None else {"rows": str(arrangement_of(hand, rows.tolist()))})
            for label, rows, units in options
        ]
    return record



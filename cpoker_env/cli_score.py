"""`cpoker score`: showdowns from a file to units and a readable account."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from cpoker_env.errors import CPokerError, ShowdownError
from cpoker_env.money import may_surrender, settle_stacks
from cpoker_env.render import showdown_text
from cpoker_env.rules import Rules, read_rules
from cpoker_env.scoring import SEAT_NAMES, Showdown, Units, check_num_seats, settle_showdown

MAX_MONEY = 10**15
"""Largest stack or price of a unit: what a float still holds to the coin."""
_KEYS = (
    "id", "ruleset", "options", "players", "money", "expected", "status", "why", "source",
    "assumes", "tags", "set",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Score one showdown or a list of them: who owes whom, and why."""

    file: Annotated[str, tyro.conf.Positional]
    """JSON file, or - for standard input: a showdown {"players": [{"front", "middle", "back",
    "declare", "surrender"}, ...], "ruleset", "options", "money"}, or a list of them."""
    rules: str = "mandarin"
    """Preset, or JSON file of options, for showdowns that name no ruleset."""
    json: bool = False
    """Print one JSON object a line instead of the account."""


def main(config: Config) -> int:
    """Score the file; 1 if any showdown was bad.

    Raises:
        ShowdownError: The file cannot be read or is not JSON.
        RulesError: Rules that cannot be read.
    """
    default = read_rules(config.rules)
    status = 0
    for place, item in enumerate(_read(config.file), start=1):
        name: object = str(place)
        try:
            name = _name_of(item, place)
            showdown, record = _score(item, default)
        except (CPokerError, RecursionError) as error:
            status = 1
            if config.json:
                print(json.dumps({"id": name, "error": str(error)}))
            else:
                print(f"{name}: error: {error}", file=sys.stderr)
            continue
        if config.json:
            print(json.dumps({"id": name, **record}))
        else:
            _print_account(name, showdown, record)
    return status


def _read(file: str) -> list[Any]:
    try:
        if file == "-":
            text = sys.stdin.read()
        else:
            with open(file, encoding="utf-8-sig") as opened:
                text = opened.read()
    except OSError as error:
        raise ShowdownError(f"{file}: {error.strerror}; give a readable JSON file or -") from None
    except UnicodeDecodeError as error:
        raise ShowdownError(f"{file}: not UTF-8 text ({error.reason})") from None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ShowdownError(
            f"{file}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise ShowdownError(f"{file}: JSON out of bounds ({error})") from None
    return content if isinstance(content, list) else [content]


def _name_of(item: Any, place: int) -> str | int:
    """The id of a showdown, else its place in the file."""
    if not isinstance(item, Mapping):
        raise ShowdownError(f"showdown {_short(item)}: give an object with players")
    name = item.get("id")
    if name is None:
        return str(place)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ShowdownError(f"id {_short(name)}: give a text or a whole number")
    return name


def _rules_of(item: Mapping[str, Any], default: Rules) -> Rules:
    options, ruleset = item.get("options"), item.get("ruleset")
    options = {} if options is None else options
    if not isinstance(options, Mapping) or "preset" in options:
        raise ShowdownError(f"options {_short(options)}: give an object of house rules")
    if ruleset is not None:
        return Rules.from_dict({"preset": ruleset, **options})
    base = default.to_dict()
    if isinstance(table := options.get("royalty_table"), Mapping):
        options = {**options, "royalty_table": {**base["royalty_table"], **table}}
    return Rules.from_dict({**base, **options})


def _score(item: Mapping[str, Any], default: Rules) -> tuple[Showdown, dict[str, Any]]:
    for key in item:
        if key not in _KEYS:
            raise ShowdownError(f"key {key!r}: a showdown has {', '.join(_KEYS[:5])}")
    rules = _rules_of(item, default)
    players = item.get("players")
    if not isinstance(players, list):
        raise ShowdownError(f"players {_short(players)}: give a list of two to four seats")
    check_num_seats(len(players), rules)
    money = item.get("money")
    allowed = None if money is None else _check_money(money, players, rules)
    showdown = settle_showdown(players, rules)
    record: dict[str, Any] = {
        "points": [_number(units) for units in showdown.units],
        "pairwise": [pairing.to_dict() for pairing in showdown.pairwise],
        "status": list(showdown.statuses),
    }
    if showdown.pool:
        record["pool"] = list(showdown.pool)
    if money is not None and allowed is not None:
        after = settle_stacks(showdown.units, money["stacks"], *_unit_and_policy(money))
        record["stacks_after"] = [_number(stack) for stack in after]
        if rules.surrender_allowed:
            record["surrender_allowed"] = allowed
    return showdown, record


def _unit_and_policy(money: Mapping[str, Any]) -> tuple[Any, Any]:
    unit, policy = money.get("unit"), money.get("policy")
    return 1 if unit is None else unit, "uncapped" if policy is None else policy


def _check_money(money: Any, players: list[Any], rules: Rules) -> list[bool] | None:
    """Whether each stack may surrender, None without stacks.

    Raises:
        ShowdownError: Ill-formed money, or a surrender that a stack cannot pay.
    """
    if not isinstance(money, Mapping) or set(money) - {"unit", "stacks", "policy"}:
        raise ShowdownError(f"money {_short(money)}: give an object with unit, stacks, policy")
    stacks, (unit, policy) = money.get("stacks"), _unit_and_policy(money)
    if stacks is not None and not isinstance(stacks, list):
        raise ShowdownError(f"stacks {_short(stacks)}: give a list, one for each seat")
    for amount in (unit, *(stacks or ())):
        if isinstance(amount, int | float) and abs(amount) > MAX_MONEY:
            raise ShowdownError(f"money {_short(amount)}: stacks and units go up to {MAX_MONEY}")
    settle_stacks([0] * len(players), stacks or [0] * len(players), unit, policy)
    if stacks is None:
        return None
    allowed = [may_surrender(rules, len(players), stack, unit) for stack in stacks]
    for seat, (player, may) in enumerate(zip(players, allowed, strict=False)):
        if isinstance(player, Mapping) and player.get("surrender") is True and not may:
            price = (rules.surrender_cost or 0) * (len(players) - 1) * unit
            raise ShowdownError(
                f"{SEAT_NAMES[min(seat, 3)]} surrenders with a stack of {stacks[seat]}: "
                f"it takes {price} to pay every opponent; show the rows"
            )
    return allowed


def _print_account(name: object, showdown: Showdown, record: dict[str, Any]) -> None:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"{name}:")
    print(showdown_text(showdown, colour=colour))
    if "stacks_after" in record:
        print("stacks after: " + ", ".join(map(str, record["stacks_after"])))
    print()


def _number(value: Units) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

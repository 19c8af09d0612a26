"""Deals as text a person enjoys reading: suits, rows, names of hands, who pays whom and why."""

import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from io import StringIO

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from cpoker_env.arrangements import ROW_NAMES, describe_row, evaluate, rows_of
from cpoker_env.cards import RANK_LETTERS, SUIT_SYMBOLS, Card, rank_of, suit_of
from cpoker_env.naturals import TITLES
from cpoker_env.scoring import SEAT_NAMES, Showdown, Units

_SUIT_STYLES = ("green", "blue", "red", "default")
WIDTH = 100


def cards_markup(cards: Iterable[Card]) -> str:
    """Cards with suit symbols, coloured as in a four-colour deck, in rich markup."""
    return " ".join(
        f"[{_SUIT_STYLES[suit_of(card)]}]{RANK_LETTERS[rank_of(card)]}"
        f"{SUIT_SYMBOLS[suit_of(card)]}[/]"
        for card in cards
    )


def units_text(units: Units) -> str:
    """Units with a sign, a shared pool row as a fraction: "+3", "-4/3", "0"."""
    if units == 0:
        return "0"
    return f"{units:+d}" if isinstance(units, int) else _signed_fraction(units)


def hand_text(hand: Sequence[Card], *, colour: bool = True, width: int = WIDTH) -> str:
    """A hand before the showdown, highest first and by suit."""
    cards = sorted(hand, reverse=True)
    by_suit = (
        cards_markup(card for card in cards if suit_of(card) == suit) for suit in (3, 2, 1, 0)
    )
    lines = [cards_markup(cards), "by suit:  " + "   ".join(group for group in by_suit if group)]
    return _print(lines, colour, width)


def showdown_text(showdown: Showdown, *, colour: bool = True, width: int = WIDTH) -> str:
    """A settled deal: every seat's rows and units, then each pairing with its reasons."""
    table = RichTable(title=f"{escape(showdown.rules.name)} rules", title_justify="left", box=None)
    table.add_column("seat", style="bold", no_wrap=True)
    for name in ROW_NAMES:
        table.add_column(name, no_wrap=True)
    table.add_column("units", justify="right", no_wrap=True)
    for seat, status in enumerate(showdown.statuses):
        table.add_row(SEAT_NAMES[seat], *_seat_cells(showdown, seat, status))
        table.add_row("", *_seat_names(showdown, seat, status), "", style="dim")
    lines: list[RichTable | str] = [table, ""]
    for pairing in showdown.pairwise:
        lines.append(escape(pairing.summary))
        lines += [f"[dim]    {escape(reason)}[/]" for reason in pairing.reasons]
    lines += [escape(line) for line in showdown.pool]
    return _print(lines, colour, width)


def _seat_cells(showdown: Showdown, seat: int, status: str) -> list[str]:
    units = showdown.units[seat]
    style = "green" if units > 0 else "red" if units < 0 else "default"
    total = f"[bold {style}]{units_text(units)}[/]"
    arrangement = showdown.arrangements[seat]
    if status in ("natural", "surrender"):
        hand = arrangement.hand
        return [cards_markup(hand[:3]), cards_markup(hand[3:8]), cards_markup(hand[8:]), total]
    return [*(cards_markup(row) for row in arrangement), total]


def _seat_names(showdown: Showdown, seat: int, status: str) -> list[str]:
    if status == "natural":
        return [f"[bold]{TITLES[showdown.naturals[seat] or '']}[/]", "", ""]
    if status == "surrender":
        return ["[bold]surrenders[/]", "", ""]
    arrangement = showdown.arrangements[seat]
    if status == "foul" and [len(row) for row in arrangement] != [3, 5, 5]:
        return ["[bold]foul[/]", "", ""]
    strengths, _ = evaluate(
        np.array([arrangement.hand], np.int8), rows_of(arrangement)[None], showdown.rules
    )
    names = [
        describe_row(row, int(strength))
        for row, strength in zip(arrangement, strengths[0], strict=True)
    ]
    if status == "foul":
        names[0] = f"[bold]foul:[/] {names[0]}"
    return names


def _signed_fraction(units: Fraction) -> str:
    return f"{'+' if units > 0 else '-'}{abs(units)}"


def _print(lines: Sequence[RichTable | str], colour: bool, width: int) -> str:
    colour = colour and "NO_COLOR" not in os.environ
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, no_color=not colour,
        color_system="standard" if colour else None, highlight=False,
    )  # fmt: skip
    for line in lines:
        console.print(line)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

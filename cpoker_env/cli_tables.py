"""`cpoker arrange --tables`: how often rows win, when to surrender, declare, go for royalties."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table as RichTable

from cpoker_env.agents.checkpoint import check_target, write_bytes
from cpoker_env.agents.insights import (
    Example,
    Insights,
    Natural,
    Royalties,
    Sample,
    Surrendering,
    insights_of,
    sample_hands,
)
from cpoker_env.agents.row_classes import RowClass, landmarks, row_classes
from cpoker_env.arrangements import ROW_NAMES
from cpoker_env.naturals import TITLES
from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules
from cpoker_env.train.curves import chance_curves
from cpoker_env.train.matrix import check_plotting

LEAST_SHOWN = 0.0001
"""Share of opponents' rows below which a class is left out of what is printed."""
CHANCES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Chances whose weakest rows are told first."""
SIDES = {0: "", 1: ", the bank", -1: ", against the bank"}
ROYALTY_TITLES = {
    "front_trips": "trips in front",
    "middle_full": "full house in the middle",
    "middle_quads": "quads in the middle",
    "back_quads": "quads in the back",
    "middle_sf": "straight flush in the middle",
    "back_sf": "straight flush in the back",
}


@dataclass(frozen=True)
class Side:
    """What is told of one side of the bank, or of all without a bank.

    bank: 1 the bank, -1 against it, 0 without one. classes: of front, middle and back.
    """

    bank: int
    classes: list[list[RowClass]]
    insights: Insights

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        rows = {
            name: [one.to_dict() for one in classes]
            for name, classes in zip(ROW_NAMES, self.classes, strict=True)
        }
        return {"bank": self.bank, "rows": rows, **self.insights.to_dict()}


def run(
    agent: str,
    rules: Rules,
    num_players: int,
    num_hands: int,
    seed: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Compute and print everything about one agent under one set of rules.

    Raises:
        ConfigError: No hands, a picture that cannot be drawn or written.
        PolicyError, CheckpointError: The agent cannot be made, or does not value options.
    """
    if plot is not None:
        check_plotting()
        check_target(plot)
    policy = make_policy(agent, rules, num_players)
    banks = (0,) if rules.banker is None else (1, -1)
    sides = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("playing", total=num_hands * len(banks))
        for bank in banks:
            sample = sample_hands(
                policy, rules, num_players, num_hands, seed, bank,
                lambda done: progress.advance(task, done),
            )  # fmt: skip
            sides.append(Side(bank, row_classes(_counts(policy, bank, sample), rules, bank),
                              insights_of(sample, rules)))  # fmt: skip
    title = f"{rules.name}, {num_players} seats, {agent}"
    if as_json:
        record = {"agent": agent, "rules": rules.to_dict(), "players": num_players, "seed": seed}
        print(json.dumps(record | {"sides": [side.to_dict() for side in sides]}))
    else:
        for side in sides:
            print_side(side, f"{title}{SIDES[side.bank]}")
    if plot is not None:
        write_bytes(plot, chance_curves(sides[0].classes, f"{title}{SIDES[sides[0].bank]}"))


def _counts(policy: Any, bank: int, sample: Sample) -> Sequence[Any]:
    """Opponents' rows as the policy has them stored, else as the sample shows them."""
    counts: Sequence[Any] = (
        policy.row_counts(bank) if hasattr(policy, "row_counts") else sample.row_counts()
    )
    return counts


def print_side(side: Side, title: str) -> None:
    """Print the tables of one side of the bank."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(title)}[/]\n")
    console.print(landmark_table(side.classes))
    for name, classes in zip(ROW_NAMES, side.classes, strict=True):
        console.print(class_table(name, classes))
    found = side.insights
    console.print(f"{found.hands:,} hands: {found.shown:.1%} are shown.\n")
    if found.surrendering is not None:
        for line in surrender_lines(found.surrendering):
            console.print(line)
    if found.naturals:
        console.print(natural_table(found.naturals))
        for natural in found.naturals:
            for line in natural_lines(natural):
                console.print(line)
    if found.royalties is not None:
        console.print(royalty_table(found.royalties))
        for text in royalty_lines(found.royalties):
            console.print(text)


def landmark_table(classes: Sequence[Sequence[RowClass]]) -> RichTable:
    """The weakest row that wins so often, for a few chances."""
    table = _table("the weakest row that wins at least")
    for name in ("", *(f"{chance:.0%}" for chance in CHANCES)):
        table.add_column(name)
    for name, of_row in zip(ROW_NAMES, classes, strict=True):
        table.add_row(name, *(one.name for one in landmarks(of_row, CHANCES)))
    return table


def class_table(row: str, classes: Sequence[RowClass]) -> RichTable:
    """How often each class wins, from its weakest to its strongest, how often it is shown."""
    table = _table(f"{row}: how often it wins against an opponent's {row}")
    table.add_column(row)
    for name in ("wins", "weakest", "strongest", "shown", "units alone"):
        table.add_column(name, justify="right")
    for one in classes:
        if one.shown >= LEAST_SHOWN:
            table.add_row(
                one.name, f"{one.chance:.1%}", f"{one.lowest:.1%}", f"{one.highest:.1%}",
                f"{one.shown:.2%}", f"{one.units:+.2f}",
            )  # fmt: skip
    return table


def surrender_lines(found: Surrendering) -> list[RichTable | str]:
    """When to surrender, with the hands on either side of the line."""
    table = _table("who surrenders")
    table.add_column("strongest back the hand could have")
    for name in ("pairs", "of all hands", "surrender"):
        table.add_column(name, justify="right")
    for name, pairs, share, gone in found.by_holding:
        table.add_row(name, str(pairs), f"{share:.2%}", f"{gone:.1%}")
    spread = f"{found.price_low:+.2f} to {found.price_high:+.2f}"
    return [
        f"[bold]surrender[/]: {found.share:.2%} of hands. Right where the best arrangement is "
        f"worth less than {found.price:+.2f} ({spread}, by the hand's own cards); "
        f"{found.close:.1%} of hands are within 0.1 of that.",
        *([table] if found.by_holding else []),
        *_example_lines("the strongest hands that surrender", "surrendered", found.given_up),
        *_example_lines("the weakest hands that do not", "surrendered", found.kept),
        "",
    ]


def natural_table(naturals: Sequence[Natural]) -> RichTable:
    """How often naturals come, what they are worth, how often they are better kept back."""
    table = _table("naturals")
    table.add_column("natural")
    for name in ("met", "one in", "declared", "shown", "kept back", "gains"):
        table.add_column(name, justify="right")
    for one in naturals:
        cells = [f"{one.hands:,}", f"{1 / one.share:,.0f}" if one.hands else ""]
        if one.hands:
            cells += [f"{one.declared:+.2f}", f"{one.shown:+.2f}", f"{one.kept_back:.1%}"]
            cells += [f"{one.gain:+.2f}" if one.kept_back else ""]
        table.add_row(TITLES[one.name], *cells)
    return table


def natural_lines(one: Natural) -> list[str]:
    """For which hands a natural is kept back."""
    if not one.kept_back:
        return []
    kept = ", ".join(
        f"{category} {num_kept} of {num_hands}"
        for category, num_hands, num_kept in one.by_back
        if num_kept
    )
    title = TITLES[one.name]
    return [
        f"{title} kept back, by the back it is shown with: {kept}",
        *_example_lines("where that gains most", "declared", one.examples),
        "",
    ]


def royalty_table(found: Royalties) -> RichTable:
    """How often royalties are shown, and how often they would be if they paid nothing."""
    table = _table("royalties, of hands that are shown")
    table.add_column("royalty")
    for name in ("pays", "shown", "if it paid nothing"):
        table.add_column(name, justify="right")
    for line in found.rows:
        without = "" if line.without is None else f"{line.without:.3%}"
        table.add_row(ROYALTY_TITLES[line.name], str(line.pays), f"{line.shown:.3%}", without)
    return table


def royalty_lines(found: Royalties) -> list[str]:
    """What royalties change altogether."""
    if found.differs is None or found.gain is None:
        return []
    return [
        f"{found.differs:.1%} of hands are laid otherwise because royalties pay; who did not would "
        f"lose {found.gain:.4f} units a deal and opponent.\n"
    ]


def _table(title: str) -> RichTable:
    return RichTable(title=title, title_justify="left")


def _example_lines(title: str, other: str, examples: Sequence[Example]) -> list[str]:
    lines = [f"{title}:"] if examples else []
    for one in examples:
        units = f"shown {one.shown:+.2f}, {other} {one.other:+.2f}"
        lines.append(f"  {one.rows}  {units}: {', '.join(one.names)}")
    return lines

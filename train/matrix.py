"""Results to look at: who beats whom as a table and as a heat map, and all details."""

import importlib.util
import io
import os
from collections.abc import Mapping, Sequence

from cpoker_env.agents.external import Failures
from cpoker_env.train.tally import Result
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from cpoker_env.errors import ConfigError

LONGEST_LABEL = 24
"""Characters of a name that is shown as it is."""


def labels_of(agents: Sequence[str]) -> dict[str, str]:
    """What to show for each name: long ones, such as commands, become "external 1"."""
    return {
        agent: agent
        if len(agent) <= LONGEST_LABEL
        else f"{agent.partition(':')[0][: LONGEST_LABEL - 4]} {place}"
        for place, agent in enumerate(agents, start=1)
    }


def by_pair(results: Sequence[Result], num_players: int) -> dict[tuple[str, str], Result]:
    """Results by agent and opponent; with two seats each one from both sides."""
    found = {(result.agent, result.opponent): result for result in results}
    if num_players == 2:
        found |= {(result.opponent, result.agent): result.mirrored() for result in results}
    return found


def matrix_table(
    agents: Sequence[str],
    pairs: Mapping[tuple[str, str], Result],
    labels: Mapping[str, str],
    title: str,
) -> RichTable:
    """Units of the agent of each row against that of each column; dim if the interval holds 0."""
    table = RichTable(title=title, title_justify="left", show_lines=True)
    table.add_column("")
    for other in agents:
        table.add_column(escape(labels[other]), justify="right", overflow="fold")
    for agent in agents:
        cells = []
        for other in agents:
            result = pairs.get((agent, other))
            if result is None:
                cells.append("")
            else:
                style = "bold" if abs(result.units) > result.half_width else "dim"
                cells.append(f"[{style}]{result.units:+.3f}\n± {result.half_width:.3f}[/]")
        table.add_row(escape(labels[agent]), *cells)
    return table


def results_table(
    results: Sequence[Result], title: str, labels: Mapping[str, str] | None = None
) -> RichTable:
    """Results one by one, with what playing each deal several times did to their intervals."""
    table = RichTable(title=title, title_justify="left")
    table.add_column("agent", overflow="fold")
    table.add_column("against", overflow="fold")
    table.add_column("units a deal, 95 %", justify="right", no_wrap=True)
    table.add_column("deals", justify="right", no_wrap=True)
    table.add_column("each played once", justify="right")
    table.add_column("worth plain deals", justify="right")
    for result in results:
        plain = "" if result.plain_deals is None else f"{result.plain_deals:,.0f}"
        table.add_row(
            _labelled(result.agent, labels), _labelled(result.opponent, labels), str(result),
            f"{result.deals:,}", f"± {result.single_half_width:.3f}", plain,
        )  # fmt: skip
    return table


def _labelled(text: str, labels: Mapping[str, str] | None) -> str:
    for name in sorted(labels or {}, key=len, reverse=True):
        if labels and labels[name] != name:
            text = text.replace(name, labels[name])
    return escape(text)


def failure_lines(
    failures: Mapping[str, Failures], num_hands: int, labels: Mapping[str, str]
) -> list[str]:
    """What went wrong with external agents, each asked for so many hands."""
    lines = []
    for agent, found in failures.items():
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(found.counts.items()))
        failed = f"{sum(found.counts.values()):,} of {num_hands:,} hands failed"
        lines.append(f"{labels[agent]}: {failed}{': ' if counts else ''}{counts}")
        lines += [f"  {failure}" for failure in found.first]
    return lines


def wide_console() -> Console:
    """Standard output, wide enough for long names where it is no terminal."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=160)


def check_plotting() -> None:
    """Raise unless pictures can be drawn.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError(
            'a plot needs matplotlib, which is missing: pip install "cpoker-env[plot]"'
        )


def heat_map(
    agents: Sequence[str],
    pairs: Mapping[tuple[str, str], Result],
    labels: Mapping[str, str],
    title: str,
) -> bytes:
    """The matrix as a PNG picture: what the agent of each row wins from that of each column."""
    from matplotlib.figure import Figure

    size = len(agents)
    units = [
        [pairs[agent, other].units if (agent, other) in pairs else 0.0 for other in agents]
        for agent in agents
    ]
    most = max(max(map(abs, row)) for row in units) or 1.0
    figure = Figure(figsize=(2.8 + 1.1 * size, 1.8 + 0.8 * size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(units, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    shown = [labels[agent] for agent in agents]
    axes.set_xticks(range(size), shown, rotation=30, ha="right", parse_math=False)
    axes.set_yticks(range(size), shown, parse_math=False)
    axes.set_title(title, fontsize="medium", parse_math=False)
    for y, agent in enumerate(agents):
        for x, other in enumerate(agents):
            if (agent, other) in pairs:
                result = pairs[agent, other]
                axes.text(
                    x, y, f"{result.units:+.3f}\n± {result.half_width:.3f}",
                    ha="center", va="center", fontsize="small",
                    color="white" if abs(result.units) > 0.6 * most else "black",
                )  # fmt: skip
    figure.colorbar(image, label="units a deal, row against column")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()

"""How fast runs learn: their logged exploitability over time, as a table and a picture.

python -m train.learning --runs runs/*-standard --plot learning.png
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.checkpoint import check_target, write_bytes
from cpoker_env.train.matrix import check_plotting
from cpoker_env.train.scripts import run_script
from rich.console import Console
from rich.table import Table as RichTable

from cpoker_env.errors import ConfigError

STRENGTHS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.003)
"""Exploitability, units per deal and opponent, whose first time is told."""


@dataclass(frozen=True)
class Config:
    """Compare how fast runs learn by what they logged."""

    runs: tuple[Path, ...]
    """Folders of runs."""
    plot: Path | None = None
    """File for a picture, PNG; needs matplotlib."""


class Curve(NamedTuple):
    """What a run logged, (T,) each: seconds of training, and exploitability at most."""

    name: str
    seconds: npt.NDArray[np.float64]
    exploitability: npt.NDArray[np.float64]

    def time_to(self, strength: float) -> float | None:
        """Seconds until exploitability was first so low."""
        reached = np.flatnonzero(self.exploitability <= strength)
        return float(self.seconds[reached[0]]) if len(reached) else None


def read_curve(folder: Path) -> Curve:
    """The curve of a run.

    Raises:
        ConfigError: No such folder, or nothing was measured in it yet.
    """
    # tensorboard reads with tensorflow's classes or stubs of its own, and is slow to import
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload() if folder.is_dir() else None
    tags = events.Tags()["scalars"] if events is not None else []
    if events is None or not {"eval/exploitability", "charts/seconds"} <= {*tags}:
        raise ConfigError(f"{folder}: no run that logged its exploitability; give a run's folder")
    seconds = {event.step: event.value for event in events.Scalars("charts/seconds")}
    points = [
        (seconds[event.step], event.value)
        for event in events.Scalars("eval/exploitability")
        if event.step in seconds
    ]
    return Curve(folder.name, *np.array(points, np.float64).T)


def main(config: Config) -> None:
    """Print the table, draw the picture.

    Raises:
        ConfigError: A folder without a run, a file that cannot be written, or no matplotlib.
    """
    if not config.runs:
        raise ConfigError("runs: name at least one folder")
    if config.plot is not None:
        check_plotting()
        check_target(config.plot)
    curves = [read_curve(folder) for folder in config.runs]
    table = RichTable(title="seconds of training to an exploitability of", title_justify="left")
    table.add_column("run", overflow="fold")
    for strength in STRENGTHS:
        table.add_column(f"{strength:g}", justify="right")
    table.add_column("last", justify="right")
    for curve in curves:
        times = [curve.time_to(strength) for strength in STRENGTHS]
        cells = ["-" if found is None else f"{found:,.0f}" for found in times]
        table.add_row(curve.name, *cells, f"{curve.exploitability[-1]:.4f}")
    Console().print(table)
    if config.plot is not None:
        write_bytes(config.plot, picture_of(curves))


def picture_of(curves: list[Curve]) -> bytes:
    """A PNG of exploitability over seconds, both on logarithmic axes."""
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes: Any = figure.subplots()
    for curve in curves:
        axes.plot(curve.seconds, curve.exploitability, marker=".", label=curve.name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("exploitability at most, units per deal and opponent")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


if __name__ == "__main__":
    run_script(Config, main)

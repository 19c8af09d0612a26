"""Clocks for the benchmark: interleaved repeats, the best of them, and what machine this is."""

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track

from cpoker_env import __version__

LEAST_SECONDS = 1e-9
"""What a clock too coarse for a call is read as, so that rates stay finite."""


class Work(NamedTuple):
    """Something to time: a call and how many items it handles."""

    items: int
    call: Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """CPU and wall seconds an item in each repeat, or the reason why there are none."""

    cpu: tuple[float, ...] = ()
    wall: tuple[float, ...] = ()
    error: str = ""

    @property
    def seconds(self) -> float:
        """CPU seconds an item in the best repeat."""
        return min(self.cpu)

    @property
    def spread(self) -> float:
        """How much longer the slowest repeat took than the best, as a share of the best."""
        return max(self.cpu) / min(self.cpu) - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain types: the best repeat, the spread, all repeats; or the error alone."""
        if self.error:
            return {"error": self.error}
        return {
            "cpu_seconds": self.seconds,
            "wall_seconds": min(self.wall),
            "per_second": 1 / self.seconds,
            "spread": self.spread,
            "cpu_samples": list(self.cpu),
        }


def measure(
    preparations: Sequence[Callable[[], Work]], repeats: int, seconds: float, progress: bool = False
) -> list[Timing]:
    """Time of each work, the repeats of all taking turns so that noise meets them alike.

    A work that raises is reported with its error, and the others are still timed.

    Args:
        preparations: Each returns what to time; what it does itself is not timed, nor is the
            first call, which may compile.
        repeats: Timed rounds.
        seconds: CPU time of a work in a round, at least one call.
        progress: Show bars on standard error.
    """
    console = Console(stderr=True)
    errors: dict[int, str] = {}
    works: dict[int, tuple[Work, int]] = {}
    samples: list[list[tuple[float, float]]] = [[] for _ in preparations]
    for i in track(range(len(samples)), "preparing", console=console, disable=not progress):
        try:
            work = preparations[i]()
            work.call()
            works[i] = work, _num_calls(work, seconds)
        except Exception as error:
            errors[i] = describe(error)
    for _ in track(range(repeats), "measuring", console=console, disable=not progress):
        for i, (work, calls) in works.items():
            if i not in errors:
                try:
                    samples[i].append(_clock(work, calls))
                except Exception as error:
                    errors[i] = describe(error)
    return [
        Timing(error=errors[i])
        if i in errors
        else Timing(tuple(cpu for cpu, _ in pairs), tuple(wall for _, wall in pairs))
        for i, pairs in enumerate(samples)
    ]


def describe(error: BaseException) -> str:
    """One line about an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _num_calls(work: Work, seconds: float) -> int:
    """Calls that take about so long, found from a part of it."""
    calls = 1
    while (spent := _clock(work, calls)[0] * work.items * calls) < seconds / 8:
        calls *= 4
    return max(1, round(seconds * calls / spent))


def _clock(work: Work, calls: int) -> tuple[float, float]:
    """(CPU, wall) seconds an item."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        work.call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    items = calls * work.items
    return max(cpu, LEAST_SECONDS) / items, max(wall, LEAST_SECONDS) / items


def machine() -> dict[str, Any]:
    """What the figures hold for: processor, cores this process may use, versions."""
    usable = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _cpu_model(),
        "cores": len(usable(0)) if usable else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "numba": importlib.metadata.version("numba"),
        "gymnasium": importlib.metadata.version("gymnasium"),
        "cpoker_env": __version__,
        "compiled": os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"),
    }


def _cpu_model() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()

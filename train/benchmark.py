"""`cpoker bench`: what things cost on this machine, in CPU time, beside the targets and the peers.

Every row is timed several times, all rows taking turns, and the best repeat counts: other load on
the machine only ever adds time.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cpoker_env.train import costs, peers
from cpoker_env.train.costs import COLD, COSTS, SCALING, STARTS, Cost, Setup
from cpoker_env.train.timing import Timing, describe, machine, measure
from rich.console import Console
from rich.table import Table as RichTable

from cpoker_env.errors import ConfigError
from cpoker_env.rules import Rules, read_rules

TEXTS = ("what", "peer")
"""Columns of words; the others are figures."""
MEMORY = {"memory": "resident memory over the bare import", "growth": "growth while stepping"}


@dataclass(frozen=True)
class Config:
    """What things cost on this machine: CPU time of the engine, the environments, starting up."""

    rules: str = "mandarin"
    """Preset of house rules, or a JSON file of options."""
    only: tuple[str, ...] = ()
    """Only rows with one of these words in their name or description; all by default."""
    repeats: int = 7
    """Timed rounds; the best counts, the slowest is shown as the spread."""
    seconds: float = 0.1
    """CPU seconds of each row in a round."""
    deals: int = 2_000_000
    """Deals stepped while memory is watched."""
    scaling: bool = False
    """Also cost against batch size, seats and threads."""
    peers: bool = False
    """Also other packages on the same work, those that are installed."""
    cold: bool = False
    """Also start-up without compiled kernels; takes a minute or more."""
    quick: bool = False
    """Small sizes and two rounds, in seconds; the figures are rough."""
    json: Path | None = None
    """Write the results to this file; - prints them instead of the tables."""
    markdown: bool = False
    """Print the tables in Markdown."""

    @property
    def rounds(self) -> int:
        """Timed rounds of this run."""
        return min(self.repeats, 2) if self.quick else self.repeats

    @property
    def round_seconds(self) -> float:
        """CPU seconds of each row in a round of this run."""
        return min(self.seconds, 1e-3) if self.quick else self.seconds

    def batch(self, size: int) -> int:
        """Items at once of this run in place of `size`."""
        return min(size, 16) if self.quick else size


def main(config: Config) -> int:
    """Measure and print; 1 if a row could not be measured.

    Raises:
        ConfigError: A setting out of range, or words that no row has.
        RulesError: Unknown preset.
    """
    _check(config)
    to_stdout = config.json is not None and str(config.json) == "-"
    # Some packages print when they load, which must not end up in the results.
    with redirect_stdout(sys.stderr):
        report = run(config)
    text = json.dumps(report, indent=2) + "\n"
    if to_stdout:
        print(text, end="")
    else:
        _print(report, config.markdown)
        if config.json is not None:
            from cpoker_env.agents.checkpoint import write_bytes  # loads torch

            write_bytes(config.json, text.encode())
    own = (*report["costs"], *report["starts"], *report["memory"], *report["scaling"])
    return int(any("error" in record for record in own))


def run(config: Config) -> dict[str, Any]:
    """All results of a run, as plain types."""
    rules = read_rules(config.rules)
    chosen = partial(_is_chosen, config.only)
    cases = [
        (cost, Setup(rules, config.batch(cost.batch), cost.num_players), "")
        for cost in COSTS
        if chosen(cost.name, cost.what)
    ]
    if config.scaling:
        cases += [case for case in _scaling(config, rules) if chosen(case[0].name, case[0].what)]
    timings = measure(
        [partial(cost.prepare, setup) for cost, setup, _ in cases],
        config.rounds, config.round_seconds, progress=sys.stderr.isatty(),
    )  # fmt: skip
    records = [
        (axis, _cost_record(cost, setup, timing))
        for (cost, setup, axis), timing in zip(cases, timings, strict=True)
    ]
    return {
        "machine": machine(),
        "rules": config.rules,
        "quick": config.quick,
        "repeats": config.rounds,
        "clock": "CPU seconds of the process, best repeat; all rows take turns",
        "costs": [record for axis, record in records if not axis],
        "starts": _starts(config, chosen),
        "memory": _memory(config, chosen),
        "scaling": [{"axis": axis, **record} for axis, record in records if axis],
        "peers": _peers(config, chosen) if config.peers else [],
    }


def _check(config: Config) -> None:
    if config.repeats < 1:
        raise ConfigError(f"repeats {config.repeats}: give 1 or more")
    if not 0 < config.seconds <= 60:
        raise ConfigError(f"seconds {config.seconds}: give more than 0, at most 60")
    if config.deals < 1:
        raise ConfigError(f"deals {config.deals}: give 1 or more")
    if config.json is not None and config.json.is_dir():
        raise ConfigError(f"json {str(config.json)!r} is a folder: give a file, or - to print")
    rows = [(cost.name, cost.what) for cost in COSTS]
    rows += [(start.name, start.what) for start in (*STARTS, *COLD)]
    rows += [*MEMORY.items(), *((peer.name, peer.what) for peer in peers.PEERS)]
    for word in config.only:
        if not any(_is_chosen((word,), *row) for row in rows):
            names = ", ".join(name for name, _ in rows)
            raise ConfigError(f"only {word!r}: no row has it; the rows are {names}")


def _is_chosen(words: tuple[str, ...], name: str, what: str) -> bool:
    return not words or any(word.lower() in f"{name} {what}".lower() for word in words)


def _scaling(config: Config, rules: Rules) -> Iterator[tuple[Cost, Setup, str]]:
    for axis, values, names in SCALING:
        for name in names:
            cost = costs.BY_NAME[name]
            setup = Setup(rules, config.batch(cost.batch), cost.num_players)
            sizes = [config.batch(value) if axis == "batch" else value for value in values]
            for size in dict.fromkeys(sizes):
                yield cost, replace(setup, **{axis: size}), axis  # type: ignore[arg-type]


def _cost_record(cost: Cost, setup: Setup, timing: Timing) -> dict[str, Any]:
    record = {
        "name": cost.name, "what": cost.what, "item": cost.item, "batch": setup.batch,
        "num_players": setup.num_players, "num_threads": setup.num_threads,
        "how": cost.how, **timing.to_dict(),
    }  # fmt: skip
    return record | _held_to(cost.target, cost.as_rate, timing)


def _held_to(target: float | None, as_rate: bool, timing: Timing) -> dict[str, Any]:
    if target is None:
        return {}
    met = None if timing.error else timing.seconds <= target
    return {"target_seconds": target, "target_as_rate": as_rate, "met": met}


def _starts(config: Config, chosen: Callable[[str, str], bool]) -> list[dict[str, Any]]:
    records = []
    for start in STARTS:
        if chosen(start.name, start.what):
            timing, found = costs.time_start(start, min(config.rounds, 5))
            record = {"name": start.name, "what": start.what, "how": start.how, **found}
            record |= timing.to_dict() | _held_to(start.target, False, timing)
            records.append(record)
    for start in COLD:
        if config.cold and chosen(start.name, start.what):
            cold, warm = costs.time_cold(start)
            for state, timing in (("cold", cold), ("warm", warm)):
                record = {"name": f"{start.name}-{state}", "what": f"{start.what}, {state}"}
                records.append(record | {"how": start.how} | timing.to_dict())
            if not (cold.error or warm.error):
                records[-2]["compile_cpu_seconds"] = cold.seconds - warm.seconds
    return records


def _memory(config: Config, chosen: Callable[[str, str], bool]) -> list[dict[str, Any]]:
    wanted = [name for name, what in MEMORY.items() if chosen(name, what)]
    if not wanted:
        return []
    num_deals = min(config.deals, 4096) if config.quick else config.deals
    records = []
    for num_envs, deals in ((1, 0), (config.batch(4096), num_deals)):
        base = {"num_envs": num_envs, "deals": deals}
        try:
            found = costs.run_fresh("memory", num_envs, deals)
        except RuntimeError as error:
            records.append({"name": "memory", "what": MEMORY["memory"], **base,
                            "error": describe(error)})  # fmt: skip
            continue
        for name, key in (("memory", "over_import"), ("growth", "growth")):
            if name in wanted and (name == "memory" or deals):
                records.append({"name": name, "what": MEMORY[name], **base, "bytes": found[key]})
    return records


def _peers(config: Config, chosen: Callable[[str, str], bool]) -> list[dict[str, Any]]:
    wanted = [peer for peer in peers.PEERS if chosen(peer.name, peer.what)]
    batch = config.batch(costs.BY_NAME["evaluate"].batch)
    return peers.compare(wanted, batch, config.rounds, config.round_seconds)


def _print(report: dict[str, Any], markdown: bool) -> None:
    console = Console()
    for title, header, lines in _tables(report):
        if markdown:
            aligned = ["---" if name in TEXTS else "---:" for name in header]
            rows = [header, aligned, *lines]
            print(f"{title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n")
            continue
        table = RichTable(title=title, title_justify="left", box=None, pad_edge=False)
        for name in header:
            is_text = name in TEXTS
            table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text)
        for line in lines:
            table.add_row(*line)
        console.print(table, end="\n\n", highlight=False)
    for note in dict.fromkeys(_notes(report)):
        print(f"- {note}")


def _tables(report: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(title, header, lines) of the parts of a report; errors are among the notes."""
    about = report["machine"]
    title = (
        f"{about['cpu']}, {about['cores']} cores, {about['system']}; Python {about['python']}, "
        f"numpy {about['numpy']}, numba {about['numba']}, cpoker-env {about['cpoker_env']}; rules "
        f"{report['rules']}; CPU time, best of {report['repeats']}"
    )
    if report["quick"]:
        title += "; quick, so rough"
    if not about["compiled"]:
        title += "; NUMBA_DISABLE_JIT is set, so nothing is compiled"
    if own := _measured(report, "costs", "starts"):
        header = ["what", "CPU each", "a second", "target", "met", "spread"]
        lines = [_cost_line(record) for record in own]
        if report["quick"]:
            # Batches are cut to a few items, which no target is meant for.
            lines = [[*line[:3], "", "", line[5]] for line in lines]
        yield title, header, lines
    if memory := _measured(report, "memory"):
        yield "Memory", ["what", "environments", "deals", "MiB"], [
            [r["what"], f"{r['num_envs']:,}", f"{r['deals']:,}", f"{r['bytes'] / 2**20:.1f}"]
            for r in memory
        ]  # fmt: skip
    if scaling := _measured(report, "scaling"):
        header = ["what", "seats", "at once", "threads", "CPU each", "wall each", "a second"]
        yield "Scaling, a second by wall time", header, [_scaling_line(r) for r in scaling]
    if found := _measured(report, "peers"):
        header = ["peer", "what", "CPU each", "a second", "ours", "theirs / ours", "same order"]
        yield "Peers", header, [_peer_line(r) for r in found]


def _measured(report: dict[str, Any], *parts: str) -> list[dict[str, Any]]:
    records = [record for part in parts for record in report[part]]
    return [r for r in records if "error" not in r and r.get("status") != "missing"]


def _notes(report: dict[str, Any]) -> Iterator[str]:
    for record in (*report["costs"], *report["starts"]):
        if record["how"]:
            yield f"{_title(record)}: {record['how']}"
    if report["scaling"]:
        yield "small batches: every call has the same hands, and the processor learns its branches"
    if _measured(report, "peers"):
        yield "peers, rows: same cards, one call a row, converted beforehand; ours one call for all"
        yield (
            "peers, games: one environment, random legal actions; ours is gym.make, uniform, or "
            "beside pettingzoo its parallel form of two seats"
        )
        yield "peers, DummyVecEnv: 256 environments, the same actions; ours is native_vec_env"
    for part in ("costs", "starts", "memory", "scaling", "peers"):
        for record in report[part]:
            if "error" in record:
                yield f"FAILED {record['name']}: {record['error']}"
            elif record.get("status") == "missing":
                yield f'{record["name"]} is not installed: pip install "{record["pip"]}"'


def _title(record: dict[str, Any]) -> str:
    if record.get("item") == "deal":
        return f"{record['what']}, {record['num_players']} seats"
    return str(record["what"])


def _cost_line(record: dict[str, Any]) -> list[str]:
    title, target, met = _title(record), "", ""
    if "target_seconds" in record:
        seconds = record["target_seconds"]
        target = f">= {_rate(seconds)}" if record["target_as_rate"] else f"<= {_time(seconds)}"
        met = "yes" if record["met"] else "no"
    if "torch_imported" in record:
        title += ", WITH torch" if record["torch_imported"] else ", no torch"
    if "compile_cpu_seconds" in record:
        title += f", {_time(record['compile_cpu_seconds'])} compiling"
    rate = _rate(record["cpu_seconds"]) if "item" in record else ""
    return [title, _time(record["cpu_seconds"]), rate, target, met, f"+{record['spread']:.0%}"]


def _scaling_line(record: dict[str, Any]) -> list[str]:
    sizes = [f"{record[key]:,}" for key in ("num_players", "batch", "num_threads")]
    wall = record["wall_seconds"]
    return [record["name"], *sizes, _time(record["cpu_seconds"]), _time(wall), _rate(wall)]


def _peer_line(record: dict[str, Any]) -> list[str]:
    seconds, ours = record["cpu_seconds"], record["ours_cpu_seconds"]
    same = {True: "yes", False: "NO", None: ""}[record.get("same_order")]
    name = f"{record['name']} {record['version']}"
    ratio = f"{record['ratio']:.3g}"
    return [name, record["what"], _time(seconds), _rate(seconds), _time(ours), ratio, same]


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _rate(seconds: float) -> str:
    """Items a second, from seconds an item."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if 1 / seconds >= size:
            return f"{1 / seconds / size:.3g}{unit}"
    return f"{1 / seconds:.3g}"


if __name__ == "__main__":
    import tyro

    sys.exit(main(tyro.cli(Config)))

"""`cpoker`: one command, a subcommand for each thing people do.

Commands and what they need load when they are used, so that `cpoker score` never imports torch.
"""

import importlib
import os
import sys
from io import TextIOWrapper
from typing import Any

from cpoker_env.errors import CPokerError

COMMANDS: dict[str, tuple[str, str]] = {
    "score": ("cpoker_env.cli_score", "who owes whom in a showdown, and why"),
    "arrange": ("cpoker_env.cli_arrange", "how an agent sets a hand"),
    "train": ("cpoker_env.train.selfplay", "train an agent by self-play"),
    "evaluate": ("cpoker_env.train.evaluate", "agents against each other, with intervals"),
    "exploit": ("cpoker_env.train.exploit", "what a best response wins against an agent"),
    "bench": ("cpoker_env.train.benchmark", "what things cost on this machine"),
}


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit status: 0 done, 1 bad input, 2 wrong usage."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not words or words[0] in ("-h", "--help"):
        _print_overview()
        return 0
    if words[0] == "--version":
        from cpoker_env import __version__

        print(f"cpoker-env {__version__}")
        return 0
    if words[0] not in COMMANDS:
        print(f"error: {words[0]!r}: the commands are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # suit symbols on a plain terminal
    try:
        import tyro  # slow to import, and the overview does without

        module: Any = importlib.import_module(COMMANDS[words[0]][0])
        config = tyro.cli(module.Config, prog=f"cpoker {words[0]}", args=words[1:])
        status = int(module.main(config) or 0)
        sys.stdout.flush()
        return status
    except SystemExit as end:
        return int(end.code or 0)
    except CPokerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Point stdout elsewhere so that the interpreter's own flush at exit stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _print_overview() -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print("13-card Chinese Poker: rules, environments, agents.\n", highlight=False)
    table = Table(box=None, show_header=False)
    for name, (_, what) in COMMANDS.items():
        table.add_row(f"  [bold]cpoker {name}[/]", what)
    console.print(table)
    console.print("\n`cpoker COMMAND --help` lists a command's options.", highlight=False)


if __name__ == "__main__":
    sys.exit(main())

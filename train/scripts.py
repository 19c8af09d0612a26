"""What the training scripts share: how they start and what they refuse."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cpoker_env.errors import CheckpointError, ConfigError, CPokerError

MOST_SEED = 2**62
"""Seeds are below: numbers are added to them, and torch takes no more than 64 bits."""


def run_script(config: type, main: Callable[[Any], Any]) -> None:
    """Run a script's main with the settings on its command line; bad ones end in one line."""
    import tyro  # slow to import, and only a command line needs it

    try:
        main(tyro.cli(config))
    except CPokerError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def check_folder(saved: Path, resumes: bool) -> None:
    """Raise where a new run would write over one that is there.

    Args:
        saved: What the run there goes on from.
        resumes: Whether it is to go on.

    Raises:
        CheckpointError: A run is there and is not to be resumed.
    """
    if saved.exists() and not resumes:
        raise CheckpointError(f"{saved} exists: add --resume to go on, or choose another --out")


def check_device(name: str) -> None:
    """Raise unless torch can compute there.

    Raises:
        ConfigError: An unknown device, or a GPU that is not there.
    """
    try:
        kind = torch.device(name).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r}: give cpu or cuda")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError(f"device {name!r}: torch finds no GPU here; use cpu")
        # cuBLAS is deterministic only with a workspace of its own.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

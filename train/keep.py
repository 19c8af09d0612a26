"""What came of shards of work, in a file from which a run goes on; arrays as plain data."""

import hashlib
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.checkpoint import check_same, check_target, write_bytes

from cpoker_env import __version__
from cpoker_env.errors import CheckpointError

SECONDS = 5.0
"""Between two writings of a file, and more if they take long."""


class Shard(NamedTuple):
    """A range of deals or hands."""

    start: int
    end: int


class Keep:
    """What came of shards, in a file.

    Args:
        path: A JSON file, whole at any time: written to another name and renamed.
        settings: Those that decide the results, plain data; the version of the package counts too.

    Raises:
        CheckpointError: The file is damaged, no such file, or of other settings.
        ConfigError: It cannot be written.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._settings = json.loads(json.dumps({"version": __version__, **settings}))
        self._done: dict[str, dict[str, Any]] = {}
        self._due = time.monotonic() + SECONDS
        check_target(path)
        if path.exists():
            self._done = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
            theirs, done = dict(record["settings"]), record["done"]
            if record["sha256"] != _hash(theirs, done):
                raise ValueError("its content does not match its hash")
            for results in done.values():
                for name in results:
                    _shard_of(name)
        except (
            OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError
        ) as error:  # fmt: skip
            raise CheckpointError(
                f"{self.path}: no partial results to go on from ({error}); remove it to start anew"
            ) from None
        check_same(self.path, self._settings, theirs)
        found: dict[str, dict[str, Any]] = done
        return found

    def results(self, stage: str) -> dict[Shard, Any]:
        """What is there of a stage of the work."""
        done = self._done.get(stage, {})
        return {_shard_of(name): result for name, result in done.items()}

    def add(self, stage: str, shard: Shard, result: Any) -> None:
        """Keep a result; it is in the file some seconds later, or after `save`."""
        self._done.setdefault(stage, {})[f"{shard.start}-{shard.end}"] = result
        started = time.monotonic()
        if started >= self._due:
            self.save()
            took = time.monotonic() - started
            self._due = started + max(SECONDS, 20 * took)

    def save(self) -> None:
        """Write the file."""
        record = {
            "settings": self._settings,
            "done": self._done,
            "sha256": _hash(self._settings, self._done),
        }
        write_bytes(self.path, (json.dumps(record) + "\n").encode())


def _shard_of(name: str) -> Shard:
    start, end = name.split("-")
    return Shard(int(start), int(end))


def partial_of(path: Path) -> Path:
    """Where partial results are kept that go to a file in the end."""
    return path.with_name(path.name + ".partial")


def _hash(*content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def pack(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as plain data, exactly."""
    content = b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"type": array.dtype.str, "shape": list(array.shape), "base64": content}


def unpack(packed: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The array that was packed."""
    found = np.frombuffer(b64decode(packed["base64"]), packed["type"])
    return found.reshape(packed["shape"]).copy()

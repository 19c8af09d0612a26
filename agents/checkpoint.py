"""Checkpoints: NAME.safetensors with the weights, NAME.json with everything else, hash included.

Nothing is ever unpickled. Files are written to a temporary name and renamed; the JSON comes last,
so a checkpoint without it is an unfinished one.
"""

import errno
import hashlib
import importlib.resources
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from cpoker_env.errors import CheckpointError, ConfigError, RulesError
from cpoker_env.rules import PRESETS, Rules

FORMAT = 1
ENDINGS = (".safetensors", ".json")


@dataclass(frozen=True)
class Checkpoint:
    """A stored agent.

    name: file name without ending. rules: what it was trained for. config: of its training.
    weights: tensors by name. results: measurements as stored. sha256: of the file of weights.
    """

    name: str
    rules: Rules
    config: dict[str, Any]
    weights: dict[str, torch.Tensor]
    results: list[dict[str, Any]]
    sha256: str


def save_checkpoint(
    path: str | Path,
    weights: Mapping[str, torch.Tensor],
    rules: Rules,
    config: Mapping[str, Any],
    results: list[dict[str, Any]],
) -> None:
    """Write `path`.safetensors and `path`.json, each whole or not at all.

    Raises:
        ConfigError: No name of a file, or one that cannot be written.
    """
    path = _target(path)
    blob = safetensors.torch.save({name: t.contiguous() for name, t in weights.items()})
    write_bytes(path.with_name(path.name + ".safetensors"), blob)
    record = {
        "format": FORMAT,
        "sha256": hashlib.sha256(blob).hexdigest(),
        "rules": rules.to_dict(),
        "config": dict(config),
        "results": results,
    }
    text = json.dumps(record, indent=2) + "\n"
    write_bytes(path.with_name(path.name + ".json"), text.encode())


def _target(path: str | Path) -> Path:
    """Where a checkpoint goes, by its name without or with one of the two endings."""
    if not isinstance(path, str | Path) or not Path(path).name or Path(path).name == "..":
        raise ConfigError(f"path {path!r}: give NAME for NAME.safetensors and NAME.json")
    found = Path(path)
    if found.suffix == ".zip":
        raise ConfigError(f"path {str(path)!r}: give a name without .zip, for two other files")
    if found.suffix in ENDINGS:
        found = found.with_suffix("")
    for ending in ENDINGS:
        check_target(found.with_name(found.name + ending))
    return found


def load_checkpoint(name: str) -> Checkpoint:
    """A checkpoint by path, without or with an ending, or by the name of one that ships.

    Raises:
        CheckpointError: Missing, unreadable, truncated, of another format, or weights that do not
            match the stored hash.
    """
    path = _find(name)
    try:
        record = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))
        blob = path.with_name(path.name + ".safetensors").read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {name!r}: {error.strerror} ({error.filename}); give NAME for "
            "NAME.safetensors and NAME.json"
        ) from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {name!r}: its JSON is damaged ({error})") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        found = record.get("format") if isinstance(record, dict) else type(record).__name__
        raise CheckpointError(f"checkpoint {name!r}: format {found!r}, this version reads {FORMAT}")
    missing = [key for key in ("sha256", "rules", "config", "results") if key not in record]
    if not missing and not isinstance(record["config"], dict):
        missing = ["config"]
    if missing:
        raise CheckpointError(f"checkpoint {name!r}: its JSON lacks {', '.join(missing)}")
    if hashlib.sha256(blob).hexdigest() != record["sha256"]:
        raise CheckpointError(
            f"checkpoint {name!r}: the weights do not match the stored hash; copy both files again"
        )
    try:
        weights = safetensors.torch.load(blob)
        rules = Rules.from_dict(record["rules"])
    except (SafetensorError, RulesError) as error:
        raise CheckpointError(f"checkpoint {name!r}: {error}") from None
    return Checkpoint(
        path.name, rules, record["config"], weights, record["results"], record["sha256"]
    )


def load_kind(name: str, kind: str, rules: Rules) -> Checkpoint:
    """A checkpoint of a kind, "population", "tables", "network" or "ppo", that is of these rules.

    Raises:
        CheckpointError: As `load_checkpoint`, or it is of another kind or other rules.
    """
    stored = load_checkpoint(name)
    if stored.config.get("kind") != kind:
        raise CheckpointError(f"checkpoint {name!r} holds no {kind}: see README, Policies")
    if _wherever_the_bank_sits(stored.rules) != _wherever_the_bank_sits(rules):
        raise CheckpointError(
            f"checkpoint {name!r} is of {stored.rules.name}, not {rules.name}: "
            "choose one of the same rules"
        )
    return stored


def _wherever_the_bank_sits(rules: Rules) -> Rules:
    return rules if rules.banker is None else replace(rules, banker=0)


def save_run(path: Path, record: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
    """Write what a run goes on from to one file, whole or not at all; see `load_run`."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    state = {"state": json.dumps(dict(record)), "sha256": _digest(kept)}
    write_bytes(path, safetensors.torch.save(kept, state))


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    return hashlib.sha256(safetensors.torch.save(dict(tensors))).hexdigest()


def load_run(
    path: Path, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What a run saved to go on from: its record, with the settings under `config`, and tensors.

    Args:
        path: A safetensors file whose metadata holds the record as JSON under `state`.
        settings: Those that decide the result; the run's must be the same.

    Raises:
        CheckpointError: Missing, damaged, or of a run with other settings.
    """
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        record: dict[str, Any] = json.loads(metadata["state"])
        tensors = safetensors.torch.load(path.read_bytes())
        if _digest(tensors) != metadata["sha256"]:
            raise ValueError("its tensors do not match their hash")
        theirs = dict(record["config"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: no run to resume ({error}); start without resume") from None
    check_same(path, settings, theirs)
    return record, tensors


def check_same(path: Path, settings: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise unless the settings that a run stored in a file are these.

    Raises:
        CheckpointError: Names the first that differs.
    """
    for name in {**settings, **theirs}:
        if settings.get(name) != theirs.get(name):
            raise CheckpointError(
                f"{path}: the run has {name} {theirs.get(name)!r}, not {settings.get(name)!r}: "
                "resume with the same settings"
            )


def shipped_names() -> list[str]:
    """Names of the checkpoints that come with the package."""
    folder = importlib.resources.files("cpoker_env.checkpoints")
    return sorted(
        entry.name.removesuffix(".json") for entry in folder.iterdir() if ".json" in entry.name
    )


def shipped_for(kind: str, rules: Rules, num_players: int) -> str:
    """Name of what ships for these rules: KIND-PRESET-SEATS where seats matter, or KIND-PRESET.

    Raises:
        CheckpointError: Nothing of this kind does.
    """
    shipped = shipped_names()
    for preset in PRESETS:
        for name in (f"{kind}-{preset}-{num_players}", f"{kind}-{preset}"):
            if name in shipped and rules == Rules.preset(preset):
                return name
    script = {"neural": "selfplay", "ppo": "ppo"}.get(kind, "fictitious_play")
    raise CheckpointError(
        f"{kind}: nothing ships for the rules {rules.name}: make it with "
        f"python -m cpoker_env.train.{script} and name it, {kind}:PATH"
    )


def stamp_of(name: str) -> str | None:
    """What tells a checkpoint's content from any other; None if there is none of that name.

    The hash of its JSON, which holds that of the weights.
    """
    try:
        path = _find(name)
        return hashlib.sha256(path.with_name(path.name + ".json").read_bytes()).hexdigest()
    except (CheckpointError, OSError):
        return None


def _find(name: str) -> Path:
    bare = name.removesuffix(".safetensors").removesuffix(".json")
    path = Path(bare)
    try:
        if path.name and path.with_name(path.name + ".json").exists():
            return path
    except (OSError, ValueError) as error:  # a name that no file can have
        raise CheckpointError(f"checkpoint {name!r}: {error}; give another name") from None
    if bare in shipped_names():
        return Path(str(importlib.resources.files("cpoker_env.checkpoints"))) / bare
    shipped = ", ".join(shipped_names()) or "none"
    raise CheckpointError(
        f"checkpoint {name!r}: no {bare}.json there, and no such name ships (those: {shipped})"
    )


def check_target(path: Path) -> None:
    """Raise unless a file can be written there, its folder made if need be.

    Raises:
        ConfigError: A folder or a device of that name, or a folder that cannot be made or written
            to.
    """
    try:
        path = Path(os.path.realpath(path))
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "is no regular file, which would be replaced")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: {why}; choose a file in a folder you may write to") from None


def check_targets(**paths: Path | None) -> None:
    """Raise unless files can be written to all paths that are given, by option.

    Raises:
        ConfigError: As `check_target`, or two of them are the same file.
    """
    options: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        check_target(path)
        other = options.setdefault(os.path.realpath(path), option)
        if other != option:
            raise ConfigError(f"{other} and {option} are both {path}: give each its own file")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, its folder made if need be; links are followed."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

"""Adapters without their libraries, or with the wrong ones, say what to install."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from cpoker_env import extras
from cpoker_env.errors import CPokerError, ExtraError
from cpoker_env.extras import EXTRAS, check_versions, extra_name

PYPROJECT = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
ADAPTERS = {
    "open_spiel": ("open_spiel", "pyspiel"),
    "pettingzoo": ("parallel", "pettingzoo"),
    "rllib": ("rllib", "ray"),
    "sb3": ("sb3", "stable_baselines3"),
    "torchrl": ("torchrl", "torchrl"),
}
"""By extra, the adapter and what it imports first."""
EACH = pytest.mark.parametrize("extra", EXTRAS)
EACH_ADAPTER = pytest.mark.parametrize("extra", ADAPTERS)


def import_without(extra, monkeypatch):
    """What the import of an adapter raises where its library cannot be imported."""
    adapter, package = ADAPTERS[extra]
    for name in [package, *sys.modules]:
        if name.partition(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"cpoker_env.{adapter}", raising=False)
    with pytest.raises(ExtraError) as caught:
        importlib.import_module(f"cpoker_env.{adapter}")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, CPokerError)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(f'pip install "cpoker-env[{extra_name(extra)}]"')
    return message


@EACH_ADAPTER
def test_an_adapter_without_its_library_names_the_extra(extra, monkeypatch):
    monkeypatch.setattr(extras, "version", lambda name: EXTRAS[extra][0].from_version)
    monkeypatch.setattr(extras, "check_versions", lambda extra: None)
    message = import_without(extra, monkeypatch)
    names = " and ".join(library.name for library in EXTRAS[extra])
    assert message.startswith(f"cpoker_env.{ADAPTERS[extra][0]} needs {names} (")


@EACH_ADAPTER
def test_an_old_library_that_does_not_import_is_told_by_its_version(extra, monkeypatch):
    monkeypatch.setattr(extras, "version", lambda name: "0.1")
    assert import_without(extra, monkeypatch).startswith(f"{EXTRAS[extra][0].name} 0.1: ")


@EACH
def test_a_version_out_of_range_is_refused_with_the_range(extra, monkeypatch):
    for library in EXTRAS[extra]:
        others = {other.name: other.from_version for other in EXTRAS[extra]}
        major, minor = map(int, library.from_version.split("."))
        for found, fits in (
            ("0.1.dev0", False),
            (f"{major}.{minor - 1}.9", False),
            (library.from_version, True),
            (f"{library.from_version}.7", True),
            (library.below, False),
            (f"{library.below}.0a1", False),
            ("99", False),
        ):
            versions = others | {library.name: found}
            monkeypatch.setattr(extras, "version", versions.__getitem__)
            if fits:
                check_versions(extra)
                continue
            with pytest.raises(ExtraError, match=re.escape(f"{library.name} {found}: ")) as caught:
                check_versions(extra)
            assert library.requirement in str(caught.value)
            assert f"cpoker-env[{extra_name(extra)}]" in str(caught.value)


@EACH
def test_the_extra_asks_for_the_versions_the_adapter_takes(extra):
    listed = re.search(rf"^{extra_name(extra)} = \[(.*)\]$", PYPROJECT, flags=re.MULTILINE)
    assert listed is not None
    named = [name.replace("[rllib]", "") for name in re.findall(r'"([^"]+)"', listed.group(1))]
    assert sorted(named) == sorted(library.requirement for library in EXTRAS[extra])


def test_all_adapters_are_here():
    assert set(ADAPTERS) == set(EXTRAS) - {"ray"}  # imported when it is asked for

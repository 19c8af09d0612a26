"""Adapters without their libraries, or with the wrong ones, say what to install."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from cpoker_env import extras
from cpoker_env.errors import ExtraError
from cpoker_env.extras import EXTRAS, check_versions, extra_name

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
NEEDS = {"open_spiel": ("pyspiel",), "torchrl": ("torchrl", "torchrl.data")}


@pytest.mark.parametrize("extra", NEEDS)
def test_an_adapter_without_its_library_names_the_extra(extra, monkeypatch):
    for name in NEEDS[extra]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"cpoker_env.{extra}", raising=False)
    monkeypatch.setattr(extras, "version", lambda name: EXTRAS[extra][0].from_version)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"cpoker_env.{extra}")
    assert isinstance(caught.value, ExtraError)
    assert f"cpoker_env.{extra} needs {EXTRAS[extra][0].name}" in str(caught.value)
    assert str(caught.value).endswith(f'pip install "cpoker-env[{extra_name(extra)}]"')


@pytest.mark.parametrize("extra", NEEDS)
def test_a_version_out_of_range_is_refused_with_the_range(extra, monkeypatch):
    library = EXTRAS[extra][0]
    for found, fits in (
        ("0.1.dev0", False),
        (library.from_version, True),
        (f"{library.from_version}.7", True),
        (library.below, False),
        ("99", False),
    ):
        monkeypatch.setattr(extras, "version", lambda name, found=found: found)
        if fits:
            check_versions(extra)
            continue
        with pytest.raises(ExtraError, match=re.escape(f"{library.name} {found}: ")) as caught:
            check_versions(extra)
        assert library.requirement in str(caught.value)
        assert f"cpoker-env[{extra_name(extra)}]" in str(caught.value)


@pytest.mark.parametrize("extra", NEEDS)
def test_an_old_library_that_does_not_import_is_told_by_its_version(extra, monkeypatch):
    for name in NEEDS[extra]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"cpoker_env.{extra}", raising=False)
    monkeypatch.setattr(extras, "version", lambda name: "0.1")
    with pytest.raises(ExtraError, match=rf"{EXTRAS[extra][0].name} 0\.1: "):
        importlib.import_module(f"cpoker_env.{extra}")


@pytest.mark.parametrize("extra", NEEDS)
def test_the_extra_asks_for_the_versions_the_adapter_takes(extra):
    line = f'{extra_name(extra)} = ["{EXTRAS[extra][0].requirement}"]'
    assert line in PYPROJECT.read_text(encoding="utf-8").splitlines()

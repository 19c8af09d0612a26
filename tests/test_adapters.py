"""What the adapters say when their library is missing or of another version."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from cpoker_env import extras
from cpoker_env.errors import CPokerError, ExtraError

PYPROJECT = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
MODULES = {"pettingzoo": "parallel", "sb3": "sb3"}
LIBRARIES = {"pettingzoo": "pettingzoo", "sb3": "stable_baselines3"}


@pytest.mark.parametrize("extra", MODULES)
def test_a_missing_library_names_the_extra(extra, monkeypatch):
    for name in list(sys.modules):
        if name.partition(".")[0] == LIBRARIES[extra]:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, LIBRARIES[extra], None)
    monkeypatch.delitem(sys.modules, f"cpoker_env.{MODULES[extra]}", raising=False)
    with pytest.raises(ExtraError) as caught:
        importlib.import_module(f"cpoker_env.{MODULES[extra]}")
    message = str(caught.value)
    assert message.endswith(f'pip install "cpoker-env[{extra}]"')
    assert message.startswith(f"cpoker_env.{MODULES[extra]} needs {LIBRARIES[extra][:6]}")
    assert "\n" not in message
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, CPokerError)


@pytest.mark.parametrize("extra", MODULES)
@pytest.mark.parametrize("found", ["0.9", "1.24.4", "2.6.0", "2.10.0", "3.0.0a1", "10.0"])
def test_versions_that_were_not_tried_are_refused(extra, found, monkeypatch):
    monkeypatch.setattr(extras, "version", lambda name: found)
    library = extras.EXTRAS[extra][0]
    with pytest.raises(ExtraError) as caught:
        extras.check_versions(extra)
    assert f"{library.name} {found}" in str(caught.value)
    assert library.requirement in str(caught.value)


@pytest.mark.parametrize("extra", MODULES)
def test_extras_are_those_of_the_package(extra):
    listed = re.search(rf"^{extra} = \[(.*)\]$", PYPROJECT, flags=re.MULTILINE)
    assert listed is not None
    named = sorted(re.findall(r'"([^"]+)"', listed.group(1)))
    assert named == sorted(library.requirement for library in extras.EXTRAS[extra])

"""Who may import whom: data flows one way, heavy packages stay where they belong."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"agents": "cpoker_env.agents", "train": "cpoker_env.train"}
# A module imports only from those before it; one that is not here fails until it has a place.
ORDER = [
    *("errors", "extras", "cards"),
    "rules",
    "tables",
    "kernels",
    *("naturals", "valuation", "arrangements", "scoring", "money"),
    *("policy", "table", "row_values", "spaces"),
    *("form", "structured", "sequential", "candidates", "forms", "learners", "seats"),
    *("render", "picture", "env", "vector", "parallel", "session"),
    *("open_spiel", "torchrl"),
    "agents",
    *("sb3", "rllib"),
    "train",
    *("cli", "cli_tables", "cli_arrange", "cli_score"),
]
NUMBA = {"kernels"}
GYMNASIUM = {"__init__", "spaces", "form", "structured", "sequential", "candidates"}
GYMNASIUM |= {"learners", "seats", "env", "vector", "parallel", "session", "sb3", "torchrl"}
GYMNASIUM |= {"rllib", "train"}
# The adapter hands tensors to a library of tensors; nothing imports it unasked.
TORCH = {"torchrl", "agents", "train"}
# Libraries of the extras, each in its adapter and its examples.
EXTRAS = {
    "pyspiel": {"open_spiel", "train"},
    "open_spiel": {"open_spiel", "train"},
    "torchrl": {"torchrl", "train"},
    "tensordict": {"torchrl", "train"},
}
DOUBLES = {"agents", "train", "checkpoints"}


def modules():
    """(name, layer name, path) of every module of the package."""
    for path in sorted((ROOT / "cpoker_env").glob("**/*.py")):
        place = path.relative_to(ROOT / "cpoker_env").with_suffix("").parts
        yield ".".join(place), place[0], path
    for folder in (*FOLDERS, "checkpoints"):
        for path in sorted((ROOT / folder).glob("**/*.py")):
            place = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(place), folder, path


MODULES = list(modules())
SOURCES = pytest.mark.parametrize(
    ("layer", "path"), [m[1:] for m in MODULES], ids=[m[0] for m in MODULES]
)


def imported(tree):
    """Dotted names of everything imported, inside functions and type checks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import: write it from cpoker_env"
            if node.module in ("cpoker_env", "gymnasium"):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            else:
                yield node.module
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(("import_module", "__import__"))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def test_every_module_has_a_layer():
    known = {*ORDER, "__init__", "checkpoints"}
    assert {layer for _, layer, _ in MODULES} <= known
    assert {"kernels", "scoring", "agents", "train"} <= {layer for _, layer, _ in MODULES}


@SOURCES
def test_modules_import_only_leftwards(layer, path):
    # The package itself loads its names on first use, so it stands to the right of all.
    own = [*ORDER, "checkpoints", "__init__"].index(layer)
    for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
        package, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if package != "cpoker_env" or target in ("", "__version__"):
            continue
        assert target in ORDER, f"{path.name} imports {name}"
        place = ORDER.index(target)
        is_own_package = target == layer and target in FOLDERS
        assert place < own or is_own_package, f"{path.name} imports {name}, to its right"


@SOURCES
def test_heavy_packages_stay_in_their_modules(layer, path):
    top = {name.partition(".")[0] for name in imported(ast.parse(path.read_text("utf-8")))}
    assert "numba" not in top or layer in NUMBA
    assert not top & {"torch", "safetensors", "tensorboard"} or layer in TORCH
    assert not top & {"gymnasium", "pettingzoo"} or layer in GYMNASIUM
    for library in top & set(EXTRAS):
        assert layer in EXTRAS[library]
    assert not top & DOUBLES, "a second copy of every class: import cpoker_env.agents"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch.nn as nn", ["torch.nn"]),
        ("def f():\n    from cpoker_env import kernels, rules", ["cpoker_env.kernels"]),
        ("importlib.import_module('agents.neural')", ["agents.neural"]),
    ],
)
def test_imports_are_found_wherever_they_stand(source, names):
    assert set(names) <= set(imported(ast.parse(source)))

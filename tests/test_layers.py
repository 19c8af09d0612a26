"""Modules import only from modules to their left; heavy libraries stay in their layer."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = (
    ("errors", "cards"),
    ("rules",),
    ("tables",),
    ("kernels",),
    ("naturals", "arrangements", "scoring", "money"),
    ("policy", "table", "spaces"),
    ("env", "session", "render"),
    ("agents", "checkpoints"),
    ("train",),
    ("cli", "cli_score", "cli_arrange"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
HOMES = {
    "numba": {"kernels"},
    "torch": {"agents", "train"},
    "safetensors": {"agents", "train"},
    "gymnasium": {"__init__", "spaces", "env", "session"},
}


def modules():
    for path in sorted((ROOT / "cpoker_env").glob("*.py")):
        yield path.stem, path
    for folder in ("agents", "train", "checkpoints"):
        for path in sorted((ROOT / folder).glob("*.py")):
            yield folder, path


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            yield node.module
            if node.module == "cpoker_env":
                yield from (f"cpoker_env.{name.name}" for name in node.names)


def test_imports_go_left():
    for name, path in modules():
        if name == "__init__":
            continue
        assert name in LEVEL, f"{path.name} has no layer"
        for target in imported(path):
            top, _, rest = target.partition(".")
            assert top not in ("agents", "train", "checkpoints"), f"{path}: {target}"
            part = rest.split(".")[0]
            if top == "cpoker_env" and part in LEVEL:
                assert LEVEL[part] <= LEVEL[name], f"{path} imports {target}"


def test_heavy_libraries_stay_home():
    for name, path in modules():
        for target in imported(path):
            home = HOMES.get(target.split(".")[0])
            assert home is None or name in home, f"{path} imports {target}"

"""What the README promises: two commands, an example that runs."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_quick_start_has_exactly_two_commands():
    commands = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    assert len(commands) == 2
    assert all(command.count("\n") == 1 for command in commands)
    assert "cpoker train --preset quick" in commands[0]
    assert "pytest" in commands[1]


BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_example_is_ten_lines():
    assert len([line for line in BLOCKS[0].splitlines() if line.strip()]) <= 10


def test_examples_run_in_their_order(capsys):
    names: dict[str, object] = {}
    for code in BLOCKS:
        exec(compile(code, "README.md", "exec"), names)
    assert "North" in capsys.readouterr().out

"""Learning curves of runs."""

import numpy as np
import pytest
from cpoker_env.train import learning
from torch.utils.tensorboard import SummaryWriter

from cpoker_env.errors import ConfigError


@pytest.fixture
def run(tmp_path):
    """The log of a run that measured itself three times."""
    folder = tmp_path / "western-quick"
    with SummaryWriter(str(folder)) as writer:
        for step, (seconds, weakness) in enumerate([(3.0, 0.2), (6.5, 0.04), (9.0, 0.008)]):
            writer.add_scalar("charts/seconds", seconds, 2 * step)
            writer.add_scalar("charts/seconds", seconds + 1, 2 * step + 1)
            writer.add_scalar("eval/exploitability", weakness, 2 * step)
    return folder


def test_a_curve_says_when_a_strength_was_first_reached(run):
    curve = learning.read_curve(run)
    assert curve.name == "western-quick"
    assert curve.seconds.tolist() == [3.0, 6.5, 9.0]
    np.testing.assert_allclose(curve.exploitability, [0.2, 0.04, 0.008])
    assert [curve.time_to(s) for s in (0.3, 0.1, 0.01, 0.001)] == [3.0, 6.5, 9.0, None]


def test_learning_prints_a_table_and_draws_a_picture(run, tmp_path, capsys):
    learning.main(learning.Config((run,), tmp_path / "learning.png"))
    line = capsys.readouterr().out.splitlines()[-2]
    assert [word.strip() for word in line.strip("│").split("│")] == [
        "western-quick", "6", "6", "9", "9", "-", "-", "0.0080",
    ]  # fmt: skip
    assert (tmp_path / "learning.png").read_bytes().startswith(b"\x89PNG")


def test_folders_without_a_run_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no run that logged"):
        learning.read_curve(tmp_path)
    with pytest.raises(ConfigError, match="no run that logged"):
        learning.read_curve(tmp_path / "none")
    with pytest.raises(ConfigError, match="at least one"):
        learning.main(learning.Config(()))

"""The scripts that learn with other libraries: short, and their reward rises."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "train" / "examples"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_maskable_ppo_learns_to_place(tmp_path, capsys):
    pytest.importorskip("sb3_contrib")
    from cpoker_env.train.examples import sb3_maskable

    from cpoker_env import make_policy

    config = sb3_maskable.Config(steps=13_312, num_envs=64, out=tmp_path / "placer")
    before, after = sb3_maskable.main(config)
    assert after > before + 0.4
    assert after > 0.4
    assert "units per deal" in capsys.readouterr().out
    assert make_policy(f"sb3:{tmp_path / 'placer'}").form == "sequential"


def test_hand_written_loop_learns_to_choose():
    pytest.importorskip("pettingzoo")
    from cpoker_env.train.examples import pettingzoo_loop

    before, after = pettingzoo_loop.main(pettingzoo_loop.Config(deals=1_000))
    assert after > before + 0.6
    assert after > 0.8


def test_ppo_in_one_file_learns_to_place():
    from cpoker_env.train.examples import cleanrl_ppo

    first, last = cleanrl_ppo.main(cleanrl_ppo.Config(steps=26_624, num_envs=64))
    assert last > first + 1
    assert last > 1

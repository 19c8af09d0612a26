"""From a run to a checkpoint with its measurements and its model card."""

import json

import pytest
from cpoker_env.agents.checkpoint import load_checkpoint, save_checkpoint
from cpoker_env.train import exploit, fictitious_play, publish

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run of fictitious play, with its tables and a measurement of them."""
    folder = tmp_path_factory.mktemp("run")
    fictitious_play.main(
        fictitious_play.Config(
            rules="western", hands=3000, rounds=2, tables_hands=1000, seed=4, out=folder
        )
    )
    exploit.main(
        exploit.Config(
            agent=f"equilibrium:{folder / 'tables'}", rules="western", hands=40, samples=60,
            json=folder / "told.json",
        )
    )  # fmt: skip
    return folder


def test_publish_writes_the_agent_its_results_and_its_card(run, tmp_path):
    config = publish.Config(
        run / "tables", "equilibrium-west", (run / "told.json",), folder=tmp_path
    )
    publish.main(config)
    stored = load_checkpoint(str(tmp_path / "equilibrium-west"))
    told = json.loads((run / "told.json").read_text(encoding="utf-8"))
    assert stored.results[0]["lower"] == told["lower"]
    assert stored.results[0]["hands"] == 40
    same = (tmp_path / "equilibrium-west.safetensors").read_bytes()
    assert same == (run / "tables.safetensors").read_bytes()
    card = (tmp_path / "equilibrium-west.md").read_text(encoding="utf-8")
    assert f"at least {told['lower']['mean']:.5f}" in card
    words = "--rules western --hands 3000 --rounds 2 --tables-hands 1000 --seed 4"
    assert f"`python -m cpoker_env.train.fictitious_play {words}`" in card
    make_policy(f"equilibrium:{tmp_path / 'equilibrium-west'}", "western")


def test_publish_takes_no_name_twice_and_measures_the_agent_it_names(run, tmp_path):
    told = (run / "told.json",)
    for name, agent in (
        ("equilibrium-western", "equilibrium"), ("equilibrium-mine", "checkpoint:equilibrium-mine")
    ):  # fmt: skip
        config = publish.Config(run / "tables", name, told, folder=tmp_path)
        publish.main(config)
        card = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
        assert f"`cpoker exploit --agent {agent} --rules western " in card
        before = (tmp_path / f"{name}.json").read_bytes()
        with pytest.raises(ConfigError, match="--overwrite"):
            publish.main(publish.Config(run / "agent", name, folder=tmp_path))
        assert (tmp_path / f"{name}.json").read_bytes() == before
    machine = "one fast machine"
    publish.main(
        publish.Config(run / "tables", name, folder=tmp_path, machine=machine, overwrite=True)
    )
    assert f" s on {machine}; `" in (tmp_path / f"{name}.md").read_text(encoding="utf-8")


def test_the_command_of_ppo_names_its_rounds(tmp_path):
    config = {
        "kind": "ppo", "preset": "quick", "rules": "four_two", "num_rounds": 3, "deals": 64,
        "copies": 2, "seed": 1, "seconds": 2.0,
    }  # fmt: skip
    save_checkpoint(tmp_path / "agent", {}, Rules.preset("four_two"), config, [])
    publish.main(publish.Config(tmp_path / "agent", "ppo-mine", folder=tmp_path))
    card = (tmp_path / "ppo-mine.md").read_text(encoding="utf-8")
    assert "--rounds 3" in card.partition("python -m cpoker_env.train.ppo")[2].partition("`")[0]


def test_publish_refuses_what_was_measured_otherwise(run, tmp_path):
    told = json.loads((run / "told.json").read_text(encoding="utf-8"))
    told["options"]["foul"] = 5
    other = tmp_path / "other.json"
    other.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(CheckpointError, match="other rules"):
        publish.main(publish.Config(run / "agent", "x", (other,), folder=tmp_path))
    other.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="no result of cpoker exploit"):
        publish.main(publish.Config(run / "agent", "x", (other,), folder=tmp_path))
    save_checkpoint(tmp_path / "odd", {}, Rules.preset("western"), {}, [])
    with pytest.raises(ConfigError, match="of kind None"):
        publish.main(publish.Config(tmp_path / "odd", "x", folder=tmp_path))
    assert not list(tmp_path.glob("x*"))

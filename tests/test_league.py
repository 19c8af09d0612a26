"""The league keeps snapshots by name, draws them and comes back from a file."""

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from cpoker_env.train.league import League

from cpoker_env.errors import CheckpointError, ConfigError


def weights_of(value):
    return {"head.weight": torch.full((2, 2), float(value)), "head.bias": torch.tensor([value])}


def filled(count, **options):
    league = League(**options)
    for i in range(count):
        league.add(f"round-{i}", weights_of(i))
    return league


def test_full_league_drops_its_oldest():
    league = filled(5, capacity=3)
    assert league.names == ("round-2", "round-3", "round-4")
    assert len(league) == 3
    with pytest.raises(ConfigError, match="round-0"):
        league.weights("round-0")


def test_snapshot_does_not_follow_the_learner():
    league, mine = League(), weights_of(1)
    league.add("a", mine)
    mine["head.weight"] += 5
    assert league.weights("a")["head.weight"].eq(1).all()


def test_draws_favour_the_newest_and_treat_the_others_alike():
    league = filled(5, latest_share=0.6)
    drawn = league.draw(np.random.default_rng(3), 20_000)
    shares = {name: drawn.count(name) / 20_000 for name in league.names}
    assert shares.pop("round-4") == pytest.approx(0.6, abs=0.015)
    assert list(shares.values()) == pytest.approx([0.1] * 4, abs=0.01)
    assert drawn == league.draw(np.random.default_rng(3), 20_000)
    assert set(filled(1, latest_share=0.0).draw(np.random.default_rng(1), 9)) == {"round-0"}
    assert "round-4" not in filled(5, latest_share=0.0).draw(np.random.default_rng(1), 500)


def test_league_comes_back_from_a_file_in_order():
    league = filled(5, capacity=4, latest_share=0.25)
    blob = safetensors.torch.save({**league.tensors(), "network.bias": torch.zeros(1)})
    record = json.loads(json.dumps(league.record()))
    again = League.restore(record, safetensors.torch.load(blob))
    assert again.names == league.names
    assert again.record() == league.record()
    for name in league.names:
        for key, tensor in league.weights(name).items():
            assert torch.equal(again.weights(name)[key], tensor)
    assert set(league.tensors()) >= {"league.round-1.head.weight", "league.round-4.head.bias"}


def test_records_that_do_not_fit_are_refused():
    league = filled(2)
    lacking = {key: t for key, t in league.tensors().items() if "round-1" not in key}
    with pytest.raises(CheckpointError, match="round-1"):
        League.restore(league.record(), lacking)
    with pytest.raises(CheckpointError, match="capacity"):
        League.restore({}, league.tensors())
    with pytest.raises(CheckpointError, match="keeps 1"):
        League.restore({**league.record(), "capacity": 0}, league.tensors())


@pytest.mark.parametrize("name", ["a.b", "", "a b", "é"])
def test_names_that_would_not_parse_are_refused(name):
    with pytest.raises(ConfigError, match="letters"):
        League().add(name, weights_of(0))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="capacity 0"):
        League(capacity=0)
    with pytest.raises(ConfigError, match=r"latest_share 1\.5"):
        League(latest_share=1.5)
    with pytest.raises(ConfigError, match="no snapshot"):
        League().draw(np.random.default_rng(1), 1)
    with pytest.raises(ConfigError, match="is in the league"):
        filled(1).add("round-0", weights_of(0))

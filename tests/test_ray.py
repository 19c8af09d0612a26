"""Work in shards on a Ray cluster of this machine; needs the extra "ray"."""

from pathlib import Path

import pytest
from cpoker_env.train import exploit
from cpoker_env.train.evaluate import evaluate
from cpoker_env.train.shards import cut, open_runner
from sharing import Squares

from cpoker_env.errors import ConfigError, WorkerError
from cpoker_env.policy import register_policy

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning:ray.*")


@pytest.fixture(autouse=True, scope="module")
def _path():
    """Lets workers import what tests define."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        yield


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two workers, to which this process is connected."""
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_a_local_cluster_starts_and_ends_with_the_run(tmp_path):
    shards = cut(40, 10)
    with open_runner(2, "local") as runner:
        found = runner.run(Squares(tmp_path), shards, "adding", "numbers")
    assert found == [{"sum": sum(i * i for i in range(*shard))} for shard in shards]
    assert not ray.is_initialized()


def test_no_cluster_at_an_address_is_told():
    with pytest.raises(ConfigError, match=r"ray 127\.0\.0\.1:1: .* of a running cluster"):
        evaluate("greedy,uniform", num_deals=10, ray="127.0.0.1:1")


def test_only_the_shard_of_a_killed_worker_is_done_again(tmp_path, cluster):
    shards = cut(60, 10)
    work = Squares(tmp_path, falls=(30,), raises=(10,))
    with open_runner(2, "local") as runner:
        found = runner.run(work, shards, "adding", "numbers")
        assert found == [{"sum": sum(i * i for i in range(*shard))} for shard in shards]
        assert [work.num_calls(shard.start) for shard in shards] == [1, 2, 1, 2, 1, 1]
        (tmp_path / "more").mkdir()
        work = Squares(tmp_path / "more", falls=(0,), raises=(10,), times=2)
        with pytest.raises(WorkerError, match=r"2 of 6 .* 0 to 9 failed twice, WorkerCrashed.*"):
            runner.run(work, shards, "adding", "numbers")
    assert ray.is_initialized()


def test_evaluations_on_a_cluster_are_the_same(tmp_path, cluster):
    register_policy("fails", "sharing:Fails")
    flag = tmp_path / "flag"
    agents = ["greedy", f"fails:{flag}"]
    one = evaluate(agents, num_deals=700)
    flag.write_text("fall", encoding="utf-8")
    assert evaluate(agents, num_deals=700, ray="local") == one
    assert not flag.exists()


def test_best_responses_on_a_cluster_are_the_same(tmp_path, cluster):
    told = []
    for name in ("local", None):
        path = tmp_path / f"{name}.json"
        exploit.main(exploit.Config("greedy", "western", 2, 600, 150, ray=name, json=path))
        told.append(path.read_bytes())
    assert told[0] == told[1]

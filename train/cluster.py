"""Shards as tasks of a Ray cluster (the extra "ray"), which may be many machines.

Every machine has this package, and whatever the agents need, installed in the same version.
"""

import copy
import importlib
import socket
from typing import Any

from cpoker_env.train.keep import Shard
from cpoker_env.train.shards import Work, attempt_away

from cpoker_env import __version__
from cpoker_env.errors import ConfigError, WorkerError
from cpoker_env.extras import check_versions, not_importable

AHEAD = 1000
"""Tasks that wait for a processor or run, so that a cluster which can grow knows that it should."""


class Cluster:
    """Does shards as Ray tasks.

    Args:
        address: Of a cluster as `ray.init` takes it, or "local" for one of this machine that ends
            with `close`. If this process is connected to a cluster already, that one is used.
        workers: Of a local cluster.
        threads: Processors that each task needs.

    Raises:
        ExtraError: No Ray, or a version that was not tried.
        ConfigError: No cluster there.
    """

    size = AHEAD
    is_here = False

    def __init__(self, address: str, workers: int = 1, threads: int = 1) -> None:
        self._ray = import_ray()
        self._is_mine = not self._ray.is_initialized()
        if self._is_mine:
            local = {"num_cpus": workers * threads, "include_dashboard": False}
            options = local if address == "local" else {}
            try:
                _knock(address)
                self._ray.init(address, log_to_driver=False, logging_level="ERROR", **options)
            except (OSError, RuntimeError, ValueError) as error:
                raise ConfigError(
                    f"ray {address}: {error}; give the address of a running cluster "
                    '(`ray start --head` starts one), or "local"'
                ) from None
        # Tries are counted by who gives out the shards.
        task = self._ray.remote(num_cpus=threads, max_retries=0)
        self._do = task(_do)
        self._busy: dict[Any, Shard] = {}
        self._work: Work | None = None
        self._reference: Any = None

    def start(self, work: Work, shard: Shard) -> None:
        """See `shards.Executor`."""
        if work is not self._work:
            try:
                self._work, self._reference = work, self._ray.put(work)
            except TypeError as error:
                raise WorkerError(f"work that cannot leave this process: {error}") from None
        name = self._reference.hex()
        # In a list, a reference is handed on as such.
        self._busy[self._do.remote(__version__, name, [self._reference], shard)] = shard

    def finish(self) -> tuple[Shard, Any]:
        """See `shards.Executor`."""
        (done,), _ = self._ray.wait([*self._busy], num_returns=1)
        shard = self._busy.pop(done)
        try:
            return shard, self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            said = str(error).strip().splitlines()[-1:]
            return shard, WorkerError(f"{type(error).__name__}: {''.join(said)}")

    def close(self) -> None:
        """End what still runs, and leave the cluster, if this connected to it."""
        for task in self._busy:
            self._ray.cancel(task, force=True)
        if self._is_mine:
            self._ray.shutdown()


def _knock(address: str) -> None:
    """Raise an OSError if an address has a port at which nobody answers: Ray tries for minutes."""
    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def import_ray() -> Any:
    """The module, in a version that was tried.

    Raises:
        ExtraError: Missing, or another version.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise not_importable("ray", error) from None
    check_versions("ray")
    return ray


_held: dict[str, Work] = {}
"""The work of a worker by the name of its reference."""


def _do(version: str, name: str, reference: list[Any], shard: Shard) -> Any:
    if version != __version__:
        raise WorkerError(f"cpoker-env {__version__} on a machine of the cluster, not {version}")
    if name not in _held:
        _held.clear()
        # Arrays of the object store are read-only, for which kernels would be compiled anew.
        _held[name] = copy.deepcopy(import_ray().get(reference[0]))
    return attempt_away(_held[name], Shard(*shard))

"""What the benchmark runs in a process of its own: starting up, compiling, memory.

Run by its path, `python fresh.py FUNCTION [NUMBER...]`, so that nothing of the package is loaded
before the clock starts; prints one JSON object.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def import_package() -> dict[str, Any]:
    """The import alone, without the interpreter's own start."""
    cpu, wall = time.process_time(), time.perf_counter()
    import cpoker_env

    assert cpoker_env.__version__
    return {
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "torch_imported": "torch" in sys.modules,
    }


def first_result() -> dict[str, Any]:
    """From the start of the interpreter to the reward of a first deal."""
    import gymnasium as gym

    import cpoker_env  # noqa: F401

    env = gym.make("ChinesePoker-v0")
    env.reset(seed=1)
    env.step(env.action_space.sample())
    return {"cpu_seconds": time.process_time()}


def every_kernel() -> dict[str, Any]:
    """From the start of the interpreter through one small call of everything in `costs`."""
    from cpoker_env.train.costs import COSTS, Setup
    from cpoker_env.train.timing import measure

    from cpoker_env.rules import Rules

    rules = Rules.preset("mandarin")
    small = [Setup(rules, 4, cost.num_players) for cost in COSTS]
    preparations = [lambda c=c, s=s: c.prepare(s) for c, s in zip(COSTS, small, strict=True)]
    measure(preparations, repeats=0, seconds=0)
    return {"cpu_seconds": time.process_time()}


def memory(num_envs: int, num_deals: int) -> dict[str, Any]:
    """Resident bytes over the bare import once environments step, and the growth after that."""
    import cpoker_env

    assert cpoker_env.__version__
    bare = _resident_bytes()
    import gymnasium as gym
    import numpy as np

    envs = gym.make_vec(
        "ChinesePoker-v0", num_envs=num_envs, vectorization_mode="vector_entry_point"
    )
    envs.reset(seed=1)
    rows = np.repeat([2, 1, 0], [5, 5, 3])
    action = {
        "declaration": np.zeros(num_envs, np.int64),
        "placement": np.broadcast_to(rows, (num_envs, 13)).copy(),
    }
    for _ in range(8):
        envs.step(action)
    stepping = _resident_bytes()
    for _ in range(-(-num_deals // num_envs)):
        envs.step(action)
    return {"over_import": stepping - bare, "growth": _resident_bytes() - stepping}


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        # Elsewhere only the peak is at hand, in bytes on macOS: an upper bound for both figures.
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


FUNCTIONS: tuple[Callable[..., dict[str, Any]], ...] = (
    import_package,
    first_result,
    every_kernel,
    memory,
)

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, whose modules are those of the package
    function = {f.__name__: f for f in FUNCTIONS}[sys.argv[1]]
    print(json.dumps(function(*map(int, sys.argv[2:]))))

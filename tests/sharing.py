"""Work and policies for workers of other processes, which import them from here."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from cpoker_env.agents.heuristics import Uniform

from cpoker_env.errors import PolicyError


@dataclass(frozen=True)
class Squares:
    """Sums of squares; each call leaves a file, and some shards go wrong.

    falls, raises: starts of shards that kill their worker, or raise; `times` times each.
    """

    folder: Path
    falls: tuple[int, ...] = ()
    raises: tuple[int, ...] = ()
    times: int = 1
    error: type[BaseException] = OSError

    def __call__(self, shard):
        call = self.num_calls(shard.start)
        (self.folder / f"{shard.start}.{call}").touch()
        if call < self.times and shard.start in self.falls:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        if call < self.times and shard.start in self.raises:
            raise self.error(f"call {call}")
        return {"sum": sum(i * i for i in range(*shard))}

    def num_calls(self, start):
        """How often a shard was tried."""
        return len(list(self.folder.glob(f"{start}.*")))


class Fails(Uniform):
    """Plays with every number it draws, and fails at the hands of deal 300.

    The file it is given says how: "fall" kills the process, once, "raise" raises always.
    """

    def __init__(self, rules, num_players=2, argument=""):
        super().__init__(rules=rules, num_players=num_players)
        self.flag = Path(argument)

    def act(self, batch, rng):
        if self.flag.exists() and (batch.indices == 300).any():
            if self.flag.read_text(encoding="utf-8") == "raise":
                raise PolicyError("out of order")
            self.flag.unlink()
            os._exit(3)
        batch.indices[:] = rng.integers(0, 2**60, len(batch))
        return super().act(batch, rng)

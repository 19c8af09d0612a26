"""Work cut into shards: done here or by workers, tried twice, kept in a file, resumed.

A shard is a range of deals or hands. What comes of it is plain data (numbers, texts, lists, dicts)
that depends on the work and the range alone, so who does it, when and how often changes nothing.
Executors do shards: `Here` in this process, `Processes` in others on this machine, and
`cluster.Cluster` on the machines of a Ray cluster.
"""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

import torch
from cpoker_env.agents.program import stop_programs
from cpoker_env.train.keep import Keep, Shard
from rich.console import Console
from rich.progress import Progress

from cpoker_env.errors import ConfigError, CPokerError, WorkerError

MOST_TOLD = 3
"""Missing shards that an error names."""


Work = Callable[[Shard], Any]
"""Does a shard; to leave this process it must be picklable, and what comes back plain data."""


def cut(size: int, most: int) -> list[Shard]:
    """Shards of so many items, at most so many each."""
    return [Shard(start, min(start + most, size)) for start in range(0, size, most)]


class Executor(Protocol):
    """Does shards, up to `size` at a time; `is_here` if in this process."""

    size: int
    is_here: bool

    def start(self, work: Work, shard: Shard) -> None:
        """Take on a shard; the work of all is the same until those started are finished."""

    def finish(self) -> tuple[Shard, Any]:
        """One of the shards that were started, and what came of it or the error it raised."""

    def close(self) -> None:
        """End what it started, without waiting for what it does."""


def attempt(work: Work, shard: Shard) -> Any:
    """What comes of a shard, or the error it raised.

    Networks run in one thread, as sums of floats may depend on how many share them out.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return work(shard)
    except Exception as error:
        return error
    finally:
        torch.set_num_threads(before)


def attempt_away(work: Work, shard: Shard) -> Any:
    """As `attempt`, for workers: an error that can travel, its traceback on standard error."""
    outcome = attempt(work, shard)
    if not isinstance(outcome, Exception) or isinstance(outcome, CPokerError):
        return outcome
    traceback.print_exception(outcome, file=sys.stderr)
    return WorkerError(f"{type(outcome).__name__}: {outcome}")


class Here:
    """Does shards in this process."""

    size = 1
    is_here = True

    def start(self, work: Work, shard: Shard) -> None:
        """See `Executor`."""
        self._next = work, shard

    def finish(self) -> tuple[Shard, Any]:
        """See `Executor`."""
        work, shard = self._next
        return shard, attempt(work, shard)

    def close(self) -> None:
        """See `Executor`."""


class Processes:
    """Does shards in processes of this machine.

    Each worker is a pool of one process, so that one which dies takes no other's shard along and
    is replaced by a new one. They start at once, and each is sent the work once.
    """

    is_here = False

    def __init__(self, size: int) -> None:
        self.size = size
        self._workers: set[BaseProcess] = set()
        self._idle: list[tuple[ProcessPoolExecutor, Work | None]] = [
            (self._start_pool(), None) for _ in range(size)
        ]
        self._busy: dict[Future[Any], tuple[ProcessPoolExecutor, Work, Shard]] = {}

    def start(self, work: Work, shard: Shard) -> None:
        """See `Executor`."""
        pool, known = self._idle.pop() if self._idle else (self._start_pool(), None)
        future = pool.submit(_do, None if known is work else work, shard)
        self._busy[future] = pool, work, shard

    def finish(self) -> tuple[Shard, Any]:
        """See `Executor`."""
        future = wait(self._busy, return_when=FIRST_COMPLETED).done.pop()
        pool, work, shard = self._busy.pop(future)
        try:
            outcome = future.result()
        except BrokenProcessPool:
            pool.shutdown()
            return shard, WorkerError("its worker died")
        except Exception as error:  # the work or its result cannot be pickled
            pool.shutdown()
            return shard, WorkerError(f"{type(error).__name__}: {error}")
        self._idle.append((pool, work))
        return shard, outcome

    def close(self) -> None:
        """End the workers without waiting for what they do."""
        for worker in self._workers:
            worker.terminate()
        for pool in [*(pool for pool, _ in self._idle), *(busy[0] for busy in self._busy.values())]:
            pool.shutdown(cancel_futures=True)

    def _start_pool(self) -> ProcessPoolExecutor:
        """A worker that starts, deaf to interrupts until it ignores them."""
        others = set(active_children())
        pool = ProcessPoolExecutor(1, get_context("spawn"), _start_worker)
        if hasattr(signal, "pthread_sigmask"):
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            pool.submit(_start)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        else:
            pool.submit(_start)
        self._workers |= set(active_children()) - others
        return pool


def _start() -> None:
    """Asked of a worker, to which it imports this module."""


_held: Work | None = None
"""The work of a worker, sent with its first shard."""


def _do(work: Work | None, shard: Shard) -> Any:
    global _held
    _held = _held if work is None else work
    assert _held is not None
    return attempt_away(_held, shard)


def _start_worker() -> None:
    # An interrupt from the keyboard reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Leave when the process that started this one is gone, however it ended."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _leave(number: int, frame: object) -> None:
    # Told twice, it would wait for a lock that it holds itself.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stop_programs()
    os._exit(1)


@dataclass
class Runner:
    """Who does the shards of a run, where results are kept, and whether bars are shown."""

    executor: Executor = field(default_factory=Here)
    keep: Keep | None = None
    progress: bool = False

    def run(self, work: Work, shards: Sequence[Shard], stage: str, unit: str) -> list[Any]:
        """What comes of each shard, in their order.

        A shard that fails is done again, after the others; one that fails again is left out, and
        an error in the end. If nothing has been done by then, the run ends there.

        Args:
            work: What is done with each.
            shards: All of them; those that are kept are not done again.
            stage: Of the run, in words: the bar's label, and a name in the keep-file.
            unit: What shards count, such as "deals".

        Raises:
            CPokerError: The first that failed twice, if nothing has been done.
            WorkerError: Shards failed twice; the message names them, their errors, and what is
                kept.
        """
        kept = self.keep.results(stage) if self.keep else {}
        done = {shard: kept[shard] for shard in shards if shard in kept}
        failed: dict[Shard, Exception] = {}
        bar = Progress(console=Console(stderr=True), disable=not self.progress)
        task = bar.add_task(stage, total=len(shards), completed=len(done))
        with bar, self._saved():
            for shard, outcome in self._attempts(work, [s for s in shards if s not in done], unit):
                if isinstance(outcome, Exception):
                    failed[shard] = outcome
                    if not done:
                        break
                    continue
                done[shard] = outcome
                bar.advance(task)
                if self.keep:
                    self.keep.add(stage, shard, outcome)
        if failed:
            self._report(failed, len(done), len(shards), unit)
        return [done[shard] for shard in shards]

    def _attempts(
        self, work: Work, shards: Sequence[Shard], unit: str
    ) -> Iterator[tuple[Shard, Any]]:
        """Shards as they are done, or have failed twice."""
        queue, again, running = deque(shards), set(), 0
        while queue or running:
            while queue and running < self.executor.size:
                self.executor.start(work, queue.popleft())
                running += 1
            shard, outcome = self.executor.finish()
            running -= 1
            if isinstance(outcome, Exception) and shard not in again:
                again.add(shard)
                queue.append(shard)
                if self.progress:
                    words = f"{_tell(shard, unit)} once more: {outcome}"
                    Console(stderr=True).print(words, markup=False, highlight=False)
            else:
                yield shard, outcome

    @contextlib.contextmanager
    def _saved(self) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            if self.keep:
                words = f"kept in {self.keep.path}: the same command goes on from there"
                Console(stderr=True).print(words, markup=False, highlight=False, soft_wrap=True)
            raise
        finally:
            if self.keep:
                self.keep.save()

    def _report(
        self, failed: Mapping[Shard, Exception], num_done: int, num_shards: int, unit: str
    ) -> None:
        first = next(iter(failed.values()))
        if not num_done and isinstance(first, CPokerError) and not isinstance(first, WorkerError):
            raise first
        told = "; ".join(
            f"{_tell(shard, unit)} failed twice, {error}"
            for shard, error in sorted(failed.items())[:MOST_TOLD]
        )
        more = f"; and {len(failed) - MOST_TOLD} more" if len(failed) > MOST_TOLD else ""
        if not num_done:
            where = (
                "nothing was done"
                if self.executor.is_here
                else "nothing was done: see above, or use 1 worker to see why; a script that uses "
                'several starts under `if __name__ == "__main__":`'
            )
        elif self.keep:
            where = f"the others are kept in {self.keep.path}: run it again to do what is missing"
        else:
            where = "the others were not kept in a file"
        raise WorkerError(
            f"{num_shards - num_done} of {num_shards} shards are missing: {told}{more}; {where}"
        ) from first


def _tell(shard: Shard, unit: str) -> str:
    return f"{unit} {shard.start:,} to {shard.end - 1:,}"


@contextlib.contextmanager
def open_runner(
    workers: int = 1,
    ray: str | None = None,
    keep: Keep | None = None,
    progress: bool = False,
    threads: int = 1,
) -> Iterator[Runner]:
    """A runner whose workers end with the block.

    Args:
        workers: Processes of this machine; 1 does everything in this one.
        ray: Address of a Ray cluster that does it instead, all of it, or "local" for one of
            `workers` workers that starts and ends with the block.
        keep: Where results are kept.
        progress: Show bars on standard error.
        threads: Processors that each shard needs.

    Raises:
        ConfigError: Not at least one worker, or no cluster at the address.
        ExtraError: No Ray, or a version that is not supported.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ConfigError(f"workers {workers!r}: give a whole number from 1 on")
    executor: Executor
    if ray is not None:
        from cpoker_env.train.cluster import Cluster  # needs an extra

        executor = Cluster(ray, workers, threads)
    else:
        executor = Here() if workers == 1 else Processes(workers)
    try:
        with _ended_by_sigterm():
            yield Runner(executor, keep, progress)
    finally:
        executor.close()


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Take a SIGTERM as the end of the script, so that workers end and what is done is kept."""
    is_free = threading.current_thread() is threading.main_thread()
    if not is_free or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def leave(number: int, frame: object) -> None:
        print("ended by a SIGTERM", file=sys.stderr)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

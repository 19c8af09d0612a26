"""A child process asked by the line, which can neither block this one nor outlive it."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence

LONGEST_LINE = 4096
"""Bytes of an answer that are kept."""
_TAIL = 2000
"""Bytes of standard error that are kept."""
_RUNNING: "weakref.WeakSet[Program]" = weakref.WeakSet()


def stop_programs() -> None:
    """End every program, for a process that is about to leave without ceremony."""
    for program in list(_RUNNING):
        program.stop()


class Program:
    """A running program; its process group is killed by `stop`, at the latest at exit.

    Everything moves while `read` waits, so neither side can block the other: the program may
    answer early or late, write to standard error, or not read at all.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._input, self._output, self._errors = (s.fileno() for s in streams if s is not None)
        self._selector = selectors.DefaultSelector()
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(
            self, _clean_up, self._process, self._selector, self._owner
        )
        _RUNNING.add(self)
        for stream in (self._input, self._output, self._errors):
            os.set_blocking(stream, False)
        self._selector.register(self._output, selectors.EVENT_READ)
        self._selector.register(self._errors, selectors.EVENT_READ)
        self._to_send = b""
        self._received = b""
        self._is_cutting = False
        self._tail = b""
        self.num_answers = 0
        self.is_input_ended = False

    @property
    def is_own(self) -> bool:
        """Whether this process started it, rather than one that this process is a fork of."""
        return self._owner == os.getpid()

    def send(self, lines: Sequence[str]) -> None:
        """Queue lines for its standard input."""
        if not self._to_send and not self.is_input_ended:
            self._selector.register(self._input, selectors.EVENT_WRITE)
        self._to_send += "".join(f"{line}\n" for line in lines).encode()

    def end_input(self) -> None:
        """Close its standard input once everything queued is sent."""
        self.is_input_ended = True
        if not self._to_send:
            self._close_input()

    def read(self, seconds: float) -> str:
        """The next line it prints; empty ones and those that start with # are passed over.

        Raises:
            TimeoutError: None within so many seconds.
            EOFError: It will not print another.
        """
        deadline = time.monotonic() + seconds
        while True:
            line = self._next_line()
            if line is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._move(left)
            elif line and not line.startswith("#"):
                self.num_answers += 1
                return line

    def _next_line(self) -> str | None:
        line, end, rest = self._received.partition(b"\n")
        if end:
            self._received = rest
        elif self._is_open(self._output):
            if len(line) <= LONGEST_LINE:
                return None
            self._received, self._is_cutting = b"", True
        elif line:
            self._received = b""
        else:
            raise EOFError
        return line[:LONGEST_LINE].decode("utf-8", "replace").strip()

    def _move(self, seconds: float) -> None:
        """Wait for something to happen, and move what can move."""
        for key, _ in self._selector.select(seconds):
            if key.fd == self._input:
                self._write()
            elif key.fd == self._output:
                self._receive(self._take(self._output))
            else:
                self._tail = (self._tail + self._take(self._errors))[-_TAIL:]

    def _write(self) -> None:
        try:
            sent = os.write(self._input, self._to_send[:LONGEST_LINE])
        except BlockingIOError:
            return
        except OSError:  # it reads no more; what it prints is all there is
            sent = len(self._to_send)
        self._to_send = self._to_send[sent:]
        if not self._to_send:
            self._selector.unregister(self._input)
            if self.is_input_ended:
                self._close_input()

    def _receive(self, data: bytes) -> None:
        if self._is_cutting:  # the rest of a line that was too long
            _, end, data = data.partition(b"\n")
            self._is_cutting = not end
        self._received += data

    def _take(self, stream: int) -> bytes:
        """What a stream holds; at its end the stream is let go."""
        try:
            data = os.read(stream, 1 << 16)
        except BlockingIOError:
            return b""
        if not data:
            self._selector.unregister(stream)
        return data

    def _is_open(self, stream: int) -> bool:
        return stream in self._selector.get_map()

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop(self, grace: float = 0.0) -> str:
        """End it, with whatever it started; says how it ended. In a fork this does nothing.

        Args:
            grace: Seconds to end by itself, its input closed.
        """
        status: int | None = None
        if self._finalizer.alive and self.is_own:
            self._close_input()
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(grace)
            _kill(self._process)
            with contextlib.suppress(OSError):  # the last of what it had to say
                self._tail = (self._tail + os.read(self._errors, 1 << 16))[-_TAIL:]
            self._finalizer()
            _RUNNING.discard(self)
        said = self._tail.decode("utf-8", "replace").strip().splitlines()
        ended = "killed" if status is None else f"exit status {status}"
        return f"{ended}, {said[-1]}" if said else ended


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # The group outlives its first process where that started others.
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _clean_up(
    process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector, owner: int
) -> None:
    if os.getpid() != owner:  # a fork's copy must not end the program of the original
        return
    _kill(process)
    selector.close()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()

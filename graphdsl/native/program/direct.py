"""Running a program on the thread that asks for it, when that is the main one: nobody has to be woken for it.

Python runs no handler of a signal while native code runs, but it writes the signal's number to a file at once. A
thread that waits for that sets the program's stop flag; the handler itself runs when the program has ended. Not for
programs that call functions, which may need more stack than this thread has, and not where somebody else reads that
file (asyncio).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from graphdsl.native.program.memory import Memory
from graphdsl.native.support.words import Word

_MARK = 0  # no signal has this number
_PATIENCE = 1.0  # seconds


class _Watch:
    """The thread that reads which signals came, and the program that they are for."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        self.memory: Memory | None = None
        self._marked = threading.Event()
        threading.Thread(target=self._serve, name="graphdsl signals", daemon=True).start()

    def _serve(self) -> None:
        while True:
            number = os.read(self._read, 1)
            memory = self.memory
            if number == bytes([_MARK]):
                self._marked.set()
            elif number == bytes([signal.SIGINT]) and memory is not None:
                memory[Word.STOP] = 1

    def settle(self) -> None:
        """Wait until all signals so far are dealt with, so that none is taken for one to a later program."""
        self.memory = None
        self._marked.clear()
        os.write(self.write, bytes([_MARK]))
        self._marked.wait(_PATIENCE)


class _Shared:
    watch: _Watch | None = None

    def get(self) -> _Watch:
        if self.watch is None:
            self.watch = _Watch()
        return self.watch

    def forget(self) -> None:
        """After a fork: a child has none of its parent's threads."""
        self.watch = None


_SHARED = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)


def possible() -> bool:
    """Whether this thread is the main one, and an interruption is what it is by default."""
    return (
        os.name == "posix"
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        and (_SHARED.watch is None or _SHARED.watch.memory is None)
    )


def perform(entry: Callable[[int], int], memory: Memory) -> int | None:
    """Runs the program; None: it cannot be done here. An interruption stops it, and is raised."""
    watch = _SHARED.get()
    watch.memory = memory
    try:
        before = signal.set_wakeup_fd(watch.write, warn_on_full_buffer=False)
        if before not in (-1, watch.write):
            signal.set_wakeup_fd(before)
            return None
        try:
            return entry(memory.address)
        finally:
            signal.set_wakeup_fd(-1)
    except BaseException:
        watch.settle()
        raise
    finally:
        watch.memory = None

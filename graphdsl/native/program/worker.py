"""The thread on which compiled programs run: its stack is large, and the main thread stays free for signals."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from graphdsl.native.program.memory import Memory
from graphdsl.native.program.words import Word

_STACK = 1 << 29  # bytes, of which the system hands out only what is used: 10,000 calls of 50 kB
_POLL = 0.05  # seconds: Windows does not interrupt a wait, nor does a signal that another thread got


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Callable[[int], int], Memory, list[int], threading.Lock]] = SimpleQueue()
        self.idle = threading.Lock()
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._serve, name="graphdsl", daemon=True).start()
        finally:
            threading.stack_size(before)

    def _serve(self) -> None:
        while True:
            entry, memory, status, done = self.jobs.get()
            status.append(entry(memory.address))
            del entry, memory
            done.release()


_worker: _Worker | None = None


def perform(entry: Callable[[int], int], memory: Memory) -> int:
    """Calls a program's entry and waits. An interruption sets the stop flag, and is raised when the program has
    ended.
    """
    global _worker  # noqa: PLW0603
    if _worker is None:
        _worker = _Worker()
    worker = _worker
    if not worker.idle.acquire(blocking=False):
        return entry(memory.address)  # a program that runs within another one's callback
    try:
        status: list[int] = []
        done = threading.Lock()
        done.acquire()
        worker.jobs.put((entry, memory, status, done))
        _wait(done, memory)
        return status[0]
    finally:
        worker.idle.release()


def _wait(done: Any, memory: Memory) -> None:
    interrupted: BaseException | None = None
    while True:
        try:
            if done.acquire(timeout=_POLL):
                break
        except KeyboardInterrupt as caught:
            interrupted = caught
            memory[Word.STOP] = 1
    if interrupted is not None:
        raise interrupted


def _reset() -> None:
    global _worker  # noqa: PLW0603
    _worker = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)

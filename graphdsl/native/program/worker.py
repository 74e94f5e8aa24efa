"""The thread on which programs run that may need a large stack, or whose caller cannot stop them; the caller waits
and takes signals.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from typing import Any

from graphdsl.native.program.memory import Memory
from graphdsl.native.support.library import support_library
from graphdsl.native.support.locks import lock_functions, new_lock
from graphdsl.native.support.words import STATION_WORDS, Station, Word

_STACK = 1 << 29  # bytes, of which the system hands out only what is used: 10,000 calls of 50 kB


class _Worker:
    """The thread, which waits in native code, and the record through which it gets its work."""

    def __init__(self) -> None:
        self._record = (ctypes.c_int64 * STATION_WORDS)()
        self.station = ctypes.addressof(self._record)
        for word, address in zip(
            (Station.ACQUIRE, Station.ACQUIRE_TIMED, Station.RELEASE), lock_functions(), strict=True
        ):
            self._record[word] = address
        for word in (Station.SERVER_LOCK, Station.CALLER_LOCK):
            self._record[word] = new_lock()
        code = support_library()
        pointer = ctypes.c_void_p
        self.post: Any = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer)(code["run.post"])
        self.wait: Any = ctypes.CFUNCTYPE(ctypes.c_int32, pointer)(code["run.await"])
        serve = ctypes.CFUNCTYPE(None, pointer)(code["run.serve"])
        self.idle = threading.Lock()
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=serve, args=(self.station,), name="graphdsl", daemon=True).start()
        finally:
            threading.stack_size(before)

    def finish(self) -> None:
        """Wait, whatever comes, until the program has ended."""
        while self._record[Station.DONE] != self._record[Station.JOBS]:
            with suppress(BaseException):
                self.wait(self.station)

    @property
    def status(self) -> int:
        """What the latest program returned."""
        return self._record[Station.STATUS]


class _Shared:
    """The one worker of this process."""

    worker: _Worker | None = None

    def get(self) -> _Worker:
        if self.worker is None:
            self.worker = _Worker()
        return self.worker

    def forget(self) -> None:
        """After a fork: a child has none of its parent's threads."""
        self.worker = None


_SHARED = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)


def perform(entry: int, memory: Memory) -> int:
    """Runs the program that begins at `entry` to its end. An interruption sets the stop flag and is raised
    afterwards.
    """
    worker = _SHARED.get()
    if not worker.idle.acquire(blocking=False):
        # a program that runs within another one's callback, or beside it
        return int(ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(entry)(memory.address))
    try:
        ended = worker.post(worker.station, entry, memory.address)
        while not ended:
            ended = worker.wait(worker.station)
        return worker.status
    except BaseException:
        memory[Word.STOP] = 1
        worker.finish()
        raise
    finally:
        worker.idle.release()

"""Stopping eager code before it takes all memory of the machine: systems that lend more than they have never refuse any.

Where the process has taken more than it may, the thread that runs gets a `MemoryError`, as where the system refuses memory
(Windows does). Counting what values take would slow every step (`--memory-limit` does that); this asks now and then.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_PAUSE = 0.05  # seconds between two looks
_SHARE = 8  # a run that begins with much memory taken may take this part of the limit more


def taken() -> int | None:
    """The bytes that this process takes, or the most that it took; None where that is not known."""
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return None


@contextmanager
def watched(limit: int, look: Callable[[], int | None] = taken) -> Iterator[None]:
    """The code within gets a `MemoryError` where the process takes more bytes than `limit`."""
    begun = look()
    if begun is None:
        yield
        return
    most, runner, over = max(limit, begun + limit // _SHARE), threading.get_ident(), threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE):
            if (look() or 0) > most:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(runner), ctypes.py_object(MemoryError))
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with suppress(MemoryError):  # which came when the code had ended
            over.set()
            watcher.join()

"""The team of threads that all compiled programs share: the Python side, which starts it when it is first wanted."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from graphdsl.native.program.words import MOST_THREADS, TEAM_WORDS, Team


def team(threads: int) -> int:
    """The address of the record of a team of so many threads, the program's own among them; 0: there is none."""
    return _team(min(threads, MOST_THREADS)) if threads > 1 else 0


@cache
def _team(threads: int) -> int:
    from graphdsl.native.program.link import support_library

    api = ctypes.pythonapi
    api.PyThread_allocate_lock.restype = ctypes.c_void_p
    api.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
    api.PyThread_start_new_thread.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    api.PyThread_start_new_thread.restype = ctypes.c_ulong
    record = (ctypes.c_int64 * (TEAM_WORDS + 8))()
    address = (ctypes.addressof(record) + 63) & ~63
    words = (ctypes.c_int64 * TEAM_WORDS).from_address(address)
    words[Team.ACQUIRE] = ctypes.cast(api.PyThread_acquire_lock, ctypes.c_void_p).value or 0
    words[Team.RELEASE] = ctypes.cast(api.PyThread_release_lock, ctypes.c_void_p).value or 0
    places = (ctypes.c_int64 * (2 * threads))()
    _alive.extend((record, places))
    started = 0
    for i in range(threads - 1):
        lock = api.PyThread_allocate_lock()
        if not lock:
            break
        api.PyThread_acquire_lock(lock, 1)
        words[Team.LOCKS + i] = lock
        places[2 * i], places[2 * i + 1] = address, i
        begin = support_library()["run.team.help"]
        if api.PyThread_start_new_thread(begin, ctypes.addressof(places) + 16 * i) == ctypes.c_ulong(-1).value:
            break
        started += 1
    words[Team.HELPERS] = started
    return address


_alive: list[object] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)  # a child has none of its parent's threads

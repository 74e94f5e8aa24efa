"""The team of threads that all compiled programs share: the Python side, which starts it when it is first wanted."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from graphdsl.native.support.locks import lock_functions, new_lock
from graphdsl.native.support.words import CONTEXT_WORDS, MOST_THREADS, TEAM_WORDS, Team, Word


def team(threads: int) -> int:
    """The address of the record of a team of so many threads, the program's own among them; 0: there is none."""
    return _team(min(threads, MOST_THREADS)) if threads > 1 else 0


@cache
def _team(threads: int) -> int:
    from graphdsl.native.support.library import support_library

    record = (ctypes.c_int64 * (TEAM_WORDS + 8))()
    address = (ctypes.addressof(record) + 63) & ~63
    words = (ctypes.c_int64 * TEAM_WORDS).from_address(address)
    words[Team.ACQUIRE], _, words[Team.RELEASE] = lock_functions()
    places = (ctypes.c_int64 * (2 * threads))()
    _alive.extend((record, places))
    start = ctypes.pythonapi.PyThread_start_new_thread
    start.argtypes, start.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_ulong
    started = 0
    for i in range(threads - 1):
        words[Team.LOCKS + i] = new_lock()
        places[2 * i], places[2 * i + 1] = address, i
        begin = support_library()["run.team.help"]
        if start(begin, ctypes.addressof(places) + 16 * i) == ctypes.c_ulong(-1).value:
            break
        started += 1
    words[Team.HELPERS] = started
    return address


@cache
def context(threads: int) -> int:
    """The address of a context for loops that are called outside any program: one with a team, and no more."""
    words = (ctypes.c_int64 * CONTEXT_WORDS)()
    words[Word.TEAM] = team(threads)
    _alive.append(words)
    return ctypes.addressof(words)


_alive: list[object] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)  # a child has none of its parent's threads

"""Python's native locks, on which native threads sleep. They need no interpreter and are there on every platform."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def lock_functions() -> tuple[int, int, int]:
    """The addresses of acquire, acquire with a time limit, and release."""
    names = ("PyThread_acquire_lock", "PyThread_acquire_lock_timed", "PyThread_release_lock")
    found = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names]
    return found[0], found[1], found[2]


def new_lock() -> int:
    """A lock that is taken already."""
    api = ctypes.pythonapi
    api.PyThread_allocate_lock.restype = ctypes.c_void_p
    api.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lock = api.PyThread_allocate_lock()
    if not lock:
        raise MemoryError
    api.PyThread_acquire_lock(lock, 1)
    return int(lock)

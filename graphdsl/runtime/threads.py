"""How many threads a run may use. No bit depends on the number."""

from __future__ import annotations

import os


class _Chosen:
    """What was asked for."""

    count: int | None = None


_CHOSEN = _Chosen()


def count() -> int:
    """The number of threads: as chosen, else `GRAPHDSL_THREADS`, else the CPUs that this process may use."""
    if _CHOSEN.count is None:
        given = os.environ.get("GRAPHDSL_THREADS", "")
        _CHOSEN.count = int(given) if given.isdigit() and int(given) > 0 else available()
    return _CHOSEN.count


def available() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def choose(number: int) -> None:
    """Sets the number of threads."""
    _CHOSEN.count = number

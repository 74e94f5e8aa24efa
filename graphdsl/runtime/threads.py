"""How many threads a run may use, and the pool that large eager kernels are shared among.

No bit depends on the number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class _Team:
    """The threads of this process."""

    def __init__(self) -> None:
        self.count: int | None = None
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        """The threads beside the caller's, started when first needed."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # 10 ms that small programs need not wait

            # NumPy's warnings are off for each thread apart
            self._pool = ThreadPoolExecutor(max(1, count() - 1), "graphdsl", partial(np.seterr, all="ignore"))
        return self._pool

    def dismiss(self) -> None:
        """Lets them go when they are done."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


_TEAM = _Team()


def count() -> int:
    """The number of threads: as chosen, else `GRAPHDSL_THREADS`, else the CPUs that this process may use."""
    if _TEAM.count is None:
        given = os.environ.get("GRAPHDSL_THREADS", "")
        _TEAM.count = int(given) if given.isdigit() and int(given) > 0 else available()
    return _TEAM.count


def available() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def choose(number: int) -> None:
    """Sets the number of threads."""
    _TEAM.count = number
    _TEAM.dismiss()


def share(n: int, multiple: int, work: Callable[[int, int], object]) -> None:
    """`work(i, j)` over parts of `range(n)`, at once; the parts are whole multiples, but for the last.

    The caller's thread takes the first.
    """
    parts = max(1, min(count(), n // multiple))
    size = -(-n // (parts * multiple)) * multiple
    others = [_TEAM.pool().submit(work, i, min(i + size, n)) for i in range(size, n, size)]
    work(0, min(size, n))
    for other in others:
        other.result()

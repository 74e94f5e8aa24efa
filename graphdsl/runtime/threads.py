"""How many threads a run may use, and the pool that large eager kernels are shared among. No bit depends on the number."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None


def count() -> int:
    """The number of threads: as chosen, else `GRAPHDSL_THREADS`, else the CPUs that this process may use."""
    global _chosen
    if _chosen is None:
        given = os.environ.get("GRAPHDSL_THREADS", "")
        _chosen = int(given) if given.isdigit() and int(given) > 0 else available()
    return _chosen


def available() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def choose(number: int) -> None:
    """Sets the number of threads."""
    global _chosen, _pool
    _chosen = number
    if _pool is not None:
        _pool.shutdown(wait=False)
        _pool = None


def share(n: int, multiple: int, work: Callable[[int, int], object]) -> None:
    """`work(i, j)` over parts of `range(n)`, at once; parts are whole multiples but for the last. The caller's thread takes the first."""
    global _pool
    parts = max(1, min(count(), n // multiple))
    size = -(-n // (parts * multiple)) * multiple
    if parts > 1 and _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # 10 ms that small programs do not need

        # NumPy's warnings are off for each thread apart
        _pool = ThreadPoolExecutor(count() - 1, "graphdsl", partial(np.seterr, all="ignore"))
    others = [_pool.submit(work, i, min(i + size, n)) for i in range(size, n, size)] if _pool is not None else []
    work(0, min(size, n))
    for other in others:
        other.result()

"""Limits on memory and time: what a program may take before it is stopped with a clear error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from math import prod

from graphdsl.source.diagnostic import Fault, FaultKind
from graphdsl.source.record import dataclass, field

TOO_LARGE = FaultKind(
    "E0730", "{0} would take {1}, more than the limit of {2}", "smaller sizes, or a higher --memory-limit"
)
_MOST = 2**63 - 1  # bytes that are told apart
_SHARE = 0.8  # of what the machine or its container has
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNKNOWN = 2**34


@cache
def available_memory() -> int:
    """The bytes that this process may reasonably take."""
    found = [_UNKNOWN]
    if hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP:
        try:
            with open(path, encoding="ascii") as file:
                found.append(int(file.read()))
        except (OSError, ValueError):
            continue
    return int(min(found) * _SHARE)


@dataclass
class Limits:
    """`memory` in bytes; `time` in seconds (None: no limit)."""

    memory: int = field(default_factory=available_memory)
    time: float | None = None

    def check(self, what: str, shape: Sequence[int], itemsize: int) -> None:
        """A fault if a tensor of this shape is larger than the limit; to be asked before it is made."""
        size = prod(shape) * itemsize
        if size > self.memory:
            raise self.exceeded(what, size)

    def exceeded(self, what: str, size: int) -> Fault:
        """The fault of something that takes so many bytes."""
        return Fault(TOO_LARGE, what, size_text(size), size_text(self.memory))


def size_text(size: int) -> str:
    """`1.5 GB`."""
    if size >= _MOST:
        return "9223372 TB or more"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size // factor} {unit}"
    return f"{size} bytes"

"""Limits on memory and time: what a program may take before it is stopped with a clear error."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from math import prod

from graphdsl.source.diagnostic import Fault, FaultKind
from graphdsl.source.record import dataclass, field

_HIGHER = "smaller sizes, or a higher limit of memory (`--memory-limit`)"
TOO_LARGE = FaultKind("E0730", "{0} would take {1}, more than the limit of {2}", _HIGHER)
TOO_MUCH = FaultKind("E0734", "all values together would take {0}, more than the limit of {1}", _HIGHER)
TOO_LONG = FaultKind(
    "E0733", "the run reached its limit of {0:second} here", "less work, or a higher limit (`--time-limit`)"
)
MOST_BYTES = 2**63 - 1  # that are told apart
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
    """`memory` in bytes; `time` in seconds (None: no limit). `counted`: eager mode, too, counts what all values take
    together, which slows it; else it only asks how large a tensor made from sizes will be."""

    memory: int = field(default_factory=available_memory)
    time: float | None = None
    counted: bool = False

    @property
    def watched(self) -> bool:
        """Whether eager code asks at every step if a limit is reached."""
        return self.counted or self.time is not None

    def too_long(self) -> Fault:
        """The fault of a run whose time is over."""
        seconds = self.time or 0.0
        return Fault(TOO_LONG, int(seconds) if seconds.is_integer() else f"{seconds:g}")

    def check(self, what: str, shape: Sequence[int], itemsize: int) -> None:
        """A fault if a tensor of this shape is larger than the limit; to be asked before it is made."""
        size = prod(shape) * itemsize
        if size > self.memory:
            raise self.exceeded(what, size)

    def exceeded(self, what: str, size: int) -> Fault:
        """The fault of something that takes so many bytes."""
        return Fault(TOO_LARGE, what, size_text(size), size_text(self.memory))


def size_of(text: str) -> int:
    """The bytes that `2GB`, `1.5 MiB` or `4096` stand for. Raises `ValueError`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?) *([kmgt]?)(i?)b?", text.strip().lower())
    if match is None:
        raise ValueError(text)
    number, prefix, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" kmgt".index(prefix) if prefix else 0))


def size_text(size: int) -> str:
    """`1.5 GB`."""
    if size >= MOST_BYTES:
        return "9223372 TB or more"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size // factor} {unit}"
    return f"{size} bytes"

"""Objects in memory, by a loader of our own where it can, so that code from the cache needs no LLVM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def load(code: bytes, exports: Iterable[str], imports: dict[str, int]) -> Any:
    """An object in memory (`elf.Object`, or `linked.Linked`): the addresses of its exports, and what keeps its code alive."""
    from graphdsl.native.elf import Object, Unsupported

    names = list(exports)
    try:
        return Object(code, names, imports)
    except Unsupported:
        from graphdsl.native.linked import Linked

        return Linked(code, names, imports)

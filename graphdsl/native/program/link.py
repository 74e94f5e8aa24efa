"""Code in memory: a graph's object from the cache or from the compiler, linked with what it calls.

Nothing is loaded that is not asked for: a program of scalars needs neither the kernel library nor LLVM if the cache
has it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphdsl.core.ir import Func
from graphdsl.native import cache
from graphdsl.native.identity import machine
from graphdsl.native.loading import load
from graphdsl.native.program.fingerprint import fingerprint
from graphdsl.native.program.sites import Sites
from graphdsl.native.support.library import support_library
from graphdsl.native.support.words import ENTRY

_OWN = "run."  # what names of `support` begin with; others are the kernel library's


@dataclass(frozen=True)
class Built:
    """A graph's code, and what making it took. `code` keeps it in memory."""

    code: Any
    entry: int
    build_seconds: float
    compile_seconds: float
    cached: bool
    imports: tuple[str, ...]


def build(main: Func, places: Sites, use_cache: bool = True, counts: bool = False) -> Built:
    """The code of a graph; `counts`: code that counts the ops that run, which is not for the cache."""
    use_cache = use_cache and not counts
    started = time.perf_counter()
    name = cache.key("program", fingerprint(main, places), machine())
    found = cache.read(name) if use_cache else None
    written = time.perf_counter() - started
    if found is None:
        from graphdsl.native.program.build import compiled

        made = compiled(main, places, counts)
        code, imports = made.object, made.imports
        written += made.write_seconds
        if use_cache:
            cache.write(name, "\n".join([*imports, ""]).encode() + b"\0" + code)
    else:
        listed, _, code = found.partition(b"\0")
        imports = tuple(listed.decode().split())
    linked = load(code, [ENTRY], resolved(imports))
    return Built(
        linked, linked.addresses[ENTRY], written, time.perf_counter() - started - written, found is not None, imports
    )


def resolved(names: Iterable[str]) -> dict[str, int]:
    """The addresses of what programs call."""
    found = {}
    for name in names:
        if name.startswith(_OWN):
            found[name] = support_library()[name]
        else:
            from graphdsl.native.library import library

            found[name] = library()[name]
    return found

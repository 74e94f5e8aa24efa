"""Objects in memory: linking an object's bytes into the process, and the addresses of its symbols."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from graphdsl.native.target import host

_numbers = itertools.count()

# All that our code takes from outside: Python's raw allocator, which needs no interpreter lock and is there on every
# platform.
ALLOCATOR = ("PyMem_RawMalloc", "PyMem_RawFree")


@cache
def process_symbols(*names: str) -> dict[str, int]:
    """The addresses of functions of Python's C interface."""
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names}


@cache
def _linker() -> Any:
    host()  # starts LLVM's back end for this machine
    return llvm.create_lljit_compiler()


class Linked:
    """A linked object. Its code lives as long as this does: whoever holds an address holds it too."""

    def __init__(self, code: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        self._names = list(exports)
        for name in self._names:
            builder.export_symbol(name)
        for name, address in ({**process_symbols(*ALLOCATOR), **(imports or {})}).items():
            builder.import_symbol(name, address)
        self._linker = _linker()
        self._tracker = builder.link(self._linker, f"gdl.{next(_numbers)}")
        self.addresses = {name: int(self._tracker[name]) for name in self._names}

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]

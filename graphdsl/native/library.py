"""The kernel library: one object with every kernel, built once for each CPU and version, and linked when first needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib import resources

from graphdsl.native import cache as objects
from graphdsl.native.calls import IMPORTS, call_name, define_call
from graphdsl.native.draws import define_block, define_draw
from graphdsl.native.elementwise import define_kernel, define_loops
from graphdsl.native.folds import KINDS
from graphdsl.native.gemm import DTYPES, GUARDS, define_gemm
from graphdsl.native.inventory import draw_entries, elementwise_entries
from graphdsl.native.linked import Linked, process_symbols
from graphdsl.native.reductions import MOST_AXES, define_reductions, description
from graphdsl.native.target import Target, host

_PACKAGES = ("graphdsl.native", "graphdsl.ops", "graphdsl.ops.math")
_LOOPS = ("gdl.loop", "gdl.record", "gdl.reduce_loop", "gdl.search_loop", "gdl.gemm_loop")

# Called once, before the library is compiled: the command line says so on stderr.
on_build: list[Callable[[], None]] = []


@cache
def library() -> Linked:
    """The library for this machine, from the cache where it is there."""
    code = objects.obtain(_name(host()), lambda: _announced(host()))
    return Linked(code, symbols(), process_symbols(*IMPORTS))


def is_cached() -> bool:
    """Whether the library can be had without building it."""
    return objects.read(_name(host())) is not None


def build(target: Target) -> bytes:
    """The library's object."""
    module = target.module("graphdsl kernels")
    define_loops(module, target)
    for entry in elementwise_entries().values():
        name = f"gdl.kernel.{entry.name}"
        result = define_kernel(module, target, name, entry.body, entry.operands, entry.op.faults)
        define_call(module, target, entry.operands, result)
    define_reductions(module, target)
    define_gemm(module, target)
    define_block(module, target)
    for entry in draw_entries().values():
        define_draw(module, target, entry)
    # the loops that count are written as vectors already; unrolled ones would double the time this takes
    return target.object_code(str(module), loops=False)


@cache
def symbols() -> tuple[str, ...]:
    """What the library exports."""
    kernels = [f"gdl.kernel.{name}.info" for name in elementwise_entries()]
    calls = dict.fromkeys(call_name(e.operands, e.result) for e in elementwise_entries().values())
    draws = [f"gdl.draw.{name}" for name in draw_entries()]
    reductions = [
        name
        for kind, dtypes in KINDS.items()
        for d in dtypes
        for name in (f"gdl.{kind}.{d.value}", *(description(kind, d, r) for r in range(1, MOST_AXES + 1)))
    ]
    products = [f"gdl.gemm.{d.value}{guard}" for d in DTYPES for guard in GUARDS]
    return (*_LOOPS, "gdl.block", *kernels, *calls, *draws, *reductions, *products)


def _announced(target: Target) -> bytes:
    for call in on_build:
        call()
    return build(target)


def _name(target: Target) -> str:
    return objects.key("kernels", target.key, sources())


@cache
def sources() -> str:
    """A digest of every file that decides what the kernels compute."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted(resources.files(package).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()

"""From a graph to an object: the module is written, optimised, and kept in the cache under the graph's own text."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache as once
from typing import Any

from llvmlite import ir as llvm

from graphdsl.core import ir
from graphdsl.core.steps import run
from graphdsl.native import cache
from graphdsl.native.flow import POINTER, at
from graphdsl.native.linked import Linked
from graphdsl.native.program import support
from graphdsl.native.program.fingerprint import fingerprint, sources
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.machine import plain_floats
from graphdsl.native.program.regions import block, function
from graphdsl.native.program.sites import Sites
from graphdsl.native.program.unit import ENTRY, Unit
from graphdsl.native.program.values import parts
from graphdsl.native.program.words import Status, Word
from graphdsl.native.target import Target, host


@dataclass
class Built:
    """An object ready to run, and what making it took."""

    linked: Linked
    entry: int
    build_seconds: float
    compile_seconds: float
    cached: bool
    imports: list[str] = field(default_factory=list)


def write(main: ir.Func, places: Sites, target: Target) -> Unit:
    """The LLVM module of a graph."""
    unit = Unit(target, places)
    frame = Frame(unit, unit.entry(), llvm.Constant(llvm.IntType(64), 0))
    run(_main(frame, main))
    while unit.pending:
        func, made, saved = unit.pending.pop(0)
        inner = Frame(unit, made, made.args[1])
        run(function(inner, func, saved))
    return unit


def _main(frame: Frame, main: ir.Func) -> Any:
    """The entry: results go where Python reads them."""
    b = frame.b
    restore = plain_floats(frame)
    yields = yield block(frame, main.body, [])
    memory = frame.get(Word.RESULTS, POINTER)
    offset = 0
    for value, native in zip(main.body.yields, yields, strict=True):
        scalar = None if value.type.shape else value.type.dtype
        for word, part in enumerate(parts(native)):
            whole = b.zext(part, llvm.IntType(64)) if part.type == llvm.IntType(1) else part
            b.store(whole, at(b, memory, offset + word, llvm.IntType(64)))
        offset += len(parts(native))
        assert scalar is None or len(parts(native)) == 1
    restore()
    b.ret(llvm.Constant(llvm.IntType(32), Status.DONE))


def build(main: ir.Func, places: Sites, use_cache: bool = True) -> Built:
    """The object of a graph, from the cache if it is there."""
    started = time.perf_counter()
    target = host()
    name = cache.key("program", fingerprint(main, places), target.key)
    found = cache.read(name) if use_cache else None
    built = time.perf_counter()
    if found is None:
        unit = write(main, places, target)
        text = str(unit.module)
        built = time.perf_counter()
        code = target.object_code(text, loops=False)  # kernels are vector code as they are written
        imports = _imports(unit.module)
        if use_cache:
            cache.write(name, "\n".join([*imports, ""]).encode() + b"\0" + code)
    else:
        listed, _, code = found.partition(b"\0")
        imports = listed.decode().split()
    linked = Linked(code, [ENTRY], resolved(imports))
    done = time.perf_counter()
    return Built(linked, linked[ENTRY], built - started, done - built, found is not None, imports)


def _imports(module: llvm.Module) -> list[str]:
    """What a module uses and does not define."""
    names = []
    for thing in module.global_values:
        if isinstance(thing, llvm.Function):
            outside = thing.is_declaration and not thing.name.startswith("llvm.")
        else:
            outside = thing.initializer is None
        if outside:
            names.append(thing.name)
    return names


def resolved(names: Iterable[str]) -> dict[str, int]:
    """Addresses of what programs call; nothing is loaded that is not asked for."""
    found = {}
    for name in names:
        if name in support.SIGNATURES:
            found[name] = support_library()[name]
        else:
            from graphdsl.native.library import library

            found[name] = library()[name]
    return found


@once
def support_library() -> Linked:
    """The functions that all programs share, linked once."""
    target = host()
    text_key = cache.key("support", sources(), target.key)
    code = cache.obtain(text_key, lambda: target.object_code(str(support.module(target))))
    return Linked(code, support.SIGNATURES)

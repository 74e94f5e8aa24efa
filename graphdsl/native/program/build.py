"""From a graph to an object. All that needs LLVM is behind here: code from the cache is linked without it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm

from graphdsl.core import ir
from graphdsl.core.steps import run
from graphdsl.native.flow import POINTER, at
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.machine import plain_floats
from graphdsl.native.program.regions import block, function
from graphdsl.native.program.sites import Sites
from graphdsl.native.program.unit import Unit
from graphdsl.native.program.values import parts
from graphdsl.native.support.words import Status, Word
from graphdsl.native.target import Target, host

_LONG = 20_000  # instructions; a graph of some 1,000 kernels


def write(main: ir.Func, places: Sites, target: Target, counts: bool = False) -> Unit:
    """The LLVM module of a graph; `counts`: one that counts the ops that run."""
    unit = Unit(target, places, counts)
    unit.begin(main.body)
    frame = Frame(unit, unit.entry(), llvm.Constant(llvm.IntType(64), 0))
    run(_main(frame, main))
    while unit.pending:
        func, made, saved = unit.pending.pop(0)
        unit.begin(func.body)
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


@dataclass(frozen=True)
class Code:
    """An object, and the names that it takes from outside."""

    object: bytes
    imports: tuple[str, ...]
    write_seconds: float


def compiled(main: ir.Func, places: Sites, counts: bool = False) -> Code:
    """The object of a graph."""
    started = time.perf_counter()
    unit = write(main, places, host(), counts)
    _spare(unit.module)
    text = str(unit.module)
    written = time.perf_counter() - started
    # kernels are vector code as they are written
    return Code(host().object_code(text, loops=False), tuple(_imports(unit.module)), written)


def _spare(module: llvm.Module) -> None:
    """Very long functions are not optimised: LLVM takes more than linear time for them, and what they run long in are
    kernels, which are functions of their own.
    """
    for made in module.functions:
        if sum(len(block.instructions) for block in made.blocks) > _LONG:
            made.attributes.add("noinline")
            made.attributes.add("optnone")


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

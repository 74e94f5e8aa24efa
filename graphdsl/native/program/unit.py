"""A program's LLVM module while it is written: its functions, and what they call from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, Block, Func
from graphdsl.core.outliving import outliving
from graphdsl.graph.ir import NewShadow, Push, Put
from graphdsl.native.flow import I8, I32, I64, POINTER
from graphdsl.native.program.sites import Sites
from graphdsl.native.program.usage import Usage
from graphdsl.native.program.values import part_types
from graphdsl.native.scalar import memory_type
from graphdsl.native.support.functions import SIGNATURES
from graphdsl.native.support.words import ENTRY, FOREIGN, HEADER_BYTES, PADDING
from graphdsl.native.target import Target, function
from graphdsl.ops.types import DType

Saved = dict[int, type]  # the params that are tapes or shadows


class Unit:
    """The module, and the functions of the graph that are still to be written."""

    def __init__(self, target: Target, sites: Sites, counts: bool = False) -> None:
        self.target = target
        self.counts = counts  # whether the code counts the ops that run
        self.sites = sites
        self.usage = Usage()
        self.apart: set[Apply] = set()  # indices that give copies
        self.shadowed = any(isinstance(i, NewShadow) for i in sites.instrs)  # entries of tapes have sums beside them
        self.module = target.module("program")
        self.pending: list[tuple[Func, ir.Function, Saved]] = []
        self._functions: dict[Func, ir.Function] = {}
        self._made: dict[Any, ir.Function] = {}

    def begin(self, body: Block) -> None:
        """Find out what there is to know of a function before it is written."""
        self.apart |= outliving(body, lambda instr: isinstance(instr, Push | Put))

    def entry(self) -> ir.Function:
        """The function that Python calls with the context."""
        return function(self.module, self.target, ENTRY, ir.FunctionType(I32, [POINTER]))

    def function(self, func: Func, saved: Saved) -> ir.Function:
        """The native function for `func`: context, call depth, then the parts of its params (a pointer for each of
        `saved`).

        It returns a status and the parts of its results.
        """
        if func not in self._functions:
            given: list[Any] = [POINTER, I64]
            for i, p in enumerate(func.body.params):
                given.extend([POINTER] if i in saved else part_types(p.type))
            results = [t for v in func.body.yields for t in part_types(v.type)]
            type = ir.FunctionType(ir.LiteralStructType([I32, *results]), given)
            made = function(
                self.module, self.target, f"f{len(self._functions)}.{_plain(func.name)}", type, private=True
            )
            made.calling_convention = "fastcc"
            self._functions[func] = made
            self.pending.append((func, made, saved))
        return self._functions[func]

    def private(self, key: Any, name: str, type: ir.FunctionType, write: Callable[[ir.Function], None]) -> ir.Function:
        """A function of the module's own, written once for each key."""
        if key not in self._made:
            made = function(self.module, self.target, f"{name}.{len(self._made)}", type, private=True)
            self._made[key] = made
            write(made)
        return self._made[key]

    def literal(self, dtype: DType, elements: tuple[float | int | bool, ...]) -> ir.Value:
        """The owner of a literal tensor, a constant of the module but for its count of references."""
        element = memory_type(dtype)
        padding = ir.ArrayType(I8, PADDING)
        type = ir.LiteralStructType(
            [ir.ArrayType(I64, HEADER_BYTES // 8), ir.ArrayType(element, len(elements)), padding]
        )
        name = f"literal.{len(self.module.globals)}"
        made = ir.GlobalVariable(self.module, type, name)
        made.linkage = "internal"
        made.align = 64
        values = [int(e) if not dtype.is_float else float(e) for e in elements]
        header = [FOREIGN] + [0] * (HEADER_BYTES // 8 - 1)
        made.initializer = ir.Constant(type, [header, values, [0] * PADDING])
        made.type = POINTER  # llvmlite types the pointers to globals, and then wants only those
        return made

    def outside(self, name: str, type: ir.FunctionType | None = None) -> ir.Function:
        """A function linked from outside: one of `support`'s, or of the kernel library with its type."""
        known = self.module.globals.get(name)
        if known is None:
            known = ir.Function(self.module, SIGNATURES[name] if type is None else type, name)
        return known

    def outside_data(self, name: str) -> ir.GlobalVariable:
        """Data of the kernel library's."""
        known = self.module.globals.get(name)
        if known is None:
            known = ir.GlobalVariable(self.module, I64, name)
            known.global_constant = True
        return known


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._") else "_" for c in name)

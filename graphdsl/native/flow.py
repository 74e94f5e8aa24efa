"""Loops and small conveniences over llvmlite's builder, for the kernels that are written in IR by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = ir.PointerType()
VOID = ir.VoidType()


def intrinsic(module: ir.Module, name: str, result: Any, *operands: Any) -> ir.Function:
    """An LLVM intrinsic, declared with its full type (llvmlite's own helper gets `llvm.fma` wrong)."""
    known = module.globals.get(name)
    return known if known is not None else ir.Function(module, ir.FunctionType(result, operands), name)


def int64(value: int) -> ir.Constant:
    """A constant of the type of all sizes and places."""
    return ir.Constant(I64, value)


def at(b: ir.IRBuilder, pointer: ir.Value, index: ir.Value | int, type: Any = I8) -> ir.Value:
    """The address of element `index` of an array of `type` (bytes, unless said otherwise)."""
    if isinstance(index, int):
        if index == 0:
            return pointer
        index = int64(index)
    return b.gep(pointer, [index], source_etype=type)


def field(b: ir.IRBuilder, pointer: ir.Value, index: int, type: Any = I64) -> ir.Value:
    """Word `index` of a record of 64-bit words."""
    return b.load(at(b, pointer, index, I64), typ=type)


def slot(b: ir.IRBuilder, type: Any, count: int = 1, align: int | None = None) -> ir.Value:
    """Memory on the stack, reserved where the function begins, so that no loop makes it grow."""
    with b.goto_entry_block():
        made = b.alloca(type, size=int64(count) if count > 1 else None)
        if align is not None:
            made.align = align
        made.type = POINTER  # llvmlite would insist on its element type
        return made


def call_address(b: ir.IRBuilder, address: ir.Value, type: ir.FunctionType, args: Sequence[ir.Value]) -> ir.Value:
    """A call of the function at an address known only at run time."""
    return b.call(_Callee(address, type), args)


class _Callee:
    """What llvmlite asks of a callee; its own untyped pointers do not know what they point to."""

    calling_convention = ""

    def __init__(self, address: ir.Value, type: ir.FunctionType) -> None:
        self.type = address.type
        self.function_type = type
        self.get_reference = address.get_reference


def minimum(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The lesser of two sizes."""
    return b.select(b.icmp_signed("<", x, y), x, y)


@contextmanager
def loop(b: ir.IRBuilder, count: ir.Value | int, step: int = 1, start: ir.Value | int = 0) -> Iterator[ir.Value]:
    """`for i in range(start, count, step)`; the body is what is written inside the `with`."""
    first = int64(start) if isinstance(start, int) else start
    end = int64(count) if isinstance(count, int) else count
    before = b.block
    body, done = b.append_basic_block("loop"), b.append_basic_block("after")
    b.cbranch(b.icmp_signed("<", first, end), body, done)
    b.position_at_end(body)
    index = b.phi(I64)
    index.add_incoming(first, before)
    yield index
    following = b.add(index, int64(step), flags=["nsw"])
    index.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), body, done)
    b.position_at_end(done)


class Carried:
    """A loop `for i in range(start, count, step)` with carried values: set `.next`, read `.out` after it."""

    def __init__(self, b: ir.IRBuilder, count: ir.Value | int, inits: list[ir.Value], step: int = 1) -> None:
        self._b, self._step = b, step
        self._end = int64(count) if isinstance(count, int) else count
        self._inits = inits
        self.values: list[Any] = []
        self.next: list[ir.Value] = []
        self.out: list[Any] = []
        self.index: Any = None

    def __enter__(self) -> Carried:
        b = self._b
        self._before = b.block
        self._body, self._done = b.append_basic_block("loop"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", int64(0), self._end), self._body, self._done)
        b.position_at_end(self._body)
        self.index = b.phi(I64)
        self.index.add_incoming(int64(0), self._before)
        self.values = [b.phi(v.type) for v in self._inits]
        for phi, init in zip(self.values, self._inits, strict=True):
            phi.add_incoming(init, self._before)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        b = self._b
        following = b.add(self.index, int64(self._step), flags=["nsw"])
        last = b.block
        self.index.add_incoming(following, last)
        for phi, value in zip(self.values, self.next, strict=True):
            phi.add_incoming(value, last)
        b.cbranch(b.icmp_signed("<", following, self._end), self._body, self._done)
        b.position_at_end(self._done)
        for init, value in zip(self._inits, self.next, strict=True):
            merged = b.phi(value.type)
            merged.add_incoming(init, self._before)
            merged.add_incoming(value, last)
            self.out.append(merged)

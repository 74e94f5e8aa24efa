"""Graphs written by hand, op by op, for tests of what compiles them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Feed, For, Func, If, Item, Print, Value, While
from graphdsl.native.program.compiled import Compiled, compile_graph
from graphdsl.ops.op import Setting
from graphdsl.ops.types import BOOL, F64, I64, Dim, DType, Type
from graphdsl.runtime.state import Runtime
from graphdsl.source.span import Source, Span

SPAN = Span(Source("hand", "one\ntwo\n"), 0, 3)


class Hand:
    """A graph's main block, and values to feed it with."""

    def __init__(self) -> None:
        self.block = Block()
        self.e = self.emit(self.block)
        self.feeds: dict[str, Any] = {}

    @staticmethod
    def emit(block: Block) -> Emit:
        return Emit(block, Setting(F64), SPAN)

    def feed(self, value: Any, shape: tuple[Dim, ...] | None = None) -> Value:
        """A value from outside, with the sizes it has as its type unless others are given."""
        array = np.asarray(value)
        dtype = DType.of(array)
        name = f"x{len(self.feeds)}"
        out = Value(Type(dtype, array.shape if shape is None else shape), name)
        self.block.body.append(Feed(SPAN, name, out))
        self.feeds[name] = array if array.shape else array.item()
        return out

    def print(self, *values: Value, block: Block | None = None) -> None:
        (block or self.block).body.append(Print(SPAN, tuple(Item(v, "v") for v in values)))

    def loop(self, count: Value, inits: list[Value], body: Any) -> tuple[Value, ...]:
        """A `for` whose `body(emit, index, *carried)` gives the next carried values."""
        inner = Block([Value(Type(I64)), *(Value(v.type) for v in inits)])
        inner.yields = list(body(self.emit(inner), *inner.params))
        outs = tuple(Value(v.type) for v in inits)
        self.block.body.append(For(SPAN, count, tuple(inits), inner, outs))
        return outs

    def while_(self, inits: list[Value], condition: Any, body: Any) -> tuple[Value, ...]:
        test, inner = (Block([Value(v.type) for v in inits]) for _ in range(2))
        test.yields = [condition(self.emit(test), *test.params)]
        inner.yields = list(body(self.emit(inner), *inner.params))
        outs = tuple(Value(v.type) for v in inits)
        self.block.body.append(While(SPAN, tuple(inits), test, inner, outs))
        return outs

    def branch(self, condition: Value, then: Any, orelse: Any, types: list[Type]) -> tuple[Value, ...]:
        blocks = [Block(), Block()]
        for block, side in zip(blocks, (then, orelse), strict=True):
            block.yields = list(side(self.emit(block)))
        outs = tuple(Value(t) for t in types)
        assert condition.type.dtype is BOOL
        self.block.body.append(If(SPAN, condition, *blocks, outs))
        return outs

    def func(self, *outs: Value) -> Func:
        self.block.yields = list(outs)
        return Func("main", self.block, SPAN)

    def compile(self, *outs: Value, cache: bool = False) -> Compiled:
        return compile_graph(self.func(*outs), cache=cache)

    def run(self, *outs: Value, runtime: Runtime | None = None) -> list[Any]:
        return self.compile(*outs).run(runtime or Runtime(), self.feeds)


def same(a: Any, b: Any) -> bool:
    """Equal to the bit, with all nan alike."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    bits = f"i{a.dtype.itemsize}"
    return bool(np.all((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))))

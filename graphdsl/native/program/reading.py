"""Operands of access patterns outside kernels: scalars and single elements, read where the program stands."""

from __future__ import annotations

from dataclasses import dataclass

from graphdsl.core.ir import Value
from graphdsl.graph.kinds import OfValue
from graphdsl.native.flow import at
from graphdsl.native.program.frame import Frame
from graphdsl.native.scalar import memory_type
from graphdsl.ops.scalar import S
from graphdsl.ops.types import I64 as INT


@dataclass(frozen=True)
class Operand(OfValue):
    """A value of the graph as a `Reader`."""

    frame: Frame
    value: Value

    def at(self, place: tuple[S, ...]) -> S:
        if not self.value.type.shape:
            return self.frame.scalar(self.value)
        code, b = self.frame.code, self.frame.b
        tensor = self.frame.tensor(self.value)
        offset = code.const(INT, 0)
        for i, size in zip(place, tensor.sizes, strict=True):
            offset = offset * code.value(INT, size) + i
        return code.load(self.dtype, at(b, tensor.data, offset.ref, memory_type(self.dtype)))

    def size(self, axis: int) -> S:
        return self.frame.code.value(INT, self.frame.tensor(self.value).sizes[axis])


@dataclass(frozen=True)
class Sized(OfValue):
    """What only has sizes: a value inside a kernel, or a scalar of the graph."""

    frame: Frame
    value: Value
    sizes: tuple[object, ...]
    scalar: object = None

    def at(self, place: tuple[S, ...]) -> S:
        assert self.scalar is not None
        return self.frame.code.value(self.dtype, self.scalar)

    def size(self, axis: int) -> S:
        return self.frame.code.value(INT, self.sizes[axis])

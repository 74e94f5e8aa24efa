"""The elements of a region's values, as vector code: each op at the place where it is wanted.

The values at the kernel's own place are computed once each, in order; an access pattern that reads a value elsewhere
has it computed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.graph.kinds import OfValue
from graphdsl.native.flow import I32, at, int64
from graphdsl.native.program.places import Affine, Uniform, VectorCode, is_int
from graphdsl.native.program.space import Region
from graphdsl.native.scalar import load, memory_type
from graphdsl.ops.op import Elementwise, Pointwise
from graphdsl.ops.scalar import S
from graphdsl.ops.type_rules import same_dim
from graphdsl.ops.types import BOOL, Dim, DType
from graphdsl.ops.types import I64 as INT

Place = tuple[S, ...]


class Memory(Protocol):
    """Where a kernel's operands are: its owner knows."""

    def home(self, value: Value) -> S:
        """The element of a param at the kernel's own place."""

    def pointer(self, value: Value) -> ir.Value: ...

    def sizes(self, value: Value) -> tuple[S, ...]: ...

    def inside(self) -> S | None:
        """Which lanes are within the space; None: all are."""


@dataclass
class Reader(OfValue):
    """An operand of an access pattern."""

    evaluator: Evaluator
    value: Value

    def at(self, place: Place) -> S:
        return self.evaluator.at(self.value, place)

    def size(self, axis: int) -> S:
        return self.evaluator.memory.sizes(self.value)[axis]


class Evaluator:
    """Computes at one place of the space, `home` (None where no op asks for coordinates)."""

    def __init__(self, code: VectorCode, region: Region, memory: Memory, home: Place | None) -> None:
        self.code = code
        self.memory = memory
        self._home = home
        self._space = region.space
        self._makers = {out: a for a in region.body for out in a.outs}
        self._known: dict[Value, S] = {}
        self.applying: Apply | None = None

    def run(self, region: Region) -> None:
        """The region's values at home."""
        for apply in region.body:
            if isinstance(apply.op.compute, Elementwise | Pointwise):
                self.home(apply.outs[0])

    def home(self, value: Value) -> S:
        """A value at the kernel's own place."""
        if value not in self._known:
            made = self._makers.get(value)
            self._known[value] = (
                self.memory.home(value) if made is None else self._apply(made, self._home_of(value), self.home)
            )
        return self._known[value]

    def _home_of(self, value: Value) -> Place | None:
        """Where in a value of the region the kernel's own place falls: it may be repeated along some axes."""
        if self._home is None or value.type.shape == self._space:
            return self._home
        return self._operand_place(self._space, value, self._home)

    def at(self, value: Value, place: Place) -> S:
        """A value at any place."""
        if not value.type.shape or (place is self._home and value.type.shape == self._space):
            return self.home(value)
        made = self._makers.get(value)
        if made is None:
            return self._gathered(value, place)
        return self._apply(made, place, lambda arg: self.at(arg, self._operand_place(value.type.shape, arg, place)))

    def _apply(self, apply: Apply, place: Place | None, operand: Callable[[Value], S]) -> S:
        outer, self.applying = self.applying, apply
        compute = apply.op.compute
        if isinstance(compute, Elementwise):
            xs = [operand(arg) for arg in apply.args]
            result = compute.body(self.code, *xs, **apply.attrs)
        else:
            assert isinstance(compute, Pointwise)
            readers = tuple(Reader(self, arg) for arg in apply.args)
            sizes = self.memory.sizes(apply.outs[0])
            result = compute.at(self.code, place or (), readers, sizes, apply.attrs)
        self.applying = outer
        return result

    def _gathered(self, value: Value, place: Place) -> S:
        """An element of memory at a place: adjoining ones by one load, the same one for all lanes, or one by one."""
        code, b = self.code, self.code.builder
        pointer, dtype = self.memory.pointer(value), value.type.dtype
        offset: S = code.uniform(INT, int64(0))
        for i, size in zip(place, self.memory.sizes(value), strict=True):
            offset = code.op2("add", code.op2("mul", offset, size), i)
        type = memory_type(dtype)
        if isinstance(offset, Uniform):
            return code.uniform(dtype, load(b, at(b, pointer, offset.one, type), dtype))
        if isinstance(offset, Affine) and is_int(offset.step, 1):
            return code.load(dtype, at(b, pointer, offset.base, type))
        if isinstance(offset, Affine) and not isinstance(offset.step, ir.Constant):
            return self._by_step(pointer, offset, dtype)
        return self._one_by_one(pointer, offset, dtype)

    def _by_step(self, pointer: ir.Value, offset: Affine, dtype: DType) -> S:
        """Adjoining elements if it turns out so, as it does where an axis might have been repeated and was not."""
        code, b = self.code, self.code.builder
        with b.if_else(b.icmp_signed("==", offset.step, int64(1)), likely=True) as (then, otherwise):
            with then:
                dense: Any = code.load(dtype, at(b, pointer, offset.base, memory_type(dtype))).ref
                near = b.block
            with otherwise:
                scattered = self._one_by_one(pointer, Affine(code, offset.base, offset.step), dtype).ref
                far = b.block
        merged = b.phi(dense.type)
        merged.add_incoming(dense, near)
        merged.add_incoming(scattered, far)
        return S(code, dtype, merged)

    def _one_by_one(self, pointer: ir.Value, offset: S, dtype: DType) -> S:
        code, b = self.code, self.code.builder
        if code.lanes == 1:
            return code.load(dtype, at(b, pointer, offset.ref, memory_type(dtype)))
        inside = self.memory.inside()
        if inside is not None:
            offset = S(code, INT, b.select(inside.ref, offset.ref, code.const(INT, 0).ref))
        vector: Any = ir.Constant(ir.VectorType(memory_type(dtype), code.lanes), ir.Undefined)
        for lane in range(code.lanes):
            number = ir.Constant(I32, lane)
            place = at(b, pointer, b.extract_element(offset.ref, number), memory_type(dtype))
            vector = b.insert_element(vector, b.load(place, typ=memory_type(dtype), align=dtype.bytes), number)
        if dtype is BOOL:
            vector = b.icmp_unsigned("!=", vector, ir.Constant(vector.type, None))
        return S(code, dtype, vector)

    def _operand_place(self, space: tuple[Dim, ...], value: Value, place: Place) -> Place:
        """Where a value that is repeated to the shape `space` is read for a `place` of it."""
        rank = value.type.rank
        skipped = len(place) - rank
        zero = self.code.const(INT, 0)
        found: list[S] = []
        for axis, dim in enumerate(value.type.shape):
            i = place[skipped + axis]
            if dim == 1:
                found.append(zero)
            elif same_dim(dim, space[skipped + axis]):
                found.append(i)
            else:
                one = self.code.compare("eq", self.memory.sizes(value)[axis], self.code.const(INT, 1))
                found.append(self.code.select(one, zero, i))
        return tuple(found)

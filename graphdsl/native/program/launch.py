"""Calling kernels: their results' buffers, what they are told, and how a region's function is found.

A result takes over the buffer of an operand that is used last here, has as many bytes, and is read only at the place
that is written: if, as it turns out, nobody else has that buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.graph.passes.fuse_dry import asks_for_place
from graphdsl.graph.passes.fuse_kinds import same_shape
from graphdsl.native.flow import POINTER, at, int64
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.kernels import BLOCK, Shape, Writer
from graphdsl.native.program.regionkey import cost, key
from graphdsl.native.program.space import Region
from graphdsl.native.program.team import KERNEL
from graphdsl.native.program.values import Tensor, whole
from graphdsl.native.scalar import memory_type
from graphdsl.ops.op import Pointwise, Reduce
from graphdsl.ops.types import DType

_MUCH = 200_000  # of the units of `cost`: some tens of microseconds
_PARTS = 16

Sizes = dict[Value, tuple[ir.Value, ...]]
Operand = Callable[[Value], Any]  # the native value of a param


def launch(frame: Frame, region: Region, outer: dict[Value, Value], sizes: Sizes, outs: tuple[Value, ...]) -> None:
    """Run a region's kernel. `outer` has the graph's value for each param, `sizes` those of all values inside; the
    results become `outs`.
    """
    shape = Shape.of(frame.unit, region, _coordinates(region))
    results = [_result(frame, region, outer, sizes, v) for v in region.outs]
    words: list[tuple[ir.Value, DType | None]] = []
    for param in region.params:
        native = frame.values[outer[param]]
        if isinstance(native, Tensor):
            words.append((native.data, None))
            words.extend(_dynamic(param, native.sizes))
        else:
            words.append((native, param.type.dtype))
    words.extend((r.data, None) for r in results)
    for value in shape.shaped:
        words.extend(_dynamic(value, sizes[value]))
    space = _space_sizes(region, sizes)
    words.extend((s, None) for d, s in zip(region.space, space, strict=True) if not isinstance(d, int))
    kernel = frame.unit.private(
        key(frame, region), "kernel", KERNEL, lambda made: Writer(frame.unit, made, shape).write()
    )
    groups = shape.space.groups if shape.space.flat else shape.space.groups[:-1]
    extent = frame.product([space[a] for group in groups for a in group])
    status = _run(frame, region, kernel, frame.spill_parts(words), extent, space, shape)
    if any(a.fails for a in region.body):
        frame.check(status)
    for out, value, result in zip(outs, region.outs, results, strict=True):
        if any(value in a.outs for a in region.reduces):
            frame.values[out] = _combined(frame, value, out, result, extent)
        else:
            frame.values[out] = whole(out.type, [result.data, result.owner, *sizes[value]])


def _run(
    frame: Frame,
    region: Region,
    kernel: ir.Function,
    words: ir.Value,
    extent: ir.Value,
    space: tuple[ir.Value, ...],
    shape: Shape,
) -> ir.Value:
    """Call a kernel over its whole space: with the team of threads where there is much to do, and nothing that can
    fail.
    """
    b = frame.b
    alone = [frame.context, words, int64(0), extent]
    work = cost(region)
    elements = frame.product(space)
    few = isinstance(elements, ir.Constant) and elements.constant * work < _MUCH
    if few or any(a.fails for a in region.body):
        return b.call(kernel, alone)
    with b.if_else(b.icmp_signed("<", elements, int64(_MUCH // work)), likely=True) as (little, much):
        with little:
            single = b.call(kernel, alone)
            near = b.block
        with much:
            part = _part(frame, extent, shape)
            team = frame.unit.outside("run.team.run")
            shared = b.call(team, [frame.context, kernel, words, extent, part])
            frame.check(shared)
            far = b.block
    status = b.phi(single.type)
    status.add_incoming(single, near)
    status.add_incoming(shared, far)
    return status


def _part(frame: Frame, extent: ir.Value, shape: Shape) -> ir.Value:
    """How much is done at a time: some sixteenths, of a flat space whole blocks."""
    b = frame.b
    part = b.add(b.udiv(extent, int64(_PARTS)), int64(1))
    if shape.space.flat:
        part = b.and_(b.add(part, int64(BLOCK - 1)), int64(-BLOCK))
    return part


def _coordinates(region: Region) -> bool:
    moving = (a for a in region.body if isinstance(a.op.compute, Pointwise))
    return len(region.space) > 1 and any(asks_for_place(a) for a in moving)


def _dynamic(value: Value, sizes: tuple[ir.Value, ...]) -> list[tuple[ir.Value, DType | None]]:
    return [(s, None) for d, s in zip(value.type.shape, sizes, strict=True) if not isinstance(d, int)]


def _space_sizes(region: Region, sizes: Sizes) -> tuple[ir.Value, ...]:
    last: Apply = region.body[-1]
    return sizes[last.args[0] if isinstance(last.op.compute, Reduce) else last.outs[0]]


# ---- results ------------------------------------------------------------------------------------------


def _result(frame: Frame, region: Region, outer: dict[Value, Value], sizes: Sizes, value: Value) -> Tensor:
    """Where a result goes: an operand's buffer, or a new one. Of a sum, the results of its blocks."""
    if any(value in a.outs for a in region.reduces):
        count = frame.product(_space_sizes(region, sizes))
        blocks = frame.b.udiv(frame.b.add(count, int64(BLOCK - 1)), int64(BLOCK))
        return frame.new(value.type.dtype, [blocks])
    elsewhere = region.place_readers()
    for param in region.home_readers() - elsewhere:
        arg = outer[param]
        fits = param.type.dtype.bytes == value.type.dtype.bytes and same_shape(param.type.shape, value.type.shape)
        if fits and list(outer.values()).count(arg) == 1 and frame.take(arg):
            return _taken_over(frame, frame.tensor(arg), value, sizes[value])
    return frame.new(value.type.dtype, sizes[value])


def _taken_over(frame: Frame, operand: Tensor, value: Value, sizes: tuple[ir.Value, ...]) -> Tensor:
    b = frame.b
    before = b.block
    alone = frame.alone(operand.owner)
    with b.if_then(b.not_(alone)):
        fresh = frame.new(value.type.dtype, sizes)
        frame.release(operand.owner)
        there = b.block
    data, owner = b.phi(POINTER), b.phi(POINTER)
    for phi, own, new in ((data, operand.data, fresh.data), (owner, operand.owner, fresh.owner)):
        phi.add_incoming(own, before)
        phi.add_incoming(new, there)
    return Tensor(value.type.dtype, data, owner, sizes)


def _combined(frame: Frame, value: Value, out: Value, blocks: Tensor, count: ir.Value) -> Any:
    """The sum of the sums of blocks."""
    dtype = value.type.dtype
    element = memory_type(dtype)
    function = frame.unit.outside(f"gdl.sum.{dtype.value}", ir.FunctionType(element, [POINTER, ir.IntType(64)]))
    total = frame.b.call(function, [blocks.data, blocks.sizes[0]])
    if not out.type.shape:
        frame.release(blocks.owner)
        return total
    result = frame.new(dtype, [int64(1)] * out.type.rank)
    frame.b.store(total, at(frame.b, result.data, 0, element))
    frame.release(blocks.owner)
    return result

"""Calling kernels: their results' buffers, what they are told, and how a region's function is found.

A result takes over the buffer of an operand that is used last here, has as many bytes, and is read only at the place
that is written: if, as it turns out, nobody else has that buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.graph.kinds import asks_for_place
from graphdsl.native.flow import POINTER, at, int64
from graphdsl.native.folds import BLOCK
from graphdsl.native.names import simple
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.kernels import Shape, Writer
from graphdsl.native.program.regionkey import cost, key
from graphdsl.native.program.space import Region
from graphdsl.native.program.values import Tensor, whole
from graphdsl.native.scalar import memory_type
from graphdsl.native.support.team import kernel_type
from graphdsl.ops.op import Pointwise, Reducing
from graphdsl.ops.type_rules import same_shape
from graphdsl.ops.types import DType

_MUCH = 200_000  # of the units of `cost`: some tens of microseconds
_MOST_DIRECT = 16  # words that a kernel gets as arguments: LLVM takes long over calls with many
_ROW = 128  # elements that a row is taken to have

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
    groups = shape.space.groups if shape.space.flat else shape.space.groups[:-1]
    extent = frame.times(space[a] for group in groups for a in group)
    _run(frame, shape, words, extent, frame.times(space))
    for out, value, result in zip(outs, region.outs, results, strict=True):
        if any(value in a.outs for a in region.reduces):
            frame.values[out] = _combined(frame, value, out, result, extent)
        else:
            frame.values[out] = whole(out.type, [result.data, result.owner, *sizes[value]])


def _run(
    frame: Frame, shape: Shape, words: list[tuple[ir.Value, DType | None]], extent: ir.Value, elements: ir.Value
) -> None:
    """Call a kernel over its whole space. Where there may be much to do, and nothing can fail, the team shares it."""
    region = shape.region
    fails = any(a.fails for a in region.body)
    work = cost(region)
    alone = fails or (isinstance(elements, ir.Constant) and elements.constant * work < _MUCH)
    direct = alone and len(words) <= _MOST_DIRECT
    types = [part.type for part, _ in words] if direct else []
    kernel = frame.unit.private(
        (direct, *key(frame, region)),
        "kernel",
        kernel_type(types),
        lambda made: Writer(frame.unit, made, shape).write(),
    )
    if alone:
        given = [part for part, _ in words] if direct else [frame.spill_parts(words)]
        status = frame.b.call(kernel, [frame.context, int64(0), extent, *given])
        if fails:
            frame.check(status)
        return
    team = frame.unit.outside("run.team.run")
    least = _MUCH // work
    if not shape.space.flat:
        least = least // _ROW + 1
    multiple = BLOCK if shape.space.flat else 1
    arguments = [frame.context, kernel, frame.spill_parts(words), extent, int64(least), int64(multiple)]
    frame.check(frame.b.call(team, arguments))


def _coordinates(region: Region) -> bool:
    moving = (a for a in region.body if isinstance(a.op.compute, Pointwise))
    return len(region.space) > 1 and any(asks_for_place(a) for a in moving)


def _dynamic(value: Value, sizes: tuple[ir.Value, ...]) -> list[tuple[ir.Value, DType | None]]:
    return [(s, None) for d, s in zip(value.type.shape, sizes, strict=True) if not isinstance(d, int)]


def _space_sizes(region: Region, sizes: Sizes) -> tuple[ir.Value, ...]:
    last: Apply = region.body[-1]
    return sizes[last.args[0] if isinstance(last.op.compute, Reducing) else last.outs[0]]


# ---- results ------------------------------------------------------------------------------------------


def _result(frame: Frame, region: Region, outer: dict[Value, Value], sizes: Sizes, value: Value) -> Tensor:
    """Where a result goes: an operand's buffer, or a new one. Of a sum, the results of its blocks."""
    if any(value in a.outs for a in region.reduces):
        count = frame.times(_space_sizes(region, sizes))
        blocks = frame.b.udiv(frame.b.add(count, int64(BLOCK - 1)), int64(BLOCK))
        return frame.new(value.type.dtype, [blocks])
    elsewhere = region.place_readers
    for param in region.home_readers - elsewhere:
        arg = outer[param]
        fits = param.type.dtype.bytes == value.type.dtype.bytes and same_shape(param.type.shape, value.type.shape)
        if fits and list(outer.values()).count(arg) == 1 and frame.take(arg):
            return frame.own(frame.tensor(arg), value.type.dtype, sizes[value])
    return frame.new(value.type.dtype, sizes[value])


def _combined(frame: Frame, value: Value, out: Value, blocks: Tensor, count: ir.Value) -> Any:
    """The sum of the sums of blocks."""
    dtype = value.type.dtype
    element = memory_type(dtype)
    function = frame.unit.outside(simple("sum", dtype), ir.FunctionType(element, [POINTER, ir.IntType(64)]))
    total = frame.b.call(function, [blocks.data, blocks.sizes[0]])
    if not out.type.shape:
        frame.release(blocks.owner)
        return total
    result = frame.new(dtype, [int64(1)] * out.type.rank)
    frame.b.store(total, at(frame.b, result.data, 0, element))
    frame.release(blocks.owner)
    return result

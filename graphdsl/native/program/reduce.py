"""Reductions that are not part of a kernel: calls of the kernel library, over any axes.

The axes that are kept are walked here, all but the last one; the library takes that one and up to three reduced axes.
An axis of `sum_to` that only the run can tell is walked as both: one of the two sizes is then 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.native.flow import I64, POINTER, at, int64, loop, slot
from graphdsl.native.names import MOST_AXES, REDUCE_LOOP, SEARCH_LOOP, description
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.loops import call_loop
from graphdsl.native.program.places import folded, is_int
from graphdsl.native.program.values import Tensor, whole
from graphdsl.native.scalar import I1, memory_type
from graphdsl.ops import faults
from graphdsl.ops.op import Reduce
from graphdsl.ops.type_rules import same_dim
from graphdsl.ops.types import BOOL
from graphdsl.ops.types import I64 as INT

_SUM = Reduce("sum")
_COLUMNS = 64  # that the library takes together where columns are reduced


@dataclass(frozen=True)
class _Axis:
    """An axis of the operand: how often it is walked outside, how many elements are reduced along it, and its step in
    bytes.
    """

    kept: ir.Value
    reduced: ir.Value
    step: ir.Value


def reduce(frame: Frame, instr: Apply) -> None:
    """Any reduction."""
    compute = instr.op.compute
    assert isinstance(compute, Reduce)
    x = _operand(frame, instr.args[0])
    axes = _axes(frame, x, [a in instr.attrs["axes"] for a in range(len(x.sizes))])
    if instr.fails:
        for axis in instr.attrs["axes"]:
            size = frame.code.value(INT, x.sizes[axis])
            frame.code.fail(size.eq(0), faults.EMPTY, frame.code.const(INT, axis))
    out = instr.outs[0]
    kept = [s for a, s in enumerate(x.sizes) if a not in instr.attrs["axes"]]
    if not out.type.shape:
        memory = slot(frame.b, I64)
        call(frame, compute, x, memory, axes)
        frame.values[out] = _loaded(frame, memory, out.type.dtype)
        return
    sizes = kept
    if instr.attrs["keepdims"]:
        sizes = [int64(1) if a in instr.attrs["axes"] else s for a, s in enumerate(x.sizes)]
    result = frame.new(out.type.dtype, sizes)
    call(frame, compute, x, result.data, axes)
    frame.values[out] = whole(out.type, [result.data, result.owner, *sizes])


def _operand(frame: Frame, value: Value) -> Tensor:
    """What is reduced; a scalar as a tensor of one element, for a sum turns its -0.0 into +0.0 like any other's."""
    if value.type.shape:
        return frame.tensor(value)
    b, dtype = frame.b, value.type.dtype
    memory = slot(b, memory_type(dtype))
    number = frame.values[value]
    b.store(b.zext(number, memory_type(BOOL)) if dtype is BOOL else number, memory)
    return Tensor(dtype, memory, ir.Constant(POINTER, None), ())


def _loaded(frame: Frame, memory: ir.Value, dtype: Any) -> ir.Value:
    value = frame.b.load(memory, typ=memory_type(dtype))
    return frame.b.trunc(value, I1) if dtype is BOOL else value


def _axes(frame: Frame, x: Tensor, reduced: list[bool | ir.Value]) -> list[_Axis]:
    """The operand's axes; adjoining ones of a kind are taken as one."""
    b, one = frame.b, int64(1)
    step: ir.Value = int64(x.dtype.bytes)
    found: list[_Axis] = []
    kinds: list[Any] = []
    for size, flag in zip(reversed(x.sizes), reversed(reduced), strict=True):
        if isinstance(flag, bool) and kinds and kinds[-1] is flag:
            last = found[-1]
            kept, gone = (
                folded(b, "mul", last.kept, one if flag else size),
                folded(b, "mul", last.reduced, size if flag else one),
            )
            found[-1] = _Axis(kept, gone, last.step)
        elif isinstance(flag, bool):
            found.append(_Axis(one if flag else size, size if flag else one, step))
            kinds.append(flag)
        else:
            found.append(_Axis(b.select(flag, one, size), b.select(flag, size, one), step))
            kinds.append(None)
        step = folded(b, "mul", step, size)
    return found[::-1]


def call(frame: Frame, compute: Reduce, x: Tensor, out: ir.Value, axes: list[_Axis]) -> None:
    """Reduce `x` into adjoining elements at `out`."""
    b = frame.b
    outer = [a for a in axes if not is_int(a.kept, 1)]
    inner = [a for a in axes if not is_int(a.reduced, 1)] or [_Axis(int64(1), int64(1), int64(x.dtype.bytes))]
    if len(inner) > MOST_AXES:
        packed, axes = _packed(frame, x, axes)
        call(frame, compute, packed, out, axes)
        frame.release(packed.owner)
        return
    last = outer.pop() if outer else _Axis(int64(1), int64(1), int64(0))
    size = 8 if compute.search else x.dtype.bytes
    dims = [last.kept, *(a.reduced for a in inner)]
    row_steps = [last.step, int64(size)]
    steps = [*row_steps, *(a.step for a in inner)]
    library = SEARCH_LOOP if compute.search else REDUCE_LOOP
    data = description(compute.fold, x.dtype, len(inner))
    with loop(b, _product(b, [a.kept for a in outer])) as turn:
        offset = _offset(b, turn, [(a.kept, a.step) for a in outer])
        row = b.mul(b.mul(turn, last.kept), int64(size))
        call_loop(frame, library, data, [at(b, x.data, offset), at(b, out, row)], dims, steps, 0, row_steps, _COLUMNS)


def _packed(frame: Frame, x: Tensor, axes: list[_Axis]) -> tuple[Tensor, list[_Axis]]:
    """A copy in which the kept axes come first and the reduced ones, as they follow each other, are one."""
    b, size = frame.b, int64(x.dtype.bytes)
    kept, reduced = _product(b, [a.kept for a in axes]), _product(b, [a.reduced for a in axes])
    copy = frame.new(x.dtype, [kept, reduced])
    with loop(b, kept) as i:
        row = _offset(b, i, [(a.kept, a.step) for a in axes])
        with loop(b, reduced) as k:
            source = b.add(row, _offset(b, k, [(a.reduced, a.step) for a in axes]))
            place = b.mul(b.add(b.mul(i, reduced), k), size)
            element = b.load(at(b, x.data, source), typ=memory_type(x.dtype))
            b.store(element, at(b, copy.data, place))
    return copy, [_Axis(kept, int64(1), b.mul(reduced, size)), _Axis(int64(1), reduced, size)]


def _product(b: ir.IRBuilder, sizes: list[ir.Value]) -> ir.Value:
    total: ir.Value = int64(1)
    for size in sizes:
        total = folded(b, "mul", total, size)
    return total


def _offset(b: ir.IRBuilder, number: ir.Value, axes: list[tuple[ir.Value, ir.Value]]) -> ir.Value:
    """Where the element of a number stands, counted in row-major order over axes of these sizes and steps."""
    rest, offset = number, int64(0)
    for size, step in reversed(axes):
        offset = b.add(offset, b.mul(b.urem(rest, size), step))
        rest = b.udiv(rest, size)
    return offset


def sum_to(frame: Frame, instr: Apply) -> None:
    """A sum over the axes along which the second operand was repeated; the operand itself where it was not."""
    b, out = frame.b, instr.outs[0]
    x = _operand(frame, instr.args[0])
    like = instr.args[1]
    lead = len(x.sizes) - like.type.rank
    sizes = frame.tensor(like).sizes if like.type.shape else ()
    flags: list[bool | ir.Value] = [True] * lead
    for axis, (dim, size) in enumerate(zip(like.type.shape, sizes, strict=True)):
        given = instr.args[0].type.shape[lead + axis]
        if same_dim(dim, given):
            flags.append(False)
        elif dim == 1 and isinstance(given, int):
            flags.append(True)
        else:
            flags.append(
                b.and_(b.icmp_signed("==", size, int64(1)), b.icmp_signed("!=", x.sizes[lead + axis], int64(1)))
            )
    if not out.type.shape:
        memory = slot(b, I64)
        call(frame, _SUM, x, memory, _axes(frame, x, flags))
        frame.values[out] = _loaded(frame, memory, out.type.dtype)
        return
    if any(f is True for f in flags):
        result = frame.new(out.type.dtype, sizes)
        call(frame, _SUM, x, result.data, _axes(frame, x, flags))
        frame.values[out] = whole(out.type, [result.data, result.owner, *sizes])
        return
    frame.values[out] = _summed_if_any(frame, instr, x, flags, sizes)


def _summed_if_any(
    frame: Frame, instr: Apply, x: Tensor, flags: list[bool | ir.Value], sizes: tuple[ir.Value, ...]
) -> Any:
    b, type = frame.b, instr.outs[0].type
    some: ir.Value = ir.Constant(I1, 0)
    for flag in flags:
        if not isinstance(flag, bool):
            some = b.or_(some, flag)
    taken = frame.hand_on(instr.args[0])
    before = b.block
    with b.if_then(some):
        result = frame.new(type.dtype, sizes)
        call(frame, _SUM, x, result.data, _axes(frame, x, flags))
        frame.release(taken.owner)
        there = b.block
    data, owner = b.phi(POINTER), b.phi(POINTER)
    for phi, own, new in ((data, taken.data, result.data), (owner, taken.owner, result.owner)):
        phi.add_incoming(own, before)
        phi.add_incoming(new, there)
    return whole(type, [data, owner, *sizes])

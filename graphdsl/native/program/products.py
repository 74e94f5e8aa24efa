"""Matrix products: calls of the kernel library with strides, one call for each product of a batch that is all of one
size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.native.flow import I64, at, int64, loop, slot
from graphdsl.native.names import PRODUCT_LOOP, REDUCE_LOOP, description
from graphdsl.native.names import product as product_name
from graphdsl.native.program import shapes
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.loops import call_loop
from graphdsl.native.program.values import Tensor, ref, whole
from graphdsl.native.scalar import memory_type
from graphdsl.native.support.rows import LOOP
from graphdsl.ops.contraction import inner_fault
from graphdsl.ops.types import I64 as INT

_COLUMNS = 64  # that it takes together


@dataclass(frozen=True)
class Matrix:
    """An operand: its sizes and steps in bytes; a batch has a size and a step for each of its axes."""

    tensor: Tensor
    rows: ir.Value
    columns: ir.Value
    row_step: ir.Value
    column_step: ir.Value
    batch: tuple[ir.Value, ...]
    batch_bytes: ir.Value


def product(frame: Frame, instr: Apply) -> None:
    """`a @ b` by the ranks of its operands."""
    swapped = instr.attrs.get("swapped", (False, False))
    a, b = (matrix(frame, v, s) for v, s in zip(instr.args, swapped, strict=True))
    ranks = (instr.args[0].type.rank, instr.args[1].type.rank)
    code = frame.code
    inner = code.value(INT, a.columns if ranks[0] > 1 else a.rows)
    outer = code.value(INT, b.rows)
    if instr.fails:
        code.fail(inner.ne(outer), inner_fault(*ranks), inner, outer)
    batch = _batch(frame, instr, a, b)
    rows = [a.rows] if ranks[0] > 1 else []
    columns = [b.columns] if ranks[1] > 1 else []
    sizes = [*batch, *rows, *columns]
    out = instr.outs[0]
    if not sizes:
        memory = slot(frame.b, I64)
        _vectors(frame, instr, a, b, memory, ranks)
        frame.values[out] = frame.b.load(memory, typ=memory_type(out.type.dtype))
        return
    result = frame.new(out.type.dtype, sizes)
    if ranks[1] == 1:
        _vectors(frame, instr, a, b, result.data, ranks)
    else:
        _batched(frame, instr, a, b, result, batch, ranks)
    frame.values[out] = whole(out.type, [result.data, result.owner, *sizes])


def matrix(frame: Frame, value: Value, swapped: bool = False) -> Matrix:
    """An operand as it lies in memory; of a vector, `rows` is its length and `row_step` its step."""
    tensor = frame.tensor(value)
    size = int64(tensor.dtype.bytes)
    if len(tensor.sizes) == 1:
        return Matrix(tensor, tensor.sizes[0], int64(1), size, int64(0), (), int64(0))
    *batch, rows, columns = tensor.sizes
    row_step = frame.b.mul(columns, size)
    bytes = frame.b.mul(rows, row_step)
    if swapped:
        return Matrix(tensor, columns, rows, size, row_step, tuple(batch), bytes)
    return Matrix(tensor, rows, columns, row_step, size, tuple(batch), bytes)


def _batch(frame: Frame, instr: Apply, a: Matrix, b: Matrix) -> list[ir.Value]:
    code = frame.code
    rank = max(len(a.batch), len(b.batch))
    one = int64(1)
    left = [one] * (rank - len(a.batch)) + list(a.batch)
    right = [one] * (rank - len(b.batch)) + list(b.batch)
    found = []
    for axis, (x, y) in enumerate(zip(left, right, strict=True)):
        size = shapes.joined(code, code.value(INT, x), code.value(INT, y), axis, instr.fails)
        found.append(ref(size))
    return found


def _vectors(frame: Frame, instr: Apply, a: Matrix, b: Matrix, out: ir.Value, ranks: tuple[int, int]) -> None:
    """A product with a vector on the right: one dot product for each row of (a stack of) matrices."""
    dtype = a.tensor.dtype
    size = int64(dtype.bytes)
    if ranks[0] == 1:
        outer, steps = int64(1), [int64(0), int64(0), a.row_step, b.row_step]
    else:
        outer = frame.b.mul(frame.product(a.batch), a.rows)
        steps = [a.row_step, int64(0), a.column_step, b.row_step]
    length = b.rows
    length = _guarded(frame, instr, length)
    steps = [*steps[:2], size, *steps[2:]]
    call_loop(
        frame,
        REDUCE_LOOP,
        description("dot", dtype, 1),
        [a.tensor.data, b.tensor.data, out],
        [outer, length],
        steps,
        0,
        steps[:3],
        _COLUMNS if instr.attrs.get("swapped", (False,))[0] else 1,
    )


def _guarded(frame: Frame, instr: Apply, length: ir.Value) -> ir.Value:
    """0 where all of a guarded operand is 0: a sum of nothing is +0.0."""
    for i in instr.attrs["guard"]:
        guarded = frame.tensor(instr.args[i])
        test = frame.unit.outside("run.any." + str(guarded.dtype.bytes))
        some = frame.b.call(test, [guarded.data, frame.count(guarded), int64(int(guarded.dtype.is_float))])
        length = frame.b.select(some, length, int64(0))
    return length


def _batched(
    frame: Frame, instr: Apply, a: Matrix, b: Matrix, out: Tensor, batch: Sequence[ir.Value], ranks: tuple[int, int]
) -> None:
    """Products of matrices. A vector is a matrix of one row or column."""
    builder = frame.b
    dtype, size = out.dtype, int64(out.dtype.bytes)
    m, k, n = (a.rows if ranks[0] > 1 else int64(1)), b.rows, (b.columns if ranks[1] > 1 else int64(1))
    a_steps = [a.row_step, a.column_step] if ranks[0] > 1 else [int64(0), a.row_step]
    b_steps = [b.row_step, b.column_step] if ranks[1] > 1 else [b.row_step, int64(0)]
    k = _guarded(frame, instr, k)  # of whole operands, which their rows do not know
    steps = [int64(0)] * 3 + [*a_steps, *b_steps, builder.mul(n, size), size]
    total = frame.product(batch)
    bytes = builder.mul(builder.mul(m, n), size)
    with loop(builder, total) as turn:
        places = [at(builder, x.tensor.data, _batch_offset(frame, turn, x, batch)) for x in (a, b)]
        places.append(at(builder, out.data, builder.mul(turn, bytes)))
        code, info = frame.unit.outside(PRODUCT_LOOP, LOOP), frame.unit.outside_data(product_name(dtype))
        arguments = [_words(builder, values) for values in (places, [int64(1), m, k, n], steps)]
        frame.check(builder.call(frame.unit.outside("run.product"), [frame.context, code, info, *arguments]))


def _batch_offset(frame: Frame, turn: ir.Value, x: Matrix, batch: Sequence[ir.Value]) -> ir.Value:
    """Where the product number `turn` reads: an axis of size 1 is repeated."""
    b = frame.b
    offset, step = int64(0), x.batch_bytes
    for axis in range(1, len(x.batch) + 1):
        index = b.urem(turn, batch[-axis])
        turn = b.udiv(turn, batch[-axis])
        once = b.icmp_signed("==", x.batch[-axis], int64(1))
        offset = b.add(offset, b.select(once, int64(0), b.mul(index, step)))
        step = b.mul(step, x.batch[-axis])
    return offset


def _words(b: ir.IRBuilder, values: list[ir.Value]) -> ir.Value:
    """The address of these words, on the stack."""
    made = slot(b, I64, len(values))
    for i, value in enumerate(values):
        b.store(value, at(b, made, i, I64))
    return made

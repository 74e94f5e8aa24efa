"""The pieces of matrix products for one dtype: tiles that stay in registers, and the copying of panels side by side."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import copy_function
from graphdsl.native.flow import I32, I64, POINTER, VOID, Carried, at, int64, loop, slot
from graphdsl.native.folds import Fold, splat, vector_of
from graphdsl.native.scalar import intrinsic
from graphdsl.native.target import Target, function
from graphdsl.ops.types import DType

HEIGHTS = 4  # of tiles
DEPTH = 256  # of a block: language.md §10
WIDE = 2  # registers: a tile's columns, and a panel's

# tile(a, row_step, column_step, b, b_step, k, c, c_row_step, add)
TILE_CODE = ir.FunctionType(VOID, [POINTER, I64, I64, POINTER, I64, I64, POINTER, I64, I64])
# pack(to, b, row_step, column_step, rows, columns): panel after panel, each with room for 256 rows
PACK_CODE = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64, I64])


def tile_rows(target: Target, dtype: DType) -> tuple[int, ...]:
    """The heights of tiles, largest first. The largest fills the registers: 16 of them, or 32 (AVX-512, Arm)."""
    if not dtype.is_float:
        return (2, 1, 1, 1)
    many = target.vector_bits == 512 or not target.triple.startswith(("x86", "i386", "i686"))
    return (12, 4, 2, 1) if many else (6, 4, 2, 1)


def define_tile(module: ir.Module, target: Target, dtype: DType, rows: int) -> ir.Function:
    """`rows` by two registers: one block's chains, stored to `c` or added to what stands there."""
    made = function(module, target, f"gdl.tile{rows}.{dtype.value}", TILE_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    a, row_step, column_step, panel, panel_step, k, c, c_row_step, add = made.args
    fold = Fold("dot", dtype)
    vector = vector_of(fold, target)
    starts = [at(b, a, b.mul(int64(r), row_step)) for r in range(rows)]
    for r in range(rows):
        row = at(b, c, b.mul(int64(r), c_row_step))
        _prefetch(b, row)
        _prefetch(b, at(b, row, vector.count * WIDE * dtype.bytes - 1))
    zeros = [fold.identity(vector)] * (rows * WIDE)
    with Carried(b, k, zeros) as turn:
        row = at(b, panel, b.mul(turn.index, panel_step))
        right = [b.load(at(b, row, w, vector), typ=vector, align=dtype.bytes) for w in range(WIDE)]
        offset = b.mul(turn.index, column_step)
        for r, start in enumerate(starts):
            left = splat(b, b.load(at(b, start, offset), typ=vector.element, align=dtype.bytes), vector.count)
            for w in range(WIDE):
                turn.next.append(fold.step(b, target, turn.values[r * WIDE + w], left, right[w]))
    adds = b.icmp_signed("!=", add, int64(0))
    with b.if_else(adds) as (then, otherwise):
        for branch, adding in ((then, True), (otherwise, False)):
            with branch:
                _put(b, fold, turn.out, c, c_row_step, vector, adding)
    b.ret_void()
    return made


def _prefetch(b: ir.IRBuilder, place: ir.Value) -> None:
    """A hint that this line will be written when the chains are done."""
    callee = intrinsic(b.module, "llvm.prefetch.p0", VOID, POINTER, I32, I32, I32)
    b.call(callee, [place, *(ir.Constant(I32, word) for word in (1, 3, 1))])


def _put(
    b: ir.IRBuilder, fold: Fold, tile: list[ir.Value], c: ir.Value, row_step: ir.Value, vector: Any, adding: bool
) -> None:
    for i, value in enumerate(tile):
        r, w = divmod(i, WIDE)
        place = at(b, at(b, c, b.mul(int64(r), row_step)), w, vector)
        result = fold.combine(b, b.load(place, typ=vector, align=fold.dtype.bytes), value) if adding else value
        b.store(result, place, align=fold.dtype.bytes)


def define_pack(module: ir.Module, target: Target, dtype: DType) -> ir.Function:
    """The copying of panels, for all dtypes of one size."""
    name = f"gdl.pack{dtype.bytes}"
    if name in module.globals:
        return module.globals[name]
    made = function(module, target, name, PACK_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    to, source, row_step, column_step, rows, columns = made.args
    width = target.lanes(8 * dtype.bytes) * WIDE
    row = ir.VectorType(ir.IntType(8 * dtype.bytes), width)
    dense = b.icmp_signed("==", column_step, int64(dtype.bytes))
    whole = b.select(dense, b.sdiv(columns, int64(width)), int64(0))
    # row by row, so that a page is visited once
    with loop(b, rows) as k, loop(b, whole) as p:
        value = b.load(at(b, at(b, source, b.mul(k, row_step)), p, row), typ=row, align=dtype.bytes)
        b.store(value, at(b, to, b.add(b.mul(p, int64(DEPTH)), k), row), align=64)
    copy = copy_function(module, target)
    size, zero = int64(dtype.bytes), slot(b, I64)
    b.store(int64(0), zero)
    past = b.mul(b.sdiv(b.add(columns, int64(width - 1)), int64(width)), int64(width))
    with loop(b, past, start=b.mul(whole, int64(width))) as j:
        there = b.icmp_signed("<", j, columns)
        column = b.select(there, at(b, source, b.mul(j, column_step)), zero)
        step = b.select(there, row_step, int64(0))
        panel, within = b.sdiv(j, int64(width)), b.srem(j, int64(width))
        place = at(b, at(b, to, b.mul(panel, int64(DEPTH)), row), b.mul(within, size))
        b.call(copy, [place, int64(width * dtype.bytes), column, step, rows, rows, size])
    b.ret_void()
    return made

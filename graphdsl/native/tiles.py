"""The pieces of matrix products for one dtype: tiles that stay in registers, and the copying of panels side by side."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import copy_function
from graphdsl.native.flow import I64, POINTER, VOID, Carried, at, int64, loop
from graphdsl.native.folds import Fold, prefetch, splat, vector_of
from graphdsl.native.target import Target, function
from graphdsl.ops.types import DType

HEIGHTS = 5  # of tiles
DEPTH = 256  # of a block: grammars/README.md, "Numbers"
PANEL = DEPTH + 1  # rows of room for a panel: with 256, equal rows of all panels would share one set of a cache
AHEAD = 4  # rows: what is copied next is asked for early, where the processor does not see where the reading goes
WIDE = 2  # registers: a tile's columns, and a panel's
THIN_WIDE = 8  # registers: the columns of a tile of one row

# tile(a, row_step, column_step, b, b_step, k, c, c_row_step, add)
TILE_CODE = ir.FunctionType(VOID, [POINTER, I64, I64, POINTER, I64, I64, POINTER, I64, I64])
# thin(a, column_step, b, b_step, k, c, add)
THIN_CODE = ir.FunctionType(VOID, [POINTER, I64, POINTER, I64, I64, POINTER, I64])
# pack(to, b, row_step, column_step, rows, columns): panel after panel, each with room for `PANEL` rows
PACK_CODE = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64, I64])


def tile_rows(target: Target, dtype: DType) -> tuple[int, ...]:
    """The heights of tiles, largest first. The largest fills the registers: 16 of them, or 32 (AVX-512, Arm)."""
    if not dtype.is_float:
        return (2, 1, 1, 1, 1)
    many = target.vector_bits == 512 or not target.triple.startswith(("x86", "i386", "i686"))
    return (12, 8, 4, 2, 1) if many else (6, 4, 3, 2, 1)


def uneven_rests(rows: tuple[int, ...]) -> int:
    """A bit for each remainder of rows that a largest tile less makes quicker: 7 rows as 4 and 3, 8 as 4 and 4.

    A tile of fewer than 4 rows waits for its own sums.
    """
    return sum(1 << rest for rest in (1, 2, 5)) if rows[0] == 6 else 0


def define_tile(module: ir.Module, target: Target, dtype: DType, rows: int) -> ir.Function:
    """`rows` by two registers: one block's chains, stored to `c` or added to what stands there."""
    made = function(module, target, f"gdl.tile{rows}.{dtype.value}", TILE_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    a, row_step, column_step, panel, panel_step, k, c, c_row_step, add = made.args
    for r in range(rows):
        row = at(b, c, b.mul(int64(r), c_row_step))
        prefetch(b, row, write=True)
        prefetch(b, at(b, row, target.vector_bits // 8 * WIDE - 1), write=True)
    lefts = [at(b, a, b.mul(int64(r), row_step)) for r in range(rows)]
    outs = [at(b, c, b.mul(int64(r), c_row_step)) for r in range(rows)]
    _chains(b, target, dtype, lefts, column_step, panel, panel_step, k, outs, WIDE, add)
    b.ret_void()
    return made


def define_thin(module: ir.Module, target: Target, dtype: DType) -> ir.Function:
    """One row by many registers: long stretches of the right operand's rows, read where they are."""
    made = function(module, target, f"gdl.thin.{dtype.value}", THIN_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    a, column_step, right, right_step, k, c, add = made.args
    _chains(b, target, dtype, [a], column_step, right, right_step, k, [c], THIN_WIDE, add)
    b.ret_void()
    return made


def _chains(
    b: ir.IRBuilder,
    target: Target,
    dtype: DType,
    lefts: list[ir.Value],
    left_step: ir.Value,
    right: ir.Value,
    right_step: ir.Value,
    k: ir.Value,
    outs: list[ir.Value],
    wide: int,
    add: ir.Value,
) -> None:
    """One block of each element of some rows by `wide` registers of columns."""
    fold = Fold("dot", dtype)
    vector = vector_of(fold, target)
    with Carried(b, k, [fold.identity(vector)] * (len(lefts) * wide)) as turn:
        row = at(b, right, b.mul(turn.index, right_step))
        vectors = [b.load(at(b, row, w, vector), typ=vector, align=dtype.bytes) for w in range(wide)]
        offset = b.mul(turn.index, left_step)
        for r, start in enumerate(lefts):
            left = splat(b, b.load(at(b, start, offset), typ=vector.element, align=dtype.bytes), vector.count)
            for w in range(wide):
                turn.next.append(fold.step(b, target, turn.values[r * wide + w], left, vectors[w]))
    places = [at(b, out, w, vector) for out in outs for w in range(wide)]
    with b.if_else(b.icmp_signed("!=", add, int64(0))) as (then, otherwise):
        for branch, adding in ((then, True), (otherwise, False)):
            with branch:
                for value, place in zip(turn.out, places, strict=True):
                    before = b.load(place, typ=vector, align=dtype.bytes) if adding else None
                    result = fold.combine(b, before, value) if adding else value
                    b.store(result, place, align=dtype.bytes)


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
        place = at(b, at(b, source, b.mul(k, row_step)), p, row)
        prefetch(b, at(b, place, b.mul(int64(AHEAD), row_step)))
        value = b.load(place, typ=row, align=dtype.bytes)
        b.store(value, at(b, to, b.add(b.mul(p, int64(PANEL)), k), row), align=64)
    first = b.mul(whole, int64(width))
    with b.if_then(b.icmp_signed("<", first, columns)):
        _pack_rest(b, copy_function(module, target), dtype.bytes, width, made.args, whole, dense)
    b.ret_void()
    return made


def _pack_rest(
    b: ir.IRBuilder, copy: ir.Function, size: int, width: int, args: Any, whole: ir.Value, dense: ir.Value
) -> None:
    """What is left of the columns when whole panels are copied; the lanes past the last one hold anything."""
    to, source, row_step, column_step, rows, columns = args
    first = b.mul(whole, int64(width))
    row = ir.VectorType(ir.IntType(8 * size), width)
    # a whole register may be read as long as it ends within the last row
    left = b.sub(columns, first)
    past = b.mul(b.sub(int64(width), left), int64(size))
    forward = b.and_(dense, b.icmp_signed(">", row_step, int64(0)))
    short = b.sdiv(b.sub(b.add(past, row_step), int64(1)), b.select(forward, row_step, int64(1)))
    quick = b.select(forward, b.sub(rows, short), int64(0))
    quick = b.select(b.icmp_signed(">", quick, int64(0)), quick, int64(0))
    panel = at(b, to, b.mul(whole, int64(PANEL)), row)
    start = at(b, source, b.mul(first, column_step))
    with loop(b, quick) as k:
        value = b.load(at(b, start, b.mul(k, row_step)), typ=row, align=size)
        b.store(value, at(b, panel, k, row), align=64)
    others = b.sub(rows, quick)
    with loop(b, b.sub(columns, first)) as j:
        skipped = b.add(b.mul(b.sdiv(j, int64(width)), int64(PANEL)), quick)
        place = at(b, at(b, panel, skipped, row), b.mul(b.srem(j, int64(width)), int64(size)))
        column = at(b, at(b, start, b.mul(quick, row_step)), b.mul(j, column_step))
        b.call(copy, [place, int64(width * size), column, row_step, others, others, int64(size)])

"""Matrix products: every element is one chain of fused multiply-adds from +0.0 for each block of 256 `k`, the blocks added in order.

Tiles of some rows by two registers of columns stay in registers for a whole block; a panel of the right operand is copied side by
side, which also takes care of its strides and of the edge. Nothing an element is made of depends on the tile it lies in.

`gdl.gemm_loop(operands, dims, steps, description)` is NumPy's inner loop for `(m,k),(k,n)->(m,n)`, and what compiled programs call.
The descriptions are `gdl.gemm.<dtype>`, and `gdl.gemm.<dtype>.guard0`, `.guard1` for `Contract` with that guard. A guard is about
the whole operand: where NumPy loops over several products, it is the caller who has to look.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import LOOP, copy_function
from graphdsl.native.flow import I32, I64, POINTER, VOID, Carried, at, call_address, field, int64, loop, minimum, slot
from graphdsl.native.folds import Fold, splat, vector_of
from graphdsl.native.target import Target, function
from graphdsl.ops.types import F32, F64, DType
from graphdsl.ops.types import I32 as INT32
from graphdsl.ops.types import I64 as INT64

HEIGHTS = 4  # of tiles
DEPTH = 256  # of a block: language.md §10
_REGISTERS_WIDE = 2  # a tile's columns
_ROWS_BETWEEN_PACKING = 192  # so that the rows used with one panel stay in the second-level cache
DTYPES = (F32, F64, INT32, INT64)

# tile(a, row_step, column_step, b, b_step, k, c, c_row_step, add)
_TILE = ir.FunctionType(VOID, [POINTER, I64, I64, POINTER, I64, I64, POINTER, I64, I64])
# pack(to, b, row_step, column_step, rows, columns): side by side, a panel wide
_PACK = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64, I64])

# words of a description: bytes of an element, of a panel's row; guard; the bits that are 0 in a 0; pack; then tiles with their rows, largest first
SIZE, WIDTH, GUARD, MASK, PACK, TILE = range(6)
_GUARDS = {"": 0, ".guard0": 1, ".guard1": 2}


def tile_rows(target: Target, dtype: DType) -> tuple[int, ...]:
    """The heights of tiles, largest first. The largest fills the registers: 16 of them, or 32 (AVX-512, Arm)."""
    if not dtype.is_float:
        return (2, 1, 1, 1)
    many = target.vector_bits == 512 or "x86" not in target.triple and "i386" not in target.triple
    return (12, 4, 2, 1) if many else (6, 4, 2, 1)


def define_gemm(module: ir.Module, target: Target) -> list[str]:
    """Defines the products of all dtypes; returns the names of the descriptions."""
    names = []
    one = _define_product(module, target)
    _define_gemm_loop(module, target, one)
    for dtype in DTYPES:
        rows = tile_rows(target, dtype)
        tiles = {height: _define_tile(module, target, dtype, height) for height in sorted(set(rows))}
        pack = _define_pack(module, target, dtype)
        width = target.vector_bits // 8 * _REGISTERS_WIDE
        parts: list[Any] = [int64(dtype.bytes), int64(width), None, int64(_zero_mask(dtype)), pack]
        for height in rows:
            parts += [int64(height), tiles[height]]
        type = ir.LiteralStructType([*[I64] * 4, POINTER, *[I64, POINTER] * len(rows)])
        for suffix, guard in _GUARDS.items():
            parts[GUARD] = int64(guard)
            made = ir.GlobalVariable(module, type, description(dtype) + suffix)
            made.global_constant = True
            made.initializer = ir.Constant(type, parts)
            names.append(made.name)
    return names


def description(dtype: DType, guard: int | None = None) -> str:
    """The name of the description of a product."""
    return f"gdl.gemm.{dtype.value}" + ("" if guard is None else f".guard{guard}")


def _zero_mask(dtype: DType) -> int:
    bits = 8 * dtype.bytes
    return (1 << (bits - 1)) - 1 if dtype.is_float else (1 << bits) - 1


# ---- pieces for one dtype ---------------------------------------------------------------------------


def _define_tile(module: ir.Module, target: Target, dtype: DType, rows: int) -> ir.Function:
    """`rows` by two registers: one block's chains, stored to `c` or added to what stands there."""
    made = function(module, target, f"gdl.tile{rows}.{dtype.value}", _TILE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    a, row_step, column_step, panel, panel_step, k, c, c_row_step, add = made.args
    fold = Fold("dot", dtype)
    vector = vector_of(fold, target)
    starts = [at(b, a, b.mul(int64(r), row_step)) for r in range(rows)]
    zeros = [fold.identity(vector)] * (rows * _REGISTERS_WIDE)
    with Carried(b, k, zeros) as turn:
        row = at(b, panel, b.mul(turn.index, panel_step))
        right = [b.load(at(b, row, w, vector), typ=vector, align=dtype.bytes) for w in range(_REGISTERS_WIDE)]
        offset = b.mul(turn.index, column_step)
        for r, start in enumerate(starts):
            left = splat(b, b.load(at(b, start, offset), typ=vector.element, align=dtype.bytes), vector.count)
            for w in range(_REGISTERS_WIDE):
                turn.next.append(fold.step(b, target, turn.values[r * _REGISTERS_WIDE + w], left, right[w]))
    adds = b.icmp_signed("!=", add, int64(0))
    with b.if_else(adds) as (then, otherwise):
        for branch, adding in ((then, True), (otherwise, False)):
            with branch:
                _put(b, fold, turn.out, c, c_row_step, vector, adding)
    b.ret_void()
    return made


def _put(
    b: ir.IRBuilder, fold: Fold, tile: list[ir.Value], c: ir.Value, row_step: ir.Value, vector: Any, adding: bool
) -> None:
    for i, value in enumerate(tile):
        r, w = divmod(i, _REGISTERS_WIDE)
        place = at(b, at(b, c, b.mul(int64(r), row_step)), w, vector)
        if adding:
            value = fold.combine(b, b.load(place, typ=vector, align=fold.dtype.bytes), value)
        b.store(value, place, align=fold.dtype.bytes)


def _define_pack(module: ir.Module, target: Target, dtype: DType) -> ir.Function:
    name = f"gdl.pack{dtype.bytes}"
    if name in module.globals:
        return module.globals[name]
    made = function(module, target, name, _PACK, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    to, source, row_step, column_step, rows, columns = made.args
    element = ir.IntType(8 * dtype.bytes)
    width = target.lanes(8 * dtype.bytes) * _REGISTERS_WIDE
    whole = ir.VectorType(element, width)
    bytes = int64(dtype.bytes)
    fast = b.and_(b.icmp_signed("==", column_step, bytes), b.icmp_signed("==", columns, int64(width)))
    with b.if_then(fast):
        with loop(b, rows) as k:
            value = b.load(at(b, source, b.mul(k, row_step)), typ=whole, align=dtype.bytes)
            b.store(value, at(b, to, k, whole), align=64)
        b.ret_void()
    copy = copy_function(module, target)
    panel_row = int64(width * dtype.bytes)
    zero = slot(b, I64)
    b.store(int64(0), zero)
    with loop(b, width) as j:
        there = b.icmp_signed("<", j, columns)
        column = b.select(there, at(b, source, b.mul(j, column_step)), zero)
        step = b.select(there, row_step, int64(0))
        b.call(copy, [at(b, to, b.mul(j, bytes)), panel_row, column, step, rows, rows, bytes])
    b.ret_void()
    return made


# ---- one product, of any dtype ------------------------------------------------------------------------

# product(description, sizes {m, n, k}, operands {a, b, c}, steps {a: row, column; b: …; c: …})
_PRODUCT = ir.FunctionType(VOID, [POINTER, POINTER, POINTER, POINTER])
_M, _N, _K = range(3)


class _Product:
    """The arguments of a product, read once."""

    def __init__(self, b: ir.IRBuilder, args: Any) -> None:
        info, sizes, operands, steps = args
        self.info = info
        self.m, self.n, self.k = (field(b, sizes, i) for i in range(3))
        self.a, self.b, self.c = (field(b, operands, i, POINTER) for i in range(3))
        self.a_row, self.a_column, self.b_row, self.b_column, self.c_row, self.c_column = (
            field(b, steps, i) for i in range(6)
        )
        self.size, self.width = field(b, info, SIZE), field(b, info, WIDTH)


def _define_product(module: ir.Module, target: Target) -> ir.Function:
    strip = _define_strip(module, target)
    made = function(module, target, "gdl.product", _PRODUCT, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    p = _Product(b, made.args)
    columns = b.sdiv(p.width, p.size)
    depth = int64(DEPTH)
    blocks = b.sdiv(b.add(p.k, int64(DEPTH - 1)), depth)
    blocks = b.select(b.icmp_signed("<", blocks, int64(1)), int64(1), blocks)  # a product over nothing is +0.0
    panel = slot(b, I64, DEPTH * target.vector_bits // 8 * _REGISTERS_WIDE // 8, align=64)
    with loop(b, p.m, _ROWS_BETWEEN_PACKING) as i, loop(b, blocks) as block:
        rows = minimum(b, b.sub(p.m, i), int64(_ROWS_BETWEEN_PACKING))
        start = b.mul(block, depth)
        k = minimum(b, b.sub(p.k, start), depth)
        left = at(b, at(b, p.a, b.mul(i, p.a_row)), b.mul(start, p.a_column))
        right = at(b, p.b, b.mul(start, p.b_row))
        out = at(b, p.c, b.mul(i, p.c_row))
        with Carried(b, b.sdiv(b.sub(b.add(p.n, columns), int64(1)), columns), []) as turn:
            j = b.mul(turn.index, columns)
            n = minimum(b, b.sub(p.n, j), columns)
            source = at(b, right, b.mul(j, p.b_column))
            direct = _usable(b, p, rows, n, columns)
            with b.if_then(b.not_(direct)):
                pack = field(b, p.info, PACK, POINTER)
                call_address(b, pack, _PACK, [panel, source, p.b_row, p.b_column, k, n])
            here = b.select(direct, source, panel)
            step = b.select(direct, p.b_row, p.width)
            place = at(b, out, b.mul(j, p.c_column))
            b.call(strip, [p.info, left, p.a_row, p.a_column, here, step, k, rows, n, place, p.c_row, p.c_column, block])
    b.ret_void()
    return made


def _usable(b: ir.IRBuilder, p: _Product, rows: ir.Value, n: ir.Value, columns: ir.Value) -> ir.Value:
    """Whether a panel is read where it is: whole, its rows side by side, and too few rows on the left to pay for a copy."""
    whole = b.and_(b.icmp_signed("==", n, columns), b.icmp_signed("==", p.b_column, p.size))
    return b.and_(whole, b.icmp_signed("<=", rows, int64(6)))


def _define_strip(module: ir.Module, target: Target) -> ir.Function:
    """All rows against one panel, by tiles of each height in turn."""
    turn = _define_turn(module, target)
    type = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, I64, I64, I64, I64, POINTER, I64, I64, I64])
    made = function(module, target, "gdl.gemm_strip", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, a, a_row, a_column, panel, step, k, rows, columns, c, c_row, c_column, add = made.args
    done: ir.Value = int64(0)
    for entry in range(HEIGHTS):
        height, code = field(b, info, TILE + 2 * entry), field(b, info, TILE + 2 * entry + 1, POINTER)
        with Carried(b, b.sdiv(b.sub(rows, done), height), [done]) as tiles:
            row = tiles.values[0]
            left, out = at(b, a, b.mul(row, a_row)), at(b, c, b.mul(row, c_row))
            args = [left, a_row, a_column, panel, step, k, out, c_row, c_column, add, height, columns]
            b.call(turn, [info, code, *args])
            tiles.next = [b.add(row, height)]
        done = tiles.out[0]
    b.ret_void()
    return made


def _define_turn(module: ir.Module, target: Target) -> ir.Function:
    """One tile, straight into `c`, or at an edge by way of a whole tile aside."""
    copy = _define_copy_rows(module, target)
    type = ir.FunctionType(VOID, [POINTER, *_TILE.args[:1], POINTER, *_TILE.args[1:7], I64, *_TILE.args[7:], I64, I64])
    made = function(module, target, "gdl.gemm_turn", type, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    info, code, a, a_row, a_column, panel, step, k, c, c_row, c_column, add, rows, columns = made.args
    size, width = field(b, info, SIZE), field(b, info, WIDTH)
    whole = b.and_(b.icmp_signed("==", b.mul(columns, size), width), b.icmp_signed("==", c_column, size))
    with b.if_then(whole, likely=True):
        call_address(b, code, _TILE, [a, a_row, a_column, panel, step, k, c, c_row, add])
        b.ret_void()
    aside = slot(b, I64, max(tile_rows(target, F32)) * target.vector_bits // 64 * _REGISTERS_WIDE, align=64)
    with b.if_then(b.icmp_signed("!=", add, int64(0))):
        b.call(copy, [size, aside, width, size, c, c_row, c_column, rows, columns])
    call_address(b, code, _TILE, [a, a_row, a_column, panel, step, k, aside, width, add])
    b.call(copy, [size, c, c_row, c_column, aside, width, size, rows, columns])
    b.ret_void()
    return made


def _define_copy_rows(module: ir.Module, target: Target) -> ir.Function:
    """`copy_rows(size, to, row_step, column_step, from, row_step, column_step, rows, columns)`."""
    copy = copy_function(module, target)
    type = ir.FunctionType(VOID, [I64, POINTER, I64, I64, POINTER, I64, I64, I64, I64])
    made = function(module, target, "gdl.copy_rows", type, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    size, to, to_row, to_column, source, source_row, source_column, rows, columns = made.args
    with loop(b, rows) as r:
        place, row = at(b, to, b.mul(r, to_row)), at(b, source, b.mul(r, source_row))
        b.call(copy, [place, to_column, row, source_column, columns, columns, size])
    b.ret_void()
    return made


# ---- NumPy's inner loop -------------------------------------------------------------------------------


def _define_gemm_loop(module: ir.Module, target: Target, product: ir.Function) -> None:
    nonzero = _define_nonzero(module, target)
    made = function(module, target, "gdl.gemm_loop", LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, dims, steps, info = made.args
    sizes = slot(b, I64, 3)
    for i, word in enumerate((1, 3, 2)):  # m, n, k, of which NumPy names k second
        b.store(field(b, dims, word), at(b, sizes, i, I64))
    k = field(b, dims, 2)
    places = slot(b, POINTER, 3)
    one = b.icmp_signed("==", field(b, dims, 0), int64(1))
    guarded = b.and_(one, b.icmp_signed("!=", field(b, info, GUARD), int64(0)))
    core_steps = at(b, steps, 3, I64)
    with loop(b, field(b, dims, 0)) as i:
        for o in range(3):
            place = at(b, field(b, operands, o, POINTER), b.mul(i, field(b, steps, o)))
            b.store(place, at(b, places, o, POINTER))
        with b.if_then(guarded):
            some = b.call(nonzero, [info, sizes, places, core_steps])
            b.store(b.select(some, k, int64(0)), at(b, sizes, _K, I64))  # a product over nothing is +0.0
        b.call(product, [info, sizes, places, core_steps])
    b.ret_void()


def _define_nonzero(module: ir.Module, target: Target) -> ir.Function:
    """Whether any element of the guarded operand is not 0: `nonzero(description, sizes, operands, steps)`, as for a product."""
    type = ir.FunctionType(ir.IntType(1), _PRODUCT.args)
    made = function(module, target, "gdl.gemm_nonzero", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    p = _Product(b, made.args)
    right = b.icmp_signed("==", field(b, p.info, GUARD), int64(2))
    x, rows, columns = b.select(right, p.b, p.a), b.select(right, p.k, p.m), b.select(right, p.n, p.k)
    row_step, column_step = b.select(right, p.b_row, p.a_row), b.select(right, p.b_column, p.a_column)
    wide = b.icmp_signed("==", p.size, int64(8))
    mask = field(b, p.info, MASK)
    found = slot(b, I64)
    b.store(int64(0), found)
    with loop(b, rows) as r, b.if_then(b.icmp_signed("==", b.load(found, typ=I64), int64(0))):
        row = at(b, x, b.mul(r, row_step))
        with b.if_else(wide) as (then, otherwise):
            for branch, element in ((then, I64), (otherwise, I32)):
                with branch:
                    some = _any_bits(b, row, columns, column_step, element)
                    b.store(b.and_(some, mask), found)
    b.ret(b.icmp_signed("!=", b.load(found, typ=I64), int64(0)))
    return made


def _any_bits(b: ir.IRBuilder, row: ir.Value, columns: ir.Value, step: ir.Value, element: Any) -> ir.Value:
    with Carried(b, columns, [ir.Constant(element, 0)]) as turn:
        bits = b.load(at(b, row, b.mul(turn.index, step)), typ=element, align=element.width // 8)
        turn.next = [b.or_(turn.values[0], bits)]
    return turn.out[0] if element is I64 else b.zext(turn.out[0], I64)

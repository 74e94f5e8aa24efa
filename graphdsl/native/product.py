"""One matrix product of any dtype: how it is cut into blocks, panels, slabs and tiles.

Which tile an element lies in changes nothing that it is made of.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import copy_function
from graphdsl.native.flow import (
    I8,
    I64,
    POINTER,
    VOID,
    Carried,
    at,
    call_address,
    field,
    int64,
    intrinsic,
    loop,
    minimum,
    slot,
)
from graphdsl.native.folds import prefetch
from graphdsl.native.target import Target, function
from graphdsl.native.tiles import (
    AHEAD,
    DEPTH,
    HEIGHTS,
    PACK_CODE,
    PANEL,
    THIN_CODE,
    THIN_WIDE,
    TILE_CODE,
    WIDE,
    tile_rows,
)
from graphdsl.ops.types import F32

# Panels of the right operand that are copied together, and bytes of rows of the left one (they stay in the second-level
# cache): on the stack for any product, on the heap for large ones.
_ON_STACK = (8, 64 * 1024)
_ON_HEAP = (64, 192 * 1024)
_LARGE = 64  # rows
_THIN = 3  # rows
_NEAR = 1024  # bytes from row to row of a right operand that is not copied
_FAR = 128 * 1024  # bytes over which rows of the left operand are spread if copying them is to pay

# words of a description: bytes of an element, of a panel's row; the bits that are 0 in a 0; which remainders of rows go
# better with one largest tile less; pack; thin tile; then tiles with their rows, largest first
SIZE, WIDTH, MASK, UNEVEN, PACK, THIN, TILE = range(7)

# product(description, sizes {m, n, k}, operands {a, b, c}, steps {a: row, column; b: …; c: …})
PRODUCT_CODE = ir.FunctionType(VOID, [POINTER, POINTER, POINTER, POINTER])
M, N, K = range(3)


class Product:
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

    def leave_out(self, b: ir.IRBuilder, columns: ir.Value) -> None:
        """Goes on without the first so many columns."""
        self.n = b.sub(self.n, columns)
        self.b = at(b, self.b, b.mul(columns, self.b_column))
        self.c = at(b, self.c, b.mul(columns, self.c_column))


def define_product(module: ir.Module, target: Target) -> ir.Function:
    """The function for one product. Blocks of `k`, within them chunks of panels, within these slabs of rows."""
    strip, copy_rows = _define_strip(module, target), _define_copy_rows(module, target)
    thin = _define_thin_rows(module, target)
    made = function(module, target, "gdl.product", PRODUCT_CODE, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    p = Product(b, made.args)
    blocks = b.sdiv(b.add(p.k, int64(DEPTH - 1)), int64(DEPTH))
    blocks = b.select(b.icmp_signed("<", blocks, int64(1)), int64(1), blocks)  # a product over nothing is +0.0
    with b.if_then(b.icmp_signed("==", p.m, int64(0))):
        b.ret_void()
    p.leave_out(b, b.call(thin, [*made.args, blocks]))
    columns, panel_bytes = b.sdiv(p.width, p.size), b.mul(p.width, int64(PANEL))
    copies, in_place = _copies_left(b, p, columns), _in_place(b, p)
    room = _Room(b, target, p, columns)
    most_columns, panels = b.mul(columns, room.panels), room.right
    height = b.select(copies, b.sdiv(room.left_bytes, b.mul(p.size, int64(DEPTH))), p.m)
    slabs = _pieces(b, p.m, height)
    with loop(b, blocks) as block, Carried(b, _pieces(b, p.n, most_columns), []) as chunk, loop(b, slabs) as slab:
        start, first = b.mul(block, int64(DEPTH)), b.mul(chunk.index, most_columns)
        k, wide = minimum(b, b.sub(p.k, start), int64(DEPTH)), minimum(b, b.sub(p.n, first), most_columns)
        right = at(b, at(b, p.b, b.mul(start, p.b_row)), b.mul(first, p.b_column))
        with b.if_then(b.and_(b.icmp_signed("==", slab, int64(0)), b.not_(in_place))):
            pack = field(b, p.info, PACK, POINTER)
            call_address(b, pack, PACK_CODE, [panels, right, p.b_row, p.b_column, k, wide])
        i = b.mul(slab, height)
        rows = minimum(b, b.sub(p.m, i), height)
        left = _Left(b, copy_rows, p, i, start)
        with b.if_then(copies):
            left.copy(rows, k, room.left)
        out = at(b, at(b, p.c, b.mul(i, p.c_row)), b.mul(first, p.c_column))
        with Carried(b, _pieces(b, wide, columns), []) as turn:
            j = b.mul(turn.index, columns)
            here = b.select(in_place, at(b, right, b.mul(j, p.size)), at(b, panels, b.mul(turn.index, panel_bytes)))
            step = b.select(in_place, p.b_row, p.width)
            place, n = at(b, out, b.mul(j, p.c_column)), minimum(b, b.sub(wide, j), columns)
            b.call(strip, [p.info, *left.read(), here, step, k, rows, n, place, p.c_row, p.c_column, block])
    room.free()
    b.ret_void()
    return made


def _define_thin_rows(module: ir.Module, target: Target) -> ir.Function:
    """`thin_rows(…, blocks)`: for few rows on the left, as many columns as go by long stretches of the right one's
    rows; how many.
    """
    made = function(module, target, "gdl.thin_rows", ir.FunctionType(I64, [*PRODUCT_CODE.args, I64]), private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    *args, blocks = made.args
    p = Product(b, args)
    dense = b.and_(b.icmp_signed("==", p.b_column, p.size), b.icmp_signed("==", p.c_column, p.size))
    with b.if_then(b.not_(b.and_(dense, b.icmp_signed("<=", p.m, int64(_THIN))))):
        b.ret(int64(0))
    code = field(b, p.info, THIN, POINTER)
    bytes = int64(target.vector_bits // 8 * THIN_WIDE)
    whole = b.sdiv(b.mul(p.n, p.size), bytes)
    with Carried(b, whole, []) as stretch, loop(b, blocks) as block, loop(b, p.m) as i:
        first, start = b.mul(stretch.index, bytes), b.mul(block, int64(DEPTH))
        k = minimum(b, b.sub(p.k, start), int64(DEPTH))
        left = at(b, at(b, p.a, b.mul(i, p.a_row)), b.mul(start, p.a_column))
        right = at(b, at(b, p.b, b.mul(start, p.b_row)), first)
        out = at(b, at(b, p.c, b.mul(i, p.c_row)), first)
        call_address(b, code, THIN_CODE, [left, p.a_column, right, p.b_row, k, out, block])
    b.ret(b.sdiv(b.mul(whole, bytes), p.size))
    return made


class _Room:
    """Where copies of the operands go."""

    def __init__(self, b: ir.IRBuilder, target: Target, p: Product, columns: ir.Value) -> None:
        self._b = b
        panel_bytes = PANEL * target.vector_bits // 8 * WIDE
        large = b.and_(
            b.icmp_signed(">=", p.m, int64(_LARGE)),
            b.icmp_signed(">", p.n, b.mul(columns, int64(_ON_STACK[0]))),
        )
        right, left = (slot(b, I64, bytes // 8, align=64) for bytes in (_ON_STACK[0] * panel_bytes, _ON_STACK[1]))
        self._heap = slot(b, POINTER)
        b.store(ir.Constant(POINTER, None), self._heap)
        with b.if_then(large):
            allocate = intrinsic(b.module, "PyMem_RawMalloc", POINTER, I64)
            b.store(b.call(allocate, [int64(_ON_HEAP[0] * panel_bytes + _ON_HEAP[1] + 64)]), self._heap)
        heap = b.load(self._heap, typ=POINTER)
        got = b.icmp_unsigned("!=", heap, ir.Constant(POINTER, None))
        aligned = at(b, heap, b.and_(b.sub(int64(0), b.ptrtoint(heap, I64)), int64(63)))
        self.panels, self.left_bytes = (
            b.select(got, int64(more), int64(less)) for less, more in zip(_ON_STACK, _ON_HEAP, strict=True)
        )
        self.right = b.select(got, aligned, right)
        self.left = b.select(got, at(b, aligned, _ON_HEAP[0] * panel_bytes), left)

    def free(self) -> None:
        b = self._b
        b.call(intrinsic(b.module, "PyMem_RawFree", VOID, POINTER), [b.load(self._heap, typ=POINTER)])


def _pieces(b: ir.IRBuilder, n: ir.Value, size: ir.Value) -> ir.Value:
    """How many pieces of a size cover `n`."""
    return b.sdiv(b.sub(b.add(n, size), int64(1)), size)


def _copies_left(b: ir.IRBuilder, p: Product, columns: ir.Value) -> ir.Value:
    """Whether rows of the left operand are copied before use: they are far apart or across, and there are panels
    enough.
    """
    across = b.icmp_signed("!=", p.a_column, p.size)
    far = b.icmp_signed(">", b.mul(p.m, p.a_row), int64(_FAR))
    return b.and_(b.or_(across, far), b.icmp_signed(">=", p.n, b.mul(columns, int64(8))))


def _in_place(b: ir.IRBuilder, p: Product) -> ir.Value:
    """Whether the right operand is read where it is: whole panels, rows without gaps, and too few rows on the left to
    pay for a copy.
    """
    dense = b.icmp_signed("==", p.b_column, p.size)
    whole = b.icmp_signed("==", b.srem(b.mul(p.n, p.size), p.width), int64(0))
    near = b.icmp_unsigned("<=", p.b_row, int64(_NEAR))
    return b.and_(b.and_(whole, dense), b.and_(near, b.icmp_signed("<=", p.m, int64(6))))


class _Left:
    """A block of rows of the left operand: where it stands, or its copy."""

    def __init__(self, b: ir.IRBuilder, copy_rows: ir.Function, p: Product, row: ir.Value, column: ir.Value) -> None:
        self._b, self._copy_rows, self._p = b, copy_rows, p
        self._words = [slot(b, type) for type in (POINTER, I64, I64)]
        place = at(b, at(b, p.a, b.mul(row, p.a_row)), b.mul(column, p.a_column))
        self._set(place, p.a_row, p.a_column)

    def _set(self, *words: ir.Value) -> None:
        for word, place in zip(words, self._words, strict=True):
            self._b.store(word, place)

    def copy(self, rows: ir.Value, k: ir.Value, to: ir.Value) -> None:
        place, row_step, column_step = self.read()
        size = self._p.size
        width = self._b.mul(size, int64(DEPTH))
        self._b.call(self._copy_rows, [size, to, width, size, place, row_step, column_step, rows, k])
        self._set(to, width, size)

    def read(self) -> list[ir.Value]:
        """Address, step from row to row, and from column to column."""
        return [self._b.load(word, typ=type) for word, type in zip(self._words, (POINTER, I64, I64), strict=True)]


def _define_strip(module: ir.Module, target: Target) -> ir.Function:
    """All rows against one panel, by tiles of each height in turn."""
    aside = _define_aside(module, target)
    type = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, I64, I64, I64, I64, POINTER, I64, I64, I64])
    made = function(module, target, "gdl.gemm_strip", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, a, a_row, a_column, panel, step, k, rows, columns, c, c_row, c_column, add = made.args
    size, width = field(b, info, SIZE), field(b, info, WIDTH)
    whole = b.and_(b.icmp_signed("==", b.mul(columns, size), width), b.icmp_signed("==", c_column, size))
    done: ir.Value = int64(0)
    for entry in range(HEIGHTS):
        height, code = field(b, info, TILE + 2 * entry), field(b, info, TILE + 2 * entry + 1, POINTER)
        count = b.sdiv(b.sub(rows, done), height)
        if entry == 0:
            count = _evened(b, info, rows, height, count)
        with Carried(b, count, [done]) as tiles:
            row = tiles.values[0]
            left, out = at(b, a, b.mul(row, a_row)), at(b, c, b.mul(row, c_row))
            operands = [left, a_row, a_column, panel, step, k]
            with b.if_else(whole) as (then, otherwise):
                with then:
                    call_address(b, code, TILE_CODE, [*operands, out, c_row, add])
                with otherwise:
                    b.call(aside, [info, code, *operands, out, c_row, c_column, add, height, columns])
            tiles.next = [b.add(row, height)]
        done = tiles.out[0]
    b.ret_void()
    return made


def _evened(b: ir.IRBuilder, info: ir.Value, rows: ir.Value, height: ir.Value, count: ir.Value) -> ir.Value:
    """One largest tile less where that leaves rows for two tiles of middling height, and not for one that is low and
    slow.
    """
    rest = b.sub(rows, b.mul(count, height))
    uneven = b.trunc(b.lshr(field(b, info, UNEVEN), rest), ir.IntType(1))
    less = b.and_(uneven, b.icmp_signed(">", count, int64(0)))
    return b.sub(count, b.zext(less, I64))


def _define_aside(module: ir.Module, target: Target) -> ir.Function:
    """A tile at an edge of `c`, by way of a whole one aside."""
    copy = _define_copy_rows(module, target)
    type = ir.FunctionType(
        VOID, [POINTER, *TILE_CODE.args[:1], POINTER, *TILE_CODE.args[1:7], I64, *TILE_CODE.args[7:], I64, I64]
    )
    made = function(module, target, "gdl.gemm_aside", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, code, a, a_row, a_column, panel, step, k, c, c_row, c_column, add, rows, columns = made.args
    size, width = field(b, info, SIZE), field(b, info, WIDTH)
    aside = slot(b, I64, max(tile_rows(target, F32)) * target.vector_bits // 64 * WIDE, align=64)
    with b.if_then(b.icmp_signed("!=", add, int64(0))):
        b.call(copy, [size, aside, width, size, c, c_row, c_column, rows, columns])
    call_address(b, code, TILE_CODE, [a, a_row, a_column, panel, step, k, aside, width, add])
    b.call(copy, [size, c, c_row, c_column, aside, width, size, rows, columns])
    b.ret_void()
    return made


def _define_copy_rows(module: ir.Module, target: Target) -> ir.Function:
    """`copy_rows(size, to, row_step, column_step, from, row_step, column_step, rows, columns)`."""
    if "gdl.copy_rows" in module.globals:
        return module.globals["gdl.copy_rows"]
    copy = copy_function(module, target)
    type = ir.FunctionType(VOID, [I64, POINTER, I64, I64, POINTER, I64, I64, I64, I64])
    made = function(module, target, "gdl.copy_rows", type, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    size, to, to_row, to_column, source, source_row, source_column, rows, columns = made.args
    dense = b.and_(b.icmp_signed("==", to_column, size), b.icmp_signed("==", source_column, size))
    bytes = b.mul(columns, size)
    with loop(b, rows) as r:
        place, row = at(b, to, b.mul(r, to_row)), at(b, source, b.mul(r, source_row))
        with b.if_else(dense) as (then, otherwise):
            with then:
                _copy_dense(b, place, row, bytes, at(b, row, b.mul(int64(AHEAD), source_row)))
            with otherwise:
                b.call(copy, [place, to_column, row, source_column, columns, columns, size])
    b.ret_void()
    return made


def _copy_dense(b: ir.IRBuilder, to: ir.Value, source: ir.Value, bytes: ir.Value, later: ir.Value) -> None:
    """Bytes side by side, a multiple of 4 of them; as many at `later` will be wanted soon."""
    done: ir.Value = int64(0)
    for width in (64, 8, 4):
        type = ir.VectorType(I8, width)
        with Carried(b, b.sdiv(b.sub(bytes, done), int64(width)), [done]) as turn:
            place = turn.values[0]
            prefetch(b, at(b, later, place))
            b.store(b.load(at(b, source, place), typ=type, align=1), at(b, to, place), align=1)
            turn.next = [b.add(place, int64(width))]
        done = turn.out[0]

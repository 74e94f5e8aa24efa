"""Reductions of many adjoining columns at once (`axis=0`): the lanes of a sum as rows of partial results.

The order within each column is that of `reductions`, and so are the bits. Shared by all kinds and dtypes.
"""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.elementwise import copy_function
from graphdsl.native.flow import I64, POINTER, VOID, Carried, at, call_address, field, int64, loop, minimum, slot
from graphdsl.native.folds import (
    BLOCK,
    IDENTITY,
    LANES,
    MERGE_CODE,
    MERGE_WORD,
    ROWS_CODE,
    ROWS_WORD,
    SIZE,
    SOURCES,
    STRIP,
)
from graphdsl.native.source import ADDRESS, ADJOINING, DIMS, SOURCE_WORDS, STRIDES, A, B, C
from graphdsl.native.target import Target, function

# columns(description, sources, outer, out, out_step, outer_steps)
COLUMNS = ir.FunctionType(I64, [POINTER, POINTER, I64, POINTER, I64, POINTER])


def define_columns(module: ir.Module, target: Target) -> ir.Function:
    """The function that reduces as many of `outer` columns as it can, and says how many.

    None, unless the columns adjoin, all use the same second source, and are short enough for two levels of blocks.
    """
    strip = _define_strip(module, target)
    made = function(module, target, "gdl.columns", COLUMNS, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, sources, outer, out, out_step, steps = made.args
    with b.if_then(b.not_(_fits(b, info, sources, steps))):
        b.ret(int64(0))
    register = target.vector_bits // 8
    size = field(b, info, SIZE)
    whole = b.and_(b.mul(outer, size), int64(-register))
    with loop(b, whole, STRIP) as start:
        bytes = minimum(b, b.sub(whole, start), int64(STRIP))
        place = at(b, out, b.mul(b.sdiv(start, size), out_step))
        b.call(strip, [info, sources, start, bytes, place, out_step])
    # the last few columns go with some before them, which come out the same again
    rest = b.icmp_signed("<", whole, b.mul(outer, size))
    with b.if_then(b.and_(rest, b.icmp_signed(">", whole, int64(0)))):
        first = b.sub(outer, b.sdiv(int64(register), size))
        place = at(b, out, b.mul(first, out_step))
        b.call(strip, [info, sources, b.mul(first, size), int64(register), place, out_step])
        b.ret(outer)
    b.ret(b.sdiv(whole, size))
    return made


def _count(b: ir.IRBuilder, source: ir.Value) -> ir.Value:
    a, middle, c = (field(b, source, DIMS + axis) for axis in (A, B, C))
    return b.mul(b.mul(a, middle), c)


def _fits(b: ir.IRBuilder, info: ir.Value, sources: ir.Value, steps: ir.Value) -> ir.Value:
    one_source = b.icmp_signed("==", field(b, info, SOURCES), int64(1))
    same_second = b.or_(one_source, b.icmp_signed("==", field(b, steps, 1), int64(0)))
    adjoin = b.icmp_signed("==", field(b, steps, 0), field(b, info, SIZE))
    apart = b.icmp_signed("==", field(b, sources, ADJOINING), int64(0))
    n = _count(b, sources)
    some = b.and_(b.icmp_signed(">", n, int64(0)), b.icmp_signed("<=", n, int64(BLOCK * BLOCK)))
    return b.and_(b.and_(same_second, adjoin), b.and_(apart, some))


def _define_strip(module: ir.Module, target: Target) -> ir.Function:
    """`strip(description, sources, first, bytes, out, out_step)`: the columns in so many bytes of each row."""
    type = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, I64])
    made = function(module, target, "gdl.strip", type, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    info, sources, first, bytes, out, out_step = made.args
    strip = _Strip(b, target, info, bytes)
    rows = _define_some_rows(module, target)
    blocks = b.sdiv(b.add(_count(b, sources), int64(BLOCK - 1)), int64(BLOCK))
    several = b.icmp_signed(">", blocks, int64(1))
    with b.if_then(several):
        strip.reset(strip.upper)
    with loop(b, blocks) as i:
        strip.reset(strip.lanes)
        b.call(rows, [info, sources, first, b.mul(i, int64(BLOCK)), strip.lanes, strip.vectors])
        strip.halve(strip.lanes)
        with b.if_then(several):
            place = at(b, strip.upper, b.mul(b.and_(i, int64(LANES - 1)), bytes))
            strip.merge(place, strip.lanes, strip.vectors)
    with b.if_then(several):
        strip.halve(strip.upper)
    copy = copy_function(module, target)
    result = b.select(several, strip.upper, strip.lanes)
    n = b.sdiv(bytes, strip.size)
    b.call(copy, [out, out_step, result, strip.size, n, n, strip.size])
    b.ret_void()
    return made


class _Strip:
    """32 rows of partial results within a block, and 32 above them for the blocks' results."""

    def __init__(self, b: ir.IRBuilder, target: Target, info: ir.Value, bytes: ir.Value) -> None:
        self._b, self._target, self._info, self._bytes = b, target, info, bytes
        self.size = field(b, info, SIZE)
        self.vectors = b.sdiv(bytes, int64(target.vector_bits // 8))
        self.lanes, self.upper = (slot(b, I64, LANES * STRIP // 8, align=64) for _ in range(2))

    def reset(self, rows: ir.Value) -> None:
        b = self._b
        n = b.sdiv(b.mul(self._bytes, int64(LANES)), self.size)
        identity = at(b, self._info, IDENTITY, I64)
        b.call(copy_function(b.module, self._target), [rows, self.size, identity, int64(0), n, n, self.size])

    def merge(self, to: ir.Value, rows: ir.Value, vectors: ir.Value) -> None:
        call_address(self._b, field(self._b, self._info, MERGE_WORD, POINTER), MERGE_CODE, [to, rows, vectors])

    def halve(self, rows: ir.Value) -> None:
        """Row `i` with row `i + 16`, then 8, 4, 2, 1 apart."""
        half = LANES // 2
        while half:
            b = self._b
            self.merge(rows, at(b, rows, b.mul(self._bytes, int64(half))), b.mul(self.vectors, int64(half)))
            half //= 2


def _define_some_rows(module: ir.Module, target: Target) -> ir.Function:
    """`some_rows(description, sources, first, start, lanes, vectors)`: the rows of one block, in runs along the
    innermost axis.
    """
    type = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, I64])
    made = function(module, target, "gdl.some_rows", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, sources, first, start, lanes, vectors = made.args
    code = field(b, info, ROWS_WORD, POINTER)
    base = at(b, field(b, sources, ADDRESS, POINTER), first)
    dims, strides = ([field(b, sources, words + axis) for axis in (A, B, C)] for words in (DIMS, STRIDES))
    second = at(b, sources, SOURCE_WORDS, I64)
    y, y_step = _second(b, info, second)
    n = minimum(b, b.sub(_count(b, sources), start), int64(BLOCK))
    first_run = b.sdiv(start, dims[C])
    runs = b.sub(b.sdiv(b.sub(b.add(start, n), int64(1)), dims[C]), first_run)
    with Carried(b, b.add(runs, int64(1)), [int64(0)]) as run:
        r, done = b.add(first_run, run.index), run.values[0]
        k = b.add(start, done)
        c = b.sub(k, b.mul(r, dims[C]))
        count = minimum(b, b.sub(dims[C], c), b.sub(n, done))
        i, j = b.sdiv(r, dims[B]), b.srem(r, dims[B])
        offset = b.add(b.mul(i, strides[A]), b.add(b.mul(j, strides[B]), b.mul(c, strides[C])))
        args = [lanes, done, at(b, base, offset), strides[C], at(b, y, b.mul(k, y_step)), y_step, count, vectors]
        call_address(b, code, ROWS_CODE, args)
        run.next = [b.add(done, count)]
    b.ret_void()
    return made


def _second(b: ir.IRBuilder, info: ir.Value, record: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Address and stride of the second source; anything, where there is none."""
    there = b.icmp_signed("==", field(b, info, SOURCES), int64(2))
    null = ir.Constant(POINTER, None)
    address, step = slot(b, POINTER), slot(b, I64)
    b.store(null, address)
    b.store(int64(0), step)
    with b.if_then(there):
        b.store(field(b, record, ADDRESS, POINTER), address)
        b.store(field(b, record, STRIDES + C), step)
    return b.load(address, typ=POINTER), b.load(step, typ=I64)

"""Reductions in the order of grammars/README.md, "Numbers", as native code.

Blocks of 4,096 elements, 32 lanes, lanes combined by halves; the results of the blocks are combined in the same way.
All kinds and dtypes share this code, which calls their pieces (`folds`) through a description.

`gdl.reduce_loop(operands, dims, steps, description)` is the inner loop of NumPy gufuncs, over one to three reduced
axes with any strides, and what compiled programs call too; the descriptions are `gdl.<kind>.<dtype>.rank<1, 2 or 3>`.
Positions of extremes are the same with `gdl.search_loop`.
"""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir

from graphdsl.native.columns import define_columns
from graphdsl.native.elementwise import LOOP
from graphdsl.native.flow import I64, POINTER, VOID, at, call_address, field, int64, loop, minimum, slot
from graphdsl.native.folds import (
    BLOCK,
    BLOCK_CODE,
    BLOCK_WORD,
    COMBINE_WORD,
    KINDS,
    RANK,
    SEARCH_WORD,
    SIZE,
    SOURCES,
    Fold,
    define_block,
    define_merge,
    define_rows,
)
from graphdsl.native.names import MOST_AXES, REDUCE_LOOP, SEARCH_LOOP, description, simple
from graphdsl.native.search import SEARCH_CODE, define_search
from graphdsl.native.source import ADDRESS, ADJOINING, SOURCE_WORDS, define_gather, define_source
from graphdsl.native.target import Target, function

_MOST_SOURCES = 2
# reduce(description, sources, start, n, out)
_REDUCE = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER])


def define_reductions(module: ir.Module, target: Target) -> list[str]:
    """Defines every kind over every dtype it has; returns the names of the descriptions and functions."""
    reduce = _define_reduce(module, target)
    _define_reduce_loop(module, target, reduce)
    _define_search_loop(module, target, reduce)
    names = []
    for kind, dtypes in KINDS.items():
        for dtype in dtypes:
            fold = Fold(kind, dtype)
            names += _describe(module, target, fold)
            _define_simple(module, target, fold, module.globals[names[-1]], reduce)
            names.append(simple(fold.kind, fold.dtype))
    return names


def _define_simple(module: ir.Module, target: Target, fold: Fold, info: ir.Value, reduce: ir.Function) -> None:
    """`gdl.<kind>.<dtype>(x, n)` (a dot: `(x, y, n)`) of adjoining elements, for compiled programs."""
    made = function(
        module, target, simple(fold.kind, fold.dtype), ir.FunctionType(fold.type, [POINTER] * fold.sources + [I64])
    )
    b = ir.IRBuilder(made.append_basic_block())
    *addresses, n = made.args
    sources, out = slot(b, I64, SOURCE_WORDS * fold.sources), slot(b, I64)
    make, size = define_source(module, target), int64(fold.dtype.bytes)
    for s, address in enumerate(addresses):
        record = at(b, sources, s * SOURCE_WORDS, I64)
        b.store(address, at(b, record, ADDRESS, I64))
        b.call(make, [record, size, int64(1), int64(1), n, int64(0), int64(0), size])
    b.call(reduce, [info, sources, int64(0), n, out])
    b.ret(b.load(out, typ=fold.type))


def _describe(module: ir.Module, target: Target, fold: Fold) -> list[str]:
    combining = fold.combining
    null = ir.Constant(POINTER, None)
    searched = fold.kind in ("max", "min")
    pieces = [
        define_block(module, target, fold),
        define_block(module, target, combining),
        define_rows(module, target, fold),
        define_merge(module, target, combining),
        define_search(module, target, fold.dtype) if searched else null,
    ]
    type = ir.LiteralStructType([*[I64] * 4, *[POINTER] * len(pieces)])
    names = []
    for rank in range(1, MOST_AXES + 1):
        name = description(fold.kind, fold.dtype, rank)
        words = [int64(w) for w in (rank, fold.sources, fold.dtype.bytes, _bits(fold))]
        made = ir.GlobalVariable(module, type, name)
        made.global_constant = True
        made.initializer = ir.Constant(type, [*words, *pieces])
        names.append(name)
    return names


def _bits(fold: Fold) -> int:
    """The bits of the element that lanes start with."""
    if fold.dtype.is_float:
        return int.from_bytes(struct.pack({4: "<f", 8: "<d"}[fold.dtype.bytes], fold.start), "little")
    return int(fold.start)


# ---- one result -------------------------------------------------------------------------------------


def _define_reduce(module: ir.Module, target: Target) -> ir.Function:
    """One block, or the blocks' results as a block of its own, to any depth."""
    one_block = _define_one_block(module, target)
    made = function(module, target, "gdl.reduce", _REDUCE, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, sources, start, n, out = made.args
    with b.if_then(b.icmp_signed("<=", n, int64(BLOCK)), likely=True):
        b.call(one_block, [info, sources, start, n, out])
        b.ret_void()
    partial = slot(b, I64, BLOCK, align=64)
    squared = int64(BLOCK * BLOCK)
    span = b.select(b.icmp_signed("<=", n, squared), int64(BLOCK), squared)
    count = b.sdiv(b.sub(b.add(n, span), int64(1)), span)
    size = field(b, info, SIZE)
    with loop(b, count) as i:
        skipped = b.mul(i, span)
        length = minimum(b, b.sub(n, skipped), span)
        b.call(made, [info, sources, b.add(start, skipped), length, at(b, partial, b.mul(i, size))])
    call_address(b, field(b, info, COMBINE_WORD, POINTER), BLOCK_CODE, [partial, partial, count, out])
    b.ret_void()
    return made


def _define_one_block(module: ir.Module, target: Target) -> ir.Function:
    """At most 4,096 elements, taken from where they are or copied side by side first."""
    gather = define_gather(module, target)
    made = function(module, target, "gdl.reduce_block", _REDUCE, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    info, sources, start, n, out = made.args
    places = slot(b, POINTER, _MOST_SOURCES)
    buffers = slot(b, I64, BLOCK * _MOST_SOURCES, align=64)
    with loop(b, field(b, info, SOURCES)) as s:
        record = at(b, sources, b.mul(s, int64(8 * SOURCE_WORDS)))
        in_place = at(b, field(b, record, ADDRESS, POINTER), b.mul(start, field(b, info, SIZE)))
        buffer = at(b, buffers, b.mul(s, int64(8 * BLOCK)))
        scattered = b.icmp_signed("==", field(b, record, ADJOINING), int64(0))
        with b.if_then(b.and_(scattered, b.icmp_signed(">", n, int64(0)))):
            b.call(gather, [buffer, record, start, n])
        b.store(b.select(scattered, buffer, in_place), at(b, places, s, POINTER))
    x, y = (b.load(at(b, places, s, POINTER), typ=POINTER) for s in range(_MOST_SOURCES))
    call_address(b, field(b, info, BLOCK_WORD, POINTER), BLOCK_CODE, [x, y, n, out])
    b.ret_void()
    return made


# ---- NumPy's inner loops ----------------------------------------------------------------------------


class GufuncCall:
    """The arguments of a gufunc's inner loop `(n)->()`, `(a,b)->()`, `(a,b,c)->()` or `(n),(n)->()`, taken apart.

    `sources` are records of where to read, `count` is the number of elements reduced.
    """

    def __init__(self, b: ir.IRBuilder, target: Target, args: Any) -> None:
        self._b = b
        self._operands, dims, self.steps, info = args
        rank, self._number = field(b, info, RANK), field(b, info, SOURCES)
        self.sources = slot(b, I64, SOURCE_WORDS * _MOST_SOURCES)
        self.outer = field(b, dims, 0)
        self.out = b.load(at(b, self._operands, self._number, POINTER), typ=POINTER)
        self.out_step = self._word(self.steps, self._number)
        backwards = [b.sub(rank, int64(back)) for back in (2, 1, 0)]
        there = [b.icmp_signed(">", place, int64(0)) for place in backwards]
        places = [b.select(t, place, int64(0)) for t, place in zip(there, backwards, strict=True)]
        sizes = [b.select(t, self._word(dims, p), int64(1)) for t, p in zip(there, places, strict=True)]
        self.count = b.mul(b.mul(sizes[0], sizes[1]), sizes[2])
        make = define_source(b.module, target)
        with loop(b, self._number) as s:
            # the strides of one operand's reduced axes follow on each other, after those of the outer loop
            before = b.add(b.mul(rank, s), self._number)
            strides = [
                b.select(t, self._word(self.steps, b.add(before, p)), int64(0))
                for t, p in zip(there, places, strict=True)
            ]
            b.call(make, [self._record(s), field(b, info, SIZE), *sizes, *strides])
        self.move_to(int64(0))

    def _word(self, words: ir.Value, place: ir.Value) -> ir.Value:
        return self._b.load(at(self._b, words, place, I64), typ=I64)

    def _record(self, s: ir.Value) -> ir.Value:
        return at(self._b, self.sources, self._b.mul(s, int64(8 * SOURCE_WORDS)))

    def move_to(self, i: ir.Value) -> None:
        """Turns the sources to element `i` of the outer loop."""
        b = self._b
        with loop(b, self._number) as s:
            address = b.load(at(b, self._operands, s, POINTER), typ=POINTER)
            b.store(at(b, address, b.mul(i, self._word(self.steps, s))), at(b, self._record(s), ADDRESS, I64))


def _define_reduce_loop(module: ir.Module, target: Target, reduce: ir.Function) -> None:
    columns = define_columns(module, target)
    made = function(module, target, REDUCE_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    info = made.args[3]
    call = GufuncCall(b, target, made.args)
    done = b.call(columns, [info, call.sources, call.outer, call.out, call.out_step, call.steps])
    with loop(b, call.outer, start=done) as i:
        call.move_to(i)
        b.call(reduce, [info, call.sources, int64(0), call.count, at(b, call.out, b.mul(i, call.out_step))])
    b.ret_void()


def _define_search_loop(module: ir.Module, target: Target, reduce: ir.Function) -> None:
    """The extreme first, then the first place that has it: the result is its number in row-major order."""
    gather = define_gather(module, target)
    made = function(module, target, SEARCH_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    info = made.args[3]
    call = GufuncCall(b, target, made.args)
    extreme, found = slot(b, I64), slot(b, I64)
    buffer = slot(b, I64, BLOCK, align=64)
    size, search = field(b, info, SIZE), field(b, info, SEARCH_WORD, POINTER)
    adjoining = b.icmp_signed("!=", field(b, call.sources, ADJOINING), int64(0))
    with loop(b, call.outer) as i:
        call.move_to(i)
        b.call(reduce, [info, call.sources, int64(0), call.count, extreme])
        b.store(int64(-1), found)
        with loop(b, call.count, BLOCK) as start, b.if_then(b.icmp_signed("<", b.load(found, typ=I64), int64(0))):
            n = minimum(b, b.sub(call.count, start), int64(BLOCK))
            with b.if_then(b.not_(adjoining)):
                b.call(gather, [buffer, call.sources, start, n])
            in_place = at(b, field(b, call.sources, ADDRESS, POINTER), b.mul(start, size))
            place = call_address(b, search, SEARCH_CODE, [b.select(adjoining, in_place, buffer), n, extreme])
            with b.if_then(b.icmp_signed(">=", place, int64(0))):
                b.store(b.add(start, place), found)
        b.store(b.load(found, typ=I64), at(b, call.out, b.mul(i, call.out_step)), align=8)
    b.ret_void()

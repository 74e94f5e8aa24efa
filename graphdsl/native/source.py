"""Where a reduction reads: elements numbered in row-major order over up to three axes with any strides.

A record of words; axes that follow on each other without a gap are merged when it is made.
"""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.elementwise import copy_function
from graphdsl.native.flow import I64, POINTER, VOID, at, field, int64, loop, minimum, slot
from graphdsl.native.target import Target, function

# words of a source: address, bytes of an element, three sizes, three strides in bytes, 1 if all elements adjoin
ADDRESS, SIZE, DIMS, STRIDES, ADJOINING = 0, 1, 2, 5, 8
SOURCE_WORDS = 9
A, B, C = 0, 1, 2

_MAKE = ir.FunctionType(VOID, [POINTER] + [I64] * 7)
_GATHER = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64])


def define_source(module: ir.Module, target: Target) -> ir.Function:
    """`gdl.source(record, size, a, b, c, sa, sb, sc)` fills all of a record but its address."""
    if "gdl.source" in module.globals:
        return module.globals["gdl.source"]
    made = function(module, target, "gdl.source", _MAKE, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    record, size, *rest = made.args
    dims, strides = list(rest[:3]), list(rest[3:])
    one = int64(1)
    for _ in range(2):
        inner = b.mul(dims[C], strides[C])
        single = b.icmp_signed("==", dims[C], one)
        no_gap = b.or_(b.icmp_signed("==", dims[B], one), b.icmp_signed("==", strides[B], inner))
        merge = b.or_(single, no_gap)
        strides[C] = b.select(single, strides[B], strides[C])
        dims[C] = b.select(merge, b.mul(dims[B], dims[C]), dims[C])
        dims[B], strides[B] = b.select(merge, dims[A], dims[B]), b.select(merge, strides[A], strides[B])
        dims[A] = b.select(merge, one, dims[A])
    flat = b.icmp_signed("==", b.mul(dims[A], dims[B]), one)
    dense = b.or_(b.icmp_signed("==", strides[C], size), b.icmp_signed("<=", dims[C], one))
    words = {SIZE: size, ADJOINING: b.zext(b.and_(flat, dense), I64)}
    words |= {DIMS + i: d for i, d in enumerate(dims)} | {STRIDES + i: s for i, s in enumerate(strides)}
    for place, word in words.items():
        b.store(word, at(b, record, place, I64))
    b.ret_void()
    return made


def define_gather(module: ir.Module, target: Target) -> ir.Function:
    """`gdl.gather(to, source, start, n)` copies the elements `start … start + n` side by side."""
    if "gdl.gather" in module.globals:
        return module.globals["gdl.gather"]
    copy = copy_function(module, target)
    made = function(module, target, "gdl.gather", _GATHER, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    to, source, start, n = made.args
    address, size = field(b, source, ADDRESS, POINTER), field(b, source, SIZE)
    dims, strides = ([field(b, source, first + i) for i in range(3)] for first in (DIMS, STRIDES))
    done = slot(b, I64)
    b.store(int64(0), done)
    first = b.sdiv(start, dims[C])
    last = b.sdiv(b.sub(b.add(start, n), int64(1)), dims[C])
    with loop(b, b.add(last, int64(1)), start=first) as r:
        filled = b.load(done, typ=I64)
        column = b.sub(b.add(start, filled), b.mul(r, dims[C]))
        count = minimum(b, b.sub(dims[C], column), b.sub(n, filled))
        i, j = b.sdiv(r, dims[B]), b.srem(r, dims[B])
        offset = b.add(b.mul(i, strides[A]), b.add(b.mul(j, strides[B]), b.mul(column, strides[C])))
        place = at(b, to, b.mul(filled, size))
        b.call(copy, [place, size, at(b, address, offset), strides[C], count, count, size])
        b.store(b.add(filled, count), done)
    b.ret_void()
    return made

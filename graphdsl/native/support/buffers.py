"""Buffers with reference counts: how compiled programs get them and give them back, fill, copy and test them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, intrinsic, loop
from graphdsl.native.scalar import I1
from graphdsl.native.support.words import FREE_LISTS, HEADER_BYTES, PADDING, Header, Word
from graphdsl.native.target import Target, function

SIGNATURES: dict[str, ir.FunctionType] = {
    "run.new": ir.FunctionType(POINTER, [POINTER, I64]),
    "run.new.1": ir.FunctionType(POINTER, [POINTER, I64, I64]),
    "run.new.2": ir.FunctionType(POINTER, [POINTER, I64, I64, I64]),
    "run.new.3": ir.FunctionType(POINTER, [POINTER, I64, I64, I64, I64]),
    "run.own": ir.FunctionType(POINTER, [POINTER, POINTER, I64]),
    "run.release": ir.FunctionType(VOID, [POINTER, POINTER]),
    "run.copy": ir.FunctionType(VOID, [POINTER, POINTER, I64]),
    "run.zero": ir.FunctionType(VOID, [POINTER, I64]),
    "run.any.4": ir.FunctionType(I1, [POINTER, I64, I64]),
    "run.any.8": ir.FunctionType(I1, [POINTER, I64, I64]),
}
MOST_SIZES = 3  # that `run.new.…` multiplies
NULL = ir.Constant(POINTER, None)
_KEPT = 1 << 26  # bytes of free buffers that are kept in any case
_TOO_MANY = 1 << 47  # bytes that no machine has
_UNCOUNTED = (1 << 63) - 1  # a product that would be this or more


def define(module: ir.Module, target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines them all."""
    _new(functions["run.new"], _define_trim(module, target))
    for count in range(1, MOST_SIZES + 1):
        _new_of(functions[f"run.new.{count}"], functions["run.new"])
    _own(functions["run.own"], functions)
    _release(functions["run.release"])
    _copy(functions["run.copy"])
    _zero(functions["run.zero"])
    _any(functions["run.any.4"], I32)
    _any(functions["run.any.8"], I64)


def put(b: ir.IRBuilder, value: Any, pointer: ir.Value, index: int) -> None:
    """Write word `index` of a record."""
    b.store(value, at(b, pointer, index, I64))


def begin(made: ir.Function) -> ir.IRBuilder:
    """Where a function begins."""
    return ir.IRBuilder(made.append_basic_block())


def _new(made: ir.Function, trim: ir.Function) -> None:
    """A buffer of at least so many bytes with one reference; null: there is no memory, and it is noted how much was
    asked for.
    """
    b = begin(made)
    context, bytes = made.args
    sized, allowed, free, fresh, none = (
        made.append_basic_block(name) for name in ("sized", "allowed", "free", "fresh", "none")
    )
    b.cbranch(b.icmp_unsigned(">", bytes, int64(_TOO_MANY)), none, sized)
    b.position_at_end(sized)
    capacity, kind = _size_class(b, bytes)
    used = b.add(field(b, context, Word.USED), capacity)
    b.cbranch(b.icmp_unsigned(">", used, field(b, context, Word.LIMIT)), none, allowed)
    b.position_at_end(allowed)
    head = at(b, at(b, context, Word.FREE, I64), kind, I64)
    first = b.load(head, typ=POINTER)
    b.cbranch(b.icmp_unsigned("==", first, NULL), fresh, free)
    b.position_at_end(free)
    b.store(field(b, first, Header.NEXT_FREE, POINTER), head)
    put(b, int64(1), first, Header.COUNT)
    _count_in(b, context, used)
    b.ret(first)
    b.position_at_end(fresh)
    _trim_if_many(b, context, capacity, trim)
    block = _from_system(b, context, capacity, kind, none)
    _count_in(b, context, used)
    b.ret(block)
    b.position_at_end(none)
    put(b, bytes, context, Word.NUMBERS)
    put(b, int64(1), context, Word.COUNT)
    b.ret(NULL)


def _size_class(b: ir.IRBuilder, bytes: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The capacity for so many bytes, and the number of the list that it belongs to.

    Capacities are 5 to 8 eighths of powers of two, so that a freed buffer fits the next one of nearly the same size.
    """
    some = b.select(b.icmp_unsigned("==", bytes, int64(0)), int64(1), bytes)
    least = b.or_(b.sub(some, int64(1)), int64(63))
    zeros = b.call(intrinsic(b.module, "llvm.ctlz.i64", I64, I64, I1), [least, ir.Constant(I1, 1)])
    shift = b.sub(int64(61), zeros)  # leaves the highest bit and the two after it
    eighths = b.add(b.lshr(least, shift), int64(1))
    return b.shl(eighths, shift), b.add(b.shl(shift, int64(2)), b.sub(eighths, int64(5)))


def _count_in(b: ir.IRBuilder, context: ir.Value, used: ir.Value) -> None:
    put(b, used, context, Word.USED)
    peak = field(b, context, Word.PEAK)
    put(b, b.select(b.icmp_unsigned(">", used, peak), used, peak), context, Word.PEAK)


def _from_system(b: ir.IRBuilder, context: ir.Value, capacity: ir.Value, kind: ir.Value, none: ir.Block) -> ir.Value:
    """A new buffer; goes to `none` where the system has none."""
    allocate = field(b, context, Word.MALLOC, POINTER)
    room = b.add(capacity, int64(HEADER_BYTES + 64 + PADDING))
    raw = call_address(b, allocate, ir.FunctionType(POINTER, [I64]), [room])
    with b.if_then(b.icmp_unsigned("==", raw, NULL), likely=False):
        b.branch(none)
    block = b.inttoptr(b.and_(b.add(b.ptrtoint(raw, I64), int64(63)), int64(-64)), POINTER)
    for word, value in (
        (Header.COUNT, int64(1)),
        (Header.CAPACITY, capacity),
        (Header.CLASS, kind),
        (Header.RAW, raw),
        (Header.NEXT_BLOCK, field(b, context, Word.BLOCKS)),
    ):
        put(b, value, block, word)
    put(b, block, context, Word.BLOCKS)
    put(b, b.add(field(b, context, Word.TOTAL), capacity), context, Word.TOTAL)
    return block


def _trim_if_many(b: ir.IRBuilder, context: ir.Value, capacity: ir.Value, trim: ir.Function) -> None:
    """What is free goes back to the system before more is asked for than the limit, or than twice what was ever used."""
    wanted = b.add(field(b, context, Word.TOTAL), capacity)
    twice = b.add(b.shl(field(b, context, Word.PEAK), int64(1)), int64(_KEPT))
    many = b.or_(b.icmp_unsigned(">", wanted, field(b, context, Word.LIMIT)), b.icmp_unsigned(">", wanted, twice))
    with b.if_then(many, likely=False):
        b.call(trim, [context])


def _define_trim(module: ir.Module, target: Target) -> ir.Function:
    """Gives every free buffer back to the system."""
    made = function(module, target, "run.trim", ir.FunctionType(VOID, [POINTER]), private=True)
    made.attributes.add("noinline")
    b = begin(made)
    (context,) = made.args
    give_back = field(b, context, Word.FREE_FUNCTION, POINTER)
    first = field(b, context, Word.BLOCKS, POINTER)
    put(b, NULL, context, Word.BLOCKS)
    put(b, int64(0), context, Word.TOTAL)
    with loop(b, FREE_LISTS) as i:
        b.store(NULL, at(b, at(b, context, Word.FREE, I64), i, I64))
    before = b.block
    head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    block = b.phi(POINTER)
    block.add_incoming(first, before)
    b.cbranch(b.icmp_unsigned("==", block, NULL), done, body)
    b.position_at_end(body)
    following = field(b, block, Header.NEXT_BLOCK, POINTER)
    with b.if_else(b.icmp_signed(">", field(b, block, Header.COUNT), int64(0))) as (used, free):
        with used:
            put(b, field(b, context, Word.BLOCKS), block, Header.NEXT_BLOCK)
            put(b, block, context, Word.BLOCKS)
            total = b.add(field(b, context, Word.TOTAL), field(b, block, Header.CAPACITY))
            put(b, total, context, Word.TOTAL)
        with free:
            call_address(b, give_back, ir.FunctionType(VOID, [POINTER]), [field(b, block, Header.RAW, POINTER)])
    block.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(done)
    b.ret_void()
    return made


def _new_of(made: ir.Function, new: ir.Function) -> None:
    """A buffer of `bytes` times some sizes; more than any machine has where those that are not 0 do not fit i64."""
    b = begin(made)
    context, total, *sizes = made.args
    pair = ir.LiteralStructType([I64, I1])
    multiply = intrinsic(b.module, "llvm.smul.with.overflow.i64", pair, I64, I64)
    empty = over = ir.Constant(I1, 0)
    for size in sizes:
        none = b.icmp_signed("==", size, int64(0))
        both = b.call(multiply, [total, b.select(none, int64(1), size)])
        total = b.extract_value(both, 0)
        empty, over = b.or_(empty, none), b.or_(over, b.extract_value(both, 1))
    over = b.or_(over, b.icmp_unsigned(">=", total, int64(_UNCOUNTED)))
    bytes = b.select(over, int64(_UNCOUNTED), b.select(empty, int64(0), total))
    b.ret(b.call(new, [context, bytes]))


def _own(made: ir.Function, functions: dict[str, ir.Function]) -> None:
    """The buffer itself if there is one reference to it, else a new one in place of that reference."""
    b = begin(made)
    context, block, bytes = made.args
    with b.if_then(b.icmp_signed("==", field(b, block, Header.COUNT), int64(1)), likely=True):
        b.ret(block)
    fresh = b.call(functions["run.new"], [context, bytes])
    with b.if_then(b.icmp_unsigned("!=", fresh, NULL), likely=True):
        b.call(functions["run.release"], [context, block])
    b.ret(fresh)


def _release(made: ir.Function) -> None:
    """One reference less; the last one gives the buffer back."""
    b = begin(made)
    context, block = made.args
    count = b.sub(field(b, block, Header.COUNT), int64(1))
    put(b, count, block, Header.COUNT)
    with b.if_then(b.icmp_signed("==", count, int64(0))):
        head = at(b, at(b, context, Word.FREE, I64), field(b, block, Header.CLASS), I64)
        put(b, b.load(head, typ=POINTER), block, Header.NEXT_FREE)
        b.store(block, head)
        put(b, b.sub(field(b, context, Word.USED), field(b, block, Header.CAPACITY)), context, Word.USED)
    b.ret_void()


def _zero(made: ir.Function) -> None:
    """Zeros in so many bytes, rounded up to whole words."""
    b = begin(made)
    place, bytes = made.args
    with loop(b, b.udiv(b.add(bytes, int64(7)), int64(8))) as i:
        b.store(int64(0), at(b, place, i, I64))
    b.ret_void()


def _copy(made: ir.Function) -> None:
    """Copies so many bytes, rounded up to whole words (arrays are padded)."""
    b = begin(made)
    to, source, bytes = made.args
    for argument in (to, source):
        argument.add_attribute("noalias")
    with loop(b, b.udiv(b.add(bytes, int64(7)), int64(8))) as i:
        b.store(b.load(at(b, source, i, I64), typ=I64, align=1), at(b, to, i, I64), align=8)
    b.ret_void()


def _any(made: ir.Function, type: Any) -> None:
    """Whether some element is not 0; `signed`: whose highest bit is a sign, so that -0.0 is 0."""
    b = begin(made)
    place, count, signed = made.args
    mask = b.lshr(ir.Constant(type, -1), b.trunc(signed, type) if type is I32 else signed)
    with loop(b, count) as i:
        bits = b.and_(b.load(at(b, place, i, type), typ=type), mask)
        with b.if_then(b.icmp_unsigned("!=", bits, ir.Constant(type, 0))):
            b.ret(ir.Constant(I1, 1))
    b.ret(ir.Constant(I1, 0))


assert FREE_LISTS >= 4 * 62

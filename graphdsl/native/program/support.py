"""Functions that all compiled programs share: buffers with reference counts, and tapes.

They are an object of their own, built once for a CPU and cached, so that no program compiles them again. A stack is
three words in its maker's frame: the chunk that is written, its top and its end. A chunk is a buffer that begins with
the chunk before it and the top that was reached there. A tape is a stack of entries and one of the buffers that these
refer to; a shadow is a stack of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, loop
from graphdsl.native.program import rows, station, team
from graphdsl.native.program.words import FREE_LISTS, HEADER_BYTES, PADDING, SUPPORT, Header, Word
from graphdsl.native.scalar import I1, intrinsic
from graphdsl.native.target import Target, function

SIGNATURES: dict[str, ir.FunctionType] = {
    "run.new": ir.FunctionType(POINTER, [POINTER, I64]),
    "run.new.1": ir.FunctionType(POINTER, [POINTER, I64, I64]),
    "run.new.2": ir.FunctionType(POINTER, [POINTER, I64, I64, I64]),
    "run.new.3": ir.FunctionType(POINTER, [POINTER, I64, I64, I64, I64]),
    "run.own": ir.FunctionType(POINTER, [POINTER, POINTER, I64]),
    "run.release": ir.FunctionType(VOID, [POINTER, POINTER]),
    "run.tape.grow": ir.FunctionType(POINTER, [POINTER, POINTER, POINTER, I64]),
    "run.tape.keep": ir.FunctionType(I32, [POINTER, POINTER, POINTER]),
    "run.tape.free": ir.FunctionType(VOID, [POINTER, POINTER]),
    "run.shadow.find": ir.FunctionType(POINTER, [POINTER, I64]),
    "run.shadow.entry": ir.FunctionType(POINTER, [POINTER, POINTER, I64, I64, I64]),
    "run.shadow.free": ir.FunctionType(VOID, [POINTER, POINTER]),
    "run.copy": ir.FunctionType(VOID, [POINTER, POINTER, I64]),
    "run.zero": ir.FunctionType(VOID, [POINTER, I64]),
    "run.any.4": ir.FunctionType(I1, [POINTER, I64, I64]),
    "run.any.8": ir.FunctionType(I1, [POINTER, I64, I64]),
    **team.SIGNATURES,
    **rows.SIGNATURES,
    **station.SIGNATURES,
}

MOST_SIZES = 3  # that `run.new.…` multiplies

# Words of a tape.
CHUNK, TOP, END, KEPT = 0, 1, 2, 3
TAPE_WORDS, SHADOW_WORDS = 6, 3
# Words of a shadow's node; then its owners, then the rest of its sums.
_NEXT, _SHADOW, _ENTRY, _OWNERS, _BYTES = 0, 1, 2, 3, 4
NODE_HEAD = 5
CHUNK_HEAD = 16  # bytes of a chunk before its records
_FIRST_CHUNK, _LARGEST_CHUNK = 1 << 12, 1 << 20
_TOO_MANY = 1 << 47  # bytes that no machine has

_NULL = ir.Constant(POINTER, None)


def module(target: Target) -> ir.Module:
    """The module that defines them."""
    made = target.module("support")
    functions = {name: function(made, target, name, type) for name, type in SIGNATURES.items()}
    _new(functions["run.new"], target)
    _release(functions["run.release"])
    for count in range(1, MOST_SIZES + 1):
        _new_of(functions[f"run.new.{count}"], functions["run.new"])
    _own(functions["run.own"], functions)
    _grow(functions["run.tape.grow"], functions["run.new"])
    _keep(functions["run.tape.keep"], functions["run.tape.grow"])
    _free(functions["run.tape.free"], functions["run.release"])
    _find(functions["run.shadow.find"])
    _entry(functions["run.shadow.entry"], functions)
    _free_shadow(functions["run.shadow.free"], functions["run.release"])
    _zero(functions["run.zero"])
    _copy(functions["run.copy"])
    _any(functions["run.any.4"], I32)
    _any(functions["run.any.8"], I64)
    team.define(made, target, functions)
    rows.define(made, functions)
    station.define(target, functions)
    return made


def put(b: ir.IRBuilder, value: Any, pointer: ir.Value, index: int) -> None:
    """Write word `index` of a record."""
    b.store(value, at(b, pointer, index, I64))


def _begin(made: ir.Function) -> ir.IRBuilder:
    return ir.IRBuilder(made.append_basic_block())


# ---- buffers ----------------------------------------------------------------------------------------


def _new(made: ir.Function, target: Target) -> None:
    """A buffer of at least so many bytes with one reference; null: there is no memory, and it is recorded how much
    was asked for.

    Capacities are the eighths of powers of two from the fourth on, so a freed buffer fits the next one of nearly the
    same size.
    """
    b = _begin(made)
    context, bytes = made.args
    slow, huge = made.append_basic_block("slow"), made.append_basic_block("huge")
    sized = made.append_basic_block("sized")
    b.cbranch(b.icmp_unsigned(">", bytes, int64(_TOO_MANY)), huge, sized)
    b.position_at_end(sized)
    some = b.select(b.icmp_unsigned("==", bytes, int64(0)), int64(1), bytes)
    least = b.or_(b.sub(some, int64(1)), int64(63))
    zeros = b.call(intrinsic(b.module, "llvm.ctlz.i64", I64, I64, I1), [least, ir.Constant(I1, 1)])
    shift = b.sub(int64(61), zeros)  # leaves the highest bit and the two after it
    eighths = b.add(b.lshr(least, shift), int64(1))
    capacity = b.shl(eighths, shift)
    kind = b.add(b.shl(shift, int64(2)), b.sub(eighths, int64(5)))
    used = b.add(field(b, context, Word.USED), capacity)
    over = b.icmp_unsigned(">", used, field(b, context, Word.LIMIT))
    allowed = made.append_basic_block("allowed")
    b.cbranch(over, huge, allowed)
    b.position_at_end(allowed)
    put(b, used, context, Word.USED)
    peak = field(b, context, Word.PEAK)
    put(b, b.select(b.icmp_unsigned(">", used, peak), used, peak), context, Word.PEAK)
    head = at(b, at(b, context, Word.FREE, I64), kind, I64)
    free = b.load(head, typ=POINTER)
    found = made.append_basic_block("found")
    b.cbranch(b.icmp_unsigned("==", free, _NULL), slow, found)
    b.position_at_end(found)
    b.store(field(b, free, Header.NEXT_FREE, POINTER), head)
    put(b, int64(1), free, Header.COUNT)
    b.ret(free)
    b.position_at_end(slow)
    raw = call_address(
        b,
        field(b, context, Word.MALLOC, POINTER),
        ir.FunctionType(POINTER, [I64]),
        [b.add(capacity, int64(HEADER_BYTES + 64 + PADDING))],
    )
    with b.if_then(b.icmp_unsigned("==", raw, _NULL), likely=False):
        b.branch(huge)
    block = b.inttoptr(b.and_(b.add(b.ptrtoint(raw, I64), int64(63)), int64(-64)), POINTER)
    put(b, int64(1), block, Header.COUNT)
    put(b, capacity, block, Header.CAPACITY)
    put(b, kind, block, Header.CLASS)
    put(b, raw, block, Header.RAW)
    put(b, field(b, context, Word.BLOCKS), block, Header.NEXT_BLOCK)
    put(b, block, context, Word.BLOCKS)
    b.ret(block)
    b.position_at_end(huge)
    put(b, bytes, context, Word.NUMBERS)
    put(b, int64(1), context, Word.COUNT)
    b.ret(_NULL)


def _new_of(made: ir.Function, new: ir.Function) -> None:
    """A buffer of `bytes` times some sizes; more than any machine has where that does not fit i64."""
    b = _begin(made)
    context, total, *sizes = made.args
    pair = ir.LiteralStructType([I64, I1])
    multiply = intrinsic(b.module, "llvm.smul.with.overflow.i64", pair, I64, I64)
    for size in sizes:
        both = b.call(multiply, [total, size])
        total = b.select(b.extract_value(both, 1), int64((1 << 63) - 1), b.extract_value(both, 0))
    b.ret(b.call(new, [context, total]))


def _own(made: ir.Function, functions: dict[str, ir.Function]) -> None:
    """The buffer itself if there is one reference to it, else a new one in place of that reference."""
    b = _begin(made)
    context, block, bytes = made.args
    with b.if_then(b.icmp_signed("==", field(b, block, Header.COUNT), int64(1)), likely=True):
        b.ret(block)
    fresh = b.call(functions["run.new"], [context, bytes])
    with b.if_then(b.icmp_unsigned("!=", fresh, _NULL), likely=True):
        b.call(functions["run.release"], [context, block])
    b.ret(fresh)


def _release(made: ir.Function) -> None:
    """One reference less; the last one gives the buffer back."""
    b = _begin(made)
    context, block = made.args
    count = b.sub(field(b, block, Header.COUNT), int64(1))
    put(b, count, block, Header.COUNT)
    with b.if_then(b.icmp_signed("==", count, int64(0))):
        head = at(b, at(b, context, Word.FREE, I64), field(b, block, Header.CLASS), I64)
        put(b, b.load(head, typ=POINTER), block, Header.NEXT_FREE)
        b.store(block, head)
        put(b, b.sub(field(b, context, Word.USED), field(b, block, Header.CAPACITY)), context, Word.USED)
    b.ret_void()


# ---- tapes ------------------------------------------------------------------------------------------


def _grow(made: ir.Function, new: ir.Function) -> None:
    """A further chunk with room for `need` bytes: where to write them (null: no memory). `top` is where the last one
    ends.
    """
    b = _begin(made)
    context, tape, top, need = made.args
    chunk = field(b, tape, CHUNK, POINTER)
    size = _select_size(b, chunk)
    least = b.add(need, int64(CHUNK_HEAD))
    size = b.select(b.icmp_signed("<", size, least), least, size)
    fresh = b.call(new, [context, size])
    with b.if_then(b.icmp_unsigned("==", fresh, _NULL), likely=False):
        b.ret(_NULL)
    data = at(b, fresh, HEADER_BYTES)
    put(b, chunk, data, 0)
    put(b, top, data, 1)
    put(b, fresh, tape, CHUNK)
    put(b, at(b, data, size), tape, END)
    b.ret(at(b, data, CHUNK_HEAD))


def _select_size(b: ir.IRBuilder, chunk: ir.Value) -> ir.Value:
    """Twice the last chunk's capacity, within bounds."""
    first = b.block
    with b.if_then(b.icmp_unsigned("!=", chunk, _NULL)):
        twice = b.shl(field(b, chunk, Header.CAPACITY), int64(1))
        more = b.select(b.icmp_signed("<", twice, int64(_LARGEST_CHUNK)), twice, int64(_LARGEST_CHUNK))
        second = b.block
    size = b.phi(I64)
    size.add_incoming(int64(_FIRST_CHUNK), first)
    size.add_incoming(more, second)
    return size


def _keep(made: ir.Function, grow: ir.Function) -> None:
    """The tape holds one more reference to a buffer; not 0: no memory."""
    b = _begin(made)
    context, tape, block = made.args
    kept = at(b, tape, KEPT, I64)
    top = field(b, kept, TOP, POINTER)
    first = b.block
    with b.if_then(b.icmp_unsigned("==", top, field(b, kept, END, POINTER)), likely=False):
        grown = b.call(grow, [context, kept, top, int64(8)])
        with b.if_then(b.icmp_unsigned("==", grown, _NULL), likely=False):
            b.ret(ir.Constant(I32, 1))
        second = b.block
    place = b.phi(POINTER)
    place.add_incoming(top, first)
    place.add_incoming(grown, second)
    put(b, b.add(field(b, block, Header.COUNT), int64(1)), block, Header.COUNT)
    b.store(block, place)
    put(b, at(b, place, 8), kept, TOP)
    b.ret(ir.Constant(I32, 0))


def _free(made: ir.Function, release: ir.Function) -> None:
    """Gives back a tape's chunks, and its references."""
    b = _begin(made)
    context, tape = made.args
    kept = at(b, tape, KEPT, I64)
    with (
        _chunks(b, kept, context, release) as (chunk, top),
        _places(b, at(b, chunk, HEADER_BYTES + CHUNK_HEAD), top) as place,
    ):
        b.call(release, [context, b.load(place, typ=POINTER)])
    with _chunks(b, tape, context, release):
        pass
    b.ret_void()


# ---- shadows ----------------------------------------------------------------------------------------


def _find(made: ir.Function) -> None:
    """The node of a shadow in an entry's list, or null."""
    b = _begin(made)
    shadow, entry = made.args
    first = b.load(b.inttoptr(entry, POINTER), typ=POINTER)
    before = b.block
    head, look, on, done = (b.append_basic_block(name) for name in ("head", "look", "on", "done"))
    b.branch(head)
    b.position_at_end(head)
    node = b.phi(POINTER)
    node.add_incoming(first, before)
    b.cbranch(b.icmp_unsigned("==", node, _NULL), done, look)
    b.position_at_end(look)
    b.cbranch(b.icmp_unsigned("==", field(b, node, _SHADOW, POINTER), shadow), done, on)
    b.position_at_end(on)
    node.add_incoming(field(b, node, _NEXT, POINTER), on)
    b.branch(head)
    b.position_at_end(done)
    b.ret(node)


def _entry(made: ir.Function, functions: dict[str, ir.Function]) -> None:
    """The node of a shadow in an entry's list, made of zeros if there is none; null: no memory."""
    b = _begin(made)
    context, shadow, entry, bytes, owners = made.args
    known = b.call(functions["run.shadow.find"], [shadow, entry])
    with b.if_then(b.icmp_unsigned("!=", known, _NULL)):
        b.ret(known)
    top = field(b, shadow, TOP, POINTER)
    room = b.sub(b.ptrtoint(field(b, shadow, END, POINTER), I64), b.ptrtoint(top, I64))
    first = b.block
    with b.if_then(b.icmp_signed("<", room, bytes), likely=False):
        grown = b.call(functions["run.tape.grow"], [context, shadow, top, bytes])
        with b.if_then(b.icmp_unsigned("==", grown, _NULL), likely=False):
            b.ret(_NULL)
        second = b.block
    node = b.phi(POINTER)
    node.add_incoming(top, first)
    node.add_incoming(grown, second)
    put(b, at(b, node, bytes), shadow, TOP)
    b.call(functions["run.zero"], [node, bytes])
    place = b.inttoptr(entry, POINTER)
    for word, value in ((_NEXT, b.load(place, typ=POINTER)), (_SHADOW, shadow), (_ENTRY, entry)):
        put(b, value, node, word)
    put(b, owners, node, _OWNERS)
    put(b, bytes, node, _BYTES)
    b.store(node, place)
    b.ret(node)


def _free_shadow(made: ir.Function, release: ir.Function) -> None:
    """Gives back the chunks and what the sums refer to, and takes the nodes out of their entries' lists."""
    b = _begin(made)
    context, shadow = made.args
    with _chunks(b, shadow, context, release) as (chunk, top):
        first = at(b, chunk, HEADER_BYTES + CHUNK_HEAD)
        with _places(b, first, top, lambda node: field(b, node, _BYTES)) as node:
            owners = at(b, node, NODE_HEAD, I64)
            with _places(b, owners, at(b, owners, field(b, node, _OWNERS), I64)) as place:
                owner = b.load(place, typ=POINTER)
                with b.if_then(b.icmp_unsigned("!=", owner, _NULL)):
                    b.call(release, [context, owner])
            _unlink(b, node)
    b.ret_void()


def _unlink(b: ir.IRBuilder, node: ir.Value) -> None:
    before = b.block
    entry = field(b, node, _ENTRY, POINTER)
    head, on, found = (b.append_basic_block(name) for name in ("links", "link", "linked"))
    b.branch(head)
    b.position_at_end(head)
    link = b.phi(POINTER)  # the first word of an entry and of a node is where the list goes on
    link.add_incoming(entry, before)
    following = b.load(link, typ=POINTER)
    b.cbranch(b.icmp_unsigned("==", following, node), found, on)
    b.position_at_end(on)
    link.add_incoming(following, on)
    b.branch(head)
    b.position_at_end(found)
    b.store(field(b, node, _NEXT, POINTER), link)


def _zero(made: ir.Function) -> None:
    """Zeros in so many bytes, rounded up to whole words."""
    b = _begin(made)
    place, bytes = made.args
    with loop(b, b.udiv(b.add(bytes, int64(7)), int64(8))) as i:
        b.store(int64(0), at(b, place, i, I64))
    b.ret_void()


def _copy(made: ir.Function) -> None:
    """Copies so many bytes, rounded up to whole words (arrays are padded)."""
    b = _begin(made)
    to, source, bytes = made.args
    for argument in (to, source):
        argument.add_attribute("noalias")
    with loop(b, b.udiv(b.add(bytes, int64(7)), int64(8))) as i:
        b.store(b.load(at(b, source, i, I64), typ=I64, align=1), at(b, to, i, I64), align=8)
    b.ret_void()


def _any(made: ir.Function, type: Any) -> None:
    """Whether some element is not 0; `signed`: whose highest bit is a sign, so that -0.0 is 0."""
    b = _begin(made)
    place, count, signed = made.args
    mask = b.lshr(ir.Constant(type, -1), b.trunc(signed, type) if type is I32 else signed)
    with loop(b, count) as i:
        bits = b.and_(b.load(at(b, place, i, type), typ=type), mask)
        with b.if_then(b.icmp_unsigned("!=", bits, ir.Constant(type, 0))):
            b.ret(ir.Constant(I1, 1))
    b.ret(ir.Constant(I1, 0))


# ---- loops ------------------------------------------------------------------------------------------


@contextmanager
def _chunks(
    b: ir.IRBuilder, tape: ir.Value, context: ir.Value, release: ir.Function
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over a stack's chunks, from the last; each is given back after the body."""
    before = b.block
    head, body, done = (b.append_basic_block(name) for name in ("chunks", "chunk", "done"))
    first, first_top = field(b, tape, CHUNK, POINTER), field(b, tape, TOP, POINTER)
    b.branch(head)
    b.position_at_end(head)
    chunk, top = b.phi(POINTER), b.phi(POINTER)
    chunk.add_incoming(first, before)
    top.add_incoming(first_top, before)
    b.cbranch(b.icmp_unsigned("==", chunk, _NULL), done, body)
    b.position_at_end(body)
    yield chunk, top
    data = at(b, chunk, HEADER_BYTES)
    chunk.add_incoming(field(b, data, 0, POINTER), b.block)
    top.add_incoming(field(b, data, 1, POINTER), b.block)
    b.call(release, [context, chunk])
    b.branch(head)
    b.position_at_end(done)


@contextmanager
def _places(
    b: ir.IRBuilder, begin: ir.Value, end: ir.Value, length: Callable[[ir.Value], ir.Value] = lambda _: int64(8)
) -> Iterator[ir.Value]:
    """A loop over what lies between two places, each of a `length` in bytes."""
    before = b.block
    head, body, done = (b.append_basic_block(name) for name in ("places", "place", "placed"))
    b.branch(head)
    b.position_at_end(head)
    place = b.phi(POINTER)
    place.add_incoming(begin, before)
    b.cbranch(b.icmp_unsigned("==", place, end), done, body)
    b.position_at_end(body)
    yield place
    place.add_incoming(at(b, place, length(place)), b.block)
    b.branch(head)
    b.position_at_end(done)


assert FREE_LISTS >= 4 * 62
assert tuple(SIGNATURES) == SUPPORT

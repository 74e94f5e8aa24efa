"""Stacks of saved values: tapes, and shadows with running sums for their entries.

A stack is three words in its maker's frame: the chunk that is written, its top and its end. A chunk is a buffer that
begins with the chunk before it and the top that was reached there. A tape is a stack of entries and one of the buffers
that these refer to; a shadow is a stack of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, field, int64
from graphdsl.native.support.buffers import NULL, begin, put
from graphdsl.native.support.words import HEADER_BYTES, Header

SIGNATURES: dict[str, ir.FunctionType] = {
    "run.tape.grow": ir.FunctionType(POINTER, [POINTER, POINTER, POINTER, I64]),
    "run.tape.keep": ir.FunctionType(I32, [POINTER, POINTER, POINTER]),
    "run.tape.free": ir.FunctionType(VOID, [POINTER, POINTER]),
    "run.shadow.find": ir.FunctionType(POINTER, [POINTER, I64]),
    "run.shadow.entry": ir.FunctionType(POINTER, [POINTER, POINTER, I64, I64, I64]),
    "run.shadow.free": ir.FunctionType(VOID, [POINTER, POINTER]),
}
# Words of a tape.
CHUNK, TOP, END, KEPT = 0, 1, 2, 3
TAPE_WORDS, SHADOW_WORDS = 6, 3
# Words of a shadow's node; then its owners, then the rest of its sums.
_NEXT, _SHADOW, _ENTRY, _OWNERS, _BYTES = 0, 1, 2, 3, 4
NODE_HEAD = 5
CHUNK_HEAD = 16  # bytes of a chunk before its records
_FIRST_CHUNK, _LARGEST_CHUNK = 1 << 12, 1 << 20


def define(functions: dict[str, ir.Function]) -> None:
    """Defines them all."""
    _grow(functions["run.tape.grow"], functions["run.new"])
    _keep(functions["run.tape.keep"], functions["run.tape.grow"])
    _free(functions["run.tape.free"], functions["run.release"])
    _find(functions["run.shadow.find"])
    _entry(functions["run.shadow.entry"], functions)
    _free_shadow(functions["run.shadow.free"], functions["run.release"])


# ---- tapes ------------------------------------------------------------------------------------------


def _grow(made: ir.Function, new: ir.Function) -> None:
    """A further chunk with room for `need` bytes: where to write them (null: no memory). `top` is where the last one
    ends.
    """
    b = begin(made)
    context, tape, top, need = made.args
    chunk = field(b, tape, CHUNK, POINTER)
    size = _select_size(b, chunk)
    least = b.add(need, int64(CHUNK_HEAD))
    size = b.select(b.icmp_signed("<", size, least), least, size)
    fresh = b.call(new, [context, size])
    with b.if_then(b.icmp_unsigned("==", fresh, NULL), likely=False):
        b.ret(NULL)
    data = at(b, fresh, HEADER_BYTES)
    put(b, chunk, data, 0)
    put(b, top, data, 1)
    put(b, fresh, tape, CHUNK)
    put(b, at(b, data, size), tape, END)
    b.ret(at(b, data, CHUNK_HEAD))


def _select_size(b: ir.IRBuilder, chunk: ir.Value) -> ir.Value:
    """Twice the last chunk's capacity, within bounds."""
    first = b.block
    with b.if_then(b.icmp_unsigned("!=", chunk, NULL)):
        twice = b.shl(field(b, chunk, Header.CAPACITY), int64(1))
        more = b.select(b.icmp_signed("<", twice, int64(_LARGEST_CHUNK)), twice, int64(_LARGEST_CHUNK))
        second = b.block
    size = b.phi(I64)
    size.add_incoming(int64(_FIRST_CHUNK), first)
    size.add_incoming(more, second)
    return size


def _keep(made: ir.Function, grow: ir.Function) -> None:
    """The tape holds one more reference to a buffer; not 0: no memory."""
    b = begin(made)
    context, tape, block = made.args
    kept = at(b, tape, KEPT, I64)
    top = field(b, kept, TOP, POINTER)
    first = b.block
    with b.if_then(b.icmp_unsigned("==", top, field(b, kept, END, POINTER)), likely=False):
        grown = b.call(grow, [context, kept, top, int64(8)])
        with b.if_then(b.icmp_unsigned("==", grown, NULL), likely=False):
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
    b = begin(made)
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
    b = begin(made)
    shadow, entry = made.args
    first = b.load(b.inttoptr(entry, POINTER), typ=POINTER)
    before = b.block
    head, look, on, done = (b.append_basic_block(name) for name in ("head", "look", "on", "done"))
    b.branch(head)
    b.position_at_end(head)
    node = b.phi(POINTER)
    node.add_incoming(first, before)
    b.cbranch(b.icmp_unsigned("==", node, NULL), done, look)
    b.position_at_end(look)
    b.cbranch(b.icmp_unsigned("==", field(b, node, _SHADOW, POINTER), shadow), done, on)
    b.position_at_end(on)
    node.add_incoming(field(b, node, _NEXT, POINTER), on)
    b.branch(head)
    b.position_at_end(done)
    b.ret(node)


def _entry(made: ir.Function, functions: dict[str, ir.Function]) -> None:
    """The node of a shadow in an entry's list, made of zeros if there is none; null: no memory."""
    b = begin(made)
    context, shadow, entry, bytes, owners = made.args
    known = b.call(functions["run.shadow.find"], [shadow, entry])
    with b.if_then(b.icmp_unsigned("!=", known, NULL)):
        b.ret(known)
    top = field(b, shadow, TOP, POINTER)
    room = b.sub(b.ptrtoint(field(b, shadow, END, POINTER), I64), b.ptrtoint(top, I64))
    first = b.block
    with b.if_then(b.icmp_signed("<", room, bytes), likely=False):
        grown = b.call(functions["run.tape.grow"], [context, shadow, top, bytes])
        with b.if_then(b.icmp_unsigned("==", grown, NULL), likely=False):
            b.ret(NULL)
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
    b = begin(made)
    context, shadow = made.args
    with _chunks(b, shadow, context, release) as (chunk, top):
        first = at(b, chunk, HEADER_BYTES + CHUNK_HEAD)
        with _places(b, first, top, lambda node: field(b, node, _BYTES)) as node:
            owners = at(b, node, NODE_HEAD, I64)
            with _places(b, owners, at(b, owners, field(b, node, _OWNERS), I64)) as place:
                owner = b.load(place, typ=POINTER)
                with b.if_then(b.icmp_unsigned("!=", owner, NULL)):
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
    b.cbranch(b.icmp_unsigned("==", chunk, NULL), done, body)
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

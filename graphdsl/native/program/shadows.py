"""Running sums beside the entries of a tape: what `NewShadow`, `Take` and `Put` become.

A node holds the sums of one entry for one shadow; the entry's first word begins the list of its nodes. A sum that was
never put is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir as llvm

from graphdsl.graph.ir import NewShadow, Put, Record, Take
from graphdsl.native.flow import I64, POINTER, at, field, int64, slot
from graphdsl.native.program.entries import read_field
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.values import Native, Shadow, Tensor, part_types, parts, whole
from graphdsl.native.scalar import register_type
from graphdsl.native.support import stacks
from graphdsl.ops.types import Type

_NULL = llvm.Constant(POINTER, None)


@dataclass(frozen=True)
class _Layout:
    """Words of a node: the owners of the tensors come first, so that freeing needs only their number."""

    owners: dict[int, int]
    rest: dict[int, int]
    words: int


def _layout(record: Record) -> _Layout:
    floats = [i for i, t in enumerate(record.types) if t.dtype.is_float]
    tensors = [i for i in floats if record.types[i].shape]
    owners = {i: stacks.NODE_HEAD + n for n, i in enumerate(tensors)}
    rest, word = {}, stacks.NODE_HEAD + len(tensors)
    for i in floats:
        rest[i] = word
        word += 1 + record.types[i].rank
    return _Layout(owners, rest, word)


def new_shadow(frame: Frame, instr: NewShadow) -> None:
    """An empty shadow."""
    record = slot(frame.b, I64, stacks.SHADOW_WORDS)
    for i in range(stacks.SHADOW_WORDS):
        frame.b.store(int64(0), at(frame.b, record, i, I64))
    frame.values[instr.out] = Shadow(record)


def take(frame: Frame, instr: Take) -> None:
    """The sums of some fields, zeros where there are none yet."""
    b, shadow = frame.b, frame.values[instr.shadow]
    layout = _layout(instr.record)
    node = b.call(frame.unit.outside("run.shadow.find"), [shadow.record, frame.values[instr.at]])
    for out, number in zip(instr.outs, instr.fields, strict=True):
        if out.type.shape:
            value = _take_tensor(frame, instr, node, number, layout)
            frame.values[out] = whole(out.type, parts(value))
        else:
            frame.values[out] = _take_scalar(frame, node, instr.record.types[number], layout.rest[number])


def _take_scalar(frame: Frame, node: llvm.Value, type: Type, word: int) -> llvm.Value:
    b = frame.b
    before = b.block
    with b.if_then(b.icmp_unsigned("!=", node, _NULL)):
        found = field(b, node, word, register_type(type.dtype))
        there = b.block
    merged = b.phi(found.type)
    merged.add_incoming(frame.code.const(type.dtype, 0).ref, before)
    merged.add_incoming(found, there)
    return merged


def _take_tensor(frame: Frame, instr: Take, node: llvm.Value, number: int, layout: _Layout) -> Tensor:
    b, type = frame.b, instr.record.types[number]
    found, absent, after = (b.append_basic_block(name) for name in ("found", "absent", "taken"))
    look = b.append_basic_block("look")
    b.cbranch(b.icmp_unsigned("==", node, _NULL), absent, look)
    b.position_at_end(look)
    owner = field(b, node, layout.owners[number], POINTER)
    b.cbranch(b.icmp_unsigned("==", owner, _NULL), absent, found)
    b.position_at_end(found)
    first = layout.rest[number]
    there = [field(b, node, first, POINTER), owner, *(field(b, node, first + 1 + i) for i in range(type.rank))]
    frame.retain(owner)
    ends = [(b.block, there)]
    b.branch(after)
    b.position_at_end(absent)
    entry = read_field(frame, instr.record, number, b.inttoptr(frame.values[instr.at], POINTER))
    fresh = frame.zeros(type.dtype, entry.sizes)
    ends.append((b.block, parts(fresh)))
    b.branch(after)
    b.position_at_end(after)
    phis = [b.phi(t) for t in part_types(type)]
    for block, given in ends:
        for phi, part in zip(phis, given, strict=True):
            phi.add_incoming(part, block)
    return _tensor(whole(type, phis))


def _tensor(value: Native) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def put(frame: Frame, instr: Put) -> None:
    """Write the sums of some fields; the buffers that were there are given back."""
    b, shadow = frame.b, frame.values[instr.shadow]
    layout = _layout(instr.record)
    arguments = [frame.context, shadow.record, frame.values[instr.at]]
    sizes = [int64(8 * layout.words), int64(len(layout.owners))]
    node = b.call(frame.unit.outside("run.shadow.entry"), [*arguments, *sizes])
    frame.memory_unless(b.icmp_unsigned("!=", node, _NULL))
    for value, number in zip(instr.values, instr.fields, strict=True):
        if not value.type.shape:
            b.store(frame.values[value], at(b, node, layout.rest[number], I64))
            continue
        tensor = frame.hand_on(value)
        old = field(b, node, layout.owners[number], POINTER)
        with b.if_then(b.icmp_unsigned("!=", old, _NULL)):
            frame.release(old)
        b.store(tensor.owner, at(b, node, layout.owners[number], I64))
        for i, part in enumerate((tensor.data, *tensor.sizes)):
            b.store(part, at(b, node, layout.rest[number] + i, I64))

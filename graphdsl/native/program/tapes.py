"""Saved values: what `NewTape`, `Push` and `Read` become.

An entry is a run of words, the same length for every execution of a push: a bound test and the stores. Its place is
its address. Tensors are saved as references to their buffers. Top and end of a tape are local variables, which LLVM
keeps in registers; its record serves callees.
"""

from __future__ import annotations

from llvmlite import ir as llvm

from graphdsl.core.ir import Block
from graphdsl.graph.ir import NewShadow, NewTape, Push, Put, Read, Take
from graphdsl.native.flow import I64, POINTER, at, field, int64, slot
from graphdsl.native.program import shadows
from graphdsl.native.program.entries import layout, read_field, write_parts
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.values import Tape, parts, whole
from graphdsl.native.support import stacks

_LOCAL = ((stacks.TOP, "top"), (stacks.END, "end"))


def tape_instr(frame: Frame, instr: NewTape | Push | Read | NewShadow | Take | Put) -> None:
    """Any instruction about saved values."""
    match instr:
        case NewTape():
            new_tape(frame, instr)
        case Push():
            push(frame, instr)
        case Read():
            read(frame, instr)
        case NewShadow():
            shadows.new_shadow(frame, instr)
        case Take():
            shadows.take(frame, instr)
        case Put():
            shadows.put(frame, instr)


def new_tape(frame: Frame, instr: NewTape) -> None:
    """An empty tape."""
    record = slot(frame.b, I64, stacks.TAPE_WORDS)
    for i in range(stacks.TAPE_WORDS):
        frame.b.store(int64(0), at(frame.b, record, i, I64))
    frame.values[instr.out] = open_tape(frame, record)


def open_tape(frame: Frame, record: llvm.Value) -> Tape:
    """Local copies of a tape's words."""
    tape = Tape(record, slot(frame.b, POINTER), slot(frame.b, POINTER))
    reload(frame, tape)
    return tape


def sync(frame: Frame, tape: Tape) -> None:
    """Write the local words back, for a callee."""
    for word, name in _LOCAL:
        frame.b.store(frame.b.load(getattr(tape, name), typ=POINTER), at(frame.b, tape.record, word, I64))


def reload(frame: Frame, tape: Tape) -> None:
    """Read the words again, after a callee."""
    for word, name in _LOCAL:
        frame.b.store(field(frame.b, tape.record, word, POINTER), getattr(tape, name))


def close(frame: Frame, block: Block) -> None:
    """Free what a block made to save values in, at its end: the last one first, for a shadow knows its tape."""
    for instr in reversed(block.body):
        if isinstance(instr, NewTape | NewShadow):
            name = "run.tape.free" if isinstance(instr, NewTape) else "run.shadow.free"
            frame.b.call(frame.unit.outside(name), [frame.context, frame.values[instr.out].record])


def push(frame: Frame, instr: Push) -> None:
    """Write an entry on top."""
    b, tape = frame.b, frame.values[instr.tape]
    places, size = layout(frame, instr.record)
    top = b.load(tape.top, typ=POINTER)
    room = b.sub(b.ptrtoint(b.load(tape.end, typ=POINTER), I64), b.ptrtoint(top, I64))
    before = b.block
    with b.if_then(b.icmp_signed("<", room, int64(size)), likely=False):
        grown = b.call(frame.unit.outside("run.tape.grow"), [frame.context, tape.record, top, int64(size)])
        frame.memory_unless(b.icmp_unsigned("!=", grown, llvm.Constant(POINTER, None)))
        b.store(field(b, tape.record, stacks.END, POINTER), tape.end)
        fresh = b.block
    place = b.phi(POINTER)
    place.add_incoming(top, before)
    place.add_incoming(grown, fresh)
    b.store(at(b, place, size), tape.top)
    if frame.unit.shadowed:
        b.store(int64(0), place)
    for value, offset in zip(instr.values, places, strict=True):
        write_parts(b, parts(frame.values[value]), place, offset)
        if value.type.shape:
            keep = frame.unit.outside("run.tape.keep")
            status = b.call(keep, [frame.context, tape.record, frame.tensor(value).owner])
            frame.memory_unless(b.icmp_unsigned("==", status, llvm.Constant(status.type, 0)))
    frame.values[instr.out] = b.ptrtoint(place, I64)


def read(frame: Frame, instr: Read) -> None:
    """Fields of an entry; tensors get a reference of their own."""
    place = frame.b.inttoptr(frame.values[instr.at], POINTER)
    for out, field_number in zip(instr.outs, instr.fields, strict=True):
        frame.values[out] = read_field(frame, instr.record, field_number, place)
        if out.type.shape:
            frame.values[out] = whole(out.type, parts(frame.values[out]))
            frame.retain(frame.tensor(out).owner)

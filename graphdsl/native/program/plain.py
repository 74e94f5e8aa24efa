"""Instructions without regions: constants, names for values, feeds, effects."""

from __future__ import annotations

from graphdsl.core import ir
from graphdsl.core.ir import Value
from graphdsl.graph.ir import Fused, NewShadow, NewTape, Push, Put, Read, Take
from graphdsl.native.flow import POINTER, at, int64
from graphdsl.native.program.apply import apply, converted, fused, renamed
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.host import call_back
from graphdsl.native.program.tapes import tape_instr
from graphdsl.native.program.usage import Instr
from graphdsl.native.program.values import whole
from graphdsl.native.support.words import HEADER_BYTES, Status, Word, words
from graphdsl.ops.types import DType


def plain(frame: Frame, instr: Instr) -> None:
    """Any instruction but branches, loops and calls."""
    match instr:
        case ir.Const(value=tuple() as elements, out=out):
            listed(frame, out, elements)
        case ir.Const(value=bool() | int() | float() as value, out=out):
            frame.values[out] = frame.code.const(out.type.dtype, value).ref
        case ir.Convert(arg=arg, out=out) if arg.type.dtype is not out.type.dtype:
            converted(frame, instr)
        case ir.Convert(arg=arg, out=out) | ir.Leaf(arg=arg, out=out):
            renamed(frame, arg, out)
        case ir.Undef(out=out):
            frame.values[out] = frame.nothing(out.type)
        case ir.Feed():
            feed(frame, instr)
        case ir.Apply():
            apply(frame, instr)
        case Fused():
            fused(frame, instr)
        case NewTape() | Push() | Read() | NewShadow() | Take() | Put():
            tape_instr(frame, instr)
        case ir.Seed():
            seed(frame, instr)
        case ir.Stream(outs=(key, counter)):
            frame.values[key], frame.values[counter] = frame.get(Word.KEY), frame.get(Word.COUNTER)
        case ir.Fail():
            call_back(frame, instr)
            frame.leave(Status.RAISED)
            frame.b.position_at_end(frame.b.append_basic_block("never"))
        case ir.Print() | ir.Save() | ir.NanCheck() | ir.NanWalk():
            call_back(frame, instr)
        case _:
            raise TypeError(f"not an instruction of a graph: {type(instr).__name__}")


def listed(frame: Frame, out: Value, elements: tuple[float | int | bool, ...]) -> None:
    """A literal tensor: read only, in a buffer that is nobody's."""
    owner = frame.unit.literal(out.type.dtype, elements)
    frame.values[out] = whole(out.type, [at(frame.b, owner, HEADER_BYTES), owner, *map(int64, _ints(out))])


def _ints(value: Value) -> list[int]:
    return [d for d in value.type.shape if isinstance(d, int)]


def feed(frame: Frame, instr: ir.Feed) -> None:
    """What came from outside, at its place among the words of feeds."""
    first = 0
    for other in frame.unit.sites.feeds:
        if other is instr:
            break
        first += words(other.out.type)
    memory = frame.get(Word.FEEDS, POINTER)
    frame.values[instr.out] = frame.read_words(instr.out.type, memory, first)
    if instr.out.type.shape:
        frame.retain(frame.tensor(instr.out).owner)


def seed(frame: Frame, instr: ir.Seed) -> None:
    """A new key, and the counter."""
    frame.put(Word.KEY, frame.code.convert(frame.scalar(instr.arg), DType.I64).ref)
    frame.put(Word.COUNTER, int64(0) if instr.counter is None else frame.values[instr.counter])

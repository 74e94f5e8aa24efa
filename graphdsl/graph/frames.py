"""Where a reverse walk finds the values of the forward code.

A frame says it for one block: values of a block in which the derivative stands are visible; those of a block that was
completed are read from its entry, at the start of the block that reverses it.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Block, Const, Value
from graphdsl.graph.ir import Push, Read, Record
from graphdsl.graph.saving import Entry, Saving, Tape
from graphdsl.source.record import dataclass, field


@dataclass(eq=False)
class Frame:
    """One execution of `block`, seen from the code that reverses it.

    `at`: the place of its entry (None: the block's values are visible). `head`: what is read before the reversing code.
    """

    block: Block
    at: Any = None  # a value, or a function that finds it when it is first needed
    head: list[Any] = field(default_factory=list)
    known: dict[Value, Value] = field(default_factory=dict)
    reads: dict[tuple[Record, Value], Read] = field(default_factory=dict)

    @property
    def visible(self) -> bool:
        return self.at is None

    def place(self) -> Value:
        """The place of the entry."""
        if not isinstance(self.at, Value):
            self.at = self.at()
        value: Value = self.at
        return value


class Frames:
    """The frames around the place where the walk is, and the values as they are there."""

    def __init__(self, saving: Saving, tape: Tape) -> None:
        self.links = saving.links
        self.saving = saving
        self.tape = tape
        self.home: Block | None = None  # the outermost block from which something saved here is read
        self.around: dict[Block, Frame] = {}

    def enter(self, frame: Frame) -> Frame | None:
        """Be in a frame; the one for the same block that it hides."""
        before = self.around.get(frame.block)
        self.around[frame.block] = frame
        return before

    def leave(self, frame: Frame, before: Frame | None) -> None:
        """Be out of it again."""
        if before is None:
            del self.around[frame.block]
        else:
            self.around[frame.block] = before

    def visible(self, value: Value) -> bool:
        """Whether a value of the forward code is visible here."""
        return self.around[self.links.defs[value].block].visible

    def entry(self, block: Block) -> Entry:
        """What `block` saves, on a tape that is there where the walk reads it."""
        found = self.saving.entry(block, self.tape)
        self.reach()
        return found

    def reach(self) -> None:
        """Have the tape where it is read."""
        if self.home is not None:
            self.saving.reach(self.tape, self.home)

    def value(self, value: Value) -> Value:
        """A value of the forward code, here."""
        made = self.links.defs[value]
        frame = self.around[made.block]
        if frame.visible:
            return value
        if value not in frame.known:
            frame.known[value] = self._found(frame, value, made.instr)
        return frame.known[value]

    def _found(self, frame: Frame, value: Value, instr: Any) -> Value:
        match instr:
            case Const(span=span, value=number):
                again = Value(value.type)
                frame.head.append(Const(span, number, again))
                return again
            case Read(record=record, at=at, fields=fields, outs=outs):
                self.saving.unite_record(self.tape, record)
                self.reach()
                return self._read(frame, record, self.value(at), fields[outs.index(value)], value)
            case Push() if frame.block in self.saving.entries and self.saving.entries[frame.block].push is instr:
                return frame.place()
            case _:
                entry = self.entry(frame.block)
                return self._read(frame, entry.push.record, frame.place(), entry.field(value), value)

    def _read(self, frame: Frame, record: Record, at: Value, index: int, value: Value) -> Value:
        read = frame.reads.get((record, at))
        if read is None:
            span = self.tape.span
            read = frame.reads[record, at] = Read(span, self.tape.value, record, at, (), ())
            frame.head.append(read)
        if index in read.fields:
            return read.outs[read.fields.index(index)]
        out = Value(value.type, value.name)
        read.fields = (*read.fields, index)
        read.outs = (*read.outs, out)
        return out

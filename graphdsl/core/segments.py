"""A long loop in segments: a loop over them, around a checkpoint that makes the trips of one.

Segment `k` has `k` trips, so that a loop of `n` trips keeps the carried values of about `sqrt(2 n)` segments for its
derivatives, and what about as many trips save at a time; `n` need not be known beforehand. (Checkpoints at the square root:
Chen et al., "Training deep nets with sublinear memory cost", 2016.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdsl.core.clone import clone_block, clone_value, free_values
from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Checkpoint, For, If, Value, While
from graphdsl.core.structure import regions
from graphdsl.ops.op import Setting
from graphdsl.ops.types import BOOL, I64, Dim, Size, Type
from graphdsl.source.record import dataclass


@dataclass
class Segmented:
    """What a loop becomes: `before` are literals that `loop` begins with; `checkpoint` stands in its body."""

    before: list[Any]
    loop: While
    checkpoint: Checkpoint


def segmented(loop: While | For, setting: Setting) -> Segmented:
    """The same trips, in segments."""
    writing = _Writing(loop, setting)
    return writing.counted(loop) if isinstance(loop, For) else writing.until(loop)


class _Writing:
    """A loop over segments being written. It counts the trips made before a segment, and the trips that this may make."""

    def __init__(self, loop: While | For, setting: Setting) -> None:
        self.old = loop
        self.known = {d for v in (*loop.inits, *free_values(*regions(loop))) for d in v.type.shape}
        self.emit = Emit(Block(), setting, loop.span)
        self.done, self.length = Value(Type(I64), "done"), Value(Type(I64), "length")
        self.carried = self.alike(loop.body.params[isinstance(loop, For) :])
        self.number = Value(Type(I64))  # of a trip in its segment

    def counted(self, loop: For) -> Segmented:
        """Until all trips are made; the last segment has those that are left."""
        emit = self.emit
        cond, done = self.cond([])
        cond.yields = [emit.lt(done, loop.count)]
        trip = clone_block(loop.body, {})
        emit.block = Block()
        emit.add(self.number, self.done)
        shift: Any = emit.block.body[0]
        shift.outs = (trip.params[0],)
        trip.body.insert(0, shift)
        trip.params[0] = self.number

        emit.block = body = Block()
        trips = emit.minimum(emit.sub(loop.count, self.done), self.length)
        outs = tuple(self.alike(loop.outs))
        segment = For(loop.span, trips, tuple(self.carried), trip, outs, loop.called, before=self.done)
        checkpoint = self.checkpoint(segment)
        body.yields = [emit.add(self.done, trips), self.longer(), *checkpoint.outs]
        return self.finished(cond, body, checkpoint, [])

    def until(self, loop: While) -> Segmented:
        """Until a segment makes fewer trips than it may. The loop's own condition is asked once before each trip: where a
        segment is full, only when the next one begins."""
        emit = self.emit
        full = Value(Type(BOOL), "full")
        cond, _ = self.cond([full])
        cond.yields = [cond.params[2]]
        trip, own = clone_block(loop.body, {}), clone_block(loop.cond, {})
        more, number = Value(Type(BOOL)), Value(Type(I64))
        go_on = Block([number, *own.params])
        emit.block = ended = Block()
        ended.yields = [emit.const(False, BOOL)]
        emit.block = go_on
        asked = Block(body=own.body, yields=own.yields)
        go_on.body.append(If(loop.span, emit.lt(number, self.length), asked, ended, (more,)))
        go_on.yields = [more]
        emit.block = trip
        trip.params.insert(0, self.number)
        trip.yields.insert(0, emit.add(self.number, emit.const(1, I64)))

        emit.block = body = Block()
        inits = (emit.const(0, I64), *self.carried)
        outs = (Value(Type(I64)), *self.alike(loop.outs))
        checkpoint = self.checkpoint(While(loop.span, inits, go_on, trip, outs, loop.called, before=self.done))
        made, *left = checkpoint.outs
        body.yields = [emit.add(self.done, made), self.longer(), emit.eq(made, self.length), *left]
        return self.finished(cond, body, checkpoint, [full])

    def alike(self, values: Sequence[Value]) -> list[Value]:
        """Values for the same at another place: what is not known outside of the loop has sizes of its own there."""
        apart: dict[Dim, Size] = {}

        def size(dim: Size) -> Size:
            return dim if dim in self.known else apart.setdefault(dim, dim.apart())

        made = list(map(clone_value, values))
        for value in made:
            value.type = value.type.with_sizes(size)
        return made

    def cond(self, also: list[Value]) -> tuple[Block, Value]:
        """The condition of the loop over segments, in which is written, and the trips made so far in it."""
        self.emit.block = cond = Block(self.alike([self.done, self.length, *also, *self.carried]))
        return cond, cond.params[0]

    def checkpoint(self, segment: While | For) -> Checkpoint:
        """Around a segment."""
        block = Block(body=[segment], yields=list(segment.outs))
        made = Checkpoint(segment.span, block, tuple(self.alike(segment.outs)))
        self.emit.block.body.append(made)
        return made

    def longer(self) -> Value:
        """The length of the next segment."""
        longer: Value = self.emit.add(self.length, self.emit.const(1, I64))
        return longer

    def finished(self, cond: Block, body: Block, checkpoint: Checkpoint, flags: list[Value]) -> Segmented:
        """The loop over segments; `flags` are true at first."""
        emit, old = self.emit, self.old
        own = [self.done, self.length, *flags]
        body.params = [*own, *self.carried]
        emit.block = before = Block()
        first = (emit.const(0, I64), emit.const(1, I64), *(emit.const(True, BOOL) for _ in flags))
        loop = While(old.span, (*first, *old.inits), cond, body, (*self.alike(own), *old.outs), called=None)
        return Segmented(before.body, loop, checkpoint)

"""What loops carry from trip to trip: their types, the params of their regions, what enters, what a trip leaves."""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check.branches import DEAD, LOST, RESULT
from graphdsl.check.context import Frame
from graphdsl.check.joins import Bottom, fit
from graphdsl.check.loop_types import LoopTypes
from graphdsl.check.values import POISON, Slot, has_poison
from graphdsl.core.ir import Block, For, Value, While
from graphdsl.core.steps import Steps
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span
from graphdsl.syntax import ast

Slots = dict[str, Slot | None]


@dataclass(slots=True)
class Trip:
    """The regions of one trip, checked: params and instructions, the yields still to be written."""

    cond: Block | None
    body: Block


@dataclass(slots=True)
class Carried:
    """The names that a loop carries, with their types and the state before it."""

    names: list[str]
    span: Span
    no_trip: str  # how a name that every trip sets may not be set
    unset: str  # how one may not be set that only some trips set
    entry: Slots
    types: LoopTypes = field(default_factory=LoopTypes)
    called: str = "loop"  # what messages call it


def carried_loop(
    f: Frame, node: ast.Node, carried: Carried, trip: Callable[[Carried], Steps[Trip]]
) -> Steps[tuple[Trip, Slots]]:
    """Check trips until the types of what is carried stay the same; the last one counts."""
    types = carried.types = f.loop_types.setdefault(node, carried.types)
    types.enter(f, carried.names, carried.span)
    guessing = f.guessing
    while True:
        f.guessing = not all(types_known(carried, n) for n in carried.names)
        mark, problems = f.names.mark(), f.shared.problems.mark()
        outer, f.blocks_deep = f.blocks_deep, f.blocks_deep + 1
        made: Trip = yield trip(carried)
        f.blocks_deep = outer
        ends = {n: f.names.get(n) for n in carried.names}
        f.names.rollback(mark)
        if not types.leave(f, ends, carried.span):
            break
        f.shared.problems.take(problems)
    f.guessing = guessing
    for name, problem in types.problems.items():
        shown = {"%": "what is carried"}.get(name[0], f"`{name}`")
        shown = "the result" if name == RESULT else shown
        f.error("E0311", f"{shown} {problem} where the trips of this loop join", carried.span)
    return made, ends


def start_region(f: Frame, carried: Carried) -> Block:
    """A block whose params are the carried values, which the names hold now."""
    block = Block()
    for name in carried.names:
        slot = carried.types.slot(name, carried.entry[name], carried.span, block.params, carried.unset)
        f.names.set(name, slot)
    return block


def values_for(f: Frame, carried: Carried, slots: Slots) -> list[Value]:
    """What the slots hold, converted to the carried types, in the block that is open."""
    values: list[Value] = []
    for name in carried.names:
        if name in carried.types.problems:
            continue
        slot = slots[name]
        lacking = slot is None or slot is DEAD or slot is LOST
        values += fit(f, None if slot is None or lacking else slot.binding, carried.types.shapes[name], carried.span)
        if name in carried.types.flagged and types_known(carried, name):
            values.append(_flag(f, None if lacking else slot, carried.span))
    return values


def types_known(carried: Carried, name: str) -> bool:
    """Whether anything is known of what the name holds."""
    return not isinstance(carried.types.shapes[name], Bottom)


def _flag(f: Frame, slot: Slot | None, span: Span) -> Value:
    if slot is not None and slot.is_set is not None:
        return slot.is_set
    return f.truth(slot is not None, span)


def finish(f: Frame, carried: Carried, ends: Slots) -> tuple[Value, ...]:
    """The outs of a loop, which the names hold afterwards."""
    outs: list[Value] = []
    for name in carried.names:
        entry, end = carried.entry[name], ends[name]
        spoilt = any(s is not None and s is not DEAD and s is not LOST and has_poison(s.binding) for s in (entry, end))
        if name in carried.types.problems or not types_known(carried, name):
            f.names.set(name, Slot(POISON, carried.span) if spoilt or name in carried.types.problems else entry)
            continue
        why = _why(carried, entry, end)
        slot = carried.types.slot(name, entry if entry is None else end or entry, carried.span, outs, why)
        assert slot is not None
        if spoilt:
            slot = Slot(POISON, slot.span)
        f.names.set(name, slot)
    return tuple(outs)


def _why(carried: Carried, entry: Slot | None, end: Slot | None) -> str:
    """How a name may not be set after the loop."""
    if entry is not None and entry.is_set is not None and entry.why:
        return entry.why
    every_trip = end is not None and end is not DEAD and end is not LOST and end.is_set is None
    return carried.no_trip if every_trip else carried.unset


def write(f: Frame, carried: Carried, made: Trip, ends: Slots, count: Value | None = None) -> None:
    """The loop's instruction, and what the names hold after it."""
    inits = tuple(values_for(f, carried, carried.entry))
    outside = f.open(made.body)
    made.body.yields = values_for(f, carried, ends)
    f.open(outside)
    outs = finish(f, carried, ends)
    if made.cond is None:
        assert count is not None
        f.block.body.append(For(carried.span, count, inits, made.body, outs, carried.called))
    else:
        f.block.body.append(While(carried.span, inits, made.cond, made.body, outs, carried.called))

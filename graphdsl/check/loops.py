"""Loops: `while`, and `for` over ranges, rows, `zip` and `enumerate`.

The names that a loop sets and that live on from trip to trip, or after it, become its carried values. A `for`
that may be left early becomes a `while` over an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphdsl.check import names
from graphdsl.check.branches import DEAD, EXIT, LOST, RESULT, Flow
from graphdsl.check.context import Frame, LoopFrame
from graphdsl.check.dispatch import handles
from graphdsl.check.expect import condition
from graphdsl.check.joins import Bottom, Fixed, fit
from graphdsl.check.loop_types import LoopTypes
from graphdsl.check.sources import Source, source_of
from graphdsl.check.statements import body
from graphdsl.check.trampoline import Steps
from graphdsl.check.values import NOTHING, POISON, Binding, Slot, Tensor, Tuple, has_poison, kind_name
from graphdsl.core.ir import Block, For, If, Value, While
from graphdsl.ops.types import BOOL, I64, Type
from graphdsl.source.span import Span
from graphdsl.syntax import ast

Loop = ast.WhileStmt | ast.ForStmt


@dataclass(slots=True)
class Trip:
    """The regions of one trip, checked: params and instructions, the yields still to be written."""

    cond: Block | None
    body: Block


@dataclass(slots=True)
class Carried:
    """The names that a loop carries, with their types and the state before it."""

    names: list[str]
    types: LoopTypes
    span: Span
    why: str
    entry: dict[str, Slot | None]


def carried_loop(
    f: Frame, node: Loop, hidden: list[str], trip: Callable[[Carried], Steps[Trip]]
) -> Steps[tuple[Carried, Trip, dict[str, Slot | None]]]:
    """Check trips until the types of what is carried stay the same; the last one counts."""
    carried = _carried(f, node, hidden)
    carried.types.enter(f, carried.names, carried.span)
    while True:
        mark, problems = f.names.mark(), f.shared.problems.mark()
        outer, f.blocks_deep = f.blocks_deep, f.blocks_deep + 1
        made: Trip = yield trip(carried)
        f.blocks_deep = outer
        ends = {n: f.names.get(n) for n in carried.names}
        f.names.rollback(mark)
        if not carried.types.leave(f, ends, carried.span):
            break
        f.shared.problems.take(problems)
    for name, problem in carried.types.problems.items():
        shown = "the result" if name == RESULT else f"`{name}`"
        f.error("E0311", f"{shown} {problem} where the trips of this loop join", carried.span)
    return carried, made, ends


def _carried(f: Frame, node: Loop, hidden: list[str]) -> Carried:
    span = node.cond.span if isinstance(node, ast.WhileStmt) else node.over.span
    live = f.live.head[node] | f.live.after[node]
    pinned = f.shared.outline.pinned if f.outer is None else frozenset()
    own = [n for n in f.live.assigned[node] if n in live or n in pinned]
    types = f.loop_types.setdefault(node, LoopTypes())
    for name in hidden:
        if name.startswith("%stop"):
            types.shapes[name] = Fixed(NOTHING)
    why = f"the loop at line {node.span.line} made no trip"
    return Carried([*own, *hidden], types, span, why, {n: f.names.get(n) for n in (*own, *hidden)})


def start_region(f: Frame, carried: Carried) -> Block:
    """A block whose params are the carried values, which the names hold now."""
    block = Block()
    for name in carried.names:
        slot = carried.types.slot(name, carried.entry[name], carried.span, block.params, carried.why)
        f.names.set(name, slot)
    return block


def values_for(f: Frame, carried: Carried, slots: dict[str, Slot | None]) -> list[Value]:
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


def finish(f: Frame, carried: Carried, ends: dict[str, Slot | None]) -> tuple[Value, ...]:
    """The outs of a loop, which the names hold afterwards."""
    outs: list[Value] = []
    for name in carried.names:
        entry, end = carried.entry[name], ends[name]
        spoilt = any(s is not None and s is not DEAD and s is not LOST and has_poison(s.binding) for s in (entry, end))
        if name in carried.types.problems or not types_known(carried, name):
            f.names.set(name, Slot(POISON, carried.span) if spoilt or name in carried.types.problems else entry)
            continue
        why = entry.why if entry is not None and entry.is_set is not None and entry.why else carried.why
        slot = carried.types.slot(name, entry if entry is None else end or entry, carried.span, outs, why)
        assert slot is not None
        if spoilt:
            slot = Slot(POISON, slot.span)
        f.names.set(name, slot)
    return tuple(outs)


# ---- the statements -----------------------------------------------------------------------------------


@handles(ast.WhileStmt)
def while_(f: Frame, node: ast.WhileStmt) -> Steps[Flow]:
    hidden = _exits(f, node)

    def trip(carried: Carried) -> Steps[Trip]:
        cond = start_region(f, carried)
        outside = f.open(cond)
        value: Value = yield _unless_stopped(f, node, hidden)
        cond.yields.append(value)
        block = start_region(f, carried)
        f.open(block)
        yield trip_body(f, node)
        f.open(outside)
        return Trip(cond, block)

    carried, made, ends = yield carried_loop(f, node, hidden, trip)
    return write(f, node, carried, made, ends)


def _exits(f: Frame, node: Loop) -> list[str]:
    """The hidden names that are carried by a loop which may be left early."""
    inside = f.shared.leaving[node.body]
    return [*([_stop(f)] if inside.breaks else []), *([RESULT] if inside.returns else [])]


def _stop(f: Frame) -> str:
    return f"%stop{len(f.loops)}"


def stopped(f: Frame, hidden: list[str], span: Span) -> Value | None:
    """Whether the loop was left; None: it has not been found that it can be."""
    flags = [slot.is_set for n in hidden if (slot := f.names.get(n)) is not None and slot.is_set is not None]
    if len(flags) == 2:
        return f.value("or_", span, *flags)
    return flags[0] if flags else None


def _unless_stopped(f: Frame, node: ast.WhileStmt, hidden: list[str]) -> Steps[Value]:
    """The condition, which is not evaluated any more once the loop was left."""
    stop = stopped(f, hidden, node.cond.span)
    go = Block()
    outside = f.open(go if stop is not None else f.block)
    value: Value | None = yield condition(f, node.cond)
    value = f.truth(False, node.cond.span) if value is None else value
    f.open(outside)
    if stop is None:
        return value
    go.yields.append(value)
    gone = Block()
    f.open(gone)
    gone.yields.append(f.truth(False, node.cond.span))
    f.open(outside)
    out = Value(Type(BOOL))
    f.block.body.append(If(node.cond.span, stop, gone, go, (out,)))
    return out


def trip_body(f: Frame, node: Loop) -> Steps[None]:
    """The statements of a trip."""
    f.loops.append(LoopFrame(node, f.live.after[node], f.live.head[node], _stop(f)))
    yield body(f, node.body.body, f.live.head[node])
    f.loops.pop()


def write(
    f: Frame, node: Loop, carried: Carried, made: Trip, ends: dict[str, Slot | None], count: Value | None = None
) -> Flow:
    """The loop's instruction, and what the names hold after it."""
    inits = tuple(values_for(f, carried, carried.entry))
    outside = f.open(made.body)
    made.body.yields = values_for(f, carried, ends)
    f.open(outside)
    outs = finish(f, carried, ends)
    if made.cond is None:
        assert count is not None
        f.block.body.append(For(carried.span, count, inits, made.body, outs))
    else:
        f.block.body.append(While(carried.span, inits, made.cond, made.body, outs))
    for name in carried.names:
        if name.startswith(("%stop", "%trip")):
            f.names.set(name, None)
    result = f.names.get(RESULT)
    if not f.shared.leaving[node].returns or result is None or result is DEAD or result is LOST:
        return Flow()
    f.names.set(EXIT, Slot(NOTHING, node.span, result.is_set))
    return Flow(True, frozenset())


@handles(ast.ForStmt)
def for_(f: Frame, node: ast.ForStmt) -> Steps[Flow]:
    source: Source = yield source_of(f, node.over)
    hidden = _exits(f, node)
    if hidden:
        flow: Flow = yield _indexed(f, node, source, hidden)
        return flow

    def trip(carried: Carried) -> Steps[Trip]:
        block = start_region(f, carried)
        number = Value(Type(I64))
        block.params.insert(0, number)
        outside = f.open(block)
        yield _trip(f, node, source, number)
        f.open(outside)
        return Trip(None, block)

    carried, made, ends = yield carried_loop(f, node, [], trip)
    return write(f, node, carried, made, ends, source.count)


def _indexed(f: Frame, node: ast.ForStmt, source: Source, hidden: list[str]) -> Steps[Flow]:
    """A `for` that may be left early: a `while` that counts."""
    span, index = node.over.span, f"%trip{len(f.loops)}"
    f.names.set(index, Slot(Tensor(f.whole(0, span)), span))

    def trip(carried: Carried) -> Steps[Trip]:
        cond = start_region(f, carried)
        outside = f.open(cond)
        more = f.value("lt", span, _held(f, index), source.count)
        stop = stopped(f, hidden, span)
        cond.yields.append(more if stop is None else f.value("and_", span, more, f.value("not_", span, stop)))
        block = start_region(f, carried)
        f.open(block)
        number = _held(f, index)
        yield _trip(f, node, source, number)
        f.names.set(index, Slot(Tensor(f.value("add", span, number, f.whole(1, span))), span))
        f.open(outside)
        return Trip(cond, block)

    carried, made, ends = yield carried_loop(f, node, [*hidden, index], trip)
    return write(f, node, carried, made, ends)


def _held(f: Frame, name: str) -> Value:
    slot = f.names.get(name)
    assert slot is not None
    assert isinstance(slot.binding, Tensor)
    return slot.binding.value


def _trip(f: Frame, node: ast.ForStmt, source: Source, number: Value) -> Steps[None]:
    """Set the loop's variables, then the body."""
    item = source.item(f, number)
    unpack(f, node.targets, item, node.over.span)
    yield trip_body(f, node)


def unpack(f: Frame, targets: tuple[ast.Name, ...], item: Binding, span: Span) -> None:
    """Let names hold a value, or the parts of a tuple."""
    parts: tuple[Binding, ...]
    if len(targets) == 1:
        parts = (item,)
    elif isinstance(item, Tuple) and len(item.items) == len(targets):
        parts = item.items
    else:
        parts = (POISON,) * len(targets)
        if not has_poison(item):
            hint = "a tensor's rows: `x[0]`, `x[1]`" if isinstance(item, Tensor) else None
            f.error("E0216", f"{kind_name(item)} does not unpack into {len(targets)} names", span, hint)
    for target, part in zip(targets, parts, strict=True):
        if names.assignable(f, target):
            names.bind(f, target, part)

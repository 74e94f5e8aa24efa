"""Loops: `while`, and `for` over ranges, rows, `zip` and `enumerate`.

The names that a loop sets and that live on from trip to trip, or after it, become its carried values. A `for`
that may be left early becomes a `while` over an index.
"""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.branches import DEAD, EXIT, LOST, RESULT, Flow
from graphdsl.check.carrying import Carried, Slots, Trip, carried_loop, start_region, write
from graphdsl.check.context import Frame, LoopFrame
from graphdsl.check.dispatch import handles
from graphdsl.check.expect import condition
from graphdsl.check.joins import Fixed
from graphdsl.check.probes import watch
from graphdsl.check.sources import Source, source_of
from graphdsl.check.statements import body
from graphdsl.check.values import NOTHING, POISON, Binding, Slot, Tensor, Tuple, has_poison, kind_name
from graphdsl.core.ir import Block, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import BOOL, I64, Type
from graphdsl.source.span import Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast

Loop = ast.WhileStmt | ast.ForStmt


def carried_by(f: Frame, node: Loop, hidden: list[str]) -> Carried:
    """The names that a loop sets and that live on, with hidden ones."""
    span = node.cond.span if isinstance(node, ast.WhileStmt) else node.over.span
    live = f.live.head[node] | f.live.after[node]
    pinned = f.shared.outline.pinned if f.outer is None else frozenset()
    own = [n for n in f.live.assigned[node] if n in live or n in pinned]
    names = [*own, *hidden]
    loop = f"the loop at line {node.span.line}"
    entry = {n: f.names.get(n) for n in names}
    carried = Carried(names, span, f"{loop} made no trip", f"no trip of {loop} had set it", entry)
    carried.types.shapes.update({n: Fixed(NOTHING) for n in hidden if n.startswith("%stop")})
    return carried


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

    carried = carried_by(f, node, hidden)
    made, ends = yield carried_loop(f, node, carried, trip)
    return leave_loop(f, node, carried, made, ends)


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


def leave_loop(f: Frame, node: Loop, carried: Carried, made: Trip, ends: Slots, count: Value | None = None) -> Flow:
    """Write the loop; the statements around it may be left by a `return` in it."""
    write(f, carried, made, ends, count)
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

    carried = carried_by(f, node, [])
    made, ends = yield carried_loop(f, node, carried, trip)
    return leave_loop(f, node, carried, made, ends, source.count)


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

    carried = carried_by(f, node, [*hidden, index])
    made, ends = yield carried_loop(f, node, carried, trip)
    return leave_loop(f, node, carried, made, ends)


def _held(f: Frame, name: str) -> Value:
    slot = f.names.get(name)
    assert slot is not None
    assert isinstance(slot.binding, Tensor)
    return slot.binding.value


def _trip(f: Frame, node: ast.ForStmt, source: Source, number: Value) -> Steps[None]:
    """Set the loop's variables, then the body."""
    item = source.item(f, number)
    unpack(f, node.targets, item, node.over.span, names.LOOP)
    yield watch(f, node.targets)
    yield trip_body(f, node)


def unpack(f: Frame, targets: tuple[ast.Name, ...], item: Binding, span: Span, by: str = "`=`") -> None:
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
            f.error("E0216", f"{kind_name(item)} does not unpack into {counted(len(targets), 'name')}", span, hint)
    for target, part in zip(targets, parts, strict=True):
        if names.assignable(f, target, by):
            names.bind(f, target, part)

"""Blocks, branches, loops and calls: structured regions as basic blocks and phis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir as llvm

from graphdsl.core import ir
from graphdsl.core.ir import Block, Value
from graphdsl.core.steps import Steps
from graphdsl.core.structure import regions
from graphdsl.graph.ir import Fused
from graphdsl.native.flow import I32, I64, int64
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.plain import plain
from graphdsl.native.program.tapes import close, open_tape, reload, sync
from graphdsl.native.program.unit import Saved
from graphdsl.native.program.usage import Plan
from graphdsl.native.program.values import Native, Shadow, Tape, part_types, parts, whole
from graphdsl.native.support.words import Word
from graphdsl.ops.types import Type


def block(frame: Frame, block: Block, given: Iterable[Value]) -> Steps[list[Native]]:
    """The instructions of a block that owns `given`; gives what it yields, each with a reference."""
    plan = frame.unit.usage.plan(block, given)
    for value in plan.unused:
        frame.release(frame.tensor(value).owner)
    if frame.unit.counts:
        ops = sum(isinstance(instr, ir.Apply | Fused) for instr in block.body)
        frame.put(Word.OPS, frame.b.add(frame.get(Word.OPS), int64(ops)))
    for instr, end in zip(block.body, plan.ends, strict=True):
        match instr:
            case ir.If():
                yield branch(frame, instr, end)
            case ir.While() | ir.For():
                yield loop(frame, instr, end)
            case _:
                frame.instr, frame.dying = instr, end
                if isinstance(instr, ir.Call):
                    call(frame, instr)
                else:
                    plain(frame, instr)
        frame.dying = end
        frame.release_dying()
    close(frame, block)
    return _handed_on(frame, block, plan)


def _handed_on(frame: Frame, block: Block, plan: Plan) -> list[Native]:
    frame.dying = {v: None for v in block.yields if v in plan.owned}
    return [frame.hand_on(v) for v in block.yields]


def branch(frame: Frame, instr: ir.If, dying: dict[Value, None]) -> Steps[None]:
    """A branch owns what is used last within it, so that an update there finds its tensor unshared."""
    b, usage = frame.b, frame.unit.usage
    inner = {**usage.outer(instr.then), **usage.outer(instr.orelse)}
    given = [v for v in dying if v in inner]
    for value in given:
        del dying[value]
    then, orelse, after = (b.append_basic_block(name) for name in ("then", "else", "joined"))
    b.cbranch(frame.values[instr.cond], then, orelse)
    ends = []
    for start, body in ((then, instr.then), (orelse, instr.orelse)):
        b.position_at_end(start)
        yields: list[Native] = yield block(frame, body, given)
        ends.append((b.block, [p for y in yields for p in parts(y)]))
        b.branch(after)
    b.position_at_end(after)
    _define(frame, instr.outs, _phis(frame, [v.type for v in instr.outs], ends))


def loop(frame: Frame, instr: ir.While | ir.For, dying: dict[Value, None]) -> Steps[None]:
    """The carried values belong to the trip; the condition only looks at them."""
    b = frame.b
    inits = _inits(frame, instr, dying)
    own = instr.body.params[1:] if isinstance(instr, ir.For) else instr.body.params
    head, body, after = (b.append_basic_block(name) for name in ("head", "trip", "left"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    types = [v.type for v in own]
    phis = _phis(frame, types, [(before, inits)])
    trips = b.phi(I64)
    trips.add_incoming(int64(0), before)
    with frame.within(*frame.around, *([(instr, _counted(frame, instr, trips))] if instr.called else [])):
        if isinstance(instr, ir.For):
            frame.values[instr.body.params[0]] = trips
            go_on = b.icmp_signed("<", trips, frame.values[instr.count])
        else:
            _define(frame, instr.cond.params, phis)
            (go_on,) = yield block(frame, instr.cond, [])
        b.cbranch(go_on, body, after)
        b.position_at_end(body)
        _define(frame, own, phis)
        yields: list[Native] = yield block(frame, instr.body, own)
        frame.instr = instr
        frame.test_stop()
    trips.add_incoming(b.add(trips, int64(1), flags=["nsw"]), b.block)
    for phi, part in zip(phis, [p for y in yields for p in parts(y)], strict=True):
        phi.add_incoming(part, b.block)
    b.branch(head)
    b.position_at_end(after)
    _define(frame, instr.outs, phis)


def _counted(frame: Frame, instr: ir.While | ir.For, trips: llvm.Value) -> llvm.Value:
    """The trips made so far, as messages count them."""
    return trips if instr.before is None else frame.b.add(trips, frame.values[instr.before])


def _inits(frame: Frame, instr: ir.While | ir.For, dying: dict[Value, None]) -> list[llvm.Value]:
    """The first carried values. One that the regions read by itself too is not given away."""
    inner: dict[Value, None] = {}
    for region in regions(instr):
        inner.update(frame.unit.usage.outer(region))
    given = []
    for init in instr.inits:
        frame.dying = {} if init in inner else dying
        given.extend(parts(frame.hand_on(init)))
    return given


def _phis(frame: Frame, types: Sequence[Type], ends: list[tuple[Any, list[llvm.Value]]]) -> list[llvm.Value]:
    phis = [frame.b.phi(t) for type in types for t in part_types(type)]
    for end, given in ends:
        for phi, part in zip(phis, given, strict=True):
            phi.add_incoming(part, end)
    return phis


def _define(frame: Frame, values: Sequence[Value], given: list[llvm.Value]) -> None:
    at = 0
    for value in values:
        n = len(part_types(value.type))
        frame.values[value] = whole(value.type, given[at : at + n])
        at += n


# ---- functions ----------------------------------------------------------------------------------------


def call(frame: Frame, instr: ir.Call) -> None:
    """Arguments go over with their references; tapes are written back before and read again after."""
    b = frame.b
    natives = [frame.values[a] for a in instr.args]
    saved = {i: type(n) for i, n in enumerate(natives) if isinstance(n, Tape | Shadow)}
    callee = frame.unit.function(instr.func, saved)
    depth = b.add(frame.depth, int64(1), flags=["nsw"])
    frame.deep_enough(depth)
    frame.test_stop()  # calls alone can go on as long as loops
    tapes = [n for n in natives if isinstance(n, Tape)]
    for tape in tapes:
        sync(frame, tape)
    given = [p for i, a in enumerate(instr.args) for p in parts(natives[i] if i in saved else frame.hand_on(a))]
    result = b.call(callee, [frame.context, depth, *given], cconv="fastcc")
    frame.check_call(b.extract_value(result, 0))
    for tape in tapes:
        reload(frame, tape)
    count = sum(len(part_types(v.type)) for v in instr.outs)
    _define(frame, instr.outs, [b.extract_value(result, 1 + i) for i in range(count)])


def function(frame: Frame, func: ir.Func, saved: Saved) -> Steps[None]:
    """The whole of a function."""
    given = list(frame.made.args[2:])
    for i, param in enumerate(func.body.params):
        if i in saved:
            record = given.pop(0)
            frame.values[param] = open_tape(frame, record) if saved[i] is Tape else Shadow(record)
        else:
            n = len(part_types(param.type))
            frame.values[param] = whole(param.type, given[:n])
            del given[:n]
    own = [p for i, p in enumerate(func.body.params) if i not in saved]
    yields: list[Native] = yield block(frame, func.body, own)
    for tape in (frame.values[func.body.params[i]] for i in saved if saved[i] is Tape):
        sync(frame, tape)
    result: Any = llvm.Constant(frame.made.function_type.return_type, llvm.Undefined)
    result = frame.b.insert_value(result, llvm.Constant(I32, 0), 0)
    for i, part in enumerate(p for y in yields for p in parts(y)):
        result = frame.b.insert_value(result, part, 1 + i)
    frame.b.ret(result)

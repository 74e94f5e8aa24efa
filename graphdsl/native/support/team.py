"""A team of threads that computes parts of a kernel: the native side.

One job at a time. Its fields are written before it is opened; whoever works on it first counts itself in and then
looks whether it is still open, so a thread that comes late touches nothing. Threads look for work a while before they
sleep on a lock of Python's, which needs no interpreter. Which thread computes what changes no bit: parts begin at
borders of blocks.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, loop, minimum
from graphdsl.native.support.waiting import Waiting, add, forever, get, holds, pause, put, wake
from graphdsl.native.support.words import Status, Team, Word
from graphdsl.native.target import Target

# kernel(context, begin, end, words): a part of a kernel's space
KERNEL = ir.FunctionType(I32, [POINTER, I64, I64, POINTER])


_PARTS = 16  # of a job, about: so that nobody waits long for the last one

SIGNATURES = {
    "run.team.run": ir.FunctionType(I32, [POINTER, POINTER, POINTER, I64, I64, I64]),
    "run.team.help": ir.FunctionType(VOID, [POINTER]),
}


def kernel_type(words: list[Any]) -> ir.FunctionType:
    """The type of a kernel that is given its words one by one (none: as a pointer to them)."""
    return ir.FunctionType(I32, [POINTER, I64, I64, *words]) if words else KERNEL


def define(module: ir.Module, target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines both functions."""
    work = _define_work(module, target)
    _define_run(functions["run.team.run"], target, work)
    _define_help(functions["run.team.help"], target, work)


def _define_work(module: ir.Module, target: Target) -> ir.Function:
    """Take parts of the job until there is none left."""
    made = ir.Function(module, ir.FunctionType(VOID, [POINTER]), "run.team.work")
    made.linkage = "internal"
    b = ir.IRBuilder(made.append_basic_block())
    (team,) = made.args
    context, arguments = field(b, team, Team.CONTEXT, POINTER), field(b, team, Team.ARGUMENTS, POINTER)
    code, total, part = field(b, team, Team.CODE, POINTER), field(b, team, Team.TOTAL), field(b, team, Team.PART)
    with forever(b) as done:
        begin = add(b, team, Team.NEXT, part)
        with b.if_then(holds(b, ">=", begin, total)):
            b.branch(done)
        with b.if_then(holds(b, "!=", b.load_atomic(at(b, context, Word.STOP, I64), "monotonic", 8, typ=I64), 0)):
            put(b, Status.STOPPED, team, Team.STATUS)
            b.branch(done)
        status = call_address(b, code, KERNEL, [context, begin, minimum(b, b.add(begin, part), total), arguments])
        with b.if_then(b.icmp_unsigned("!=", status, ir.Constant(I32, 0)), likely=False):
            put(b, b.zext(status, I64), team, Team.STATUS)
    b.ret_void()
    return made


def _define_run(made: ir.Function, target: Target, work: ir.Function) -> None:
    """`run(context, kernel, arguments, total, least, multiple)`: the kernel over its whole space, with the team if there is
    more than `least` to do and the team is free; parts are whole multiples."""
    b = ir.IRBuilder(made.append_basic_block())
    context, code, arguments, total, least, multiple = made.args
    alone, together, ask = (b.append_basic_block(name) for name in ("alone", "together", "ask"))
    team = field(b, context, Word.TEAM, POINTER)
    few = b.or_(b.icmp_unsigned("==", team, ir.Constant(POINTER, None)), holds(b, "<=", total, least))
    b.cbranch(few, alone, ask)
    b.position_at_end(ask)
    busy = b.atomic_rmw("xchg", at(b, team, Team.BUSY, I64), int64(1), "seq_cst")
    b.cbranch(holds(b, "!=", busy, 0), alone, together)
    b.position_at_end(alone)
    b.ret(call_address(b, code, KERNEL, [context, int64(0), total, arguments]))
    b.position_at_end(together)
    for word, value in ((Team.CODE, code), (Team.CONTEXT, context), (Team.ARGUMENTS, arguments), (Team.TOTAL, total)):
        b.store(value, at(b, team, word, I64))
    part = b.add(b.udiv(total, int64(_PARTS)), multiple)
    b.store(b.sub(part, b.urem(part, multiple)), at(b, team, Team.PART, I64))
    for word in (Team.STATUS, Team.NEXT):
        put(b, 0, team, word)
    put(b, 1, team, Team.OPEN)
    add(b, team, Team.JOBS, 1)
    with loop(b, field(b, team, Team.HELPERS)) as i:
        wake(b, team, b.add(i, int64(Team.ASLEEP)), b.add(i, int64(Team.LOCKS)), Team.RELEASE)
    b.call(work, [team])
    put(b, 0, team, Team.OPEN)
    with forever(b) as done:
        with b.if_then(holds(b, "==", get(b, team, Team.INSIDE), 0)):
            b.branch(done)
        pause(b, target)
    status = b.trunc(get(b, team, Team.STATUS), I32)
    put(b, 0, team, Team.BUSY)
    b.ret(status)


def _define_help(made: ir.Function, target: Target, work: ir.Function) -> None:
    """`help(place)`: a helper's whole life. `place` are two words: the record, and the helper's number."""
    b = ir.IRBuilder(made.append_basic_block())
    team, number = field(b, made.args[0], 0, POINTER), field(b, made.args[0], 1)
    seen = b.alloca(I64)
    b.store(int64(0), seen)
    with forever(b):
        asleep, lock = (b.add(number, int64(word)) for word in (Team.ASLEEP, Team.LOCKS))
        latest = Waiting(team, Team.JOBS, asleep, lock, Team.ACQUIRE).another(b, target, b.load(seen, typ=I64))
        b.store(latest, seen)
        add(b, team, Team.INSIDE, 1)
        with b.if_then(holds(b, "!=", get(b, team, Team.OPEN), 0)):
            b.call(work, [team])
        add(b, team, Team.INSIDE, -1)
    b.ret_void()

"""A team of threads that computes parts of a kernel: the native side.

One job at a time. Its fields are written before it is opened; whoever works on it first counts itself in and then
looks whether it is still open, so a thread that comes late touches nothing. Threads look for work a while before they
sleep on a lock of Python's, which needs no interpreter. Which thread computes what changes no bit: parts begin at
borders of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, loop, minimum
from graphdsl.native.program.words import Status, Team, Word
from graphdsl.native.scalar import intrinsic
from graphdsl.native.target import Target

# kernel(context, words, begin, end): a part of a kernel's space
KERNEL = ir.FunctionType(I32, [POINTER, POINTER, I64, I64])
_SPINS = 4000  # turns of looking for work: some 50 µs


SIGNATURES = {
    "run.team.run": ir.FunctionType(I32, [POINTER, POINTER, POINTER, I64, I64]),
    "run.team.help": ir.FunctionType(VOID, [POINTER]),
}

_ACQUIRE = ir.FunctionType(I32, [POINTER, I32])
_RELEASE = ir.FunctionType(VOID, [POINTER])


def define(module: ir.Module, target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines both functions."""
    work = _define_work(module)
    _define_run(functions["run.team.run"], target, work)
    _define_help(functions["run.team.help"], target, work)


def _get(b: ir.IRBuilder, record: ir.Value, word: int | ir.Value) -> ir.Value:
    return b.load_atomic(at(b, record, word, I64), "seq_cst", 8, typ=I64)


def _set(b: ir.IRBuilder, value: ir.Value | int, record: ir.Value, word: int | ir.Value) -> None:
    number = int64(value) if isinstance(value, int) else value
    b.atomic_rmw("xchg", at(b, record, word, I64), number, "seq_cst")  # llvmlite's store wants typed pointers


def _add(b: ir.IRBuilder, record: ir.Value, word: int, value: ir.Value | int) -> ir.Value:
    number = int64(value) if isinstance(value, int) else value
    return b.atomic_rmw("add", at(b, record, word, I64), number, "seq_cst")


def _is(b: ir.IRBuilder, sign: str, x: ir.Value, y: ir.Value | int) -> ir.Value:
    return b.icmp_signed(sign, x, int64(y) if isinstance(y, int) else y)


@contextmanager
def _forever(b: ir.IRBuilder) -> Iterator[ir.Block]:
    """A loop that only a branch to the block given ends."""
    head, done = b.append_basic_block("again"), b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)
    yield done
    b.branch(head)
    b.position_at_end(done)


def _define_work(module: ir.Module) -> ir.Function:
    """Take parts of the job until there is none left."""
    made = ir.Function(module, ir.FunctionType(VOID, [POINTER]), "run.team.work")
    made.linkage = "internal"
    b = ir.IRBuilder(made.append_basic_block())
    (team,) = made.args
    context, arguments = field(b, team, Team.CONTEXT, POINTER), field(b, team, Team.ARGUMENTS, POINTER)
    code, total, part = field(b, team, Team.CODE, POINTER), field(b, team, Team.TOTAL), field(b, team, Team.PART)
    with _forever(b) as done:
        begin = _add(b, team, Team.NEXT, part)
        with b.if_then(_is(b, ">=", begin, total)):
            b.branch(done)
        with b.if_then(_is(b, "!=", b.load_atomic(at(b, context, Word.STOP, I64), "monotonic", 8, typ=I64), 0)):
            _set(b, Status.STOPPED, team, Team.STATUS)
            b.branch(done)
        status = call_address(b, code, KERNEL, [context, arguments, begin, minimum(b, b.add(begin, part), total)])
        with b.if_then(b.icmp_unsigned("!=", status, ir.Constant(I32, 0)), likely=False):
            _set(b, b.zext(status, I64), team, Team.STATUS)
    b.ret_void()
    return made


def _define_run(made: ir.Function, target: Target, work: ir.Function) -> None:
    """`run(context, kernel, arguments, total, part)`: the kernel over its whole space, with the team if it is free."""
    b = ir.IRBuilder(made.append_basic_block())
    context, code, arguments, total, part = made.args
    alone, together, ask = (b.append_basic_block(name) for name in ("alone", "together", "ask"))
    team = field(b, context, Word.TEAM, POINTER)
    few = b.or_(b.icmp_unsigned("==", team, ir.Constant(POINTER, None)), _is(b, "<=", total, part))
    b.cbranch(few, alone, ask)
    b.position_at_end(ask)
    busy = b.atomic_rmw("xchg", at(b, team, Team.BUSY, I64), int64(1), "seq_cst")
    b.cbranch(_is(b, "!=", busy, 0), alone, together)
    b.position_at_end(alone)
    b.ret(call_address(b, code, KERNEL, [context, arguments, int64(0), total]))
    b.position_at_end(together)
    for word, value in ((Team.CODE, code), (Team.CONTEXT, context), (Team.ARGUMENTS, arguments), (Team.TOTAL, total)):
        b.store(value, at(b, team, word, I64))
    b.store(part, at(b, team, Team.PART, I64))
    for word in (Team.STATUS, Team.NEXT):
        _set(b, 0, team, word)
    _set(b, 1, team, Team.OPEN)
    _add(b, team, Team.JOBS, 1)
    with loop(b, field(b, team, Team.HELPERS)) as i:
        slept = b.atomic_rmw("xchg", at(b, team, b.add(i, int64(Team.ASLEEP)), I64), int64(0), "seq_cst")
        with b.if_then(_is(b, "!=", slept, 0)):
            lock = b.load(at(b, team, b.add(i, int64(Team.LOCKS)), I64), typ=POINTER)
            call_address(b, field(b, team, Team.RELEASE, POINTER), _RELEASE, [lock])
    b.call(work, [team])
    _set(b, 0, team, Team.OPEN)
    with _forever(b) as done:
        with b.if_then(_is(b, "==", _get(b, team, Team.INSIDE), 0)):
            b.branch(done)
        _pause(b, target)
    status = b.trunc(_get(b, team, Team.STATUS), I32)
    _set(b, 0, team, Team.BUSY)
    b.ret(status)


def _define_help(made: ir.Function, target: Target, work: ir.Function) -> None:
    """`help(place)`: a helper's whole life. `place` are two words: the record, and the helper's number."""
    b = ir.IRBuilder(made.append_basic_block())
    team, number = field(b, made.args[0], 0, POINTER), field(b, made.args[0], 1)
    seen = b.alloca(I64)
    b.store(int64(0), seen)
    with _forever(b):
        latest = _wait(b, target, team, number, b.load(seen, typ=I64))
        b.store(latest, seen)
        _add(b, team, Team.INSIDE, 1)
        with b.if_then(_is(b, "!=", _get(b, team, Team.OPEN), 0)):
            b.call(work, [team])
        _add(b, team, Team.INSIDE, -1)
    b.ret_void()


def _wait(b: ir.IRBuilder, target: Target, team: ir.Value, number: ir.Value, seen: ir.Value) -> ir.Value:
    """Looks for a job with another number than the last one, and sleeps after a while."""
    before = b.block
    spin, sleep, again, found = (b.append_basic_block(name) for name in ("spin", "sleep", "again", "found"))
    b.branch(spin)
    b.position_at_end(spin)
    turn = b.phi(I64)
    turn.add_incoming(int64(0), before)
    _pause(b, target)
    latest = _get(b, team, Team.JOBS)
    b.cbranch(_is(b, "!=", latest, seen), found, again)
    b.position_at_end(again)
    turn.add_incoming(b.add(turn, int64(1)), again)
    b.cbranch(_is(b, "<", turn, _SPINS), spin, sleep)
    b.position_at_end(sleep)
    asleep = b.add(number, int64(Team.ASLEEP))
    _set(b, 1, team, asleep)
    lock = b.load(at(b, team, b.add(number, int64(Team.LOCKS)), I64), typ=POINTER)
    acquire = field(b, team, Team.ACQUIRE, POINTER)
    with b.if_else(_is(b, "==", _get(b, team, Team.JOBS), seen)) as (none, some):
        with none:
            call_address(b, acquire, _ACQUIRE, [lock, ir.Constant(I32, 1)])
        with some:
            slept = b.atomic_rmw("xchg", at(b, team, asleep, I64), int64(0), "seq_cst")
            with b.if_then(_is(b, "==", slept, 0)):
                call_address(b, acquire, _ACQUIRE, [lock, ir.Constant(I32, 1)])
    turn.add_incoming(int64(0), b.block)
    b.branch(spin)
    b.position_at_end(found)
    return latest


def _pause(b: ir.IRBuilder, target: Target) -> None:
    if "x86" in target.triple:
        b.call(intrinsic(b.module, "llvm.x86.sse2.pause", VOID), [])
    elif target.triple.startswith(("aarch64", "arm64")):
        b.call(intrinsic(b.module, "llvm.aarch64.hint", VOID, I32), [ir.Constant(I32, 1)])

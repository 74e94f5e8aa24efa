"""Where the thread that runs programs gets its work: the native side, so that handing over costs no interpreter.

`run.serve(station)` is that thread's whole life. `run.post(station, entry, context)` hands over a program and looks for its end
for a while; `run.await(station)` sleeps until it ends, a signal comes, or some time has passed. Both say whether it has ended.
"""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, loop
from graphdsl.native.support.waiting import Waiting, add, forever, get, holds, pause, put, wake
from graphdsl.native.support.words import Station
from graphdsl.native.target import Target

SIGNATURES = {
    "run.serve": ir.FunctionType(VOID, [POINTER]),
    "run.post": ir.FunctionType(I32, [POINTER, POINTER, POINTER]),
    "run.await": ir.FunctionType(I32, [POINTER]),
}
_ENTRY = ir.FunctionType(I32, [POINTER])
_TIMED = ir.FunctionType(I32, [POINTER, I64, I32])
_LOOKS = 2000  # turns of looking for the end: some 50 µs
_NAP = 50_000  # µs: Windows does not interrupt a wait, nor does a signal that another thread got
_ACQUIRED = 1


def define(target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines the three."""
    _serve(functions["run.serve"], target)
    _post(functions["run.post"], target)
    _await(functions["run.await"])


def _serve(made: ir.Function, target: Target) -> None:
    b = ir.IRBuilder(made.append_basic_block())
    (station,) = made.args
    seen = b.alloca(I64)
    b.store(int64(0), seen)
    waiting = Waiting(station, Station.JOBS, Station.SERVER_ASLEEP, Station.SERVER_LOCK, Station.ACQUIRE)
    with forever(b):
        latest = waiting.another(b, target, b.load(seen, typ=I64))
        b.store(latest, seen)
        entry, context = (field(b, station, word, POINTER) for word in (Station.ENTRY, Station.CONTEXT))
        status = call_address(b, entry, _ENTRY, [context])
        put(b, b.zext(status, I64), station, Station.STATUS)
        put(b, latest, station, Station.DONE)
        wake(b, station, Station.CALLER_ASLEEP, Station.CALLER_LOCK, Station.RELEASE)
    b.ret_void()


def _ended(b: ir.IRBuilder, station: ir.Value) -> ir.Value:
    return holds(b, "==", get(b, station, Station.DONE), get(b, station, Station.JOBS))


def _post(made: ir.Function, target: Target) -> None:
    b = ir.IRBuilder(made.append_basic_block())
    station, entry, context = made.args
    b.store(entry, at(b, station, int(Station.ENTRY), I64))
    b.store(context, at(b, station, int(Station.CONTEXT), I64))
    add(b, station, Station.JOBS, 1)
    wake(b, station, Station.SERVER_ASLEEP, Station.SERVER_LOCK, Station.RELEASE)
    with loop(b, _LOOKS):
        with b.if_then(_ended(b, station)):
            b.ret(ir.Constant(I32, 1))
        pause(b, target)
    b.ret(b.zext(_ended(b, station), I32))


def _await(made: ir.Function) -> None:
    b = ir.IRBuilder(made.append_basic_block())
    (station,) = made.args
    waiting = Waiting(station, Station.DONE, Station.CALLER_ASLEEP, Station.CALLER_LOCK, Station.ACQUIRE)
    put(b, 1, station, Station.CALLER_ASLEEP)
    with b.if_then(b.not_(_ended(b, station))):
        timed = field(b, station, Station.ACQUIRE_TIMED, POINTER)
        got = call_address(b, timed, _TIMED, [waiting.place(b), int64(_NAP), ir.Constant(I32, 1)])
        with b.if_then(b.icmp_unsigned("==", got, ir.Constant(I32, _ACQUIRED))):
            b.ret(b.zext(_ended(b, station), I32))
    waiting.take_back(b)
    b.ret(b.zext(_ended(b, station), I32))

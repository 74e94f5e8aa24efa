"""What Python does for a compiled program: prints, failures with texts, files; and what its own failures become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.native.program.memory import Memory
from graphdsl.native.support.words import Status, Word
from graphdsl.ops.op import Host
from graphdsl.ops.types import wrap64
from graphdsl.runtime.faults import MOST_ACTIVE_CALLS, NO_MEMORY, TOO_DEEP, fault_diagnostic
from graphdsl.runtime.limits import TOO_LARGE, TOO_MUCH, size_text
from graphdsl.runtime.showing import show
from graphdsl.runtime.state import Runtime
from graphdsl.runtime.texts import written
from graphdsl.source.diagnostic import Fault, FaultKind, ProgramError

_WORD = (1 << 64) - 1


def perform(runtime: Runtime, instr: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """Carry out an effect with the values of its operands; gives its results."""
    with np.errstate(all="ignore"):  # which is for one thread
        return _performed(runtime, instr, values)


def _performed(runtime: Runtime, instr: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    left = iter(values)
    match instr:
        case ir.Print():
            show(runtime.sink, instr, left)
        case ir.Fail():
            raise _failed(instr, left)
        case ir.Save(path=path, items=items):
            name = written(path, left)
            runtime.save(name, [(i.name, i.value.type.dtype, next(left)) for i in items])
        case ir.NanCheck():
            *args, result = values[: len(instr.args) + 1]
            runtime.nans.check(instr, args, result, values[len(instr.args) + 1 :])
        case ir.NanWalk():
            runtime.nans.walk(instr, values)
        case ir.Apply(op=op, attrs=attrs):
            assert isinstance(op.compute, Host)
            results = op.compute.run(runtime, *values, **attrs)
            return results if len(instr.outs) > 1 else (results,)
    return ()


def _failed(instr: ir.Fail, left: Iterator[Any]) -> ProgramError:
    """The numbers come first, then the words; a text is {0} of the message."""
    numbers = tuple(int(next(left)) for _ in instr.numbers)
    text = () if instr.text is None else (written(instr.text, left),)
    return ProgramError(fault_diagnostic(Fault(instr.kind, *text, *numbers, *instr.words), instr))


def seed_from(runtime: Runtime, memory: Memory) -> None:
    """The state of the random stream, for the run."""
    memory[Word.KEY] = wrap64(runtime.random.key)
    memory[Word.COUNTER] = wrap64(runtime.random.counter)


def seed_to(runtime: Runtime, memory: Memory) -> None:
    """The state of the random stream after the run."""
    runtime.random.key = memory[Word.KEY] & _WORD
    runtime.random.counter = memory[Word.COUNTER] & _WORD


def failure(
    status: Status, instr: Any, kind: FaultKind | None, numbers: tuple[int, ...], memory: Memory
) -> BaseException:
    """The error of a run that failed in native code."""
    match status:
        case Status.DEPTH:
            fault = Fault(TOO_DEEP, MOST_ACTIVE_CALLS)
        case Status.MEMORY:
            fault = _no_memory(numbers[0], memory[Word.USED], memory[Word.LIMIT])
        case _:
            assert kind is not None
            fault = Fault(kind, *numbers)
    return ProgramError(fault_diagnostic(fault, instr))


def _no_memory(wanted: int, used: int, limit: int) -> Fault:
    """What it means that there was none: for a tensor, for all of them together, or in the machine."""
    if wanted > limit:
        return Fault(TOO_LARGE, "a tensor", size_text(wanted), size_text(limit))
    return Fault(TOO_MUCH, size_text(used + wanted), size_text(limit)) if used + wanted > limit else Fault(NO_MEMORY)

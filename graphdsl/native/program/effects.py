"""What Python does for a compiled program: prints, failures with texts, files; and what its own failures become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdsl.core import ir
from graphdsl.native.program.memory import Memory
from graphdsl.native.program.words import Status
from graphdsl.runtime import format
from graphdsl.runtime.events import Shown
from graphdsl.source.diagnostic import FaultKind, ProgramError


def perform(runtime: Any, instr: Any, values: Sequence[Any]) -> None:
    """Carry out an effect with the values of its operands."""
    left = iter(values)
    match instr:
        case ir.Print(items=items):
            _print(runtime, instr, items, left)
        case ir.Fail():
            numbers = tuple(int(next(left)) for _ in instr.numbers)
            text = () if instr.text is None else (_text(instr.text, left),)
            raise ProgramError(instr.kind.diagnostic(instr.span, (*text, *numbers, *instr.words)))
        case _:
            raise NotImplementedError(type(instr).__name__)


def _print(runtime: Any, instr: ir.Print, items: Sequence[Any], left: Any) -> None:
    line = instr.span.line
    shown: list[Shown] = []
    for item in items:
        if isinstance(item, ir.Item):
            shown.append(Shown(item.name, item.value.type.dtype, next(left)))
            continue
        if shown:
            runtime.sink.values(line, shown)
            shown = []
        runtime.sink.text(line, _text(item, left))
    if shown:
        runtime.sink.values(line, shown)


def _text(parts: ir.Text, left: Any) -> str:
    found = []
    for part in parts:
        if isinstance(part, str):
            found.append(part)
        else:
            value, dtype = next(left), part.value.type.dtype
            found.append(format.formatted(value, dtype, part.spec) if part.spec else format.text(value, dtype))
    return "".join(found)


def seed_from(runtime: Any, memory: Memory) -> None:
    """The state of the random stream, for the run."""


def seed_to(runtime: Any, memory: Memory) -> None:
    """The state of the random stream after the run."""


def failure(status: Status, instr: Any, kind: FaultKind | None, numbers: tuple[int, ...]) -> BaseException:
    """The error of a run that failed in native code."""
    if status is Status.FAULT and kind is not None:
        return ProgramError(kind.diagnostic(instr.span, numbers))
    return MemoryError(f"{status.name} {numbers}")

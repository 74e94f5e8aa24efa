"""From a fault of running code to the diagnostic that the user sees: the one place, for both modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphdsl.core import ir
from graphdsl.source.diagnostic import MOST_TRAIL, Diagnostic, Fault, FaultKind, Label

TOO_DEEP = FaultKind("E0731", "more than {0} calls are active", "a recursion needs a case that ends it")
NO_MEMORY = FaultKind("E0732", "there is not enough memory")
MOST_ACTIVE_CALLS = 10_000  # as a program runs; how deep calls are checked is a limit of its own


def fault_diagnostic(fault: Fault, instr: Any, trail: Sequence[Label] = ()) -> Diagnostic:
    """What to say of a fault of the instruction `instr`, reached by the calls and trips in `trail` (outermost first)."""
    found = fault.kind.diagnostic(fault.span or instr.span, fault.numbers, tuple(trail)[-MOST_TRAIL:])
    return replace(found, labels=instr.labels if isinstance(instr, ir.Fail) else fault.labels)


def trail_label(instr: ir.Call | ir.While | ir.For, trip: int) -> Label:
    """The entry of a trail for a call, or for a loop of which trip `trip` was under way (counted from 1)."""
    if isinstance(instr, ir.Call):
        return Label(instr.span, f"in this call of {instr.func.called}")
    return Label(instr.span, f"in trip {trip} of this {instr.called}")

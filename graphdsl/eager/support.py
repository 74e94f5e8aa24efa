"""What the generated code calls: effects, calls, limits. `SUPPORT` is its global names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from math import inf, nan, sqrt
from time import monotonic
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.eager.tape import tick
from graphdsl.ops.sizes import run_sizes
from graphdsl.ops.types import wrap32, wrap64
from graphdsl.runtime.faults import MOST_ACTIVE_CALLS, TOO_DEEP
from graphdsl.runtime.limits import TOO_MUCH, size_text
from graphdsl.runtime.showing import show
from graphdsl.runtime.state import Runtime
from graphdsl.runtime.texts import written
from graphdsl.source.diagnostic import Fault


class Shape:
    """Stands for an operand of which only the shape is read."""

    __slots__ = ("ndim", "shape")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def allow(rt: Runtime, sizes: Sequence[Any], operands: tuple[int, ...], itemsize: int) -> None:
    """A fault if a tensor of these sizes is more than a run may take."""
    rt.limits.check("a tensor", run_sizes(tuple(sizes), operands), itemsize)


def within(rt: Runtime) -> None:
    """A fault if the run takes more time than it may, or all values together more memory."""
    if monotonic() > rt.deadline:
        raise rt.limits.too_long()
    if not rt.limits.counted:
        return
    import tracemalloc  # which takes 1 ms, and few runs ask for it

    taken = tracemalloc.get_traced_memory()[0]
    if taken > rt.limits.memory:
        raise Fault(TOO_MUCH, size_text(taken), size_text(rt.limits.memory))


def deeper(rt: Runtime) -> None:
    """Count one more active call; a fault if there are too many."""
    if rt.active_calls == MOST_ACTIVE_CALLS:
        raise Fault(TOO_DEEP, MOST_ACTIVE_CALLS)
    rt.active_calls += 1


def counted(rt: Runtime, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function, whose calls are counted."""

    def call(*args: Any) -> Any:
        deeper(rt)
        result = function(*args)
        rt.active_calls -= 1
        return result

    return call


# ---- effects ----------------------------------------------------------------------------------


def say(rt: Runtime, instr: ir.Print, values: Sequence[Any]) -> None:
    """A print or a probe."""
    show(rt.sink, instr, values)


def save(rt: Runtime, instr: ir.Save, words: Sequence[Any], values: Sequence[Any]) -> None:
    """A save."""
    path = written(instr.path, iter(words))
    rt.save(path, [(item.name, item.value.type.dtype, v) for item, v in zip(instr.items, values, strict=True)])


def look(rt: Runtime, instr: ir.NanCheck, args: Sequence[Any], result: Any) -> None:
    """A result that is not finite."""
    rt.nans.check(instr, args, result)


def walks(rt: Runtime, instr: ir.NanWalk, results: Sequence[Any]) -> None:
    """A derivative that begins or ends."""
    rt.nans.walk(instr, results)


def failure(instr: ir.Fail, numbers: Sequence[int], words: Sequence[Any]) -> Fault:
    """The fault that an instruction stands for."""
    shown = () if instr.text is None else (written(instr.text, iter(words)),)
    return Fault(instr.kind, *numbers, *instr.words, *shown)


SUPPORT: dict[str, Any] = {
    "Shape": Shape,
    "allow": allow,
    "failure": failure,
    "inf": inf,
    "look": look,
    "counted": counted,
    "deeper": deeper,
    "nan": nan,
    "repeat": repeat,
    "save": save,
    "say": say,
    "sqrt": sqrt,
    "tick": tick,
    "walks": walks,
    "within": within,
    "wrap32": wrap32,
    "wrap64": wrap64,
}

"""Elementwise ops on run-time values: by NumPy, by the native library, or by a few steps of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphdsl.native.inventory import Entry, by_numpy, entry_for, is_held, is_long
from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Elementwise, Op
from graphdsl.ops.types import I32, Dim, DType, Type
from graphdsl.runtime import native, python_code
from graphdsl.source.diagnostic import Fault

Kernel = Callable[..., Any]

_FEW_STEPS = 8  # of Python on numbers: about what the call of a native kernel takes, and no library has to be there
_SOME_STEPS = 20  # up to which a kernel that the library does not hold is not worth compiling


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Kernel:
    """The function that computes an elementwise op on values of these types."""
    dtypes = tuple(t.dtype for t in types)
    if not any(t.rank for t in types):
        return _over_numbers(op, dtypes, attrs)
    made = _over_arrays(op, dtypes, attrs)
    if op.name == "where" and dtypes[1] is I32 and not (types[1].rank or types[2].rank):
        made = _where_i32  # NumPy would take two Python ints for i64
    return made if _surely_fit(types) else _fitting(made)


# ---- numbers ------------------------------------------------------------------------------------------


def _over_numbers(op: Op, dtypes: tuple[DType, ...], attrs: Attrs) -> Kernel:
    entry = entry_for(op, dtypes, attrs)
    if not entry.measure.native and entry.measure.count <= (_FEW_STEPS if is_held(op, attrs) else _SOME_STEPS):
        return python_code.function(entry.body, dtypes, True)
    made = native.over_numbers(entry)
    return _watched(entry, made, True) if entry.measure.fails else made


# ---- arrays -------------------------------------------------------------------------------------------


def _over_arrays(op: Op, dtypes: tuple[DType, ...], attrs: Attrs) -> Kernel:
    compute = op.compute
    assert isinstance(compute, Elementwise)
    if by_numpy(op, dtypes):
        made: Kernel = getattr(np, compute.numpy or "")
        return made
    entry = entry_for(op, dtypes, attrs)
    few = entry.measure.count <= _SOME_STEPS and not is_held(op, attrs)
    if not is_long(entry.measure) or (few and not entry.measure.native):
        return python_code.function(entry.body, dtypes, False)
    made = native.over_arrays(entry)
    return _watched(entry, made, False) if entry.measure.fails else made


def _where_i32(condition: Any, x: int, y: int) -> Any:
    return np.where(condition, np.int32(x), np.int32(y))


def _watched(entry: Entry, made: Kernel, scalar: bool) -> Kernel:
    """The kernel, and where an element failed, the fault: found by computing again, in row-major order."""
    seen = native.faults_seen(entry)

    def watched(*operands: Any) -> Any:
        before = seen.value
        result = made(*operands)
        if seen.value != before:
            # another thread's fault may be what was seen: then this does nothing
            python_code.function(entry.body, entry.operands, scalar)(*operands)
        return result

    return watched


# ---- sizes --------------------------------------------------------------------------------------------


def _surely_fit(types: tuple[Type, ...]) -> bool:
    """Whether it is known from the types that all sizes fit."""
    rank = max(t.rank for t in types)
    for axis in range(-rank, 0):
        sizes: set[Dim] = {t.shape[axis] for t in types if t.rank >= -axis} - {1}
        if len(sizes) > 1:
            return False
    return True


def _fitting(made: Kernel) -> Kernel:
    def fitting(*operands: Any) -> Any:
        try:
            return made(*operands)
        except ValueError:
            check_fit(*operands)
            raise

    return fitting


def check_fit(*operands: Any) -> None:
    """Fails at the first axis on which sizes do not fit each other, with the first two that do not."""
    shapes = [np.shape(x) for x in operands]
    rank = max(len(s) for s in shapes)
    for axis in range(rank):
        first = 1
        for shape in shapes:
            place = axis - rank + len(shape)
            size = shape[place] if place >= 0 else 1
            if first == 1:
                first = size
            elif size not in (1, first):
                raise Fault(faults.BROADCAST, first, size, axis)

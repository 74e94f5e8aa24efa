"""Products of vectors and matrices of run-time values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from graphdsl.native.names import WORTH_SHARING
from graphdsl.ops import faults
from graphdsl.ops.contraction import inner_fault
from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.types import F32, F64, DType, Type
from graphdsl.runtime import native, threads
from graphdsl.source.diagnostic import Fault

Kernel = Callable[..., Any]


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Kernel:
    """The function for operands of these ranks."""
    a, b = types
    guard = attrs.get("guard", ())
    match a.rank, b.rank:
        case _, 1:
            made = _guarded(_by_dots(a.dtype, a.rank), guard)
        case 1, _:
            made = _guarded(_row_times(a.dtype, _threads(a, b)), guard)
        case 2, 2:
            made = native.matmul(a.dtype, guard, _threads(a, b))
        case _:
            made = _guarded(native.matmul(a.dtype, (), _threads(a, b)), guard)
    return made if _surely_fits(a, b) else _checked(made, inner_fault(a.rank, b.rank))


def _surely_fits(a: Type, b: Type) -> bool:
    inner = (a.shape[-1], b.shape[0 if b.rank == 1 else -2])
    return inner[0] == inner[1] and a.rank <= 2 and b.rank <= 2


def _threads(a: Type, b: Type) -> int:
    """As many as a product of these may be worth."""
    sizes = (*a.shape, b.shape[-1])
    known = [d for d in sizes if isinstance(d, int)]
    small = len(known) == len(sizes) and prod(known) < WORTH_SHARING
    return 1 if small else threads.count()


def _by_dots(dtype: DType, rank: int) -> Kernel:
    made: Kernel = native.dot(dtype)
    if rank > 1 or dtype is F32:
        return made
    make: Callable[[Any], Any] = float if dtype is F64 else int
    return lambda a, b: make(made(a, b))


def _row_times(dtype: DType, threads: int) -> Kernel:
    made = native.matmul(dtype, (), threads)
    return lambda a, b: made(a[None, :], b)[..., 0, :]


def _guarded(made: Kernel, guard: tuple[int, ...]) -> Kernel:
    """Where all of an operand is 0, so is the result, whatever the other holds."""
    if not guard:
        return made

    def guarded(a: Any, b: Any) -> Any:
        result = made(a, b)
        if all(np.any((a, b)[i]) for i in guard):
            return result
        return np.zeros_like(result) if np.ndim(result) else type(result)(0)

    return guarded


def _checked(made: Kernel, inner: Any) -> Kernel:
    def checked(a: Any, b: Any) -> Any:
        try:
            return made(a, b)
        except ValueError:
            m, n = a.shape[-1], b.shape[0 if b.ndim == 1 else -2]
            if m != n:
                raise Fault(inner, m, n) from None
            _check_stacks(a.shape[:-2], b.shape[:-2])
            raise

    return checked


def _check_stacks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rank = max(len(a), len(b))
    for axis in range(rank):
        m, n = ((1,) * (rank - len(s)) + s for s in (a, b))
        if m[axis] != n[axis] and 1 not in (m[axis], n[axis]):
            raise Fault(faults.BROADCAST, m[axis], n[axis], axis)

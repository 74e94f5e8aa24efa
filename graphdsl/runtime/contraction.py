"""Products of vectors and matrices of run-time values; large ones are shared among threads."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from graphdsl.ops import faults
from graphdsl.ops.contraction import inner_fault
from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.types import F32, F64, DType, Type
from graphdsl.runtime import native, threads
from graphdsl.source.diagnostic import Fault

Kernel = Callable[..., Any]

_WORTH_SHARING = 1 << 23  # multiply-adds: some 0.2 ms on one thread, where handing over to another takes 0.05


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Kernel:
    """The function for operands of these ranks."""
    a, b = types
    guard = attrs.get("guard")
    match a.rank, b.rank:
        case _, 1:
            made = _guarded(_by_dots(a.dtype, a.rank), guard)
        case 1, _:
            made = _guarded(_row_times(a.dtype), guard)
        case 2, 2:
            made = native.matmul(a.dtype, guard)
            if _may_be_large(a, b):
                made = _matrices(made)
        case _:
            made = _guarded(_stacks(native.matmul(a.dtype, None)), guard)
    return made if _surely_fits(a, b) else _checked(made, inner_fault(a.rank, b.rank))


def _surely_fits(a: Type, b: Type) -> bool:
    inner = (a.shape[-1], b.shape[0 if b.rank == 1 else -2])
    return inner[0] == inner[1] and a.rank <= 2 and b.rank <= 2


def _may_be_large(a: Type, b: Type) -> bool:
    sizes = (*a.shape, b.shape[1])
    known = [d for d in sizes if isinstance(d, int)]
    return len(known) < len(sizes) or prod(known) >= _WORTH_SHARING


def _by_dots(dtype: DType, rank: int) -> Kernel:
    made: Kernel = native.dot(dtype)
    if rank > 1 or dtype is F32:
        return made
    make: Callable[[Any], Any] = float if dtype is F64 else int
    return lambda a, b: make(made(a, b))


def _row_times(dtype: DType) -> Kernel:
    made = native.matmul(dtype, None)
    return lambda a, b: made(a[None, :], b)[..., 0, :]


def _matrices(made: Kernel) -> Kernel:
    def product(a: Any, b: Any) -> Any:
        m, k = a.shape
        n = b.shape[1]
        if m * n * k < _WORTH_SHARING or threads.count() == 1 or b.shape[0] != k:
            return made(a, b)
        out = np.empty((m, n), a.dtype)
        if m >= n:
            threads.share(m, 12, lambda i, j: made(a[i:j], b, out[i:j]))
        else:
            threads.share(n, 64, lambda i, j: made(a, b[:, i:j], out[:, i:j]))
        return out

    return product


def _stacks(made: Kernel) -> Kernel:
    def product(a: Any, b: Any) -> Any:
        work = a.size * b.shape[-1]
        if work < _WORTH_SHARING or threads.count() == 1 or a.ndim < 3 or (b.ndim > 2 and b.shape[:-2] != a.shape[:-2]):
            return made(a, b)
        out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        parted = b.ndim > 2
        threads.share(a.shape[0], 1, lambda i, j: made(a[i:j], b[i:j] if parted else b, out[i:j]))
        return out

    return product


def _guarded(made: Kernel, guard: int | None) -> Kernel:
    """Where all of an operand is 0, so is the result, whatever the other holds."""
    if guard is None:
        return made

    def guarded(a: Any, b: Any) -> Any:
        result = made(a, b)
        if np.any((a, b)[guard]):
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

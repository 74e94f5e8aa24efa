"""Reductions of run-time values: which axes go to which native gufunc, and what becomes of its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Op, Reduce
from graphdsl.ops.types import F32, I64, DType, Type
from graphdsl.runtime import native
from graphdsl.runtime.numbers import NUMBERS
from graphdsl.source.diagnostic import Fault

Kernel = Callable[..., Any]

_MOST_AXES = 3
_NEEDS_ELEMENTS = ("max", "min", "argmax", "argmin")


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Kernel:
    """The function that reduces values of these types."""
    compute = op.compute
    assert isinstance(compute, Reduce)
    if compute.kind == "sum_to":
        return _sum_to(types[0].dtype, types[0].rank, types[1].rank)
    x, axes = types[0], tuple(attrs["axes"])
    made = reduction(compute.kind, x.dtype, x.rank, axes, bool(attrs["keepdims"]))
    if compute.kind in _NEEDS_ELEMENTS and not all(isinstance(x.shape[a], int) and x.shape[a] for a in axes):
        return _with_elements(made, axes)
    return made


@cache
def reduction(kind: str, dtype: DType, rank: int, axes: tuple[int, ...], keepdims: bool = False) -> Kernel:
    """The function that reduces these axes of an array, or a number."""
    if not rank:
        return _of_number(kind, dtype)
    kept = tuple(a for a in range(rank) if a not in axes)
    order = (*kept, *axes)
    made = _of_last(kind, dtype, len(axes), len(kept))
    if order != tuple(range(rank)):
        made = _transposed(made, order)
    if keepdims:
        return _keeping(made, tuple(None if a in axes else slice(None) for a in range(rank)), not kept)
    return made if kept else _to_number(made, kind, dtype)


def _of_number(kind: str, dtype: DType) -> Kernel:
    if kind.startswith("arg"):
        return lambda x: 0
    if kind == "sum" and dtype.is_float:
        zero = NUMBERS[dtype](0.0)
        return lambda x: x + zero  # lanes start at +0.0
    return lambda x: x


def _of_last(kind: str, dtype: DType, count: int, kept: int) -> Kernel:
    """The reduction of the last `count` axes."""
    if 1 <= count <= _MOST_AXES:
        made: Kernel = native.reduction(kind, dtype, count)
        return made
    one = native.reduction(kind, dtype, 1)
    if not count:
        return lambda x: one(x[..., None])

    def merged(x: Any) -> Any:
        sizes = x.shape[:kept]
        return one(x.reshape((*sizes, int(np.prod(x.shape[kept:])))))

    return merged


def _transposed(made: Kernel, order: tuple[int, ...]) -> Kernel:
    return lambda x: made(x.transpose(order))


def _keeping(made: Kernel, index: tuple[Any, ...], single: bool) -> Kernel:
    if single:
        shape = (1,) * len(index)
        return lambda x: np.asarray(made(x)).reshape(shape)
    return lambda x: made(x)[index]


def _to_number(made: Kernel, kind: str, dtype: DType) -> Kernel:
    result = I64 if kind.startswith("arg") else dtype
    if result is F32:
        return made  # NumPy's scalar is what an f32 number is
    make = NUMBERS[result]
    return lambda x: make(made(x))


def _with_elements(made: Kernel, axes: tuple[int, ...]) -> Kernel:
    def checked(x: Any) -> Any:
        for axis in axes:
            if not x.shape[axis]:
                raise Fault(faults.EMPTY, axis)
        return made(x)

    return checked


# ---- gradients over a broadcast -----------------------------------------------------------------------


def _sum_to(dtype: DType, rank: int, to: int) -> Kernel:
    lead = rank - to
    if not rank:
        return lambda g, like: g
    if not to:
        total = reduction("sum", dtype, rank, tuple(range(rank)))
        return lambda g, like: total(g)

    def sum_to(g: Any, like: Any) -> Any:
        shape, target = g.shape, like.shape
        if shape == target:
            return g
        axes = tuple(a for a in range(rank) if a < lead or (target[a - lead] == 1 and shape[a] != 1))
        return np.reshape(reduction("sum", dtype, rank, axes)(g), target)

    return sum_to

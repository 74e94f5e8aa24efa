"""Reductions of run-time values: which axes go to which native gufunc, and what becomes of its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphdsl.native.names import MOST_AXES
from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Op, Reduce
from graphdsl.ops.types import F32, I64, DType, Type
from graphdsl.runtime import native
from graphdsl.runtime.numbers import NUMBERS
from graphdsl.source.diagnostic import Fault

Kernel = Callable[..., Any]

_SUM = Reduce("sum")


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Kernel:
    """The function that reduces values of these types."""
    compute = op.compute
    assert isinstance(compute, Reduce)
    x, axes = types[0], tuple(attrs["axes"])
    made = reduction(compute, x.dtype, x.rank, axes, bool(attrs["keepdims"]))
    if faults.EMPTY in op.faults and not all(isinstance(x.shape[a], int) and x.shape[a] for a in axes):
        return _with_elements(made, axes)
    return made


@cache
def reduction(compute: Reduce, dtype: DType, rank: int, axes: tuple[int, ...], keepdims: bool = False) -> Kernel:
    """The function that reduces these axes of an array, or a number."""
    if not rank:
        return _of_number(compute, dtype)
    kept = tuple(a for a in range(rank) if a not in axes)
    order = (*kept, *axes)
    made = _of_last(compute, dtype, len(axes), len(kept))
    if order != tuple(range(rank)):
        made = _transposed(made, order)
    if keepdims:
        return _keeping(made, tuple(None if a in axes else slice(None) for a in range(rank)), not kept)
    return made if kept else _to_number(made, compute, dtype)


def _of_number(compute: Reduce, dtype: DType) -> Kernel:
    if compute.search:
        return lambda x: 0
    if compute.fold == "sum" and dtype.is_float:
        zero = NUMBERS[dtype](0.0)
        return lambda x: x + zero  # lanes start at +0.0
    return lambda x: x


def _of_last(compute: Reduce, dtype: DType, count: int, kept: int) -> Kernel:
    """The reduction of the last `count` axes."""
    if 1 <= count <= MOST_AXES:
        made: Kernel = native.reduction(compute, dtype, count)
        return made
    one = native.reduction(compute, dtype, 1)
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


def _to_number(made: Kernel, compute: Reduce, dtype: DType) -> Kernel:
    result = I64 if compute.search else dtype
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


def sum_to(dtype: DType, rank: int, to: int) -> Kernel:
    """The function that sums a value of rank `rank` to the shape of one of rank `to`."""
    lead = rank - to
    if not rank:
        return lambda g, like: g
    if not to:
        total = reduction(_SUM, dtype, rank, tuple(range(rank)))
        return lambda g, like: total(g)

    def summed(g: Any, like: Any) -> Any:
        shape, target = g.shape, like.shape
        if shape == target:
            return g
        axes = tuple(a for a in range(rank) if a < lead or (target[a - lead] == 1 and shape[a] != 1))
        return np.reshape(reduction(_SUM, dtype, rank, axes)(g), target)

    return summed

"""Reductions written in others: mean, variance, norms, and the sum of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem
from graphdsl.ops.reductions import GROUP, PARAMS, reduction
from graphdsl.ops.shape import count_along
from graphdsl.ops.type_rules import axes_of, float_dtype
from graphdsl.ops.types import BOOL, I64

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value


def as_float(e: Emit, x: Value) -> Value:
    """`x` as what a float function takes: weak values stay weak."""
    dtype, weak = float_dtype(e.setting, (x.type,))
    if x.type.dtype is dtype:
        return x
    return e.cast(x, dtype=dtype, weak=weak)


def _mean(e: Emit, x: Value, *, axis: Any = None, keepdims: bool = False) -> Value:
    x = as_float(e, x)
    count = e.cast(count_along(e, x, axes_of(axis, x.type.rank)), dtype=x.type.dtype, weak=x.type.weak)
    total = e.sum(x, axis=axis, keepdims=keepdims)
    return e.div(total, count)


MEAN = Op(
    name="mean",
    doc="The sum divided by the count; nan of nothing.",
    params=PARAMS,
    typing=reduction(float_dtype),
    compute=Composite(_mean),
    bound=float("inf"),
    reference="numpy.mean",
    group=GROUP,
)


def _var(e: Emit, x: Value, *, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Value:
    x = as_float(e, x)
    off = e.sub(x, _mean(e, x, axis=axis, keepdims=True))
    count = e.cast(count_along(e, x, axes_of(axis, x.type.rank)), dtype=x.type.dtype, weak=x.type.weak)
    if ddof:
        count = e.sub(count, e.like(float(ddof), x))
    return e.div(e.sum(e.powi(off, k=2), axis=axis, keepdims=keepdims), count)


SPREAD_PARAMS = (
    Param("x"),
    Param("axis", Kind.AXES, None),
    Param("ddof", Kind.STATIC, 0),
    Param("keepdims", Kind.STATIC, False),
)

VAR = Op(
    name="var",
    doc="The mean square distance from the mean, in two passes; divided by `n - ddof`.",
    params=SPREAD_PARAMS,
    typing=reduction(float_dtype),
    compute=Composite(_var),
    bound=float("inf"),
    reference="numpy.var",
    group=GROUP,
)

STD = Op(
    name="std",
    doc="The square root of `var`; its derivative where nothing differs is 0.",
    params=SPREAD_PARAMS,
    typing=reduction(float_dtype),
    compute=Composite(lambda e, x, **attrs: _root(e, _var(e, x, **attrs))),
    bound=float("inf"),
    reference="numpy.std",
    group=GROUP,
)


def _root(e: Emit, x: Value) -> Value:
    """The square root, with derivative 0 at 0: there the root of a constant is taken."""
    flat = e.eq(x, e.like(0.0, x))
    return e.where(flat, e.like(0.0, x), e.sqrt(e.where(flat, e.like(1.0, x), x)))


def _norm(e: Emit, x: Value, *, ord: int | None = None, axis: Any = None, keepdims: bool = False) -> Value:
    x = as_float(e, x)
    axes = axes_of(axis, x.type.rank)
    if ord is not None and len(axes) > 1:
        raise TypeProblem("E0309", f"`norm` of order {ord} is of vectors: name one axis", "`norm(x, axis=-1)`")
    match ord:
        case None | 2:
            return _root(e, e.sum(e.powi(x, k=2), axis=axis, keepdims=keepdims))
        case 1:
            return e.sum(e.abs(x), axis=axis, keepdims=keepdims)
    raise TypeProblem("E0309", f"`norm` has the orders 1 and 2, not {ord}")


NORM = Op(
    name="norm",
    doc="The square root of the sum of squares (`ord=1`: the sum of absolute values); its derivative at 0 is 0.",
    params=(
        Param("x"),
        Param("ord", Kind.STATIC, None),
        Param("axis", Kind.AXES, None),
        Param("keepdims", Kind.STATIC, False),
    ),
    typing=reduction(float_dtype),
    compute=Composite(_norm),
    bound=float("inf"),
    reference="numpy.linalg.norm",
    group=GROUP,
)


def _logsumexp(e: Emit, x: Value, *, axis: Any = None, keepdims: bool = False) -> Value:
    """Shifted by the largest element, where that is finite. Of nothing but -inf it is -inf, as their mean is, whose
    derivative is even."""
    x = as_float(e, x)
    top = e.stop_gradient(e.max(x, axis=axis, keepdims=True))
    nothing = e.eq(top, e.like(float("-inf"), x))
    shift = e.where(e.isfinite(top), top, e.like(0.0, x))
    moved = e.where(nothing, e.like(0.0, x), e.sub(x, shift))
    found = e.add(e.log(e.sum(e.exp(moved), axis=axis, keepdims=True)), shift)
    found = e.where(nothing, _mean(e, x, axis=axis, keepdims=True), found)
    return found if keepdims else e.squeeze(found, axis=axes_of(axis, x.type.rank))


LOGSUMEXP = Op(
    name="logsumexp",
    doc="The logarithm of the sum of exponentials, without overflow.",
    params=PARAMS,
    typing=reduction(float_dtype),
    compute=Composite(_logsumexp),
    bound=float("inf"),
    reference="scipy.special.logsumexp",
    group=GROUP,
)


def _count_nonzero(e: Emit, x: Value, *, axis: Any = None, keepdims: bool = False) -> Value:
    return e.sum(e.cast(e.cast(x, dtype=BOOL), dtype=I64), axis=axis, keepdims=keepdims)


COUNT_NONZERO = Op(
    name="count_nonzero",
    doc="How many elements are not 0.",
    params=PARAMS,
    typing=reduction(float_dtype, I64),
    compute=Composite(_count_nonzero),
    bound=0.0,
    reference="numpy.count_nonzero",
    group=GROUP,
)

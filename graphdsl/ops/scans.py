"""Along an axis, in order: running sums and products, and sorting.

They are done by NumPy in both modes for now. The derivative of a running product is a linear recurrence, which is closed
under differentiation: so zeros among the factors are right to any order, without division.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops.op import Attrs, Composite, Host, Kind, Op, Param, Pointwise, Setting, TypeProblem, TypeRule, Typing
from graphdsl.ops.reductions import total_dtype
from graphdsl.ops.shape import dim_value
from graphdsl.ops.type_rules import Policy, joined_dtype, one_axis, selection
from graphdsl.ops.types import I64, DType, Type

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

GROUP = "reductions"
PARAMS = (Param("x"), Param("axis", Kind.STATIC, -1))


def _along(policy: Policy, out: DType | None = None) -> TypeRule:
    def rule(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
        (x,) = types
        if not x.rank:
            raise TypeProblem("E0305", "a scalar has no axis to go along", operand=0)
        dtype, weak = policy(setting, types)
        made = Type(dtype, x.shape, weak) if out is None else Type(out, x.shape)
        return Typing((dtype,), (made,), attrs={"axis": one_axis(attrs.get("axis", -1), x.rank)})

    return rule


# ---- neighbours ----------------------------------------------------------------------------------------


def _shifted_at(code: Code, place: tuple[S, ...], xs: tuple[Reader, ...], sizes: tuple[S, ...], attrs: Attrs) -> S:
    (x,), axis = xs, attrs["axis"]
    source = place[axis] - attrs["by"]
    outside = (source < 0) | (source >= x.size(axis))
    held = code.select(outside, place[axis], source)
    element = x.at((*place[:axis], held, *place[axis + 1 :]))
    return code.select(outside, code.const(element.dtype, attrs["fill"]), element)


def _shifted_numpy(x: Any, *, axis: int, by: int, fill: float) -> Any:
    made = np.full_like(x, fill)
    lead = (slice(None),) * axis
    to, source = (slice(by, None), slice(None, -by)) if by > 0 else (slice(None, by), slice(-by, None))
    made[(*lead, to)] = x[(*lead, source)]
    return made


SHIFTED = Op(
    name="shifted",
    doc="Each element's neighbour `by` places before it; `fill` where there is none.",
    typing=lambda setting, types, attrs: Typing((types[0].dtype,), (Type(types[0].dtype, types[0].shape),)),
    compute=Pointwise(_shifted_at, _shifted_numpy),
    vjp=(lambda e, g, y, x, *, axis, by, fill: e.shifted(g, axis=axis, by=-by, fill=0.0),),
    jvp=lambda e, tangents, y, x, *, axis, by, fill: e.shifted(tangents[0], axis=axis, by=by, fill=0.0),
    bound=0.0,
    group="derivatives",
)


# ---- the linear recurrence -----------------------------------------------------------------------------


def _recurrence_numpy(runtime: Any, a: Any, b: Any, *, axis: int, back: bool, late: bool) -> Any:
    factors, terms = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    made = np.array(terms)
    order = range(len(made))[:: -1 if back else 1]
    for last, k in pairwise(order):
        held = made[last] * factors[last if late else k]
        made[k] += np.where(made[last] == 0, held.dtype.type(0), held)
    return np.ascontiguousarray(np.moveaxis(made, 0, axis))


def _recurrence_slope_a(e: Emit, g: Value, y: Value, a: Value, b: Value, *, axis: int, back: bool, late: bool) -> Value:
    carried = e.recurrence(a, g, axis=axis, back=not back, late=not late)
    by = -1 if back else 1
    if late:
        return e.scale_both(e.shifted(carried, axis=axis, by=-by, fill=0.0), y)
    return e.scale_both(carried, e.shifted(y, axis=axis, by=by, fill=0.0))


def _recurrence_forward(
    e: Emit, tangents: tuple[Value | None, ...], y: Value, a: Value, b: Value, *, axis: int, back: bool, late: bool
) -> Value:
    ta, tb = tangents
    by = -1 if back else 1
    terms = tb
    if ta is not None:
        before = e.shifted(y, axis=axis, by=by, fill=0.0)
        part = e.scale(e.shifted(ta, axis=axis, by=by, fill=0.0) if late else ta, before)
        terms = part if tb is None else e.add(part, tb)
    return e.recurrence(a, terms, axis=axis, back=back, late=late)


RECURRENCE = Op(
    name="recurrence",
    doc="`h[k] = h[k - 1] * a[k] + b[k]` along an axis (`back`: from its end; `late`: with the factor of the one before).",
    typing=lambda setting, types, attrs: Typing((types[0].dtype,) * 2, (Type(types[0].dtype, types[1].shape),)),
    compute=Host(_recurrence_numpy),
    vjp=(
        _recurrence_slope_a,
        lambda e, g, y, a, b, *, axis, back, late: e.recurrence(a, g, axis=axis, back=not back, late=not late),
    ),
    jvp=_recurrence_forward,
    bound=float("inf"),
    group="derivatives",
)

# ---- running sums and products -------------------------------------------------------------------------


def _cumsum_slope(e: Emit, g: Value, y: Value, x: Value, *, axis: int) -> Value:
    return e.flip(e.cumsum(e.flip(g, axis=axis), axis=axis), axis=axis)


CUMSUM = Op(
    name="cumsum",
    doc="Running sums, in order; bools and ints add up in i64.",
    params=PARAMS,
    typing=_along(total_dtype),
    compute=Host(lambda runtime, x, *, axis: np.cumsum(x, axis)),
    vjp=(_cumsum_slope,),
    linear=(0,),
    bound=float("inf"),
    reference="numpy.cumsum",
    group=GROUP,
)


def _before(e: Emit, y: Value, axis: int) -> Value:
    """The product of what stands before each element."""
    return e.shifted(y, axis=axis, by=1, fill=1.0)


def _cumprod_slope(e: Emit, g: Value, y: Value, x: Value, *, axis: int) -> Value:
    return e.scale(e.recurrence(x, g, axis=axis, back=True, late=True), _before(e, y, axis))


def _cumprod_forward(e: Emit, tangents: tuple[Value, ...], y: Value, x: Value, *, axis: int) -> Value:
    return e.recurrence(x, e.scale(tangents[0], _before(e, y, axis)), axis=axis, back=False, late=False)


CUMPROD = Op(
    name="cumprod",
    doc="Running products, in order; bools and ints multiply in i64.",
    params=PARAMS,
    typing=_along(total_dtype),
    compute=Host(lambda runtime, x, *, axis: np.cumprod(x, axis)),
    vjp=(_cumprod_slope,),
    jvp=_cumprod_forward,
    bound=float("inf"),
    reference="numpy.cumprod",
    group=GROUP,
)

# ---- sorting -------------------------------------------------------------------------------------------

ARGSORT = Op(
    name="argsort",
    doc="The places of the elements in ascending order; stable, nan last.",
    params=PARAMS,
    typing=_along(joined_dtype, I64),
    compute=Host(lambda runtime, x, *, axis: np.argsort(x, axis, kind="stable")),
    bound=0.0,
    reference="numpy.argsort",
    group=GROUP,
)


def _sort(e: Emit, x: Value, *, axis: int = -1) -> Value:
    order = e.argsort(x, axis=axis)
    along = one_axis(axis, x.type.rank)
    places = [order if a == along else _numbers(e, x, a) for a in range(x.type.rank)]
    return e.index(x, *places, spec=(("take",),) * x.type.rank)


def _numbers(e: Emit, x: Value, axis: int) -> Value:
    """The places of an axis, along that axis."""
    numbers = e.range(e.const(0, I64), dim_value(e, x, axis), e.const(1, I64), size=x.type.shape[axis])
    after = x.type.rank - axis - 1
    return e.index(numbers, spec=(("full",), *((("new",),) * after)))


SORT = Op(
    name="sort",
    doc="The elements along an axis in ascending order; nan last.",
    params=PARAMS,
    typing=selection,
    compute=Composite(_sort),
    bound=0.0,
    reference="numpy.sort",
    group=GROUP,
)

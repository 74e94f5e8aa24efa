"""Comparing, logic, selecting, and what changes only the kind of a number: casts, rounding, tests for nan and inf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdsl.ops import faults
from graphdsl.ops.forms import XY, X, op1, op2
from graphdsl.ops.op import Attrs, Composite, Elementwise, Op, Param, Pointwise, Setting, TypeProblem, Typing
from graphdsl.ops.type_rules import (
    arithmetic,
    broadcast,
    classification,
    comparison,
    joined_dtype,
    logic,
    selection,
)
from graphdsl.ops.types import BOOL, F64, I32, DType, Type

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

GROUP = "elementwise"

# ---- comparisons and logic -----------------------------------------------------------------------------


def _comparison(name: str, doc: str, ufunc: str, sign: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        typing=comparison,
        compute=Elementwise(
            lambda code, x, y: code.compare(name, x, y), numpy=ufunc, numpy_ints=True, python=f"x {sign} y"
        ),
        bound=0.0,
        reference=f"numpy.{ufunc}",
        group=GROUP,
    )


EQ = _comparison("eq", "Whether two elements are equal; nan equals nothing.", "equal", "==")
NE = _comparison("ne", "Whether two elements differ; nan differs from everything.", "not_equal", "!=")
LT = _comparison("lt", "Whether the first is less.", "less", "<")
LE = _comparison("le", "Whether the first is less or equal.", "less_equal", "<=")
GT = _comparison("gt", "Whether the first is greater.", "greater", ">")
GE = _comparison("ge", "Whether the first is greater or equal.", "greater_equal", ">=")


def _logic(name: str, doc: str, operation: str, ufunc: str, sign: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        typing=logic,
        compute=Elementwise(op2(operation), numpy=ufunc, numpy_ints=True, python=f"x {sign} y"),
        bound=0.0,
        reference=f"numpy.{ufunc}",
        group=GROUP,
    )


AND = _logic("and_", "`&`: both, or the bits that both have.", "and", "bitwise_and", "&")
OR = _logic("or_", "`|`: either, or the bits that either has.", "or", "bitwise_or", "|")
XOR = _logic("xor_", "One of the two, or the bits that one of them has.", "xor", "bitwise_xor", "^")
NOT = Op(
    name="not_",
    doc="`~`: not, or the other bits.",
    typing=logic,
    compute=Elementwise(op1("not"), numpy="invert", numpy_ints=True, python="~x"),
    bound=0.0,
    reference="numpy.invert",
    group=GROUP,
)

# ---- selecting -----------------------------------------------------------------------------------------


def _where_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    condition, a, b = types
    if condition.dtype is not BOOL:
        raise TypeProblem(
            "E0301", f"the condition of `where` must be bool, not {condition}", "compare: `where(c != 0, a, b)`", 0
        )
    dtype, weak = joined_dtype(setting, (a, b))
    shape, fails = broadcast(types)
    return Typing((BOOL, dtype, dtype), (Type(dtype, shape, weak),), fails)


def _zero(e: Emit, like: Value) -> Value:
    return e.like(0.0, like)


WHERE = Op(
    name="where",
    doc="`a` where the condition holds, else `b`, element by element; both are computed.",
    params=(Param("condition"), Param("a"), Param("b")),
    typing=_where_types,
    compute=Elementwise(
        lambda code, c, a, b: code.select(c, a, b), numpy="where", numpy_ints=True, python="y if x else z"
    ),
    vjp=(
        None,
        lambda e, g, y, c, a, b: e.where(c, g, _zero(e, g)),
        lambda e, g, y, c, a, b: e.where(c, _zero(e, g), g),
    ),
    bound=0.0,
    reference="numpy.where",
    group=GROUP,
    minus_zeros=(1, 2),
)


def _extreme(code: Code, x: S, y: S, greater: bool) -> S:
    """The larger (or smaller) of two: nan if either is, and -0.0 < +0.0."""
    if x.dtype is BOOL:
        return x | y if greater else x & y
    first = x > y if greater else x < y
    if not x.dtype.is_float:
        return code.select(first, x, y)
    bits = code.bits(x) & code.bits(y) if greater else code.bits(x) | code.bits(y)
    equal = code.from_bits(bits)  # equal numbers have equal bits, but for zeros: a common sign bit
    second = y > x if greater else y < x
    return code.select(first, x, code.select(second, y, code.select(x.eq(y), equal, x + y)))


def _shared(e: Emit, g: Value, loses: Value, tie: Value) -> Value:
    """`g` to the operand that is taken, half of it at a tie."""
    return e.where(loses, _zero(e, g), e.where(tie, e.scale(g, e.like(0.5, g)), g))


MAXIMUM = Op(
    name="maximum",
    doc="The larger of two elements; nan if either is; a gradient is halved at a tie.",
    params=XY,
    typing=selection,
    compute=Elementwise(lambda code, x, y: _extreme(code, x, y, True)),
    vjp=(
        lambda e, g, y, a, b: _shared(e, g, e.lt(a, b), e.eq(a, b)),
        lambda e, g, y, a, b: _shared(e, g, e.lt(b, a), e.eq(a, b)),
    ),
    bound=0.0,
    reference="numpy.maximum",
    group=GROUP,
)

MINIMUM = Op(
    name="minimum",
    doc="The smaller of two elements; nan if either is; a gradient is halved at a tie.",
    params=XY,
    typing=selection,
    compute=Elementwise(lambda code, x, y: _extreme(code, x, y, False)),
    vjp=(
        lambda e, g, y, a, b: _shared(e, g, e.gt(a, b), e.eq(a, b)),
        lambda e, g, y, a, b: _shared(e, g, e.gt(b, a), e.eq(a, b)),
    ),
    bound=0.0,
    reference="numpy.minimum",
    group=GROUP,
)


def _no_less(code: Code, x: S, low: S) -> S:
    return _extreme(code, x, low, True)


def _no_more(code: Code, x: S, high: S) -> S:
    return _extreme(code, x, high, False)


AT_LEAST = Op(
    name="at_least",
    doc="`clamp` from below: the derivative on the bound is `x`'s.",
    typing=selection,
    compute=Elementwise(_no_less),
    vjp=(
        lambda e, g, y, x, low: e.where(e.lt(x, low), _zero(e, g), g),
        lambda e, g, y, x, low: e.where(e.lt(x, low), g, _zero(e, g)),
    ),
    bound=0.0,
    group=GROUP,
)

AT_MOST = Op(
    name="at_most",
    doc="`clamp` from above: the derivative on the bound is `x`'s.",
    typing=selection,
    compute=Elementwise(_no_more),
    vjp=(
        lambda e, g, y, x, high: e.where(e.gt(x, high), _zero(e, g), g),
        lambda e, g, y, x, high: e.where(e.gt(x, high), g, _zero(e, g)),
    ),
    bound=0.0,
    group=GROUP,
)


def _clamp(e: Emit, x: Value, low: Value | None, high: Value | None) -> Value:
    if low is not None:
        x = e.at_least(x, low)
    if high is not None:
        x = e.at_most(x, high)
    elif low is None:
        raise TypeProblem("E0309", "`clamp` needs a bound: `min`, `max` or both")
    return x


CLAMP = Op(
    name="clamp",
    doc="Elements held between two bounds, either of which may be `none`.",
    params=(Param("x"), Param("min", default=None), Param("max", default=None)),
    typing=selection,
    compute=Composite(_clamp),
    reference="torch.clamp",
    group=GROUP,
)

# ---- what keeps the value ------------------------------------------------------------------------------

STOP_GRADIENT = Op(
    name="stop_gradient",
    doc="The same value, but no derivative goes through.",
    params=X,
    typing=selection,
    compute=Elementwise(lambda code, x: x, python="x"),
    bound=0.0,
    group="derivatives",
)


def _nothing(code: Code, x: S) -> S:
    return code.const(x.dtype, 0)


VANISH = Op(
    name="vanish",
    doc="+0.0, with the derivative that `x` has: what a derivative rule gives for cotangents that are all 0.",
    typing=selection,
    compute=Elementwise(lambda code, x: code.select(x.eq(x), _nothing(code, x), _nothing(code, x)), python="0.0"),
    vjp=(lambda e, g, y, x: g,),
    bound=0.0,
    group=GROUP,
)


def _seeded_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    return Typing(tuple(t.dtype for t in types), (Type(F64),))


SEEDED = Op(
    name="seeded",
    doc="0.0, whose derivative by `y` is `g`: with a sum of these a walk begins at several values.",
    typing=_seeded_types,
    compute=Pointwise(lambda code, place, operands, sizes, attrs: code.const(F64, 0.0), lambda y, g: 0.0),
    vjp=(lambda e, c, y, x, g: g, None),
    bound=0.0,
    group="derivatives",
)


def _cast_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    (x,) = types
    out: DType = attrs["dtype"]
    checked = bool(attrs.get("checked")) and out is I32
    weak = bool(attrs.get("weak"))
    return Typing((x.dtype,), (Type(out, x.shape, weak),), checked, cast_attrs(out, checked, weak))


def cast_attrs(dtype: DType, checked: bool, weak: bool) -> Attrs:
    """All attributes of a cast. `checked`: a value that does not fit is a fault."""
    return {"dtype": dtype, "checked": checked, "weak": weak}


def _cast(code: Code, x: S, *, dtype: DType, checked: bool, weak: bool) -> S:
    result = code.convert(x, dtype)
    if checked:
        code.fail(code.convert(result, x.dtype).ne(x), faults.WEAK_I32, x)
    return result


def _cast_slope(e: Emit, g: Value, y: Value, x: Value, **attrs: Any) -> Value | None:
    if not (x.type.dtype.is_float and y.type.dtype.is_float):
        return None
    return e.cast(g, dtype=x.type.dtype)


CAST = Op(
    name="cast",
    doc="`f32(x)`, `i64(x)`, `bool(x)`, …: float to int truncates and saturates, nan is 0; int to int wraps.",
    typing=_cast_types,
    compute=Elementwise(_cast),
    vjp=(_cast_slope,),
    linear=(0,),
    faults=(faults.WEAK_I32,),
    reference="numpy.ndarray.astype",
    group=GROUP,
)

# ---- rounding and tests --------------------------------------------------------------------------------


def _rounding(name: str, doc: str, operation: str, ufunc: str) -> Op:
    return Op(
        name=name,
        doc=doc + " Its derivative is 0.",
        params=X,
        typing=arithmetic,
        compute=Elementwise(lambda code, x: code.op1(operation, x) if x.dtype.is_float else x, numpy=ufunc),
        bound=0.0,
        reference=f"numpy.{ufunc}",
        group=GROUP,
    )


FLOOR = _rounding("floor", "The largest whole number that is not above.", "floor", "floor")
CEIL = _rounding("ceil", "The smallest whole number that is not below.", "ceil", "ceil")
TRUNC = _rounding("trunc", "The whole part, towards 0.", "trunc", "trunc")
ROUND = _rounding("round", "The nearest whole number, halves to the even one.", "rint", "rint")


def _is_infinite(code: Code, x: S) -> S:
    return code.op1("abs", x).eq(float("inf"))


def _is_finite(code: Code, x: S) -> S:
    return code.op1("abs", x) < float("inf")


def _test(name: str, doc: str, body: Any) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=X,
        typing=classification,
        compute=Elementwise(body),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
    )


ISNAN = _test("isnan", "Whether it is nan.", lambda code, x: x.ne(x))
ISINF = _test("isinf", "Whether it is inf or -inf.", _is_infinite)
ISFINITE = _test("isfinite", "Whether it is neither inf nor nan.", _is_finite)

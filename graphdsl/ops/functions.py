"""The float functions of one argument. Their bodies stand in `graphdsl.ops.math`; here are their slopes.

A slope is chosen so that it keeps its precision where the function is flat and its own derivative where that is tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphdsl.ops.forms import XY, X, function, math_body, op1
from graphdsl.ops.op import Elementwise, Op, Param
from graphdsl.ops.type_rules import arithmetic, floating

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S


def _reciprocal(e: Emit, x: Value) -> Value:
    return e.div(e.like(1.0, x), x)


SQRT = function(
    "sqrt",
    "Square root; nan below 0.",
    lambda e, y, x: e.div(e.like(0.5, y), y),
    body=op1("sqrt"),
    numpy="sqrt",
    python="sqrt(x) if x >= 0.0 else kernel(x)",
    bound=0.5,
    cost=6,
)

EXP = function("exp", "The exponential function.", lambda e, y, x: y, cost=12)

LOG = function("log", "Natural logarithm; -inf at 0, nan below.", lambda e, y, x: _reciprocal(e, x), cost=16)

SIN = function("sin", "Sine of an angle in radians.", lambda e, y, x: e.cos(x), cost=20)

COS = function("cos", "Cosine of an angle in radians.", lambda e, y, x: e.neg(e.sin(x)), cost=20)


ONE_MINUS_SQUARE = function(
    "one_minus_square",
    "`1 - x * x`, rounded once, so that it is right near 1.",
    # not of the form (1 - x)(1 + x): the derivative of that would lose -2x beside 1 where x is tiny
    lambda e, y, x: e.mul(e.like(-2.0, x), x),
    body=lambda code, x: code.fma(-x, x, code.const(x.dtype, 1.0)),
    bound=0.5,
    params=None,
    reference=None,
)


def _tanh_slope_body(code: Code, x: S) -> S:
    """`1 / cosh(x)**2`, as the square of `2 u / (1 + u**2)` with `u = exp(-|x|)`: `1 - y * y` cancels where `y` nears 1."""
    u = math_body("exp")(code, -abs(x))
    root = 2.0 * u / code.fma(u, u, code.const(x.dtype, 1.0))
    return root * root


TANH_SLOPE = function(
    "tanh_slope",
    "The derivative of `tanh`.",
    lambda e, y, x: e.mul(e.mul(e.like(-2.0, x), e.tanh(x)), y),
    body=_tanh_slope_body,
    bound=4.0,
    params=None,
    reference=None,
)

TANH = function("tanh", "Hyperbolic tangent.", lambda e, y, x: e.tanh_slope(x), cost=16)

TAN = function("tan", "Tangent of an angle in radians.", lambda e, y, x: e.add(e.like(1.0, y), e.mul(y, y)))


def _sigmoid_slope_body(code: Code, x: S) -> S:
    """`s(x) s(-x)`, as `u / (1 + u)**2` with `u = exp(-|x|)`: no term cancels on either side."""
    u = math_body("exp")(code, -abs(x))
    v = 1.0 + u
    return u / (v * v)


def _half_tanh(e: Emit, x: Value) -> Value:
    return e.neg(e.tanh(e.mul(x, e.like(0.5, x))))


SIGMOID_SLOPE = function(
    "sigmoid_slope",
    "The derivative of `sigmoid`.",
    # s'' = s' (1 - 2 s), and 1 - 2 s(x) = -tanh(x / 2), which is right where x is tiny
    lambda e, y, x: e.mul(y, _half_tanh(e, x)),
    body=_sigmoid_slope_body,
    bound=4.0,
    params=None,
    reference=None,
)

SIGMOID = function(
    "sigmoid",
    "`1 / (1 + exp(-x))`.",
    lambda e, y, x: e.sigmoid_slope(x),
    reference="scipy.special.expit",
    cost=14,
)


def _relu(code: Code, x: S) -> S:
    zero = code.const(x.dtype, 0)
    return code.select(x <= zero, zero, x)


RELU = Op(
    name="relu",
    doc="0 below 0, else `x`; its derivative at 0 is 0.",
    params=X,
    typing=arithmetic,
    compute=Elementwise(_relu, python="0.0 if x <= 0.0 else x"),
    vjp=(lambda e, g, y, x: e.where(e.gt(x, e.like(0.0, x)), g, e.like(0.0, g)),),
    bound=0.0,
    reference="torch.relu",
    group="elementwise",
)


# ---- powers and logarithms -----------------------------------------------------------------------------

LN2, LOG2_E, LOG10_E = 0.6931471805599453, 1.4426950408889634, 0.4342944819032518

RSQRT = function(
    "rsqrt",
    "`1 / sqrt(x)`.",
    lambda e, y, x: e.mul(e.mul(e.like(-0.5, y), y), e.mul(y, y)),
    reference="torch.rsqrt",
)
CBRT = function(
    "cbrt",
    "Cube root.",
    lambda e, y, x: _reciprocal(e, e.mul(e.like(3.0, y), e.mul(y, y))),
    bound=0.55,
)
EXP2 = function("exp2", "`2 ** x`.", lambda e, y, x: e.mul(e.like(LN2, y), y), bound=0.55)
EXPM1 = function("expm1", "`exp(x) - 1`, right near 0.", lambda e, y, x: e.exp(x))
LOG1P = function("log1p", "`log(1 + x)`, right near 0.", lambda e, y, x: _reciprocal(e, e.add(e.like(1.0, x), x)))
LOG2 = function("log2", "Logarithm to base 2.", lambda e, y, x: e.div(e.like(LOG2_E, x), x), bound=0.55)
LOG10 = function("log10", "Logarithm to base 10.", lambda e, y, x: e.div(e.like(LOG10_E, x), x), bound=0.55)

# ---- arcs and hyperbolic functions ---------------------------------------------------------------------


def _arc_slope(e: Emit, x: Value) -> Value:
    return _reciprocal(e, e.sqrt(e.one_minus_square(x)))


ASIN = function("asin", "The angle whose sine it is.", lambda e, y, x: _arc_slope(e, x), reference="numpy.arcsin")
ACOS = function(
    "acos", "The angle whose cosine it is.", lambda e, y, x: e.neg(_arc_slope(e, x)), reference="numpy.arccos"
)
ATAN = function(
    "atan",
    "The angle whose tangent it is.",
    lambda e, y, x: _reciprocal(e, e.add(e.like(1.0, x), e.mul(x, x))),
    reference="numpy.arctan",
)
SINH = function("sinh", "Hyperbolic sine.", lambda e, y, x: e.cosh(x))
COSH = function("cosh", "Hyperbolic cosine.", lambda e, y, x: e.sinh(x))
ASINH = function(
    "asinh",
    "The number whose hyperbolic sine it is.",
    lambda e, y, x: _reciprocal(e, e.hypot(e.like(1.0, x), x)),
    reference="numpy.arcsinh",
)
ACOSH = function(
    "acosh",
    "The number from 0 on whose hyperbolic cosine it is.",
    lambda e, y, x: _reciprocal(e, e.mul(e.sqrt(e.sub(x, e.like(1.0, x))), e.sqrt(e.add(x, e.like(1.0, x))))),
    reference="numpy.arccosh",
)
ATANH = function(
    "atanh",
    "The number whose hyperbolic tangent it is.",
    lambda e, y, x: _reciprocal(e, e.one_minus_square(x)),
    reference="numpy.arctanh",
)

# ---- two arguments -------------------------------------------------------------------------------------


def _unless_zero(e: Emit, length: Value, slope: Callable[[Value], Value]) -> Value:
    """A slope that divides by `length`; 0 where that is 0."""
    none = e.eq(length, e.like(0.0, length))
    return e.where(none, e.like(0.0, length), slope(e.where(none, e.like(1.0, length), length)))


HYPOT = Op(
    name="hypot",
    doc="`sqrt(x * x + y * y)`, without overflow; its derivative at 0 is 0.",
    params=XY,
    typing=floating,
    compute=Elementwise(math_body("hypot")),
    vjp=(
        lambda e, g, h, x, y: e.scale(g, _unless_zero(e, h, lambda r: e.div(x, r))),
        lambda e, g, h, x, y: e.scale(g, _unless_zero(e, h, lambda r: e.div(y, r))),
    ),
    bound=1.0,
    reference="numpy.hypot",
    group="elementwise",
)

ATAN2 = Op(
    name="atan2",
    doc="The angle of the point `(x, y)`; its derivative at 0 is 0.",
    params=(Param("y"), Param("x")),
    typing=floating,
    compute=Elementwise(math_body("atan2")),
    vjp=(
        lambda e, g, a, y, x: e.scale(g, _unless_zero(e, e.hypot(x, y), lambda r: e.div(e.div(x, r), r))),
        lambda e, g, a, y, x: e.scale(g, e.neg(_unless_zero(e, e.hypot(x, y), lambda r: e.div(e.div(y, r), r)))),
    ),
    bound=1.0,
    reference="numpy.arctan2",
    group="elementwise",
)


def _part_of(e: Emit, x: Value, y: Value) -> Value:
    """What `exp(x)` is of the sum of both; of two `-inf`, half."""
    off = e.sub(x, y)
    return e.sigmoid(e.where(e.isnan(off), e.like(0.0, off), off))


LOGADDEXP = Op(
    name="logaddexp",
    doc="`log(exp(x) + exp(y))`, without overflow.",
    params=XY,
    typing=floating,
    compute=Elementwise(math_body("logaddexp")),
    vjp=(
        lambda e, g, out, x, y: e.scale(g, _part_of(e, x, y)),
        lambda e, g, out, x, y: e.scale(g, _part_of(e, y, x)),
    ),
    bound=2.0,
    reference="numpy.logaddexp",
    group="elementwise",
)

"""The float functions of one argument. Their bodies stand in `graphdsl.ops.math`; here are their slopes.

A slope is chosen so that it keeps its precision where the function is flat and its own derivative where that is tiny.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.ops.forms import X, function, math_body, op1
from graphdsl.ops.op import Composite, Elementwise, Op
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
)

EXP = function("exp", "The exponential function.", lambda e, y, x: y)

LOG = function("log", "Natural logarithm; -inf at 0, nan below.", lambda e, y, x: _reciprocal(e, x))

SIN = function("sin", "Sine of an angle in radians.", lambda e, y, x: e.cos(x))

COS = function("cos", "Cosine of an angle in radians.", lambda e, y, x: e.neg(e.sin(x)))


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

TANH = function("tanh", "Hyperbolic tangent.", lambda e, y, x: e.one_minus_square(y))

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
    bound=2.0,
    reference="scipy.special.expit",
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

RSQRT = Op(
    name="rsqrt",
    doc="`1 / sqrt(x)`.",
    params=X,
    typing=floating,
    compute=Composite(lambda e, x: _reciprocal(e, e.sqrt(x))),
    bound=1.0,
    reference="torch.rsqrt",
    group="elementwise",
)

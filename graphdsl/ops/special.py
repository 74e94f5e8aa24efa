"""Special functions: the error function and what comes from it, and the gamma function's logarithm with its derivatives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from graphdsl.ops.forms import function, math_body
from graphdsl.ops.op import Elementwise, Op
from graphdsl.ops.type_rules import floating

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

TWO_OVER_ROOT_PI = 1.1283791670955126
ROOT_HALF = 0.7071067811865476
ONE_OVER_ROOT_TWO_PI = 0.3989422804014327


def _bell_body(code: Code, x: S, *, half: bool = False) -> S:
    """The square is taken with its rounding error, which `exp` would make as many times larger as it is large itself."""
    parts, width = import_module("graphdsl.ops.math.parts"), 0.5 if half else 1.0
    size = parts.clamp(code, abs(x), 0.0, 40.0)
    square, error = parts.two_product(code, size, size)
    found = math_body("exp")(code, -(square * width))
    return code.fma(-found, error * width, found)


BELL = Op(
    name="bell",
    doc="`exp(-x * x)`, or with `half` `exp(-x * x / 2)`, also far out.",
    typing=floating,
    compute=Elementwise(_bell_body),
    vjp=(lambda e, g, y, x, *, half=False: e.scale(g, e.mul(e.mul(e.like(-1.0 if half else -2.0, x), x), y)),),
    bound=2.0,
    group="elementwise",
)


def _bell(e: Emit, x: Value, height: float, half: bool = False) -> Value:
    """`height * exp(-x * x)`, or with `half` `height * exp(-x * x / 2)`."""
    return e.mul(e.like(height, x), e.bell(x, half=half))


ERF = function(
    "erf",
    "The error function.",
    lambda e, y, x: _bell(e, x, TWO_OVER_ROOT_PI),
    bound=1.1,
    reference="scipy.special.erf",
    cost=20,
)

ERFC = function(
    "erfc",
    "`1 - erf(x)`, right where that is tiny.",
    lambda e, y, x: _bell(e, x, -TWO_OVER_ROOT_PI),
    reference="scipy.special.erfc",
)


def _gelu_slope(e: Emit, x: Value) -> Value:
    """The normal distribution function and `x` times its density."""
    below = e.mul(e.like(0.5, x), e.erfc(e.mul(e.like(-ROOT_HALF, x), x)))
    return e.add(below, e.mul(x, _bell(e, x, ONE_OVER_ROOT_TWO_PI, half=True)))


GELU = function(
    "gelu",
    "`x` times the standard normal distribution function of `x`.",
    lambda e, y, x: _gelu_slope(e, x),
    bound=2.0,
    reference="torch.nn.functional.gelu",
    cost=40,
)

LGAMMA = function(
    "lgamma",
    # relative to the result there is no bound near its zeros below 0
    "The logarithm of the absolute value of the gamma function; inf at 0 and the negative integers.",
    lambda e, y, x: e.digamma(x),
    bound=3.0,
    reference="scipy.special.gammaln",
)

DIGAMMA = function(
    "digamma",
    "The derivative of `lgamma`; nan at the negative integers.",
    lambda e, y, x: e.polygamma(x, order=1),
    bound=4.0,
    reference="scipy.special.digamma",
)


def _polygamma(code: Code, x: S, *, order: int) -> S:
    body = import_module("graphdsl.ops.math.polygamma").polygamma
    result: S = body(code, x, order=order)
    return result


POLYGAMMA = Op(
    name="polygamma",
    doc="The derivative of `digamma`, `order` times.",
    typing=floating,
    compute=Elementwise(_polygamma),
    vjp=(lambda e, g, y, x, *, order: e.scale(g, e.polygamma(x, order=order + 1)),),
    bound=16.0,
    group="elementwise",
)

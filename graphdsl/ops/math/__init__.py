"""Bodies of math functions: scalar code in `graphdsl.ops.scalar`, without libm, for f32 and f64."""

from graphdsl.ops.math.arcs import acos, asin, atan, atan2
from graphdsl.ops.math.error import erf, erfc, gelu
from graphdsl.ops.math.exponential import exp, expm1
from graphdsl.ops.math.gamma import digamma, lgamma
from graphdsl.ops.math.hyperbolic import acosh, asinh, atanh, cosh, sigmoid, sinh, tanh
from graphdsl.ops.math.logarithm import log, log1p, log2, log10
from graphdsl.ops.math.power import cbrt, exp2, hypot, pow, rsqrt
from graphdsl.ops.math.sums import logaddexp, softplus
from graphdsl.ops.math.trigonometric import cos, sin, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "gelu",
    "hypot",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "pow",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
]

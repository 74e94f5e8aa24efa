"""Bodies of math functions: scalar code in `graphdsl.ops.scalar`, without libm, for f32 and f64."""

from graphdsl.ops.math.exponential import exp
from graphdsl.ops.math.hyperbolic import sigmoid, tanh
from graphdsl.ops.math.logarithm import log
from graphdsl.ops.math.power import exp2, pow
from graphdsl.ops.math.trigonometric import cos, sin, tan

__all__ = ["cos", "exp", "exp2", "log", "pow", "sigmoid", "sin", "tan", "tanh"]

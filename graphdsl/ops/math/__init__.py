"""Bodies of math functions: scalar code in `graphdsl.ops.scalar`, without libm, for f32 and f64."""

from graphdsl.ops.math.exponential import exp
from graphdsl.ops.math.logarithm import log

__all__ = ["exp", "log"]

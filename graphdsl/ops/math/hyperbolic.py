"""tanh, sinh, cosh, asinh, acosh, atanh, and the logistic function."""

from __future__ import annotations

from graphdsl.ops.math.exponential import power_of_two, reduce, scale_factors, tail
from graphdsl.ops.math.parts import clamp, quick_two_sum, quotient
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32


def tanh(code: Code, x: S) -> S:
    """The hyperbolic tangent, `(E - 1) / (E + 1)` with E = exp(2 |x|), both terms in two parts."""
    # from 9.02 (f32) and 19.07 (f64) on it is 1
    double = clamp(code, 2.0 * abs(x), 0.0, 20.0 if x.dtype is F32 else 40.0)
    r, left, k = reduce(code, double)
    power = power_of_two(code, k)
    scaled, rest = power * r, power * code.fma(tail(code, r), r * r, left)
    less, lost_less = quick_two_sum(power, code.const(x.dtype, -1.0))
    more, lost_more = quick_two_sum(power, code.const(x.dtype, 1.0))
    above, lost_above = quick_two_sum(less, scaled)
    below, lost_below = quick_two_sum(more, scaled)
    result = quotient(code, (above, lost_above + lost_less + rest), (below, lost_below + lost_more + rest))
    return code.op2("copysign", result, x)


def sigmoid(code: Code, x: S) -> S:
    """The logistic function `1 / (1 + exp(-x))`: with u = exp(-|x|), `u / (1 + u)` where x < 0, else `1 / (1 + u)`."""
    one, zero = code.const(x.dtype, 1.0), code.const(x.dtype, 0.0)
    r, _, k = reduce(code, clamp(code, -abs(x), -104.0 if x.dtype is F32 else -746.0, 0.0))
    mantissa, lost = quick_two_sum(one, r)
    lost = code.fma(tail(code, r), r * r, lost)
    first, second = scale_factors(code, k)
    power = first * second
    below, rest = quick_two_sum(one, power * mantissa)
    negative = x < 0.0
    above = (code.select(negative, mantissa, one), code.select(negative, lost, zero))
    result = quotient(code, above, (below, code.fma(power, lost, rest)))
    return result * code.select(negative, first, one) * code.select(negative, second, one)

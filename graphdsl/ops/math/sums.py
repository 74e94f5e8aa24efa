"""softplus and logaddexp: logarithms of sums of exponentials, without overflow."""

from __future__ import annotations

from graphdsl.ops.math.exponential import reduce, scale_factors, tail
from graphdsl.ops.math.logarithm import log_for_f32, log_of
from graphdsl.ops.math.parts import LN2, LOG2_E, clamp, number, quick_two_sum
from graphdsl.ops.math.power import exp2_for_f32
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64


def softplus(code: Code, x: S) -> S:
    """`log(1 + exp(x))`: `max(x, 0) + log(1 + exp(-|x|))`."""
    positive = code.select(x <= 0.0, code.const(x.dtype, 0.0), x)
    return _above(code, positive, abs(x))


def logaddexp(code: Code, x: S, y: S) -> S:
    """`log(exp(x) + exp(y))`: off by few units of the greater of the two, which the result may be less than."""
    greater = code.select(x > y, x, y)
    apart = code.select(x.eq(y), code.const(x.dtype, 0.0), abs(x - y))  # also of two infinities
    return _above(code, greater, apart)


def _above(code: Code, x: S, apart: S) -> S:
    """x + log(1 + exp(-apart))."""
    if x.dtype is F32:
        more = _log_1p_exp_for_f32(code, code.convert(apart, F64))
        return code.convert(code.convert(x, F64) + more, F32)
    return x + _log_1p_exp(code, apart)


def _log_1p_exp_for_f32(code: Code, x: S) -> S:
    """log(1 + exp(-x)) in f64 for x ≥ 0, right to 2**-33."""
    u = exp2_for_f32(code, -clamp(code, x, 0.0, 600.0) * number(code, x, LOG2_E[0]))
    large = u > 0.41421356
    f = code.select(large, 0.5 * u - 0.5, u)
    base = code.select(large, number(code, x, LN2[0]), code.const(F64, 0.0))
    return base + log_for_f32(code, f)


def _log_1p_exp(code: Code, x: S) -> S:
    """log(1 + exp(-x)) for x ≥ 0, with the sum in two parts."""
    one = code.const(F64, 1.0)
    r, left, k = reduce(code, -clamp(code, x, 0.0, 746.0))
    high, lost = quick_two_sum(one, r)
    low = lost + code.fma(tail(code, r), r * r, left)
    first, second = scale_factors(code, k)
    power = first * second
    total, rest = quick_two_sum(one, power * high)
    result = log_of(code, (total, code.fma(power, low, rest)), code.const(F64, 0.0))
    # far out it is exp(-x), which may be subnormal; a nan takes that way too
    return code.select(x < 40.0, result, (high + low) * first * second)

"""tanh, sinh, cosh, asinh, acosh, atanh, and the logistic function."""

from __future__ import annotations

from graphdsl.ops.math.exponential import LN2_F32, LOG2_E, power_of_two, reduce, scale_factors, tail
from graphdsl.ops.math.parts import clamp, number, poly, quick_two_sum, quotient
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# (tanh(x) / x - 1) / x**2 in x**2 for |x| ≤ 0.85, fpminimax, off by less than 2**-26.5
_TANH_F32 = "-0x1.555556p-2 0x1.111122p-3 -0x1.ba1572p-5 0x1.65884p-6 -0x1.1a32f4p-7 0x1.831d6ap-9 -0x1.3f43p-11"
# exp(2 r) for |r| ≤ ln(2)/4: the coefficients of `exponential.tail` times powers of two
_EXP_OF_DOUBLE_F32 = "0x1p0 0x1p1 0x1.fffffap0 0x1.55548ep0 0x1.55595ap-1 0x1.123bf4p-2 0x1.6a39aap-4"


def tanh(code: Code, x: S) -> S:
    """The hyperbolic tangent."""
    size = abs(x)
    return code.op2("copysign", _tanh_f32(code, size) if x.dtype is F32 else _tanh_f64(code, size), x)


def _tanh_f32(code: Code, x: S) -> S:
    """A polynomial below 0.85; above, `1 - 2 / (E + 1)` with E = exp(2 x), where an error of E counts little."""
    cut = clamp(code, x, 0.0, 10.0)  # from 9.02 on it is 1
    shift = 1.5 * 2.0**23 + 127  # as in `reduce`
    shifted = code.fma(cut, number(code, x, LOG2_E) * 2.0, code.const(F32, shift))
    r = code.fma(shifted - shift, number(code, x, LN2_F32[0]) * -0.5, cut)
    power = code.from_bits(code.bits(shifted) << 23)
    large = 1.0 - 2.0 / code.fma(power, poly(code, r, _EXP_OF_DOUBLE_F32), code.const(F32, 1.0))
    z = x * x
    return code.select(x < 0.85, code.fma(x * z, poly(code, z, _TANH_F32), x), large)


def _tanh_f64(code: Code, x: S) -> S:
    """`(E - 1) / (E + 1)` with E = exp(2 x), both terms in two parts."""
    r, left, k = reduce(code, clamp(code, 2.0 * x, 0.0, 40.0))  # from 19.07 on it is 1
    power = power_of_two(code, k)
    scaled, rest = power * r, power * code.fma(tail(code, r), r * r, left)
    less, lost_less = quick_two_sum(power, code.const(F64, -1.0))
    more, lost_more = quick_two_sum(power, code.const(F64, 1.0))
    above, lost_above = quick_two_sum(less, scaled)
    below, lost_below = quick_two_sum(more, scaled)
    return quotient(code, (above, lost_above + lost_less + rest), (below, lost_below + lost_more + rest))


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

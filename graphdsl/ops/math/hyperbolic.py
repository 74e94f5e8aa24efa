"""tanh, sinh, cosh, asinh, acosh, atanh, and the logistic function."""

from __future__ import annotations

from graphdsl.ops.math.exponential import (
    LN2_F32,
    inverse_power,
    power_of_two,
    reduce,
    scale_factors,
    tail,
)
from graphdsl.ops.math.logarithm import log_of
from graphdsl.ops.math.parts import (
    LOG2_E,
    Pair,
    clamp,
    number,
    poly,
    quick_two_sum,
    quotient,
    through_f64,
    times,
    two_product,
    two_sum,
)
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
    shifted = code.fma(cut, number(code, x, LOG2_E[0]) * 2.0, code.const(F32, shift))
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


# (sinh(x) / x - 1) / x**2 in x**2 for |x| ≤ 1, fpminimax, off by less than 2**-27.5 and 2**-56.5
_SINH_F32 = "0x1.555556p-3 0x1.1110c6p-7 0x1.a03554p-13 0x1.725236p-19"
_SINH_F64 = (
    "0x1.5555555555555p-3 0x1.1111111111198p-7 0x1.a01a01a00b9c2p-13 0x1.71de3a5e9b752p-19 0x1.ae645336ffbc4p-26 "
    "0x1.612234504ee59p-33 0x1.b260b8b044cb7p-41"
)


def sinh(code: Code, x: S) -> S:
    """The hyperbolic sine: a polynomial below 1, else half of `u - 1 / u` with `u = exp(|x|)`."""
    size = abs(x)
    (high, low), inverse, k = _grown(code, size)
    large = _half_scaled(code, high + (low - inverse * inverse / (high + low)), k)
    z = x * x
    small = code.fma(size * z, poly(code, z, _SINH_F32 if x.dtype is F32 else _SINH_F64), size)
    return code.op2("copysign", code.select(size < 1.0, small, large), x)


def cosh(code: Code, x: S) -> S:
    """The hyperbolic cosine: half of `u + 1 / u` with `u = exp(|x|)`."""
    (high, low), inverse, k = _grown(code, abs(x))
    total, lost = quick_two_sum(high, inverse * inverse / (high + low))
    return _half_scaled(code, total + (lost + low), k)


def _grown(code: Code, x: S) -> tuple[Pair, S, S]:
    """With exp(x) = 2**n exp(r), x ≥ 0: exp(r) in two parts, 2**-n, and `k` of `reduce`."""
    x = clamp(code, x, 0.0, 90.0 if x.dtype is F32 else 711.0)
    r, left, k = reduce(code, x)
    high, lost = quick_two_sum(code.const(x.dtype, 1.0), r)
    return (high, lost + code.fma(tail(code, r), r * r, left)), inverse_power(code, x, k), k


def _half_scaled(code: Code, x: S, k: S) -> S:
    first, second = scale_factors(code, k)
    return x * (0.5 * first) * second


def asinh(code: Code, x: S) -> S:
    """The inverse hyperbolic sine: log(1 + u) with `u = x + x**2 / (1 + sqrt(1 + x**2))`, of |x|."""
    if x.dtype is F32:
        return through_f64(code, asinh, x)
    size, one = abs(x), code.const(F64, 1.0)
    square, error = two_product(code, size, size)
    below, lost = two_sum(one, square)
    root, rest = _root(code, (below, lost + error))
    part = quotient(code, (square, error), _plus_one(root, rest))
    result = _log_1p_or_double(code, size, two_sum(size, part))
    return code.op2("copysign", code.select(size < 2.0**-27, size, result), x)


def acosh(code: Code, x: S) -> S:
    """The inverse hyperbolic cosine: log(1 + u) with `u = t + sqrt(t (t + 2))`, `t = x - 1`."""
    if x.dtype is F32:
        return through_f64(code, acosh, x)
    t = x - 1.0
    square = times(code, two_sum(t, code.const(F64, 2.0)), t)
    root, rest = _root(code, square)
    total, lost = two_sum(t, root)
    result = _log_1p_or_double(code, x, (total, lost + rest))
    return code.select(x < 1.0, code.const(F64, float("nan")), code.select(x.eq(1.0), t, result))


def atanh(code: Code, x: S) -> S:
    """The inverse hyperbolic tangent: half of log(1 + 2 x / (1 - x)), of |x|."""
    if x.dtype is F32:
        return through_f64(code, atanh, x)
    size, zero, one = abs(x), code.const(F64, 0.0), code.const(F64, 1.0)
    below, lost = quick_two_sum(one, -size)
    reciprocal = 1.0 / below
    near = 2.0 * size * reciprocal
    left = code.fma(-near, lost, code.fma(-near, below, 2.0 * size)) * reciprocal
    total, rest = two_sum(one, near)
    result = 0.5 * log_of(code, (total, rest + left), zero)
    result = code.select(size.eq(1.0), code.const(F64, float("inf")), result)
    result = code.select(size <= 1.0, result, code.const(F64, float("nan")))
    return code.op2("copysign", code.select(size < 2.0**-27, size, result), x)


def _root(code: Code, x: Pair) -> Pair:
    """The square root of a number in two parts; 0 and what is left of it at 0."""
    root = code.op1("sqrt", x[0])
    left = code.fma(-root, root, x[0]) + x[1]
    return root, code.select(root > 0.0, left / (root + root), code.const(F64, 0.0))


def _plus_one(x: S, rest: S) -> Pair:
    total, lost = quick_two_sum(x, x.code.const(F64, 1.0))  # x ≥ 1
    return total, lost + rest


def _log_1p_or_double(code: Code, x: S, u: Pair) -> S:
    """log(1 + u); log(2 x) where x is so large that this is the same, and `u` may have overflowed."""
    one, zero = code.const(F64, 1.0), code.const(F64, 0.0)
    large = x > 2.0**28
    total, lost = two_sum(one, u[0])
    argument = code.select(large, x, total), code.select(large, zero, lost + u[1])
    result = log_of(code, argument, code.select(large, one, zero))
    return code.select(x < float("inf"), result, x)

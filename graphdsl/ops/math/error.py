"""erf, erfc, gelu.

Small arguments: a polynomial. Others: `erfc(x) = exp(-x**2) P(t) / (1 + 2 x)` with `t = (x - 4) / (x + 4)`, where P
changes little (Shepherd & Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞", 1981).
"""

from __future__ import annotations

from graphdsl.ops.math.exponential import LN2_F32, reduce, scale, tail
from graphdsl.ops.math.parts import (
    LOG2_E,
    clamp,
    number,
    pair,
    poly,
    quick_two_sum,
    quotient,
    times,
    two_product,
    two_sum,
)
from graphdsl.ops.math.power import exp2_for_f32
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# erf(x) / x - 1 in x**2, fpminimax, for |x| ≤ 1: off by less than 2**-29.5 and 2**-56.1; for |x| ≤ 1/2: 2**-36.1
_SMALL_F32 = "0x1.06eba8p-3 -0x1.81274p-2 0x1.ce2d52p-4 -0x1.b7fec4p-6 0x1.542fecp-8 -0x1.a5197ap-11 0x1.4c5cb4p-14"
_SMALL_F64 = (
    "0x1.06eba8214db69p-3 -0x1.812746b0379fdp-2 0x1.ce2f21a04362dp-4 -0x1.b82ce312abf08p-6 0x1.565bcd12991cp-8 "
    "-0x1.c02db49b09506p-11 0x1.f9a335388d2f5p-14 -0x1.f4d333884b5c7p-17 0x1.b9ee95850f651p-20 "
    "-0x1.5f9828c55cc92p-23 0x1.fc78cbcce41e3p-27 -0x1.46794feaba6f6p-30 0x1.29783040ef603p-34"
)
_SMALLER_FOR_F32 = (
    "0x1.06eba820dc371p-3 -0x1.812746700b2a3p-2 0x1.ce2ef291ade1bp-4 -0x1.b8203f8bcae4dp-6 0x1.54d18f6ab065ep-8 "
    "-0x1.9378505dc4b53p-11"
)
# -log(1 - erf(x)) for 0.92 ≤ x ≤ 4, Sollya's remez with weight erfc(x), rounded: erf is off by less than 2**-28
_LOG_ERFC_F32 = "0x1.b225eap-13 0x1.20ac3p0 0x1.4647b4p-1 0x1.a9653ap-4 -0x1.6b8e86p-6 0x1.8da182p-9 -0x1.98d4bp-13"
# P(t), fpminimax, off by less than 2**-58.4 from x = 0.49 to 27.3 and 2**-28.2 from 0.49 to 10.6
_TAIL_FIRST = ("0x1.3ba5916e9fd7fp+0", "-0x1.93d9a1d54481cp-55")
_TAIL_F64 = (
    "-0x1.1df1ad154a28ep-3 0x1.f7f5df66fd562p-7 0x1.16ecefcfa534fp-4 -0x1.9ddb23c3e7c56p-4 0x1.7fee004e13102p-4 "
    "-0x1.0fb06dfe6c1e9p-4 0x1.3079edf66298p-5 -0x1.0962387d7d054p-6 0x1.49c67293238d8p-8 -0x1.8d4aa198d4751p-11 "
    "-0x1.a1df329ed727dp-13 0x1.3be0d8a898fcp-13 -0x1.995718a8d1b3ep-16 -0x1.78a41b568239ep-17 "
    "0x1.7f0add72ca96bp-18 0x1.41b7e6def13e8p-22 -0x1.b90048b078c74p-21 0x1.1fa5fb14780e8p-24 "
    "0x1.c2599e99ce936p-24 -0x1.a372f2b2f738p-27 -0x1.5f24bbc7514cfp-27"
)
_TAIL_FOR_F32 = (
    "0x1.3ba59169d577dp0 -0x1.1df1a652f2d3cp-3 0x1.f7f766906ff6cp-7 0x1.16ea34dca21d4p-4 -0x1.9de1308944b8ap-4 "
    "0x1.801365aad078p-4 -0x1.0f6523eaba008p-4 0x1.2f0b4cc1d574p-5 -0x1.0fad4cd2a7ce4p-6 0x1.593a7cd78767cp-8"
)
_ROOT_HALF = ("0x1.6a09e667f3bcdp-1", "-0x1.bdd3413b26456p-55")


def erf(code: Code, x: S) -> S:
    """The error function."""
    size = abs(x)
    result = _erf_f32(code, size) if x.dtype is F32 else _erf_f64(code, size)
    return code.op2("copysign", result, x)


def _erf_f32(code: Code, x: S) -> S:
    z = x * x
    small = code.fma(x, poly(code, z, _SMALL_F32), x)
    exponent = poly(code, clamp(code, x, 0.0, 4.2), _LOG_ERFC_F32)
    shift = 1.5 * 2.0**23 + 127  # as in `exponential.reduce`, but with so small an exp one part of ln(2) is enough
    shifted = code.fma(exponent, -number(code, x, LOG2_E[0]), code.const(F32, shift))
    r = code.fma(shifted - shift, -number(code, x, LN2_F32[0]), -exponent)
    grown = code.fma(tail(code, r), r * r, r) + 1.0
    large = code.fma(-grown, code.from_bits(code.bits(shifted) << 23), code.const(F32, 1.0))
    return code.select(x < 1.0, small, large)


def _erf_f64(code: Code, x: S) -> S:
    z = x * x
    small = code.fma(x, poly(code, z, _SMALL_F64), x)
    cut = clamp(code, x, 0.5, 6.0)
    t = (cut - 4.0) / (cut + 4.0)
    p = code.fma(t, poly(code, t, _TAIL_F64), number(code, x, _TAIL_FIRST[0]))
    square = cut * cut
    r, _, k = reduce(code, -square)
    grown = code.fma(tail(code, r), r * r, r) + 1.0
    large = 1.0 - scale(code, grown * p / (2.0 * cut + 1.0), k)
    return code.select(x < 1.0, small, large)


def erfc(code: Code, x: S) -> S:
    """`1 - erf(x)`, right where that is tiny."""
    if x.dtype is F32:
        return code.convert(_erfc_for_f32(code, code.convert(x, F64)), F32)
    zero, one = code.const(F64, 0.0), code.const(F64, 1.0)
    negative = x < 0.0
    size = clamp(code, abs(x), 0.0, 28.0)
    near, (far, k) = _near(code, size, zero), _tail(code, size, zero)
    result = code.select(size < 0.75, near, scale(code, far, k))
    return code.select(negative, (one - result) + one, result)


def gelu(code: Code, x: S) -> S:
    """`x` times the standard normal distribution function: `x erfc(-x / sqrt(2)) / 2`."""
    if x.dtype is F32:
        wide = code.convert(x, F64)
        distribution = _erfc_for_f32(code, -wide * number(code, wide, _ROOT_HALF[0]))
        result = code.convert(0.5 * wide * distribution, F32)
    else:
        result = _gelu_f64(code, x)
    return code.select(x.eq(float("-inf")), code.const(x.dtype, -0.0), result)


def _gelu_f64(code: Code, x: S) -> S:
    y, rest = times(code, pair(code, x, _ROOT_HALF), x)
    size = clamp(code, abs(y), 0.0, 28.0)
    rest = code.select(size.eq(abs(y)), code.select(y < 0.0, -rest, rest), code.const(F64, 0.0))
    half = 0.5 * clamp(code, x, -60.0, 60.0)  # so far out only its sign counts
    near, (far, k) = _near(code, size, rest), _tail(code, size, rest)
    # multiplied before it is scaled, as what is scaled may be subnormal
    below = code.select(size < 0.75, half * near, scale(code, far * half, k))
    return code.select(y <= 0.0, below, x - below)


def _erfc_for_f32(code: Code, x: S) -> S:
    """erfc in f64, right to 2**-28."""
    size = clamp(code, abs(x), 0.0, 26.0)
    square = size * size
    small = code.fma(size, poly(code, square, _SMALLER_FOR_F32), size)
    below, apart = 2.0 * size + 1.0, size + 4.0
    reciprocal = 1.0 / (below * apart)
    t = (size - 4.0) * below * reciprocal
    grown = exp2_for_f32(code, -square * number(code, x, LOG2_E[0]))
    large = grown * poly(code, t, _TAIL_FOR_F32) * (apart * reciprocal)
    large = code.select(size < 0.5, 1.0 - small, large)
    return code.select(x < 0.0, 2.0 - large, large)


def _near(code: Code, x: S, rest: S) -> S:
    """erfc(x + rest) for 0 ≤ x ≤ 3/4; the slope of erf is 1 there, near enough for what `rest` is."""
    total, lost = quick_two_sum(code.const(F64, 1.0), -x)
    return total + (lost - code.fma(x, poly(code, x * x, _SMALL_F64), rest))


def _tail(code: Code, x: S, rest: S) -> tuple[S, S]:
    """`y` and `k` with erfc(x + rest) = `scale(y, k)` for x ≥ 0.49, each factor in two parts."""
    one = code.const(F64, 1.0)
    square, error = two_product(code, x, x)
    r, left, k = reduce(code, -square)
    r, left = quick_two_sum(r, left - code.fma(2.0 * x, rest, error))
    high, lost = quick_two_sum(one, r)
    grown = high, lost + code.fma(tail(code, r), r * r, left)
    above, below = two_sum(x, code.const(F64, -4.0)), two_sum(x, code.const(F64, 4.0))
    reciprocal = 1.0 / below[0]
    t = above[0] * reciprocal
    t_rest = (code.fma(-t, below[0], above[0]) + above[1] - t * below[1]) * reciprocal
    slope = poly(code, t, _TAIL_F64)
    product, lost = two_product(code, t, slope)
    first, second = pair(code, x, _TAIL_FIRST)
    total, more = quick_two_sum(first, product)
    p = total, more + code.fma(slope, t_rest, lost + second)
    divisor, lost = quick_two_sum(2.0 * x, one)
    return quotient(code, times(code, grown, p), (divisor, code.fma(code.const(F64, 2.0), rest, lost))), k

"""pow, exp2, cbrt, rsqrt, hypot.

`x**y` is `2**(y * log2(x))`, with the product known to 2**-58 (f64, in two parts) or 2**-40 (f32, in f64).
"""

from __future__ import annotations

from graphdsl.ops.math.exponential import CUBIC_TAIL
from graphdsl.ops.math.logarithm import log_pair, split
from graphdsl.ops.math.parts import (
    LN2,
    LOG2_E,
    Pair,
    clamp,
    pair,
    plus,
    poly,
    quick_two_sum,
    times,
    two_product,
    two_sum,
)
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

_SHIFT = 1.5 * 2.0**52  # added, it rounds to an integer and leaves it in the low bits
# for f32, fpminimax: 2**f on |f| ≤ 1/2, off by less than 2**-34; log2((1 + s) / (1 - s)) / s in s**2, 2**-43.5
_EXP2_FOR_F32 = (
    "0x1.ffffffffa5a6p-1 0x1.62e42fef6bf41p-1 0x1.ebfbe0ac2435dp-3 0x1.c6b08e08bfc85p-5 0x1.3b29d6f7914b5p-7 "
    "0x1.5d8713d7b4dc9p-10 0x1.446de1bf90427p-13 0x1.00f8c82ad3e2fp-16"
)
_LOG2_FOR_F32 = (
    "0x1.71547652b825p1 0x1.ec709dc53ddc2p-1 0x1.2776c291c6764p-1 0x1.a61a2fd825c08p-2 0x1.47952e4bcdb3dp-2 "
    "0x1.21b2fbcbbb8bep-2"
)
# v**(-1/3) for 0.35 ≤ v ≤ 2.83, fpminimax, off by less than 2**-8.3 of it
_INVERSE_CBRT = (
    "0x1.025e80f24d22fp1 -0x1.334765d4a8657p1 0x1.29c3a0829736p1 -0x1.3fb9940b0d13cp0 0x1.5abd9d0c5abe3p-2 "
    "-0x1.2832d0ff1877ep-5"
)


def pow(code: Code, x: S, y: S) -> S:
    """`x` to the `y`, with C's special cases."""
    return _pow_f32(code, x, y) if x.dtype is F32 else _pow_f64(code, x, y)


def _pow_f32(code: Code, x: S, y: S) -> S:
    exponent = _exponent_f32(code, abs(x), y)
    usual = _signed(code, code.convert(exp2_for_f32(code, exponent), F32), x, y)
    edge = ~(_is_plain(x) & (abs(exponent) < 1000.0))
    return code.rarely(edge, _edges_f32, usual, x, y, exponent)


def _pow_f64(code: Code, x: S, y: S) -> S:
    exponent, rest = _exponent(code, abs(x), y)
    usual = _signed(code, _exp2_usual(code, (exponent, rest)), x, y)
    edge = ~(_is_plain(x) & (abs(exponent) < _LEAST_SUBNORMAL))
    return code.rarely(edge, _edges_f64, usual, x, y, exponent, rest)


def _is_plain(x: S) -> S:
    return (abs(x) > 0.0) & (abs(x) < float("inf"))


def exp2(code: Code, x: S) -> S:
    """2 to the `x`."""
    if x.dtype is F32:
        return code.convert(exp2_for_f32(code, clamp(code, code.convert(x, F64), -1000.0, 1000.0)), F32)
    rest = code.const(F64, 0.0)
    usual = _exp2_usual(code, (x, rest))
    return code.rarely(abs(x) >= _LEAST_SUBNORMAL, _exp2_far, usual, x)


def cbrt(code: Code, x: S) -> S:
    """The cube root, also of what is below 0."""
    if x.dtype is F32:
        root = code.convert(_cbrt(code, code.convert(abs(x), F64), 1), F32)
    else:
        root = _cbrt(code, abs(x), 2)
    plain = (x.ne(0.0)) & (abs(x) < float("inf"))
    return code.select(plain, code.op2("copysign", root, x), x)


def _cbrt(code: Code, x: S, steps: int) -> S:
    """For x > 0: steps of third order towards v**(-1/3), where x = 2**(3 q) v, and one towards the root in two parts."""
    k, m = split(code, x)
    q = code.op1("rint", k * (1.0 / 3.0))
    v = m * _integer_power(code, k - 3.0 * q)
    w = poly(code, v, _INVERSE_CBRT)
    for _ in range(steps):
        e = code.fma(-(w * w), v * w, code.const(F64, 1.0))
        w = code.fma(w * e, code.fma(e, code.const(F64, 2.0 / 9.0), code.const(F64, 1.0 / 3.0)), w)
    root = v * w * w
    square, lost = two_product(code, root, root)
    left = code.fma(-root, lost, code.fma(-root, square, v))
    return code.fma(left, w * w * (1.0 / 3.0), root) * _integer_power(code, q)


def rsqrt(code: Code, x: S) -> S:
    """`1 / sqrt(x)`, with what both roundings lost put right."""
    small, lift = (2.0**-100, 2.0**24) if x.dtype is F32 else (2.0**-900, 2.0**54)
    one, is_small = code.const(x.dtype, 1.0), x < small
    v = x * code.select(is_small, one * lift * lift, one)
    root = code.op1("sqrt", v)
    near = 1.0 / root
    lost = code.fma(-root, root, v) * (0.5 * near)
    left = code.fma(-near, lost, code.fma(-near, root, one))
    plain = (x > 0.0) & (x < float("inf"))
    return code.select(plain, code.fma(left, near, near) * code.select(is_small, one * lift, one), near)


def hypot(code: Code, x: S, y: S) -> S:
    """`sqrt(x**2 + y**2)` without overflow on the way; inf if one is, whatever the other."""
    inf = code.const(x.dtype, float("inf"))
    result = _hypot_f32(code, x, y) if x.dtype is F32 else _hypot_f64(code, abs(x), abs(y))
    return code.select(abs(x).eq(inf) | abs(y).eq(inf), inf, result)


def _hypot_f32(code: Code, x: S, y: S) -> S:
    a, b = code.convert(x, F64), code.convert(y, F64)
    return code.convert(code.op1("sqrt", code.fma(a, a, b * b)), F32)


def _hypot_f64(code: Code, x: S, y: S) -> S:
    """The squares are summed in two parts, after scaling where they could overflow or be subnormal."""
    swapped = x < y
    x, y = code.select(swapped, y, x), code.select(swapped, x, y)
    one = code.const(F64, 1.0)
    scale = code.select(x > 2.0**500, code.const(F64, 2.0**-600), one)
    scale = code.select(x < 2.0**-400, code.const(F64, 2.0**600), scale)
    back = code.select(x > 2.0**500, code.const(F64, 2.0**600), one)
    back = code.select(x < 2.0**-400, code.const(F64, 2.0**-600), back)
    x, y = x * scale, y * scale
    total, rest = plus(two_product(code, x, x), two_product(code, y, y))
    root = code.op1("sqrt", total)
    left = code.fma(-root, root, total) + rest
    return code.select(total > 0.0, root + left / (2.0 * root), root) * back


# ---- 2**x -----------------------------------------------------------------------------------------------

_LEAST_SUBNORMAL = 1021.0  # from this size of x on 2**x may be subnormal or overflow


def exp2_for_f32(code: Code, x: S) -> S:
    """2**x in f64, off by less than 2**-34 of it; |x| is at most 1000."""
    shifted = x + _SHIFT
    power = code.from_bits((code.bits(shifted) + 1023) << 52)
    return poly(code, x - (shifted - _SHIFT), _EXP2_FOR_F32) * power


def _exp2_parts(code: Code, x: Pair) -> tuple[Pair, S]:
    """2**f, and the integer n as the low bits of an i64, with n + f = x and |f| ≤ 1/2."""
    shifted = x[0] + _SHIFT
    f = quick_two_sum(x[0] - (shifted - _SHIFT), x[1])  # the first is 0 or a multiple of a unit of x
    r, left = times(code, f, pair(code, x[0], LN2))
    half_square, error = two_product(code, 0.5 * r, r)
    total, lost = quick_two_sum(code.const(F64, 1.0), r)
    total, more = quick_two_sum(total, half_square)
    least = code.fma(left, r, left) + error
    least = code.fma(r * (2.0 * half_square), poly(code, r, CUBIC_TAIL), least)
    return (total, lost + more + least), code.bits(shifted)


def _exp2_usual(code: Code, x: Pair) -> S:
    """2**x where that is a normal number."""
    (high, low), n = _exp2_parts(code, x)
    return (high + low) * code.from_bits((n + 1023) << 52)


def _exp2_any(code: Code, x: Pair) -> S:
    """2**x, where it is subnormal too rounded once: adding `coarse` cuts off what a subnormal cannot hold."""
    cut = clamp(code, x[0], -1100.0, 1100.0)
    (high, low), n = _exp2_parts(code, (cut, code.select(cut.eq(x[0]), x[1], cut - cut)))
    exponent = cut + _SHIFT - _SHIFT
    # so that the sum, whose first part is between 0.7 and 1.42, lies between 2**(-1022 - n) and twice that
    coarse = code.select(exponent < -1022.0, code.from_bits((1 - n) << 52), code.const(F64, 0.5))
    coarse = code.select(exponent < -1021.0, coarse, code.const(F64, 0.0))
    total, lost = two_sum(coarse, high)
    rounded = (total + (lost + low)) - coarse
    half = code.op1("floor", 0.5 * exponent)
    return rounded * _integer_power(code, half) * _integer_power(code, exponent - half)


def _exp2_far(code: Code, x: S) -> S:
    return _exp2_any(code, (x, code.const(F64, 0.0)))


def _integer_power(code: Code, n: S) -> S:
    """2**n for an integer n in f64, a normal number."""
    return code.from_bits((code.bits(n + _SHIFT) + 1023) << 52)


# ---- y * log2(x) ----------------------------------------------------------------------------------------


def _exponent_f32(code: Code, x: S, y: S) -> S:
    """y * log2(x) in f64 for x > 0."""
    k, m = split(code, code.convert(x, F64))
    s = (m - 1.0) / (m + 1.0)
    return code.convert(y, F64) * code.fma(s, poly(code, s * s, _LOG2_FOR_F32), k)


def _exponent(code: Code, x: S, y: S) -> Pair:
    """y * log2(x) for x > 0."""
    k, m = split(code, x)
    part = times(code, log_pair(code, m), pair(code, x, LOG2_E))
    return times(code, plus((k, code.const(F64, 0.0)), part), y)


# ---- special cases of pow -------------------------------------------------------------------------------


def _edges_f32(code: Code, x: S, y: S, exponent: S) -> S:
    magnitude = exp2_for_f32(code, clamp(code, exponent, -1000.0, 1000.0))
    return _edges(code, code.convert(magnitude, F32), x, y)


def _edges_f64(code: Code, x: S, y: S, exponent: S, rest: S) -> S:
    return _edges(code, _exp2_any(code, (exponent, rest)), x, y)


def _edges(code: Code, magnitude: S, x: S, y: S) -> S:
    """C17, F.10.4.4; `magnitude` is right where |x| is positive and finite, and y finite."""
    size = abs(x)
    zero, one, inf = (code.const(x.dtype, c) for c in (0.0, 1.0, float("inf")))
    extreme = size.eq(0.0) | size.eq(inf) | abs(y).eq(inf)
    grows = (size > 1.0) ^ (y < 0.0)
    magnitude = code.select(extreme, code.select(grows, inf, zero), magnitude)
    magnitude = code.select(x.ne(x), x, code.select(y.ne(y), y, magnitude))
    magnitude = code.select(size.eq(1.0) & y.eq(y), one, magnitude)
    result = code.select(size.eq(inf) | size.eq(0.0), magnitude, _signed(code, magnitude, x, y))
    odd = (size.eq(inf) | size.eq(0.0)) & _odd(code, y)
    result = code.select(odd, code.op2("copysign", result, x), result)
    return code.select(y.eq(0.0) | x.eq(1.0), one, result)


def _signed(code: Code, magnitude: S, x: S, y: S) -> S:
    """The power of x from that of |x|: nan below 0 where y is no integer."""
    nan = code.const(x.dtype, float("nan"))
    result = code.select(_odd(code, y) & (x < 0.0), -magnitude, magnitude)
    return code.select((x < 0.0) & code.op1("rint", y).ne(y), nan, result)


def _odd(code: Code, y: S) -> S:
    half = 0.5 * y
    return code.op1("rint", y).eq(y) & code.op1("rint", half).ne(half)

"""exp and expm1 (exp2 is with `pow`, whose last step it is).

All reduce to `2**n * exp(r)` with |r| ≤ ln(2)/2, n an integer, and scale by two factors of about half of
`n`, so that the last multiplication alone rounds where the result is subnormal, and overflows where it must.
"""

from __future__ import annotations

from graphdsl.ops.math.parts import LN2, LOG2_E, clamp, number, poly, quick_two_sum, two_product
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, I32

LN2_F32 = ("0x1.62e43p-1", "-0x1.05c61p-29")  # ln(2) in two parts of f32

# (exp(r) - 1 - r) / r**2 on |r| ≤ ln(2)/2, fpminimax; exp is off by less than 2**-27.7 and 2**-60.1
_TAIL_F32 = "0x1.fffffap-2 0x1.55548ep-3 0x1.55595ap-5 0x1.123bf4p-7 0x1.6a39aap-10"
_TAIL_F64 = (
    "0x1.ffffffffffffcp-2 0x1.555555555555bp-3 0x1.5555555556169p-5 0x1.111111110ed9ap-7 0x1.6c16c168ea5d1p-10 "
    "0x1.a01a01b3224dp-13 0x1.a01a0dba3638p-16 0x1.71ddf0d397c57p-19 0x1.27cf7f5af6d3ep-22 0x1.af6aef1493a61p-26 "
    "0x1.3bfd5dbe0bbadp-29"
)

# (exp(r) - 1 - r - r**2 / 2) / r**3, likewise, off by less than 2**-55.5
CUBIC_TAIL = (
    "0x1.5555555555556p-3 0x1.5555555555556p-5 0x1.11111111106f2p-7 0x1.6c16c16c15f24p-10 0x1.a01a01a919835p-13 "
    "0x1.a01a01a8b2b5cp-16 0x1.71de09dc3d609p-19 0x1.27e4d60dd773cp-22 0x1.af3ff3cbac1fp-26 0x1.1f7d212417122p-29"
)


def exp(code: Code, x: S) -> S:
    """e to the `x`."""
    # beyond these bounds the result is 0 or inf, and so it is at them
    x = clamp(code, x, -104.0, 89.0) if x.dtype is F32 else clamp(code, x, -746.0, 710.0)
    r, _, k = reduce(code, x)
    one = code.const(x.dtype, 1.0)
    return scale(code, code.fma(code.fma(tail(code, r), r, one), r, one), k)


def expm1(code: Code, x: S) -> S:
    """`exp(x) - 1`, as `2**n * ((1 - 2**-n) + (exp(r) - 1))`, right for small `x` too."""
    r, left, k = reduce(code, clamp(code, x, -40.0, 89.0 if x.dtype is F32 else 710.0))
    inverse = inverse_power(code, x, k)
    less = 1.0 - inverse
    total, lost = quick_two_sum(less, r)
    lost = lost + ((1.0 - less) - inverse)
    if x.dtype is F32:
        result = total + (lost + code.fma(tail(code, r), r * r, left))
    else:
        # where `total` is about 0.2 an error of r**2 would count
        half_square, error = two_product(code, 0.5 * r, r)
        total, more = quick_two_sum(total, half_square)
        cubed = code.fma(r * (2.0 * half_square), poly(code, r, CUBIC_TAIL), left)
        result = total + (lost + more + (cubed + error))
    return code.op2("copysign", scale(code, result, k), x)


def reduce(code: Code, x: S) -> tuple[S, S, S]:
    """`r`, what is left of it, and `k`, with x = n * ln(2) + r; `scale` takes `k`. |x| is at most a few thousand.

    Adding 1.5 * 2**p, p the bits after the point, rounds to an integer and leaves it in the low bits. Twice the
    exponent's bias is added with it, so that both halves of the low bits are exponents as they stand.
    """
    shift, (high, low) = (1.5 * 2.0**23 + 2 * 127, LN2_F32) if x.dtype is F32 else (1.5 * 2.0**52 + 2 * 1023, LN2)
    shifted = code.fma(x, number(code, x, LOG2_E[0]), code.const(x.dtype, shift))
    n = shifted - shift
    first = code.fma(-n, number(code, x, high), x)  # exact
    r = code.fma(-n, number(code, x, low), first)
    return r, code.fma(-n, number(code, x, low), first - r), code.bits(shifted)


def scale(code: Code, x: S, k: S) -> S:
    """`x * 2**n` rounded once, `k` from `reduce`."""
    first, second = scale_factors(code, k)
    return x * first * second


def scale_factors(code: Code, k: S) -> tuple[S, S]:
    """Two powers of two whose product is 2**n, be it too large or too small for a float."""
    mantissa = 23 if k.dtype is I32 else 52
    half = code.op2("lshr", k, code.const(k.dtype, 1))
    return code.from_bits(half << mantissa), code.from_bits((k - half) << mantissa)


def power_of_two(code: Code, k: S) -> S:
    """2**n where that is a normal number."""
    mantissa, bias = (23, 127) if k.dtype is I32 else (52, 1023)
    return code.from_bits((k - bias) << mantissa)


def inverse_power(code: Code, x: S, k: S) -> S:
    """2**-n where that is a normal number, 0 where `x`, about n * ln(2), is above 80."""
    mantissa, bias = (23, 127) if k.dtype is I32 else (52, 1023)
    power = code.from_bits((3 * bias - k) << mantissa)
    return code.select(x > 80.0, code.const(x.dtype, 0.0), power)


def tail(code: Code, r: S) -> S:
    """(exp(r) - 1 - r) / r**2, where |r| ≤ ln(2)/2."""
    return poly(code, r, _TAIL_F32 if r.dtype is F32 else _TAIL_F64)

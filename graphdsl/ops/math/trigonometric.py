"""sin, cos, tan.

The argument is taken off the nearest multiple of pi (f32) or pi/2 (f64), which is right for every argument: large
ones are multiplied by as many digits of 1/(2 pi) as they need, without those that only count whole turns
(Payne & Hanek, "Radian reduction for trigonometric functions", 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphdsl.ops.math.parts import (
    ONE_OVER_PI,
    PI,
    Pair,
    number,
    poly,
    quotient,
    sign_of,
    two_product,
    two_sum,
    with_sign,
)
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

_ROUND = 1.5 * 2.0**52  # added, it rounds to an integer and leaves it in the low bits
_TWO_OVER_PI = "0x1.45f306dc9c883p-1"
# pi/2 in three parts, 2 pi in two, each part the nearest f64 to what is left
_HALF_PI = ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")
_TWO_PI = ("0x1.921fb54442d18p+2", "0x1.1a62633145c07p-52")

# in r**2, fpminimax: (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 on |r| ≤ pi/4, off by less than
# 2**-55.3 and 2**-58.5; (sin(r) / r - 1) / r**2 on |r| ≤ pi/2 for f32, off by less than 2**-35
_SIN = (
    "-0x1.5555555555555p-3 0x1.1111111110c7cp-7 -0x1.a01a019e9f406p-13 0x1.71de37af2237dp-19 -0x1.ae601e2a34741p-26 "
    "0x1.5e10841cb6285p-33"
)
_COS = (
    "0x1.5555555555555p-5 -0x1.6c16c16c168c9p-10 0x1.a01a019f37d89p-16 -0x1.27e4fa0244aa1p-22 0x1.1eeb5711c68a9p-29 "
    "-0x1.9072ea3b048c3p-37"
)
_SIN_FOR_F32 = (
    "-0x1.5555555461485p-3 0x1.11110fdb5d462p-7 -0x1.a0190605997d7p-13 0x1.71969ba942666p-19 -0x1.9db29e890debcp-26"
)


def sin(code: Code, x: S) -> S:
    """The sine of an angle in radians."""
    size = abs(x)
    result = _sin_f32(code, size, 0.0) if x.dtype is F32 else _for_all(code, size, _sine)
    return with_sign(code, result, sign_of(code, x))


def cos(code: Code, x: S) -> S:
    """The cosine of an angle in radians."""
    return _sin_f32(code, abs(x), 0.5) if x.dtype is F32 else _for_all(code, abs(x), _cosine)


def tan(code: Code, x: S) -> S:
    """The tangent of an angle in radians."""
    size = abs(code.convert(x, F64))
    return with_sign(code, code.convert(_for_all(code, size, _tangent), x.dtype), sign_of(code, x))


# ---- f32, in f64: one polynomial between -pi/2 and pi/2 ---------------------------------------------


def _sin_f32(code: Code, x: S, half: float) -> S:
    """The sine (`half` 0) or cosine (0.5) of x ≥ 0, which is off a multiple of pi, or one and a half, by r."""
    x = code.convert(x, F64)
    n, odd = _rounded(code, code.fma(x, number(code, x, ONE_OVER_PI[0]), code.const(F64, -half)))
    n = n + half
    r = code.fma(n, number(code, x, PI[0]), -x)
    r = code.fma(n, number(code, x, PI[1]), r)
    usual = _sin_of_off(code, r, odd, half)
    return code.convert(code.rarely(x >= 2.0**40, partial(_far_f32, half), usual, x), F32)


def _sin_of_off(code: Code, r: S, odd: S, half: float) -> S:
    """From r = n pi - x."""
    r = with_sign(code, r, (odd if half else odd + 1) << 63)
    z = r * r
    return code.fma(r * z, poly(code, z, _SIN_FOR_F32), r)


# 2**16 / pi, 2**42 / pi, … off the nearest even number, in two parts each
_FAR_F32 = (
    ("0x1.836e4e44152a0p-1", "-0x1.ec54170565912p-56"),
    ("0x1.1054a7f09d5f4p-1", "0x1.f534ddc0db629p-55"),
    ("-0x1.ec54170565912p-4", "0x1.b6c52b3278872p-62"),
    ("0x1.f534ddc0db629p-3", "0x1.664f10e4107f9p-57"),
)


def _far_f32(half: float, code: Code, x: S) -> S:
    """For x from 2**40: a multiple of 2**24 times the power of two of a row of `_FAR_F32`, so that with 24 bits
    it is an integer after division by that power, below 2**50."""
    first, *others = _FAR_F32
    scale, high, low = code.const(F64, 2.0**-16), *(number(code, x, c) for c in first)
    for i, parts in enumerate(others, start=1):
        beyond = x >= 2.0 ** (40 + 26 * i)
        scale = code.select(beyond, code.const(F64, 2.0 ** (-16 - 26 * i)), scale)
        high = code.select(beyond, number(code, x, parts[0]), high)
        low = code.select(beyond, number(code, x, parts[1]), low)
    x = x * scale
    turns, rest = two_product(code, x, high)
    n, odd = _rounded(code, turns - half)
    off = (n + half - turns) - code.fma(x, low, rest)
    more, odder = _rounded(code, off)  # what was left of the product may be more than half a turn's rounding
    return _sin_of_off(code, (off - more) * number(code, x, PI[0]), odd + odder, half)


# ---- f64: two polynomials between -pi/4 and pi/4 ----------------------------------------------------

_Finish = Callable[[Code, Pair, Pair, S], S]


def _for_all(code: Code, x: S, finish: _Finish) -> S:
    """`finish(code, sin, cos, q)` for x ≥ 0, with the sine and cosine of x - q pi/2."""
    usual = finish(code, *sin_cos(code, *_near(code, x)))
    return code.rarely(x > 2.0**30, partial(_finish_far, finish), usual, x)


def _finish_far(finish: _Finish, code: Code, x: S) -> S:
    return finish(code, *sin_cos(code, *_far(code, x)))


def _sine(code: Code, sin: Pair, cos: Pair, q: S) -> S:
    odd = (q & 1).ne(0)
    return with_sign(code, code.select(odd, cos[0] + cos[1], sin[0] + sin[1]), (q & 2) << 62)


def _cosine(code: Code, sin: Pair, cos: Pair, q: S) -> S:
    return _sine(code, sin, cos, q + 1)


def _tangent(code: Code, sin: Pair, cos: Pair, q: S) -> S:
    odd = (q & 1).ne(0)
    above = tuple(code.select(odd, c, s) for s, c in zip(sin, cos, strict=True))
    below = tuple(code.select(odd, s, c) for s, c in zip(sin, cos, strict=True))
    return with_sign(code, quotient(code, (above[0], above[1]), (below[0], below[1])), q << 63)


def sin_cos(code: Code, r: S, rest: S, q: S) -> tuple[Pair, Pair, S]:
    """Sine and cosine of r + rest, each a float and what is left; `q` is passed on."""
    z = r * r
    half = 0.5 * z
    near_one = 1.0 - half
    cubed = code.fma(z * r, poly(code, z, _SIN), near_one * rest)
    # 1 - z/2 is short of z/2 by what its rounding lost
    lost = (1.0 - near_one) - half
    fourth = code.fma(z * z, poly(code, z, _COS), lost - r * rest)
    return (r, cubed), (near_one, fourth), q


def _near(code: Code, x: S) -> tuple[S, S, S]:
    """x - n pi/2, in two parts, and n in the low bits of an i64; for 0 ≤ x ≤ 2**30."""
    n, q = _rounded(code, x * number(code, x, _TWO_OVER_PI))
    a, b, c = (number(code, x, part) for part in _HALF_PI)
    # the first difference is exact; the second may be as small as 2**-61, which takes both parts of the product
    product, error = two_product(code, -n, b)
    r, rest = two_sum(code.fma(-n, a, x), product)
    return r, code.fma(-n, c, rest + error), q


# 1 / (2 pi) as a sum of c 2**(-53 j), each c a multiple of 2**-53 below 1
_DIGITS = (
    "0x1.45f306dc9c880p-3 0x1.529fc2757d1f5p-1 0x1.a6ee06db14accp-3 0x1.3c439041fe514p-3 0x1.1d5ef5de2b0dbp-1 "
    "0x1.246e3a424dd2ep-1 0x1.924bba8274600p-10 0x1.21cfe1deb1cb0p-3 0x1.29a73ee88235ep-2 0x1.52ebb4484e99cp-1 "
    "0x1.c09ad17df904ep-2 0x1.91d639835339cp-3 0x1.a4e422fc5defcp-1 0x1.283b1ff897ffdp-1 0x1.c0b301fde5e23p-1 "
    "0x1.6b414da3eda68p-4 0x1.3f6793e584dbap-1 0x1.e8c7ecd3cbfd4p-2 0x1.6ba93dd63f5f0p-3 0x1.7c5ecf41ce7dep-1 "
    "0x1.4a525d4d7f6bcp-3 0x1.b11f8d5d08560p-1 0x1.98237e3db5d5cp-3"
)


def _far(code: Code, x: S) -> tuple[S, S, S]:
    """As `_near`, for any large x.

    Digits of which x is a whole multiple count whole turns. Five after these give the part of a turn to 2**-155,
    and no x comes closer to a multiple of pi/2 than 2**-61.
    """
    x, digits = _digits_for(code, x)
    products = [two_product(code, x * 2.0 ** (-53 * j), c) for j, c in enumerate(digits)]
    (a, b), (c, d), (e, f), (g, h), (i, _) = products
    # from the greatest to the least: a to e may exceed a turn, f and g are below 2**-52, h and i below 2**-105
    turn, *lost = _added(code, [_part(code, a), _part(code, b), _part(code, c)])
    turn, *more = _added(code, [_part(code, turn), d, e])
    n, q = _rounded(code, 4.0 * turn)
    second, *least = _added(code, [*lost, *more, f, g])
    third = h + i
    for part in least:
        third = third + part
    r, rest = two_sum(turn - 0.25 * n, second)
    high, low = (number(code, x, part) for part in _TWO_PI)
    product, error = two_product(code, r, high)
    return product, code.fma(r, low, code.fma(rest + third, high, error)), q


def _digits_for(code: Code, x: S) -> tuple[S, list[S]]:
    """The five digits that begin with the first of which x is no whole multiple, and x divided by the digits before."""
    digits = [number(code, x, c) for c in _DIGITS.split()]
    for skipped in (16, 8, 4, 2, 1):
        beyond = x >= 2.0 ** (52 + 53 * skipped)
        x = code.select(beyond, x * 2.0 ** (-53 * skipped), x)
        kept = 4 + skipped  # what the steps to come may still ask for
        digits = [
            code.select(beyond, digits[j + skipped], c) if j + skipped < len(digits) else c
            for j, c in enumerate(digits[:kept])
        ]
    return x, digits


def _added(code: Code, xs: list[S]) -> list[S]:
    """The sum of all, and after it what each addition lost."""
    total, *others = xs
    lost = []
    for x in others:
        total, error = two_sum(total, x)
        lost.append(error)
    return [total, *lost]


def _part(code: Code, turns: S) -> S:
    """`turns` without the whole ones; exact."""
    return turns - code.op1("rint", turns)


def _rounded(code: Code, x: S) -> tuple[S, S]:
    """The nearest integer to an f64 below 2**51 in size, and its low bits as an i64."""
    shifted = x + _ROUND
    return shifted - _ROUND, code.bits(shifted)

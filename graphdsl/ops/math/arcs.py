"""asin, acos, atan, atan2. f32 is computed in f64, with shorter polynomials."""

from __future__ import annotations

from graphdsl.ops.math.parts import Pair, pair, poly, quick_two_sum, sign_of, two_sum, with_sign
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# 0, pi/4, pi/2, 3 pi/4 and pi in two parts
_QUARTERS = (
    ("0x0p0", "0x0p0"),
    ("0x1.921fb54442d18p-1", "0x1.1a62633145c07p-55"),
    ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54"),
    ("0x1.2d97c7f3321d2p+1", "0x1.a79394c9e8a0ap-54"),
    ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53"),
)
# (asin(x) / x - 1) / x**2 in x**2 for |x| ≤ 1/2, fpminimax, off by less than 2**-55.5 and 2**-27.9
_ASIN_F64 = (
    "0x1.5555555555556p-3 0x1.3333333332d74p-4 0x1.6db6db6e4ddedp-5 0x1.f1c71c0e37ec3p-6 0x1.6e8bb40fdbb7fp-6 "
    "0x1.1c4d02549722ap-6 0x1.c9d4d44a2be6bp-7 0x1.77ef0157f8c76p-7 0x1.53a2eba731acbp-7 0x1.5a0687b86ad87p-8 "
    "0x1.24e4dd2e7b701p-6 -0x1.feb3113a5a7b9p-7 0x1.df46381c3b6fdp-6"
)
_ASIN_FOR_F32 = (
    "0x1.555554d2135ccp-3 0x1.33344e82d9f73p-4 0x1.6d5410911d086p-5 0x1.fe3f2e9ab8ad2p-6 0x1.15b2f833375a6p-6 "
    "0x1.16b212b49df6ep-5"
)
# (atan(t) / t - 1) / t**2 in t**2 for |t| ≤ tan(pi/8), fpminimax, off by less than 2**-54.7 and 2**-30.8
_ATAN_F64 = (
    "-0x1.5555555555555p-2 0x1.999999999941bp-3 -0x1.249249243c46ep-3 0x1.c71c7187ce98cp-4 -0x1.745d0b70dc149p-4 "
    "0x1.3b12678f86e79p-4 -0x1.10faa25cdce6bp-4 0x1.dfe80d47e1dc9p-5 -0x1.a09e09969ebfcp-5 0x1.4163f7f9800f9p-5 "
    "-0x1.3a1ca04c1ea16p-6"
)
_ATAN_FOR_F32 = (
    "-0x1.5555554c62311p-2 0x1.99997bb5f1e86p-3 -0x1.248a2e4a32d8ep-3 0x1.c57dd0631bc18p-4 -0x1.614d38cc2671ap-4 "
    "0x1.9d9c5ef525147p-5"
)
_TAN_OF_EIGHTH = 0.41421356237309503


def asin(code: Code, x: S) -> S:
    """The inverse sine, between -pi/2 and pi/2."""
    size = abs(code.convert(x, F64))
    (high, low), large = _asin_core(code, size, _ASIN_FOR_F32 if x.dtype is F32 else _ASIN_F64)
    base, rest = pair(code, size, _QUARTERS[2])
    total, lost = quick_two_sum(base, -2.0 * high)
    result = code.select(large, total + (lost + (rest - 2.0 * low)), high + low)
    return code.convert(code.op2("copysign", result, code.convert(x, F64)), x.dtype)


def acos(code: Code, x: S) -> S:
    """The inverse cosine, between 0 and pi."""
    wide = code.convert(x, F64)
    (high, low), large = _asin_core(code, abs(wide), _ASIN_FOR_F32 if x.dtype is F32 else _ASIN_F64)
    factor = code.select(large, code.const(F64, -2.0), code.const(F64, 1.0))
    factor = code.select(wide < 0.0, factor, -factor)
    none, half_pi, pi = (pair(code, wide, _QUARTERS[i]) for i in (0, 2, 4))
    base, rest = (
        code.select(large, code.select(wide < 0.0, c, a), b) for a, b, c in zip(none, half_pi, pi, strict=True)
    )
    total, lost = quick_two_sum(base, factor * high)
    return code.convert(total + (lost + code.fma(factor, low, rest)), x.dtype)


def _asin_core(code: Code, x: S, coefficients: str) -> tuple[Pair, S]:
    """In two parts asin(x) for 0 ≤ x ≤ 1/2, above that asin(sqrt((1 - x) / 2)) = (pi/2 - asin(x)) / 2; and which it is."""
    large = x > 0.5
    z = code.select(large, 0.5 - 0.5 * x, x * x)
    root = code.op1("sqrt", z)
    left = code.select(root > 0.0, code.fma(-root, root, z) / (root + root), code.const(F64, 0.0))
    t = code.select(large, root, x)
    rest = code.select(large, left, code.const(F64, 0.0))
    return (t, code.fma(t * z, poly(code, z, coefficients), rest)), large


def atan(code: Code, x: S) -> S:
    """The inverse tangent, between -pi/2 and pi/2."""
    size, most = abs(code.convert(x, F64)), code.const(F64, 2.0**64)
    size = code.select(size > most, most, size)
    result = _angle(code, size, code.const(F64, 1.0), None, _ATAN_FOR_F32 if x.dtype is F32 else _ATAN_F64)
    return code.convert(code.op2("copysign", result, code.convert(x, F64)), x.dtype)


def atan2(code: Code, y: S, x: S) -> S:
    """The angle of the point (x, y), between -pi and pi; of (±0, y) and (x, ±0) by the signs."""
    wide_y, wide_x = code.convert(y, F64), code.convert(x, F64)
    far_y, far_x, one = abs(wide_y), abs(wide_x), code.const(F64, 1.0)
    back = code.op2("copysign", one, wide_x) < 0.0
    inf = code.const(F64, float("inf"))
    endless = far_y.eq(inf) | far_x.eq(inf)
    zero = code.const(F64, 0.0)
    # only the quotient counts: keep it where it is, but with both in the middle of the range
    largest = code.select(far_y > far_x, far_y, far_x)
    factor = code.select(largest > 2.0**900, code.const(F64, 2.0**-200), one)
    factor = code.select(largest < 2.0**-800, code.const(F64, 2.0**200), factor)
    a, b = (code.select(endless, code.select(v.eq(inf), one, zero), v * factor) for v in (far_y, far_x))
    b = code.select(largest.eq(0.0), one, b)
    result = _angle(code, a, b, back, _ATAN_FOR_F32 if x.dtype is F32 else _ATAN_F64)
    nan = wide_y.ne(wide_y) | wide_x.ne(wide_x)
    result = code.select(nan, wide_x + wide_y, code.op2("copysign", result, wide_y))
    return code.convert(result, x.dtype)


def _angle(code: Code, y: S, x: S, back: S | None, coefficients: str) -> S:
    """The angle of (x, y) with x, y ≥ 0, not both 0; with `back` of (-x, y).

    It is k pi/4 ± atan(t), where `t` is the quotient of the smaller and the larger, or (q - 1) / (q + 1) of that.
    """
    steep = y > x
    small, large = code.select(steep, x, y), code.select(steep, y, x)
    zero = code.const(F64, 0.0)
    diagonal = small > _TAN_OF_EIGHTH * large
    difference, sum_ = two_sum(small, -large), quick_two_sum(large, small)
    above = code.select(diagonal, difference[0], small), code.select(diagonal, difference[1], zero)
    below = code.select(diagonal, sum_[0], large), code.select(diagonal, sum_[1], zero)
    t = above[0] / below[0]
    left = (code.fma(-t, below[0], above[0]) + above[1] - t * below[1]) / below[0]
    z = t * t
    rest = code.fma(t * z, poly(code, z, coefficients), code.fma(-left, z, left))
    backward = steep if back is None else steep ^ back
    base = _base(code, steep, diagonal, back)
    flip = code.select(backward, sign_of(code, code.const(F64, -0.0)), sign_of(code, zero))
    total, lost = quick_two_sum(base[0], with_sign(code, t, flip))
    return total + (lost + (with_sign(code, rest, flip) + base[1]))


def _base(code: Code, steep: S, diagonal: S, back: S | None) -> Pair:
    """The multiple of pi/4 from which the rest is counted."""
    quarters = [pair(code, code.const(F64, 0.0), texts) for texts in _QUARTERS]

    def chosen(part: int) -> S:
        front = code.select(diagonal, quarters[1][part], code.select(steep, quarters[2][part], quarters[0][part]))
        if back is None:
            return front
        behind = code.select(diagonal, quarters[3][part], code.select(steep, quarters[2][part], quarters[4][part]))
        return code.select(back, behind, front)

    return chosen(0), chosen(1)

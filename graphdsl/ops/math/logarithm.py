"""log, log2, log10, log1p.

The argument is `2**k * (1 + f)` with 1 + f between sqrt(1/2) and sqrt(2).
"""

from __future__ import annotations

from graphdsl.ops.math.parts import (
    LOG2_E,
    Pair,
    number,
    pair,
    plus,
    poly,
    quick_two_sum,
    through_f64,
    times,
    two_product,
    two_sum,
)
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# ln(2) in two parts, the first so short that its product with an exponent is exact
_LN2_F32 = ("0x1.62e4p-1", "0x1.7f7d1cp-20")
_LN2_F64 = ("0x1.62e42fefa38p-1", "0x1.ef35793c7673p-45")

# (log(1 + f) - f + f**2 / 2) / f**3 on sqrt(1/2) ≤ 1 + f ≤ sqrt(2), fpminimax, off by less than 2**-25.4
_TAIL_F32 = (
    "0x1.555554p-2 -0x1.ffffe6p-3 0x1.999d2ap-3 -0x1.556288p-3 0x1.23de4p-3 -0x1.fbbf2ep-4 0x1.dc75eap-4 "
    "-0x1.ddb2dp-4 0x1.2cb406p-4"
)
# (log((1 + s) / (1 - s)) - 2 * s) / s**3 in s**2 for |s| ≤ 0.1716, fpminimax, off by less than 2**-54.5
_TAIL_F64 = (
    "0x1.5555555555555p-1 0x1.9999999999d58p-2 0x1.249249242f0ap-2 0x1.c71c725c1a9bcp-3 0x1.745cdb8fd66b8p-3 "
    "0x1.3b2153e9157ccp-3 0x1.0f4a997d5d9e7p-3 0x1.101eab974d847p-3"
)

# log((1 + s) / (1 - s)) / s in s**2 for f32, in f64, fpminimax, off by less than 2**-43.5
_LOG_FOR_F32 = (
    "0x1.fffffffffff0fp0 0x1.5555555673e9ap-1 0x1.999996266bf8ep-2 0x1.24943a3597e44p-2 0x1.c6204bb4dd065p-3 "
    "0x1.919b8ececd904p-3"
)
# log10(e) and log10(2) in two parts
_LOG10_E = ("0x1.bcb7b1526e50ep-2", "0x1.95355baaafad3p-57")
_LOG10_2 = ("0x1.34413509f79ffp-2", "-0x1.9dc1da994fd21p-59")


def log(code: Code, x: S) -> S:
    """The natural logarithm: -inf at 0, nan below."""
    return at_edges(code, x, log_inside(code, x))


def log_inside(code: Code, x: S, subnormals: bool = True) -> S:
    """The natural logarithm of a finite number above 0."""
    k, m = split(code, x, subnormals)
    f = m - 1.0
    return _log_f32(code, k, f) if x.dtype is F32 else _log_f64(code, k, f)


def _log_f32(code: Code, k: S, f: S) -> S:
    square = f * f
    tail = poly(code, f, _TAIL_F32)
    high, low = (number(code, f, c) for c in _LN2_F32)
    rest = code.fma(square, code.fma(tail, f, code.const(F32, -0.5)), k * low)
    return code.fma(k, high, f + rest)


def _log_f64(code: Code, k: S, f: S, more: S | None = None) -> S:
    """k ln(2) + log(1 + f) + more."""
    # as fdlibm's e_log.c puts it: 2 s = f - s f = f - (f²/2 - s f²/2) keeps f, which is exact, apart
    s = f / (f + 2.0)
    z = s * s
    half_square = 0.5 * f * f
    high, low = (number(code, f, c) for c in _LN2_F64)
    least = k * low if more is None else code.fma(k, low, more)
    correction = code.fma(s, code.fma(z, poly(code, z, _TAIL_F64), half_square), least)
    return code.fma(k, high, f - (half_square - correction))


def split(code: Code, x: S, subnormals: bool = True) -> tuple[S, S]:
    """`k`, a float, and `m` between sqrt(1/2) and sqrt(2) with x = 2**k * m, for finite x > 0."""
    if x.dtype is F32:
        mantissa, bias, smallest, lift, half_root = 23, 127, 2.0**-126, 24.0, 0x3F3504F3
    else:
        mantissa, bias, smallest, lift, half_root = 52, 1023, 2.0**-1022, 54.0, 0x3FE6A09E667F3BCD
    subnormal = x < smallest
    if subnormals:
        x = code.select(subnormal, x * 2.0**lift, x)
    one = bias << mantissa
    moved = code.bits(x) + (one - half_root)
    m = code.from_bits((moved & ((1 << mantissa) - 1)) + half_root)
    exponent = code.op2("lshr", moved, code.const(moved.dtype, mantissa))
    # the exponent, at most 11 bits, becomes the low bits of 2**mantissa, so that no conversion is needed
    k = code.from_bits(exponent | ((bias + mantissa) << mantissa))
    offset = code.const(x.dtype, 2.0**mantissa + bias)
    if subnormals:
        offset = code.select(subnormal, offset + lift, offset)
    return k - offset, m


def at_edges(code: Code, x: S, y: S) -> S:
    """`y`, a logarithm of finite x > 0, with what is right elsewhere: -inf at ±0, nan below, inf, nan."""
    y = code.select(x < float("inf"), y, x)
    edge = code.select(x.eq(0.0), code.const(x.dtype, float("-inf")), code.const(x.dtype, float("nan")))
    return code.select(x > 0.0, y, edge)


def log1p(code: Code, x: S) -> S:
    """`log(1 + x)`, right for small `x` too."""
    if x.dtype is F32:
        return through_f64(code, log1p, x)
    one, zero = code.const(F64, 1.0), code.const(F64, 0.0)
    result = log_of(code, two_sum(one, x), zero)
    result = code.select(x < float("inf"), result, x)
    below = code.select(x.eq(-1.0), code.const(F64, float("-inf")), code.const(F64, float("nan")))
    result = code.select(x > -1.0, result, below)
    return code.select(x.eq(0.0), x, result)


def log_of(code: Code, x: Pair, more: S) -> S:
    """The logarithm of an f64 > 0 in two parts, and of `2**more` times it, with little more than the last rounding."""
    k, m = split(code, x[0])
    down = code.from_bits(code.bits(m) - code.bits(x[0]) + (1023 << 52))  # 2**-k
    rest = code.select(x[0] < 2.0**60, x[1] * down, code.const(F64, 0.0))
    f, lost = quick_two_sum(m - 1.0, rest)
    return _log_f64(code, k + more, f, code.fma(-lost, f, lost))


def log2(code: Code, x: S) -> S:
    """The logarithm to base 2."""
    return _to_base(code, x, ("0x1p0", "0x0p0"), LOG2_E)


def log10(code: Code, x: S) -> S:
    """The logarithm to base 10."""
    return _to_base(code, x, _LOG10_2, _LOG10_E)


def _to_base(code: Code, x: S, two: tuple[str, str], e: tuple[str, str]) -> S:
    """The logarithm to a base in which those of 2 and e are given."""
    if x.dtype is F32:
        k, m = split(code, code.convert(x, F64))
        part = log_for_f32(code, m - 1.0) * number(code, k, e[0])
        return at_edges(code, x, code.convert(code.fma(k, number(code, k, two[0]), part), F32))
    k, m = split(code, x)
    whole = times(code, pair(code, x, two), k)
    total, rest = plus(whole, times(code, log_pair(code, m, precise=False), pair(code, x, e)))
    return at_edges(code, x, total + rest)


def log_for_f32(code: Code, f: S) -> S:
    """log(1 + f) in f64, to 2**-43.5 of itself, for sqrt(1/2) ≤ 1 + f ≤ sqrt(2)."""
    s = f / (f + 2.0)
    return s * poly(code, s * s, _LOG_FOR_F32)


# ---- in two parts -------------------------------------------------------------------------------------

# the series of log((1 + s) / (1 - s)) / s - 2 in s**2: two terms in two parts, and the rest by fpminimax, which
# leaves the logarithm off by less than 2**-68 of itself
_THIRD, _FIFTH = ("0x1.5555555555555p-1", "0x1.5555555555555p-55"), ("0x1.999999999999ap-2", "-0x1.999999999999ap-56")
_TAIL_OF_PAIR = (
    "0x1.2492492492497p-2 0x1.c71c71c71516dp-3 0x1.745d175540a3p-3 0x1.3b13a50af509bp-3 0x1.1115a6066c8fap-3 "
    "0x1.e01e895118a5dp-4 0x1.d9d33d63859ap-4"
)


def log_pair(code: Code, m: S, precise: bool = True) -> Pair:
    """The natural logarithm of an f64 between sqrt(1/2) and sqrt(2), to 2**-68 of itself, or else to 2**-58."""
    f = m - 1.0
    below, lost = quick_two_sum(code.const(F64, 2.0), f)
    reciprocal = 1.0 / below
    s = f * reciprocal
    left = code.fma(-s, lost, code.fma(-s, below, f)) * reciprocal
    square, error = two_product(code, s, s)
    if not precise:
        left = code.fma(left, square, left)  # the derivative of the series is 2 / (1 - s**2)
        return plus((2.0 * s, 2.0 * left), (s * square * poly(code, square, _TAIL_F64), code.const(F64, 0.0)))
    z = square, code.fma(2.0 * s, left, error)
    rest = times(code, z, poly(code, square, _TAIL_OF_PAIR))
    rest = times(code, z, plus(pair(code, m, _FIFTH), rest))
    rest = times(code, z, plus(pair(code, m, _THIRD), rest))
    return plus((2.0 * s, 2.0 * left), times(code, (s, left), rest))

"""lgamma and digamma. f32 is computed in f64.

From 8 on Stirling's series; below, the recurrence leads to a polynomial around 2 (lgamma) or between 1 and 2
(digamma, whose zero there is taken out); arguments below 0 are reflected. The polynomials are Chebyshev fits by mpmath
at 60 digits, rounded; error bounds include the rounding.
"""

from __future__ import annotations

from graphdsl.ops.math.logarithm import log, log_pair, split
from graphdsl.ops.math.parts import (
    LN2,
    ONE_OVER_PI,
    PI,
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
from graphdsl.ops.math.trigonometric import sin_cos
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# lgamma(2 + w) / w for |w| ≤ 1/2, off by less than 2**-56
_NEAR_2 = (
    "0x1.b0ee6072093cep-2 0x1.4a34cc4a60fa6p-2 -0x1.13e001a55760ap-4 0x1.51322ac7d848ap-6 -0x1.e404fc218dbaep-8 "
    "0x1.7add6eadb5317p-9 -0x1.38ac5c2d48207p-10 0x1.0b36af8779ca0p-11 -0x1.d3fd4b679c1c4p-13 0x1.a127afee53e7dp-14 "
    "-0x1.78de9ab752b81p-15 0x1.580e0afa55850p-16 -0x1.3cb3be36ad88bp-17 0x1.258f3057730fap-18 -0x1.1276ebd557fb0p-19 "
    "0x1.012012be3900ap-20 -0x1.ce17528bcf460p-22 0x1.b40adb09a1e12p-23 -0x1.2009c1a550d0dp-23 0x1.11fa5e7c86f7bp-24"
)
# x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) in 1 / x**2 for x ≥ 8, off by less than 2**-54.3
_STIRLING = (
    "0x1.5555555555555p-4 -0x1.6c16c16c149f4p-9 0x1.a01a017dcf9e1p-11 -0x1.38134d4f8896fp-11 0x1.b92c33f9445e5p-11 "
    "-0x1.ef8d748aeb0f2p-10 0x1.4bffc9d8b455bp-8"
)
# x**2 (log(x) - 1 / (2 x) - digamma(x)) in 1 / x**2 for x ≥ 8, off by less than 2**-52.8
_DIGAMMA_SERIES = (
    "0x1.5555555555555p-4 -0x1.11111111095e6p-7 0x1.041040c62923cp-8 -0x1.1110b33fc17d6p-8 0x1.f037df4b69ba2p-8 "
    "-0x1.531da6b6dedbfp-6 0x1.0497fbf0fa8abp-4"
)
# digamma(1.5 + w) / (1.5 + w - zero) for |w| ≤ 1/2, off by less than 2**-53.9
_DIGAMMA_NEAR = (
    "0x1.e6f0cbb873616p-1 -0x1.b1cb63005ee96p-2 0x1.eca189b8e6f7bp-3 -0x1.2feeeb98a7e14p-3 0x1.8512e59037f3fp-4 "
    "-0x1.fb4420299c39ep-5 0x1.4de9aa17fed5cp-5 -0x1.b9f8b14eb372ep-6 0x1.256471573c163p-6 -0x1.8635595c28480p-7 "
    "0x1.03c0b29031197p-7 -0x1.5a07ffdcf1525p-8 0x1.cd1f2dbc0dbedp-9 -0x1.335166d938f39p-9 0x1.99e14548a2d9bp-10 "
    "-0x1.1138fd323dc0cp-10 0x1.69be71d89ad40p-11 -0x1.e24e3f4fdc1dcp-12 0x1.56ae8897d5d3dp-12 -0x1.c8e71b670fd14p-13 "
    "0x1.80c273fb322c5p-14 -0x1.0081238b97022p-14 0x1.0080971c5617fp-13 -0x1.5600aebc07538p-14"
)
_DIGAMMA_ZERO = ("0x1.762d86356be3fp+0", "0x1.b86a722197829p-54")
_HALF_LOG_TWO_PI = ("0x1.d67f1c864beb5p-1", "-0x1.65b5a1b7ff5dfp-55")
_SERIES_FROM = 8.0


def lgamma(code: Code, x: S) -> S:
    """The logarithm of the absolute value of the gamma function; inf at 0, -1, -2, …"""
    if x.dtype is F32:
        return through_f64(code, lgamma, x)
    usual = _lgamma(code, abs(x))
    return code.rarely(x < 0.0, _lgamma_reflected, usual, x, usual)


def _lgamma(code: Code, x: S) -> S:
    """For x ≥ 0."""
    zero, one = code.const(F64, 0.0), code.const(F64, 1.0)
    down, product = _stepped_down(code, x, 2.5)
    tiny, low = x < 0.5, x < 1.5
    w = code.select(tiny, x, code.select(low, x - 1.0, down - 2.0))
    next_, lost = quick_two_sum(one, x)
    up = x * code.select(tiny, next_, one)
    more = code.select(tiny, code.fma(x, next_, -up) + x * lost, zero)
    product = code.select(low, up, product)
    high = x >= _SERIES_FROM
    argument = code.select(high, x, product)
    logarithm = _log(code, argument, code.select(high, zero, more))
    near = two_product(code, w, poly(code, w, _NEAR_2))
    sign = code.select(low, -one, one)
    total, lost = two_sum(near[0], sign * logarithm[0])
    small = total + (lost + code.fma(sign, logarithm[1], near[1]))
    result = code.select(high, _stirling(code, x, logarithm), small)
    # inf at 0, at inf, and from where it overflows
    edge = code.select(x.eq(x), code.const(F64, float("inf")), x)
    return code.select((x > 0.0) & (x < 2.0**1015), result, edge)


def _log(code: Code, x: S, more: S) -> Pair:
    """The logarithm of x + more in two parts; `more` is much smaller."""
    k, m = split(code, x)
    high, low = plus(times(code, pair(code, x, LN2), k), log_pair(code, m, precise=False))
    return high, low + more / x


def _stirling(code: Code, x: S, logarithm: Pair) -> S:
    inverse = 1.0 / x
    constant = pair(code, x, _HALF_LOG_TWO_PI)
    series = inverse * poly(code, inverse * inverse, _STIRLING)
    total, rest = times(code, logarithm, x - 0.5)
    total, lost = quick_two_sum(total, -x)
    total, more = quick_two_sum(total, constant[0])
    return total + (series + (lost + more + rest + constant[1]))


def _lgamma_reflected(code: Code, x: S, of_opposite: S) -> S:
    """-lgamma(-x) - log(|x sin(pi x)| / pi) for x < 0: Euler's formula."""
    sine, _, _ = _turn(code, x)
    result = -(of_opposite + (log(code, -x * number(code, x, ONE_OVER_PI[0])) + log(code, sine)))
    infinite = code.op1("rint", x).eq(x)
    return code.select(infinite, code.const(F64, float("inf")), result)


def digamma(code: Code, x: S) -> S:
    """The derivative of `lgamma`; nan at -1, -2, …, ∓inf at ±0."""
    if x.dtype is F32:
        return through_f64(code, digamma, x)
    usual = _digamma(code, abs(x))
    result = code.rarely(x < 0.0, _digamma_reflected, usual, x, usual)
    return code.select(abs(x) < 2.0**-60, -1.0 / x, result)


def _digamma(code: Code, x: S) -> S:
    """For x > 0."""
    zero, one = code.const(F64, 0.0), code.const(F64, 1.0)
    z, product = _stepped_down(code, x, 2.0)
    fractions = _sum_of_inverses(code, x, 2.0)
    low = x < 1.0
    base = code.select(low, x, z)  # what is left of it after 1 is taken off, exactly
    first, second = pair(code, x, _DIGAMMA_ZERO)
    shift = code.select(low, one, zero)
    apart = (base - (first - shift)) - second
    near = apart * poly(code, (base - 1.5) + shift, _DIGAMMA_NEAR)
    above, below = code.select(low, -one, fractions), code.select(low, x, product)
    small = near + above / below
    inverse = 1.0 / x
    square = inverse * inverse
    series = code.fma(square, poly(code, square, _DIGAMMA_SERIES), 0.5 * inverse)
    return code.select(x >= _SERIES_FROM, log(code, x) - series, small)


def _digamma_reflected(code: Code, x: S, of_opposite: S) -> S:
    """digamma(-x) - 1 / x - pi / tan(pi x) for x < 0."""
    sine, cosine, negative = _turn(code, x)
    cotangent = code.select(negative, -cosine, cosine) / sine
    result = of_opposite - 1.0 / x - number(code, x, PI[0]) * cotangent
    whole = code.op1("rint", x).eq(x)
    return code.select(whole, code.const(F64, float("nan")), result)


def _turn(code: Code, x: S) -> tuple[S, S, S]:
    """|sin(pi f)| and cos(pi f) of f, x off the nearest integer; and whether f < 0."""
    f = x - code.op1("rint", x)
    steep = abs(f) > 0.25
    product, error = two_product(code, code.select(steep, 0.5 - abs(f), abs(f)), number(code, x, PI[0]))
    sine, cosine, _ = sin_cos(code, product, error, code.bits(f))
    s, c = sine[0] + sine[1], cosine[0] + cosine[1]
    return code.select(steep, c, s), code.select(steep, s, c), f < 0.0


def _stepped_down(code: Code, x: S, below: float) -> tuple[S, S]:
    """From x < 8: x off so many ones that it is less than `below`, and the product of what was passed."""
    product = code.const(F64, 1.0)
    for _ in range(7):
        again = x >= below
        x = code.select(again, x - 1.0, x)
        product = code.select(again, product * x, product)
    return x, product


def _sum_of_inverses(code: Code, x: S, below: float) -> S:
    """The sum of the inverses of what `_stepped_down` passes, times its product."""
    product, total = code.const(F64, 1.0), code.const(F64, 0.0)
    for _ in range(7):
        again = x >= below
        x = code.select(again, x - 1.0, x)
        total = code.select(again, code.fma(total, x, product), total)
        product = code.select(again, product * x, product)
    return total

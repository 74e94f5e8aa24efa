"""What the bodies of math functions share: polynomials, constants, steps for both float widths.

Coefficients and constants are exact hexadecimal floats in text, so that importing a module of this folder
costs nothing and the printed value is the value used. Where a comment says "fpminimax", coefficients are
those of Sollya's fpminimax (Brisebarre & Chevillard, "Efficient polynomial L∞-approximations", ARITH 2007),
which searches among polynomials with floating-point coefficients; `tests/accuracy/minimax.py` makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64

# each in two parts: the nearest f64, and that to what is left
LN2 = ("0x1.62e42fefa39efp-1", "0x1.abc9e3b39803fp-56")
LOG2_E = ("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56")
PI = ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53")
ONE_OVER_PI = ("0x1.45f306dc9c883p-2", "-0x1.6b01ec5417056p-56")


def poly(code: Code, x: S, coefficients: str) -> S:
    """The polynomial in `x` with these coefficients, the constant one first, by Horner's rule in `fma`."""
    *lower, highest = map(float.fromhex, coefficients.split())
    total = code.const(x.dtype, highest)
    for c in reversed(lower):
        total = code.fma(total, x, code.const(x.dtype, c))
    return total


def number(code: Code, like: S, text: str) -> S:
    """The constant written in hexadecimal, in the dtype of `like`."""
    return code.const(like.dtype, float.fromhex(text))


def through_f64(code: Code, function: Callable[..., S], *xs: S) -> S:
    """An f32 function by way of f64: right to 0.5 ulp and a little, as long as the f64 one is any good."""
    return code.convert(function(code, *(code.convert(x, F64) for x in xs)), F32)


def clamp(code: Code, x: S, low: float, high: float) -> S:
    """`x` kept within bounds; a NaN stays."""
    lower, upper = code.const(x.dtype, low), code.const(x.dtype, high)
    x = code.select(x < lower, lower, x)
    return code.select(x > upper, upper, x)


def sign_of(code: Code, x: S) -> S:
    """The sign bit of a float, where it stands in the int of its width."""
    return code.bits(x) & -(1 << (8 * x.dtype.bytes - 1))


def with_sign(code: Code, x: S, sign: S) -> S:
    """`x` with its sign flipped where the sign bit of `sign` is set; the other bits of `sign` are 0."""
    return code.from_bits(code.bits(x) ^ sign)


# ---- numbers in two parts: a float and what is left, much smaller ----------------------------------

Pair = tuple[S, S]


def two_sum(x: S, y: S) -> Pair:
    """The sum and its rounding error, exactly (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def quick_two_sum(x: S, y: S) -> Pair:
    """`two_sum` where |x| ≥ |y| or x is 0 (Dekker)."""
    total = x + y
    return total, y - (total - x)


def two_product(code: Code, x: S, y: S) -> Pair:
    """The product and its rounding error, exactly where nothing underflows."""
    product = x * y
    return product, code.fma(x, y, -product)


def quotient(code: Code, x: Pair, y: Pair) -> S:
    """`x / y` of numbers in two parts, off by little more than the last rounding."""
    reciprocal = 1.0 / (y[0] + y[1])
    near = (x[0] + x[1]) * reciprocal
    left = code.fma(-near, y[1], code.fma(-near, y[0], x[0]) + x[1])
    return code.fma(left, reciprocal, near)


def times(code: Code, x: Pair, y: Pair | S) -> Pair:
    """The product, off by a few 2**-104 of it (f64)."""
    if isinstance(y, S):
        product, error = two_product(code, x[0], y)
        return product, code.fma(x[1], y, error)
    product, error = two_product(code, x[0], y[0])
    return product, code.fma(x[0], y[1], code.fma(x[1], y[0], error))


def plus(x: Pair, y: Pair) -> Pair:
    """The sum, where |x| ≥ |y| or x is 0."""
    total, lost = quick_two_sum(x[0], y[0])
    return total, lost + (x[1] + y[1])


def pair(code: Code, like: S, texts: tuple[str, str]) -> Pair:
    """A constant in two parts, written in hexadecimal."""
    return number(code, like, texts[0]), number(code, like, texts[1])

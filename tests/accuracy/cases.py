"""What each function is measured by: the same function of mpmath, and the arguments where it is hard.

Ranges hold the whole domain by the bits of floats, and densely what is near zeros, seams and thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

Points = Callable[[np.random.Generator, int], np.ndarray]


def even(low: float, high: float) -> Points:
    """Evenly spread."""
    return lambda random, n: random.uniform(low, high, n)


def sizes(low: float, high: float, around: float = 0.0, signs: tuple[int, ...] = (1, -1)) -> Points:
    """Evenly spread logarithms of the distance from a place."""

    def points(random: np.random.Generator, n: int) -> np.ndarray:
        size = np.exp2(random.uniform(np.log2(low), np.log2(high), n))
        return around + size * random.choice(signs, n)

    return points


def bits(random: np.random.Generator, n: int) -> np.ndarray:
    """Any finite float."""
    drawn = random.integers(0, 1 << 64, 2 * n, dtype=np.uint64).view(np.float64)
    return drawn[np.isfinite(drawn)][:n]


def multiples(step: float, most: int) -> Points:
    """Floats nearest to multiples of something irrational."""
    return lambda random, n: random.integers(-most, most, n) * step


@dataclass(frozen=True)
class Case:
    """`reference` over mpmath's numbers; each of `ranges` has points for one argument, or a tuple of them for several.
    `attrs` are those of the op."""

    reference: Callable[..., Any]
    ranges: tuple[Points | tuple[Points, ...], ...]
    attrs: tuple[tuple[str, Any], ...] = ()


def _pow(x: Any, y: Any) -> Any:
    return mpmath.power(abs(x), y) * (-1 if x < 0 and int(y) % 2 else 1)


def _softplus(x: Any) -> Any:
    return max(x, 0) + mpmath.log1p(mpmath.exp(-abs(x)))


def _logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y)))


def _sigmoid_slope(x: Any) -> Any:
    u = mpmath.exp(-abs(x))
    return u / (1 + u) ** 2


TINY = 5e-324
NEAR_ONE = sizes(1e-16, 0.5, 1.0)
LARGE, SMALL = sizes(8, 1e300, signs=(1,)), sizes(1e-300, 1, signs=(1,))
POSITIVE = sizes(TINY, 1.7e308, signs=(1,))
ANGLES = (
    sizes(1.0, 3e38),
    even(-10, 10),
    bits,
    sizes(TINY, 1e-2),
    multiples(np.pi / 2, 1 << 20),
    lambda random, n: np.ldexp(random.integers(1 << 52, 1 << 53, n).astype(float), random.integers(-30, 970, n)),
)
LOGARITHM = (even(0.5, 2), NEAR_ONE, POSITIVE, sizes(TINY, 1e-300, signs=(1,)))
EXPONENTIAL = (even(-1, 1), even(-746, 710), even(-104, 89), even(-746, -707), bits, sizes(TINY, 1e-2))
HYPERBOLIC = (even(-1, 1), even(-25, 25), even(-710.4, 710.4), bits, sizes(TINY, 1))
ARC = (even(-1, 1), even(0.45, 0.55), sizes(TINY, 1), sizes(1e-16, 0.5, 1.0, (-1,)), sizes(1e-16, 0.5, -1.0, (1,)))
PLANE = (
    (even(-1, 1), even(-1, 1)),
    (bits, bits),
    (sizes(1e-3, 1e3), sizes(1e-3, 1e3)),
    (sizes(TINY, 1e-290), sizes(TINY, 1e-290)),
    (sizes(1e300, 1.7e308), sizes(1e300, 1.7e308)),
)

CASES = {
    "exp": Case(mpmath.exp, EXPONENTIAL),
    "exp2": Case(lambda x: mpmath.power(2, x), (even(-1, 1), even(-1080, 1025), even(-1075, -1020), even(-151, 129), bits)),
    "expm1": Case(mpmath.expm1, (even(-1, 1), even(-40, 710), even(30, 45), bits, sizes(TINY, 2))),
    "log": Case(mpmath.log, LOGARITHM),
    "log2": Case(lambda x: mpmath.log(x, 2), LOGARITHM),
    "log10": Case(mpmath.log10, LOGARITHM),
    "log1p": Case(mpmath.log1p, (even(-1, 3), sizes(TINY, 0.9), sizes(0.1, 1.7e308, signs=(1,)), sizes(1e-16, 1, -1.0, (1,)))),
    "sin": Case(mpmath.sin, ANGLES),
    "cos": Case(mpmath.cos, ANGLES),
    "tan": Case(mpmath.tan, ANGLES),
    "asin": Case(mpmath.asin, ARC),
    "acos": Case(mpmath.acos, ARC),
    "atan": Case(mpmath.atan, (even(-1, 1), even(-10, 10), bits, sizes(1e-20, 1e20))),
    "atan2": Case(mpmath.atan2, PLANE),
    "hypot": Case(mpmath.hypot, PLANE),
    "sinh": Case(mpmath.sinh, HYPERBOLIC),
    "cosh": Case(mpmath.cosh, HYPERBOLIC),
    "tanh": Case(mpmath.tanh, HYPERBOLIC),
    "asinh": Case(mpmath.asinh, (even(-1, 1), even(-30, 30), bits, sizes(1e-20, 1e20))),
    "acosh": Case(mpmath.acosh, (even(1, 2), even(1, 30), sizes(1e-16, 1e300, 1.0, (1,)))),
    "atanh": Case(mpmath.atanh, (even(-1, 1), sizes(TINY, 1), sizes(1e-16, 0.5, 1.0, (-1,)))),
    "sigmoid": Case(lambda x: 1 / (1 + mpmath.exp(-x)), (even(-1, 1), even(-20, 20), even(-745, 40), even(-104, 0), bits)),
    "sigmoid_slope": Case(_sigmoid_slope, (even(-1, 1), even(-20, 20), even(-740, 740))),
    "tanh_slope": Case(lambda x: mpmath.sech(x) ** 2, (even(-1, 1), even(-20, 20), even(-380, 380))),
    "softplus": Case(_softplus, (even(-1, 1), even(-40, 40), even(-745, 0), even(-103, 0), bits)),
    "logaddexp": Case(_logaddexp, ((even(1, 10), even(1, 10)), (even(-1000, -900), even(-1000, -900)), (bits, bits))),
    "sqrt": Case(mpmath.sqrt, (even(0, 10), POSITIVE)),
    "rsqrt": Case(lambda x: 1 / mpmath.sqrt(x), (even(0.1, 10), POSITIVE, sizes(TINY, 1e-300, signs=(1,)))),
    "cbrt": Case(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (even(-10, 10), bits, sizes(TINY, 1e-300))),
    "pow": Case(
        _pow,
        (
            (even(0.5, 2), even(-1000, 1000)),
            (even(0.1, 30), even(-20, 20)),
            (sizes(1e-16, 0.5, 1.0), sizes(1, 1e18)),
            (POSITIVE, even(-2, 2)),
            (POSITIVE, even(-0.5, 0.5)),
            (even(-30, 30), lambda random, n: random.integers(-30, 30, n).astype(float)),
        ),
    ),
    "bell": Case(lambda x: mpmath.exp(-x * x), (even(-1, 1), even(-28, 28), sizes(TINY, 1)), (("half", False),)),
    "erf": Case(mpmath.erf, (even(-1, 1), even(-6, 6), even(0.85, 1.3), sizes(TINY, 1))),
    "erfc": Case(mpmath.erfc, (even(-1, 1), even(-6, 27), even(0.4, 1.3), even(26, 27.3), even(-4, 10), sizes(TINY, 1))),
    "gelu": Case(
        lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        (even(-1.5, 1.5), even(-37, 6), even(-38.5, -36), even(-14, 6), sizes(TINY, 1)),
    ),
    # above 0: below it the zeros of both are nowhere near floats, and only absolute errors can be small
    "lgamma": Case(
        mpmath.loggamma,
        (even(0, 3), even(2, 9), LARGE, SMALL, sizes(1e-15, 0.3, 1.0), sizes(1e-15, 0.3, 2.0)),
    ),
    "digamma": Case(
        mpmath.digamma,
        (even(0, 3), even(2, 9), LARGE, SMALL, sizes(1e-15, 0.1, 1.4616321449683623)),
    ),
    "polygamma": Case(
        lambda x: mpmath.polygamma(1, x), (even(0, 3), even(0, 30), sizes(1e-20, 1e20, signs=(1,))), (("order", 1),)
    ),
}  # fmt: skip

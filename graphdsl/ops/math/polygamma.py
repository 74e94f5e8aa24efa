"""The derivatives of digamma, of any order, in plain arithmetic: the order is part of the op, so no library holds them.

A sum of powers leads to arguments where the Euler-Maclaurin series is short; all its terms have one sign.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, pi

from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F64

_TERMS = 9
# the Taylor series of sin and cos up to pi/4, in x**2; the next terms are below 2**-56
_SIN = [(-1) ** k / factorial(2 * k + 1) for k in range(8)]
_COS = [(-1) ** k / factorial(2 * k) for k in range(9)]


def polygamma(code: Code, x: S, *, order: int) -> S:
    """The derivative of `digamma`, `order` times, at least once; below 0 by reflection."""
    wide = code.convert(x, F64)
    result = _reflected(code, wide, order)
    return code.convert(code.select(wide < 0.0, result, _right(code, wide, order)), x.dtype)


def _right(code: Code, x: S, order: int) -> S:
    """For x ≥ 0."""
    shift = 10 + order
    total = _power(1.0 / x, order + 1)
    for i in range(1, shift):
        total = total + _power(1.0 / (x + float(i)), order + 1)
    inverse = 1.0 / (x + float(shift))
    square = inverse * inverse
    series = code.const(F64, 0.0)
    for k in range(_TERMS, 0, -1):
        factor = _bernoulli()[2 * k] * factorial(2 * k + order - 1) / factorial(2 * k) / factorial(order)
        series = (series + float(factor)) * square
    ends = _power(inverse, order) * (1.0 / order + (0.5 * inverse + series))
    return (-1.0) ** (order + 1) * float(factorial(order)) * (total + ends)


def _power(x: S, n: int) -> S:
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def _reflected(code: Code, x: S, order: int) -> S:
    """From digamma(1 - x) - digamma(x) = pi / tan(pi x), `order` times differentiated."""
    f = x - code.op1("rint", x)
    size = abs(f)
    steep = size > 0.25
    r = code.select(steep, 0.5 - size, size) * pi
    z = r * r
    sine, cosine = r * _series(code, z, _SIN), _series(code, z, _COS)
    cotangent = code.op2("copysign", code.select(steep, sine / cosine, cosine / sine), f)
    slope = _series(code, cotangent, [float(c) for c in _cotangent(order)]) * pi ** (order + 1)
    value = (-1.0) ** order * _right(code, 1.0 - x, order) - slope
    # at 0, -1, … both sides go to inf where the order is odd, and to different infinities where it is even
    edge = code.const(F64, float("inf") if order % 2 else float("nan"))
    return code.select(f.eq(0.0), edge, value)


def _series(code: Code, x: S, coefficients: list[float]) -> S:
    total = code.const(F64, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _cotangent(order: int) -> list[int]:
    """The derivative of cot, `order` times, as a polynomial in cot: cot' = -(1 + cot**2)."""
    p = [0, 1]
    for _ in range(order):
        slope = [i * c for i, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return p


def _bernoulli() -> list[Fraction]:
    """B(0) to B(2 * _TERMS), by their recurrence."""
    numbers: list[Fraction] = []
    for m in range(2 * _TERMS + 1):
        before = sum((comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
        numbers.append(Fraction(1) if m == 0 else -before / (m + 1))
    return numbers

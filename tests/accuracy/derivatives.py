"""First and second derivatives of functions, as formulas over mpmath's numbers, and how far ours are from them.

Ours are those that a program gets: `grad` of a sum, and `grad` of the sum of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from graphdsl.api.program import Program
from graphdsl.ops.types import F64
from graphdsl.runtime.events import Recorded
from graphdsl.source.span import Source
from tests.accuracy.cases import CASES, TINY, Case, even, sizes
from tests.accuracy.measure import error, samples

Formula = Callable[[Any], Any]

ln2, ln10 = (lambda: mpmath.log(2)), (lambda: mpmath.log(10))


def _slope(x: Any) -> Any:
    """Of the sigmoid."""
    u = mpmath.exp(-abs(x))
    return u / (1 + u) ** 2


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _bend(x: Any) -> Any:
    """The second derivative of the sigmoid."""
    return -_slope(x) * mpmath.tanh(x / 2)


def _bell(x: Any) -> Any:
    return mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def _gauss(x: Any) -> Any:
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)


def _root(x: Any, power: float) -> Any:
    return mpmath.power(x, mpmath.mpf(power))


def _cbrt(x: Any, k: int) -> Any:
    """|x| to the power k/3."""
    return mpmath.power(abs(x), mpmath.mpf(k) / 3)


FORMULAS: dict[str, tuple[Formula, Formula]] = {
    "exp": (mpmath.exp, mpmath.exp),
    "exp2": (lambda x: ln2() * mpmath.power(2, x), lambda x: ln2() ** 2 * mpmath.power(2, x)),
    "expm1": (mpmath.exp, mpmath.exp),
    "log": (lambda x: 1 / x, lambda x: -1 / x**2),
    "log2": (lambda x: 1 / x / ln2(), lambda x: -1 / x**2 / ln2()),
    "log10": (lambda x: 1 / x / ln10(), lambda x: -1 / x**2 / ln10()),
    "log1p": (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    "sin": (mpmath.cos, lambda x: -mpmath.sin(x)),
    "cos": (lambda x: -mpmath.sin(x), lambda x: -mpmath.cos(x)),
    "tan": (lambda x: mpmath.sec(x) ** 2, lambda x: 2 * mpmath.tan(x) * mpmath.sec(x) ** 2),
    "asin": (lambda x: _root(1 - x * x, -0.5), lambda x: x * _root(1 - x * x, -1.5)),
    "acos": (lambda x: -_root(1 - x * x, -0.5), lambda x: -x * _root(1 - x * x, -1.5)),
    "atan": (lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "sinh": (mpmath.cosh, mpmath.sinh),
    "cosh": (mpmath.sinh, mpmath.cosh),
    "tanh": (lambda x: mpmath.sech(x) ** 2, lambda x: -2 * mpmath.tanh(x) * mpmath.sech(x) ** 2),
    "asinh": (lambda x: _root(1 + x * x, -0.5), lambda x: -x * _root(1 + x * x, -1.5)),
    "acosh": (lambda x: _root(x * x - 1, -0.5), lambda x: -x * _root(x * x - 1, -1.5)),
    "atanh": (lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2),
    "sigmoid": (_slope, _bend),
    "softplus": (_sigmoid, _slope),
    "silu": (lambda x: _sigmoid(x) + x * _slope(x), lambda x: 2 * _slope(x) + x * _bend(x)),
    "sqrt": (lambda x: _root(x, -0.5) / 2, lambda x: -_root(x, -1.5) / 4),
    "rsqrt": (lambda x: -_root(x, -1.5) / 2, lambda x: 3 * _root(x, -2.5) / 4),
    "cbrt": (lambda x: _cbrt(x, -2) / 3, lambda x: -2 * mpmath.sign(x) * _cbrt(x, -5) / 9),
    "erf": (_gauss, lambda x: -2 * x * _gauss(x)),
    "erfc": (lambda x: -_gauss(x), lambda x: 2 * x * _gauss(x)),
    "gelu": (
        lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2 + x * _bell(x),
        lambda x: (2 - x * x) * _bell(x),
    ),
    "lgamma": (mpmath.digamma, lambda x: mpmath.polygamma(1, x)),
    "digamma": (lambda x: mpmath.polygamma(1, x), lambda x: mpmath.polygamma(2, x)),
}  # fmt: skip

MORE = {"silu": Case(lambda x: x * _sigmoid(x), (even(-1, 1), even(-40, 40), even(-745, 0), sizes(TINY, 1)))}


_ABOUT_UNDERFLOW = 1e-306  # where a factor may be subnormal, what it is multiplied by makes its rounding larger


def _least(name: str, x: float) -> float:
    """The size below which an error is not taken relative to the derivative: those of two functions go through 0."""
    return 0.1 if name in ("gelu", "silu") and abs(x) < 4 else _ABOUT_UNDERFLOW


def program(name: str) -> str:
    """Prints both derivatives at the places that are fed."""
    return f"input x: f64[_]\ny = sum({name}(x))\nd = grad(y, x)\ne = grad(sum(d), x)"


def errors(name: str, n: int, mode: str = "eager", seed: int = 0) -> Iterator[tuple[int, float, float]]:
    """The order of a derivative (1 or 2), its error in ulps, and where."""
    case = CASES.get(name) or MORE[name]
    (places,) = zip(*samples(case, F64, n, seed), strict=True)
    x = np.concatenate(places)
    x = x[np.isfinite(x) & (x != 0)]
    made = Program(Source("derivatives.gdl", program(name)))
    values = made.prepare(mode, made.given({"x": x}, {})).run(Recorded()).values
    with mpmath.workprec(300):
        for order, formula in enumerate(FORMULAS[name], 1):
            for place, got in zip(x, values["de"[order - 1]].value, strict=True):
                try:
                    want = formula(mpmath.mpf(float(place)))
                except (ZeroDivisionError, ValueError):
                    continue
                if not isinstance(want, mpmath.mpc) and not mpmath.isnan(want):
                    yield order, error(float(got), want, F64, _least(name, place)), float(place)

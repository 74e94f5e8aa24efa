"""Math functions: within the bound that the entry states, right at the edges, exact where a result can be.

`python -m tests.accuracy` looks longer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest

from graphdsl.native.target import Target, narrowed
from graphdsl.ops import math as bodies
from graphdsl.ops.math.random import normal, uniform
from graphdsl.ops.op import Elementwise
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F32, F64, I64, DType
from tests.accuracy import derivatives
from tests.accuracy.cases import CASES
from tests.accuracy.measure import compiled, errors, errors_everywhere, samples
from tests.trial import array_function

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
inf, nan = math.inf, math.nan
FLOATS = (F32, F64)
MOST_OF_DERIVATIVES = 10.0  # ulps


def of(name: str, *xs: Any, dtype: DType = F64) -> Any:
    """The values of a function at some places."""
    arrays = [np.atleast_1d(np.asarray(x, dtype.numpy)) for x in xs]
    return compiled(name, dtype)(*np.broadcast_arrays(*arrays))


def same(a: Any, b: Any) -> bool:
    """Equal numbers, with the sign of zeros; any nan equals any."""
    a, b = np.asarray(a), np.asarray(b)
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all())


# ---- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
@pytest.mark.parametrize("name", sorted(CASES))
def test_within_the_bound_that_the_entry_states(name: str, dtype: DType) -> None:
    worst, place = max(errors(name, dtype, 60, seed=1))
    assert worst <= OPS[name].bound, place


def test_every_function_of_floats_has_a_case() -> None:
    exact = {"one_minus_square"}  # one operation
    for name, op in OPS.items():
        if isinstance(op.compute, Elementwise) and op.reference and 0.5 < op.bound < inf and name != "powi":
            assert name in CASES or name in exact, name
    assert set(bodies.__all__) <= set(CASES)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "expm1", "sinh", "cosh"])
def test_f32_in_all_its_range(name: str) -> None:
    """What has a way of its own for f32, at every 65,537-th float."""
    worst, place = errors_everywhere(name, 65_537)
    assert worst <= OPS[name].bound, place


@pytest.mark.parametrize("name", derivatives.FORMULAS)
def test_derivatives_of_both_orders(name: str) -> None:
    """Over the whole range, as exactly as their functions: nothing cancels, and what is tiny is right."""
    for order, error, place in derivatives.errors(name, 8):
        assert error <= MOST_OF_DERIVATIVES, (order, place)


def test_every_function_has_formulas_of_derivatives() -> None:
    two_arguments, slopes = {"atan2", "hypot", "logaddexp", "pow"}, {"sigmoid_slope", "tanh_slope", "bell", "polygamma"}
    assert set(derivatives.FORMULAS) | two_arguments | slopes >= set(CASES)


def test_angles_close_to_multiples() -> None:
    # the f64 closest to a multiple of pi/2 (Kahan, "Minimizing q*m - n", 1983), and f32's closest few
    x = 6381956970095103.0 * 2.0**797
    with mpmath.workprec(2000):
        assert of("cos", x)[0] == float(mpmath.cos(x))
        assert of("sin", x)[0] == float(mpmath.sin(x))
        assert of("tan", x)[0] == float(mpmath.tan(x))
        for y in (16367173.0 * 2.0**72, 15_478_743 * 2.0**5, 3.0e38):
            assert of("cos", y, dtype=F32)[0] == np.float32(mpmath.cos(float(np.float32(y))))
            assert of("sin", y, dtype=F32)[0] == np.float32(mpmath.sin(float(np.float32(y))))


# ---- exact values ---------------------------------------------------------------------------------------


def test_results_that_can_be_exact_are() -> None:
    k = np.arange(-22, 23)
    assert same(of("pow", 10.0, k[k >= 0]), [float(f"1e{i}") for i in k if i >= 0])
    whole = np.arange(-40.0, 41.0)
    assert same(of("cbrt", whole**3), whole)
    assert same(of("log10", [float(f"1e{i}") for i in range(23)]), np.arange(23.0))
    powers = np.arange(-1074.0, 1024.0)
    assert same(of("exp2", powers), np.ldexp(1.0, powers.astype(int)))
    assert same(of("log2", np.ldexp(1.0, powers.astype(int))), powers)
    assert same(of("pow", 2.0, powers), np.ldexp(1.0, powers.astype(int)))
    assert same(of("pow", np.arange(1.0, 100), 3.0), np.arange(1.0, 100) ** 3)
    assert same(of("pow", np.arange(1.0, 100) ** 2, 0.5), np.arange(1.0, 100))
    assert same(of("hypot", [3.0, 5.0, 8.0], [4.0, 12.0, 15.0]), [5.0, 13.0, 17.0])
    assert same(of("pow", 10.0, np.arange(11.0), dtype=F32), np.float32([float(f"1e{i}") for i in range(11)]))
    assert same(of("log10", [float(f"1e{i}") for i in range(11)], dtype=F32), np.arange(11, dtype=np.float32))
    for name, x, y in (
        ("exp", 0, 1),
        ("cos", 0, 1),
        ("tanh", 0, 0),
        ("sigmoid", 0, 0.5),
        ("log", 1, 0),
        ("acos", 1, 0),
    ):
        for dtype in FLOATS:
            assert of(name, x, dtype=dtype)[0] == y


# ---- edges ----------------------------------------------------------------------------------------------

EDGES = {
    # at    0     -0     1     -1     inf    -inf
    "exp": (1, 1, None, None, inf, 0),
    "exp2": (1, 1, 2, 0.5, inf, 0),
    "expm1": (0, -0.0, None, None, inf, -1),
    "log": (-inf, -inf, 0, nan, inf, nan),
    "log2": (-inf, -inf, 0, nan, inf, nan),
    "log10": (-inf, -inf, 0, nan, inf, nan),
    "log1p": (0, -0.0, None, -inf, inf, nan),
    "sin": (0, -0.0, None, None, nan, nan),
    "cos": (1, 1, None, None, nan, nan),
    "tan": (0, -0.0, None, None, nan, nan),
    "asin": (0, -0.0, None, None, nan, nan),
    "acos": (None, None, 0, None, nan, nan),
    "atan": (0, -0.0, None, None, None, None),
    "sinh": (0, -0.0, None, None, inf, -inf),
    "cosh": (1, 1, None, None, inf, inf),
    "tanh": (0, -0.0, None, None, 1, -1),
    "asinh": (0, -0.0, None, None, inf, -inf),
    "acosh": (nan, nan, 0, nan, inf, nan),
    "atanh": (0, -0.0, inf, -inf, nan, nan),
    "sigmoid": (0.5, 0.5, None, None, 1, 0),
    "softplus": (None, None, None, None, inf, 0),
    "rsqrt": (inf, -inf, 1, nan, 0, nan),
    "cbrt": (0, -0.0, 1, -1, inf, -inf),
    "erf": (0, -0.0, None, None, 1, -1),
    "erfc": (1, 1, None, None, 0, 2),
    "gelu": (0, -0.0, None, None, inf, -0.0),
    "lgamma": (inf, inf, 0, inf, inf, inf),
    "digamma": (-inf, inf, None, nan, inf, nan),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str, dtype: DType) -> None:
    made = of(name, [0.0, -0.0, 1.0, -1.0, inf, -inf, nan], dtype=dtype)
    for got, want in zip(made, (*EDGES[name], nan), strict=True):
        assert want is None or same(got, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
def test_edges_of_two_arguments(dtype: DType) -> None:
    info = np.finfo(dtype.numpy)
    low, top, odd = float(info.smallest_subnormal), float(info.max), 2.0**info.nmant + 1
    ones = [0.0, 1.0, inf, 2.0, 3.0, 0.5, 1.5, low, top, odd, nan]
    x, y = np.meshgrid(*[np.array(ones + [-v for v in ones], dtype.numpy)] * 2)
    x, y = x.ravel(), y.ravel()
    for name, reference in (("pow", np.power), ("atan2", np.arctan2), ("hypot", np.hypot), ("logaddexp", np.logaddexp)):
        made, want = of(name, x, y, dtype=dtype), reference(x, y)
        near = np.isclose(made, want, rtol=4 * float(info.eps), atol=2 * low) & (np.signbit(made) == np.signbit(want))
        wrong = ~(near | (np.isnan(made) & np.isnan(want)))
        assert not wrong.any(), (name, x[wrong], y[wrong], made[wrong], want[wrong])


def test_thresholds() -> None:
    """The last float with a finite (nonzero) result, and the next."""
    for dtype, name, last, beyond, limit in (
        (F64, "exp", 709.782712893384, 709.7827128933841, inf),
        (F64, "exp", -745.1332191019411, -745.1332191019412, 0.0),
        (F32, "exp", 88.72283, 88.72284, inf),
        (F32, "exp", -103.972076, -103.972084, 0.0),
        (F64, "sinh", 710.4758600739439, 710.475860073944, inf),
        (F64, "exp2", 1023.9999999999999, 1024.0, inf),
        (F64, "exp2", -1074.9999999999998, -1075.0, 0.0),
        (F32, "exp2", 127.99999, 128.0, inf),
    ):
        near, far = of(name, [last, beyond], dtype=dtype)
        assert near not in (0.0, inf)
        assert far == limit
    assert same(of("sigmoid", -745.0), [5e-324])
    assert same(of("softplus", -745.0), [5e-324])
    assert same(of("sigmoid", -103.0, dtype=F32), np.float32([1.401298464324817e-45]))


def test_subnormals_pass() -> None:
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p"):
        x = np.array([5e-324, -5e-324, 1e-310, 2.5e-308])
        assert same(of(name, x), x), name
        y = np.float32([1e-45, -1e-45, 1e-40])
        assert same(of(name, y, dtype=F32), y), name


def test_reflected_gammas() -> None:
    """Below 0 the error is small beside that of the terms, which cancel near zeros."""
    x = np.random.default_rng(0).uniform(-20, 0, 500)
    for name, reference in (("lgamma", lambda v: mpmath.loggamma(v).real), ("digamma", mpmath.digamma)):
        made = of(name, x)
        for v, got in zip(x, made, strict=True):
            want = float(reference(mpmath.mpf(float(v))))
            assert got == pytest.approx(want, rel=1e-14, abs=2e-13), (name, v)


# ---- the same bits everywhere --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "target"),
    [("exp", narrowed("sse2")), ("sin", narrowed("sse4")), ("pow", narrowed("sse2")), ("tanh", narrowed("sse4"))],
    ids=["exp", "sin", "pow", "tanh"],
)
def test_same_bits_on_narrower_targets(name: str, target: Target) -> None:
    for dtype in FLOATS:
        body = OPS[name].compute.body  # type: ignore[union-attr]
        for arguments in samples(CASES[name], dtype, 60, seed=2):
            other = array_function(body, [dtype] * len(arguments), target)
            assert same(other(*arguments), compiled(name, dtype)(*arguments)), name


def test_lanes_do_not_matter() -> None:
    """A far argument, which takes a way of its own, changes nothing for its neighbours."""
    x = np.random.default_rng(3).uniform(-100, 100, 64)
    alone = of("sin", x)
    x[5], x[40] = 1e300, inf
    together = of("sin", x)
    kept = np.isin(np.arange(64), (5, 40), invert=True)
    assert same(together[kept], alone[kept])


# ---- random numbers ---------------------------------------------------------------------------------------


def drawn(body: Any, words: np.ndarray, dtype: DType) -> Any:
    return array_function(partial(body, dtype=dtype), [I64] * 4)(*words)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
def test_draws(dtype: DType) -> None:
    top = (1 << 32) - 1
    ends = np.array([[0, top], [0, top], [0, top], [0, top]], dtype=np.int64)
    low, high = drawn(uniform, ends, dtype)
    assert low == 0
    assert high == 1 - (2.0**-24 if dtype is F32 else 2.0**-53)
    assert np.isfinite(drawn(normal, ends, dtype)).all()
    words = np.random.default_rng(4).integers(0, 1 << 32, (4, 400_000), dtype=np.int64)
    for body, mean, variance in ((uniform, 0.5, 1 / 12), (normal, 0.0, 1.0)):
        made = drawn(body, words, dtype).astype(float)
        assert abs(made.mean() - mean) < 5 * math.sqrt(variance / len(made))
        assert made.var() == pytest.approx(variance, rel=0.02)
    made = np.sort(drawn(normal, words, dtype).astype(float))
    quantiles = [float(mpmath.sqrt(2) * mpmath.erfinv(2 * q - 1)) for q in (0.001, 0.1, 0.5, 0.9, 0.999)]
    for q, want in zip((0.001, 0.1, 0.5, 0.9, 0.999), quantiles, strict=True):
        assert made[int(q * len(made))] == pytest.approx(want, abs=0.05)

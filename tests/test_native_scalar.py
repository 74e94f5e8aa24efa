"""Scalar bodies in machine code: IEEE arithmetic to the bit, on every target."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from graphdsl.native.target import Target, narrowed, native
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType
from tests.trial import array_function

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
TARGETS = {"native": native(), "sse2": narrowed("sse2"), "sse4": narrowed("sse4")}
FLOATS = (F32, F64)


@pytest.fixture(params=TARGETS.values(), ids=TARGETS.keys())
def target(request: pytest.FixtureRequest) -> Target:
    return request.param


def specials(dtype: DType) -> np.ndarray:
    info = np.finfo(dtype.numpy)
    tiny, low, top = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    ones = [
        0.0,
        1.0,
        1 + float(info.eps),
        1.5,
        0.1,
        1 / 3,
        2.5,
        0.5,
        0.49999999999999994,
        1e10,
        2.0**52 + 0.5,
        math.inf,
    ]
    values = [*ones, tiny, tiny - low, low, 3 * low, top, top / 2, math.sqrt(tiny), math.nan, 2.0**63, 2.0**31]
    return np.array(values + [-v for v in values], dtype.numpy)


def numbers(dtype: DType, n: int, seed: int) -> np.ndarray:
    """Random bits, so every exponent, and specials."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 255, (n, dtype.bytes), np.uint8, endpoint=True).view(dtype.numpy)[:, 0]


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Equal, with all nan alike."""
    assert a.dtype == b.dtype
    if a.dtype.kind == "f":
        both = np.isnan(a) & np.isnan(b)
        ints = f"i{a.dtype.itemsize}"
        bad = ~both & (a.view(ints) != b.view(ints))
    else:
        bad = a != b
    assert not bad.any(), (a[bad][:5], b[bad][:5], np.flatnonzero(bad)[:5])


def exact_fma(x: float, y: float, z: float, dtype: DType) -> float:
    """Rounded once from the exact value."""
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y + z
    if not math.isfinite(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        product_negative = math.copysign(1, x) * math.copysign(1, y) < 0
        return -0.0 if product_negative and math.copysign(1, z) < 0 else 0.0
    rounded = round_fraction(abs(exact), dtype)
    return -rounded if exact < 0 else rounded


def round_fraction(x: Fraction, dtype: DType) -> float:
    digits, least, greatest = (53, -1074, 1024) if dtype is F64 else (24, -149, 128)
    power = x.numerator.bit_length() - x.denominator.bit_length() - digits
    while x >= Fraction(2) ** (power + digits):
        power += 1
    while x < Fraction(2) ** (power + digits - 1):
        power -= 1
    power = max(power, least)
    whole = round(x / Fraction(2) ** power)  # half to even
    if whole >= 2**digits:
        whole, power = whole // 2, power + 1
    return math.inf if power + digits > greatest else math.ldexp(whole, power)


def fma_cases(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    sp = specials(dtype)
    x, y, z = (a.ravel() for a in np.meshgrid(sp, sp, sp))
    keep = rng.random(x.size) < 0.1
    parts = [(x[keep], y[keep], z[keep]), tuple(numbers(dtype, 3000, s) for s in (1, 2, 3))]
    near = [rng.normal(size=6000).astype(dtype.numpy) for _ in range(2)]
    with np.errstate(all="ignore"):
        product = near[0] * near[1]
        spread = np.exp2(rng.integers(-120, 120, 6000)).astype(dtype.numpy)
        parts.append((near[0], near[1], -product))
        parts.append((near[0], near[1], product * spread))
        low = np.finfo(dtype.numpy).tiny
        parts.append((near[0], near[1] * low, rng.normal(size=6000).astype(dtype.numpy) * low))
    return tuple(np.concatenate([p[i] for p in parts]) for i in range(3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_fma_is_rounded_once(target: Target, dtype: DType) -> None:
    x, y, z = fma_cases(dtype)
    expected = [exact_fma(*map(float, v), dtype) for v in zip(x, y, z, strict=True)]
    fma = array_function(lambda code, x, y, z: code.fma(x, y, z), [dtype] * 3, target)
    same_bits(fma(x, y, z), np.array(expected, dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nothing_is_contracted(target: Target, dtype: DType) -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.normal(size=10_000).astype(dtype.numpy) for _ in range(3))
    plain = array_function(lambda code, x, y, z: x * y + z, [dtype] * 3, target)
    same_bits(plain(x, y, z), x * y + z)
    assert (x * y + z != array_function(lambda code, x, y, z: code.fma(x, y, z), [dtype] * 3, target)(x, y, z)).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "sqrt", "abs", "neg"])
def test_unary(target: Target, dtype: DType, name: str) -> None:
    x = np.concatenate([specials(dtype), numbers(dtype, 5000, 4), np.linspace(-40, 40, 1001).astype(dtype.numpy)])
    numpy = {"neg": "negative"}.get(name, name)
    with np.errstate(all="ignore"):
        same_bits(array_function(lambda code, x: code.op1(name, x), [dtype], target)(x), getattr(np, numpy)(x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rem", "copysign"])
def test_binary(target: Target, dtype: DType, name: str) -> None:
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    x = np.concatenate([x, numbers(dtype, 3000, 5), np.linspace(-9, 9, 997).astype(dtype.numpy)])
    y = np.concatenate([y, numbers(dtype, 3000, 6), np.linspace(-1, 2, 997).astype(dtype.numpy)])
    numpy = {"sub": "subtract", "mul": "multiply", "div": "divide", "rem": "fmod"}.get(name, name)
    with np.errstate(all="ignore"):
        same_bits(
            array_function(lambda code, x, y: code.op2(name, x, y), [dtype] * 2, target)(x, y), getattr(np, numpy)(x, y)
        )


@pytest.mark.parametrize("dtype", [I32, I64])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "and", "or", "xor"])
def test_ints_wrap(target: Target, dtype: DType, name: str) -> None:
    x, y = numbers(dtype, 1000, 7), numbers(dtype, 1000, 8)
    numpy = {"sub": "subtract", "mul": "multiply"}.get(
        name, f"bitwise_{name}" if name in ("and", "or", "xor") else name
    )
    same_bits(
        array_function(lambda code, x, y: code.op2(name, x, y), [dtype] * 2, target)(x, y), getattr(np, numpy)(x, y)
    )


@pytest.mark.parametrize("dtype", [I32, I64])
def test_mul_high_and_shifts(target: Target, dtype: DType) -> None:
    x, y = numbers(dtype, 1000, 9), numbers(dtype, 1000, 10)
    width = dtype.bytes * 8
    mask = 2**width - 1
    high = [((int(a) & mask) * (int(b) & mask)) >> width for a, b in zip(x, y, strict=True)]
    high = np.array([h - 2**width if h >> (width - 1) else h for h in high], dtype.numpy)
    same_bits(array_function(lambda code, x, y: code.mul_high(x, y), [dtype] * 2, target)(x, y), high)
    logical = array_function(lambda code, x: code.op2("lshr", x, code.const(x.dtype, 7)), [dtype], target)(x)
    same_bits(logical, (x.view(f"u{dtype.bytes}") >> np.array(7, f"u{dtype.bytes}")).view(dtype.numpy))
    same_bits(array_function(lambda code, x: (x >> 5) ^ (x << 3), [dtype], target)(x), (x >> 5) ^ (x << 3))


def cast(x: float, dtype: DType) -> int:
    if math.isnan(x):
        return 0
    half = 2 ** (dtype.bytes * 8 - 1)
    return int(min(max(x, -half), half - 1)) if math.isfinite(x) else (half - 1 if x > 0 else -half)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("to", [I32, I64])
def test_float_to_int_saturates(target: Target, source: DType, to: DType) -> None:
    x = np.concatenate([specials(source), numbers(source, 2000, 11), np.linspace(-1e10, 1e10, 99).astype(source.numpy)])
    expected = np.array([cast(float(v), to) for v in x], to.numpy)
    same_bits(array_function(lambda code, x: code.convert(x, to), [source], target)(x), expected)


@pytest.mark.parametrize("source", list(DType))
@pytest.mark.parametrize("to", list(DType))
def test_other_conversions(target: Target, source: DType, to: DType) -> None:
    if source.is_float and to.is_int:
        pytest.skip("saturates: tested above")
    x = numbers(source, 2000, 12) if source is not BOOL else np.arange(100) % 3 == 0
    with np.errstate(all="ignore"):
        same_bits(array_function(lambda code, x: code.convert(x, to), [source], target)(x), x.astype(to.numpy))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", list(DType))
def test_comparisons_and_select(target: Target, dtype: DType, name: str) -> None:
    values = specials(dtype) if dtype.is_float else np.array([-2, -1, 0, 1, 2, 3]).astype(dtype.numpy)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    numpy = {
        "eq": "equal",
        "ne": "not_equal",
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
    }[name]
    holds = getattr(np, numpy)(x, y)
    same_bits(array_function(lambda code, x, y: code.compare(name, x, y), [dtype] * 2, target)(x, y), holds)

    def chosen(code: Code, x: S, y: S) -> S:
        return code.select(code.compare(name, x, y), x, y)

    same_bits(array_function(chosen, [dtype] * 2, target)(x, y), np.where(holds, x, y))


def test_bits_and_back(target: Target) -> None:
    x = np.concatenate([specials(F64), numbers(F64, 100, 13)])
    same_bits(array_function(lambda code, x: code.bits(x), [F64], target)(x), x.view("i8"))
    same_bits(array_function(lambda code, x: code.from_bits(code.bits(x) ^ (1 << 63)), [F64], target)(x), -x)

"""Reductions in the order of grammars/README.md, "Numbers", checked against that order written out in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphdsl.ops.op import Reduce
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType
from graphdsl.runtime import native, reducing
from tests.test_native_scalar import exact_fma, same_bits, specials


def reduction(name: str, *how: Any) -> Any:
    compute = OPS[name].compute
    assert isinstance(compute, Reduce)
    return reducing.reduction(compute, *how)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SIZES = (0, 1, 2, 31, 32, 33, 63, 100, 4095, 4096, 4097, 4128, 10_000)


def blocks(x: np.ndarray, add: Callable[[Any, Any], Any], start: float, step: Callable[..., Any] | None = None) -> Any:
    """The value that it defines: blocks of 4,096, 32 lanes, halves; then the same of the blocks' results."""
    if len(x) <= 4096:
        return one_block(x, add, start, step or add)
    results = [one_block(x[i : i + 4096], add, start, step or add) for i in range(0, len(x), 4096)]
    return blocks(np.array(results), add, start)


def one_block(x: np.ndarray, add: Callable[[Any, Any], Any], start: float, step: Callable[..., Any]) -> Any:
    lanes = np.full(32, start, x.dtype)
    for k in range(0, len(x), 32):
        part = x[k : k + 32]
        lanes[: len(part)] = step(lanes[: len(part)], part)
    half = 16
    while half:
        lanes = add(lanes[:half], lanes[half : 2 * half])
        half //= 2
    return lanes[0]


def total(x: np.ndarray) -> Any:
    return blocks(x.ravel(), np.add, 0)


def normal(dtype: DType, shape: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 1000).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", [F32, F64, I64])
@pytest.mark.parametrize("n", SIZES)
def test_sum_and_prod_of_a_vector(dtype: DType, n: int) -> None:
    x = normal(dtype, n)
    made = reduction("sum", dtype, 1, (0,))
    same_bits(np.array(made(x)), np.array(total(x)))
    same_bits(np.array(made(np.repeat(x, 3)[::3])), np.array(total(x)))
    same_bits(np.array(made(x[::-1])), np.array(total(x[::-1])))
    near_one = (1 + x / 1e5).astype(dtype.numpy)
    same_bits(np.array(reduction("prod", dtype, 1, (0,))(near_one)), np.array(blocks(near_one, np.multiply, 1)))


def test_sums_of_many_blocks() -> None:
    x = normal(F32, 4096 * 4096 + 5000)
    firsts = [total(x[i : i + 4096]) for i in range(0, len(x), 4096)]
    seconds = [total(np.array(firsts[i : i + 4096])) for i in range(0, len(firsts), 4096)]
    assert reduction("sum", F32, 1, (0,))(x) == total(np.array(seconds))


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize(
    "shape", [(5000, 75), (3, 4, 5), (7, 9), (10, 20, 30), (20, 30, 3), (2, 3, 4, 5), (300, 1), (1, 300)]
)
def test_sum_over_any_axes(dtype: DType, shape: tuple[int, ...]) -> None:
    x = normal(dtype, shape)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            if count == 0 and len(shape) > 2:
                continue
            kept = [a for a in range(len(shape)) if a not in axes]
            moved = x.transpose(*kept, *axes)
            expected = np.array([total(moved[i]) for i in np.ndindex(*moved.shape[: len(kept)])])
            result = reduction("sum", dtype, len(shape), axes)(x)
            same_bits(np.asarray(result, dtype.numpy).ravel(), expected.astype(dtype.numpy).ravel())
            turned = reduction("sum", dtype, len(shape), axes)(np.asfortranarray(x))
            same_bits(np.asarray(turned, dtype.numpy).ravel(), expected.astype(dtype.numpy).ravel())
            assert np.shape(reduction("sum", dtype, len(shape), axes, True)(x)) == tuple(
                1 if a in axes else d for a, d in enumerate(shape)
            )


@pytest.mark.parametrize("dtype", [F32, F64])
def test_dot_fuses_each_product(dtype: DType) -> None:
    def step(lanes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        fused = [exact_fma(float(x), float(y), float(z), dtype) for z, (x, y) in zip(lanes, pairs, strict=True)]
        return np.array(fused, dtype.numpy)

    for n in (0, 1, 33, 200, 4200):
        x, y = normal(dtype, n, 1), normal(dtype, n, 2)
        pairs = np.stack([x, y], 1) if n else np.zeros((0, 2), dtype.numpy)
        expected = blocks(pairs, np.add, 0, step)
        same_bits(np.array(native.dot(dtype)(x, y)), np.asarray(expected, dtype.numpy))
    a, v = normal(dtype, (90, 70), 3), normal(dtype, 70, 4)
    rows = np.array([native.dot(dtype)(row, v) for row in a])
    same_bits(native.dot(dtype)(a, v), rows)
    same_bits(native.dot(dtype)(np.asfortranarray(a), v), rows)
    same_bits(native.dot(dtype)(a[:, ::2], v[::2]), np.array([native.dot(dtype)(row[::2], v[::2]) for row in a]))


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes(dtype: DType, kind: str) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 31, 33, 100, 5000):
        x = rng.random(n) < 0.5 if dtype is BOOL else normal(dtype, n, n)
        assert reduction(kind, dtype, 1, (0,))(x) == getattr(x, kind)()
        columns = np.stack([x] * 50, 1)
        same_bits(reduction(kind, dtype, 2, (0,))(columns), getattr(columns, kind)(0))


@pytest.mark.parametrize("dtype", [F32, F64])
def test_extremes_order_zeros_and_propagate_nan(dtype: DType) -> None:
    kind = np.dtype(dtype.numpy).type
    zeros = np.array([-0.0, 0.0, -0.0], kind)
    assert not np.signbit(reduction("max", dtype, 1, (0,))(zeros))
    assert np.signbit(reduction("min", dtype, 1, (0,))(zeros))
    for place in (0, 40, 99):
        x = normal(dtype, 100)
        x[place] = np.nan
        assert np.isnan(reduction("max", dtype, 1, (0,))(x))
        assert reduction("argmin", dtype, 1, (0,))(x) == place
    assert reduction("argmax", dtype, 1, (0,))(np.array([-1, -0.0, 0.0, -2], kind)) == 1


@pytest.mark.parametrize("dtype", [F32, F64, I32, I64])
def test_argmax_and_argmin(dtype: DType) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(-5, 5, (40, 30, 7)).astype(dtype.numpy)
    for kind in ("argmax", "argmin"):
        numpy = getattr(np, kind)
        for axis in range(3):
            same_bits(reduction(kind, dtype, 3, (axis,))(x), numpy(x, axis))
        assert reduction(kind, dtype, 3, (0, 1, 2))(x) == numpy(x)
        assert reduction(kind, dtype, 3, (0, 1, 2))(np.asfortranarray(x)) == numpy(x)


def test_truth() -> None:
    for n in (0, 1, 40, 5000):
        for x in (np.zeros(n, bool), np.ones(n, bool), np.arange(n) == n - 1):
            assert reduction("any", BOOL, 1, (0,))(x) is bool(x.any())
            assert reduction("all", BOOL, 1, (0,))(x) is bool(x.all())


def test_lanes_start_at_plus_zero() -> None:
    assert not np.signbit(reduction("sum", F64, 1, (0,))(np.array([-0.0, -0.0])))
    assert not np.signbit(reduction("sum", F64, 0, ())(-0.0))


def test_special_values_in_columns() -> None:
    x = np.stack([specials(F64)] * 40, 1)
    with np.errstate(all="ignore"):
        rows = np.array([total(column) for column in x.T])
    same_bits(reduction("sum", F64, 2, (0,))(x), rows)

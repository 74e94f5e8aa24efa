"""Matrix products: chains of fused multiply-adds over blocks of 256, whatever the shape, the layout and the tile."""

from __future__ import annotations

import numpy as np
import pytest

from graphdsl.ops.types import F32, F64, I32, I64, DType
from graphdsl.runtime.native import matmul
from tests.test_native_scalar import exact_fma, same_bits

SHAPES = [(1, 3, 1), (5, 7, 17), (13, 300, 19), (7, 0, 5), (6, 513, 16), (0, 3, 4), (3, 4, 0), (2, 256, 33)]


def defined(a: np.ndarray, b: np.ndarray, dtype: DType) -> np.ndarray:
    """Element by element as grammars/README.md, "Numbers", says."""
    kind = np.dtype(dtype.numpy).type
    out = np.zeros((a.shape[0], b.shape[1]), kind)
    for i, j in np.ndindex(*out.shape):
        for start in range(0, a.shape[1], 256):
            chain = 0.0
            for k in range(start, min(start + 256, a.shape[1])):
                chain = float(exact_fma(float(a[i, k]), float(b[k, j]), chain, dtype))
            out[i, j] = kind(chain) if start == 0 else out[i, j] + kind(chain)
    return out


def normal(dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", SHAPES)
def test_as_defined_in_every_layout(dtype: DType, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = normal(dtype, (m, k), 1), normal(dtype, (k, n), 2)
    expected = defined(a, b, dtype)
    product = matmul(dtype, (), 1)
    same_bits(product(a, b), expected)
    same_bits(product(np.asfortranarray(a), np.asfortranarray(b)), expected)
    wide_a, wide_b = np.repeat(np.repeat(a, 2, 0), 3, 1), np.repeat(np.repeat(b, 2, 0), 2, 1)
    same_bits(product(wide_a[::2, ::3], wide_b[::2, ::2]), expected)
    same_bits(product(a[::-1], b[:, ::-1]), expected[::-1, ::-1])
    out = np.zeros((n, m), dtype.numpy)
    product(a, b, out=out.T)
    same_bits(out.T, expected)


@pytest.mark.parametrize("dtype", [F32, F64, I32, I64])
def test_a_part_of_a_product_is_the_product_of_the_part(dtype: DType) -> None:
    a, b = (normal(F64, s, 3) * 1000 for s in ((300, 700), (700, 300)))
    a, b = a.astype(dtype.numpy), b.astype(dtype.numpy)
    product = matmul(dtype, (), 1)
    whole = product(a, b)
    if dtype.is_float:
        np.testing.assert_allclose(whole, a @ b, rtol=1e-3, atol=1e3)
    else:
        same_bits(whole, a @ b)
    for rows in (slice(7, 8), slice(0, 5), slice(100, 300), slice(3, 250, 7)):
        for columns in (slice(0, 300), slice(33, 70), slice(299, 300)):
            same_bits(product(a[rows], b[:, columns]), whole[rows, columns])
    stacked = product(np.stack([a[:20], a[20:40]]), b)
    same_bits(stacked, np.stack([whole[:20], whole[20:40]]))


@pytest.mark.parametrize("dtype", [I32, I64])
def test_ints_wrap(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(4)
    a, b = (rng.integers(info.min, info.max, s).astype(dtype.numpy) for s in ((9, 300), (300, 21)))
    same_bits(matmul(dtype, (), 1)(a, b), a @ b)


@pytest.mark.parametrize("dtype", [F32, F64, I32, I64])
def test_guards(dtype: DType) -> None:
    zero, ones = np.zeros((5, 5), dtype.numpy), np.ones((5, 5), dtype.numpy)
    other = np.full((5, 5), np.inf, dtype.numpy) if dtype.is_float else ones
    if dtype.is_float:
        zero[2] = -0.0
    with np.errstate(all="ignore"):
        same_bits(matmul(dtype, (0,), 1)(zero, other), abs(zero))
        same_bits(matmul(dtype, (1,), 1)(other, zero), abs(zero))
        for at in np.ndindex(5, 5):
            one = zero.copy()
            one[at] = 1
            same_bits(matmul(dtype, (0,), 1)(one, other), matmul(dtype, (), 1)(one, other))
            same_bits(matmul(dtype, (1,), 1)(other, one), matmul(dtype, (), 1)(other, one))


def test_large_products_that_are_copied_to_the_heap() -> None:
    a, b = normal(F32, (517, 530), 5), normal(F32, (530, 1100), 6)
    product = matmul(F32, (), 1)
    whole = product(a, b)
    same_bits(product(a.T.copy().T, b), whole)
    same_bits(product(a[:6], b), whole[:6])
    same_bits(np.concatenate([product(a[:, :256], b[:256])[:4]]), product(a[:4, :256], b[:256]))


@pytest.mark.parametrize("dtype", [F32, F64, I32])
def test_any_shape_and_strides(dtype: DType) -> None:
    """Against the products of single rows and columns."""
    rng = np.random.default_rng(7)
    product = matmul(dtype, (), 1)
    for _ in range(40):
        m, n = rng.integers(1, 30, 2)
        k = int(rng.choice([1, 2, 5, 31, 255, 257, 600]))
        steps = rng.choice([1, 1, 1, 2, -1, -3], 4)
        whole_a, whole_b = (normal(F64, (3 * int(r), 3 * int(c)), 8) * 100 for r, c in ((m, k), (k, n)))
        a = whole_a.astype(dtype.numpy)[:: steps[0], :: steps[1]][:m, :k]
        b = whole_b.astype(dtype.numpy)[:: steps[2], :: steps[3]][:k, :n]
        if rng.random() < 0.3:
            a = np.asfortranarray(a)
        if rng.random() < 0.3:
            b = np.asfortranarray(b)
        expected = np.concatenate(
            [np.concatenate([product(a[i : i + 1], b[:, j : j + 1]) for j in range(n)], 1) for i in range(m)]
        )
        same_bits(product(a, b), expected)

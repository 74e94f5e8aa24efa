"""Random numbers: Philox against its published vectors, and that an element depends on nothing but its block."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from graphdsl.native.library import library
from graphdsl.ops.op import Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F32, F64, DType
from graphdsl.runtime.kernels import kernel
from graphdsl.runtime.state import Stream
from tests.test_native_scalar import same_bits


def draw(name: str, sizes: tuple[int, ...], dtype: DType, stream: Stream) -> np.ndarray:
    op = OPS[name]
    typing = op.typing(Setting(F64), (), {"sizes": sizes, "dtype": dtype})
    return kernel(op, (), typing.attrs or {})(stream)


def words(key: int, block: int) -> list[int]:
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)(library()["gdl.block"])
    found = (ctypes.c_uint32 * 4)()
    call(key, block, found)
    return list(found)


def rounds(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """Philox 4x32-10 as its authors describe it."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        left, right = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & 0xFFFFFFFF, (left >> 32) ^ c3 ^ k1, left & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def test_published_vectors() -> None:
    # Random123, kat_vectors
    assert rounds((0,) * 4, (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = 0xFFFFFFFF
    assert rounds((full,) * 4, (full, full)) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert words(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("key", [0, 1, 2**32 + 5, 2**64 - 1])
@pytest.mark.parametrize("block", [0, 1, 2**32 - 1, 2**32, 2**63 + 7, 2**64 - 1])
def test_blocks(key: int, block: int) -> None:
    low = 0xFFFFFFFF
    assert words(key, block) == rounds((block & low, block >> 32, 0, 0), (key & low, key >> 32))


@pytest.mark.parametrize("name", ["uniform", "normal"])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_an_element_depends_on_its_block_alone(name: str, dtype: DType) -> None:
    whole = draw(name, (1000,), dtype, Stream(3, 2**32 - 500))
    assert whole.dtype == np.dtype(dtype.numpy)
    for start, n in ((0, 1), (1, 7), (499, 3), (500, 33), (999, 1)):
        same_bits(draw(name, (n,), dtype, Stream(3, 2**32 - 500 + start)), whole[start : start + n])
    stream = Stream(3, 2**32 - 500)
    same_bits(draw(name, (10, 50), dtype, stream).ravel(), whole[:500])
    assert stream.counter == 2**32
    single = draw(name, (), dtype, stream)
    assert single == whole[500]
    assert type(single) is (float if dtype is F64 else np.float32)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_distributions(dtype: DType) -> None:
    u = draw("uniform", (100_000,), dtype, Stream(1))
    assert 0 <= u.min() < 1e-3
    assert 1 - 1e-3 < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    z = draw("normal", (100_000,), dtype, Stream(1))
    assert abs(z.mean()) < 0.02
    assert abs(z.std() - 1) < 0.01
    assert np.isfinite(z).all()

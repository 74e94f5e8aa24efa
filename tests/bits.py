"""Prints a digest of what every kernel makes of the same numbers: run with other targets and thread counts, it must
not change.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from graphdsl.native.inventory import arity, elementwise_entries
from graphdsl.ops.op import Draw, Elementwise, Op, Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Type
from graphdsl.runtime.kernels import kernel
from graphdsl.runtime.state import Stream
from graphdsl.source.diagnostic import Fault

REDUCED = ((5000,), (70, 33), (3, 4, 5), (9000, 5))
PRODUCTS = (
    ((13, 300), (300, 19)),
    ((70, 64), (64, 40)),
    ((40, 9), (9,)),
    ((9,), (9, 40)),
    ((5, 7, 8), (8, 3)),
    ((300,), (300,)),
)


def numbers(dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Ordinary values, some zeros of both signs, and some of every exponent."""
    rng = np.random.default_rng(seed)
    if dtype is BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_int:
        wide = rng.integers(-(2**31), 2**31 - 1, shape)
        return np.where(rng.random(shape) < 0.5, wide, wide % 7 + 1).astype(dtype.numpy)
    x = rng.normal(size=shape) * 4
    where = rng.random(shape)
    x = np.where(where < 0.05, 0.0, np.where(where < 0.1, -0.0, x))
    with np.errstate(all="ignore"):
        return np.where(where > 0.95, x * np.exp2(rng.integers(-140, 127, shape)), x).astype(dtype.numpy)


def digest(x: Any) -> str:
    """Of the bits, with all nan alike."""
    x = np.ascontiguousarray(x)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.asarray(np.nan, x.dtype), x)
    return hashlib.sha256(x.tobytes() + str(x.shape).encode()).hexdigest()[:16]


def made(op: Op, *types: Type, **attrs: Any) -> Any:
    typing = op.typing(Setting(F64), types, attrs)
    return kernel(op, types, attrs if typing.attrs is None else typing.attrs)


def without_faults(op: Op, attrs: dict[str, Any], xs: list[np.ndarray]) -> list[np.ndarray]:
    """The elements of these vectors for which an elementwise op does not fail, repeated to as many as there were."""
    if not op.faults:
        return xs
    run = made(op, *(Type(DType.of(x)) for x in xs), **attrs)
    kept = []
    for i, numbers in enumerate(zip(*(x.tolist() for x in xs), strict=True)):
        with suppress(Fault):
            run(*numbers)
            kept.append(i)
    where = np.resize(kept, len(xs[0]))
    return [x[where] for x in xs]


def elementwise() -> Iterator[tuple[str, Any]]:
    for entry in elementwise_entries():
        name = entry.name
        op, compute = entry.op, entry.op.compute
        assert isinstance(compute, Elementwise)
        assert arity(op) == len(entry.operands)
        run = made(op, *(Type(d, (999,)) for d in entry.operands), **dict(entry.attrs))
        xs = without_faults(op, dict(entry.attrs), [numbers(d, (999,), i) for i, d in enumerate(entry.operands)])
        yield name, run(*xs)
        yield f"{name} strided", run(*(x[::-2] for x in xs))
        yield f"{name} numbers", np.array([run(*(x[i : i + 1] for x in xs))[0] for i in range(0, 99, 9)])


def reductions() -> Iterator[tuple[str, Any]]:
    for kind, dtypes in (
        ("sum", (F32, F64, I64)),
        ("prod", (F32, F64, I64)),
        ("max", tuple(DType)),
        ("argmin", (F32, I32)),
    ):
        for dtype in dtypes:
            for shape in REDUCED:
                x = numbers(dtype, shape, 3)
                if kind == "prod" and dtype.is_float:
                    x = np.where(abs(x) < 0.1, 1, x / 4).astype(x.dtype)
                for axis in (None, *range(len(shape))):
                    yield f"{kind} {dtype.value} {shape} {axis}", made(OPS[kind], Type(dtype, shape), axis=axis)(x)
                yield f"{kind} {dtype.value} {shape} T", made(OPS[kind], Type(dtype, shape[::-1]), axis=0)(x.T)


def products() -> Iterator[tuple[str, Any]]:
    for dtype in (F32, F64, I32, I64):
        for left, right in PRODUCTS:
            a, b = numbers(dtype, left, 4), numbers(dtype, right, 5)
            run = made(OPS["matmul"], Type(dtype, left), Type(dtype, right))
            yield f"@ {dtype.value} {left} {right}", run(a, b)
            yield f"@ {dtype.value} {left} {right} F", run(np.asfortranarray(a), np.asfortranarray(b))


def draws() -> Iterator[tuple[str, Any]]:
    for op in OPS.values():
        if isinstance(op.compute, Draw):
            for dtype in (F32, F64):
                yield f"{op.name} {dtype.value}", made(op, sizes=(1001,), dtype=dtype)(Stream(7, 2**40))


def large() -> Iterator[tuple[str, Any]]:
    """Enough work for several threads."""
    a, b = numbers(F32, (300, 400), 6), numbers(F32, (400, 151), 7)
    yield "@ large", made(OPS["matmul"], Type(F32, a.shape), Type(F32, b.shape))(a, b)
    yield "@ wide", made(OPS["matmul"], Type(F32, b.T.shape), Type(F32, a.T.shape))(b.T, a.T)
    yield "@ stack", made(OPS["matmul"], Type(F32, (6, 300, 400)), Type(F32, b.shape))(np.stack([a] * 6), b)


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        for part in (elementwise, reductions, products, draws, large):
            for name, value in part():
                print(name, digest(value))
    sys.stdout.flush()

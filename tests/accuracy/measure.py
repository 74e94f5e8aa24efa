"""Errors of math functions in ulps: against mpmath, and of each K-th of all f32 values against the f64 function."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import mpmath
import numpy as np

from graphdsl.ops.op import Elementwise
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F32, F64, DType
from tests.accuracy.cases import CASES, Case
from tests.trial import array_function

_PRECISION = {F32: (24, -149), F64: (53, -1074)}
_MOST = {
    F32: mpmath.mpf(2) ** 128 * (1 - mpmath.mpf(2) ** -25),
    F64: mpmath.mpf(2) ** 1024 * (1 - mpmath.mpf(2) ** -54),
}


@cache
def compiled(name: str, dtype: DType) -> Any:
    """The op's body over arrays."""
    compute, case = OPS[name].compute, CASES[name]
    assert isinstance(compute, Elementwise)
    first = next(iter(case.ranges))
    count = len(first) if isinstance(first, tuple) else 1
    return array_function(partial(compute.body, **dict(case.attrs)), [dtype] * count)


def samples(case: Case, dtype: DType, n: int, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """`n` arguments of each range, rounded to the dtype."""
    random = np.random.default_rng(seed)
    for ranges in case.ranges:
        each = ranges if isinstance(ranges, tuple) else (ranges,)
        with np.errstate(over="ignore"):
            yield tuple(points(random, n).astype(dtype.numpy) for points in each)


def error(got: float, want: Any, dtype: DType, least: float = 0.0) -> float:
    """How far `got` is from an mpmath number, in units of the last place there, or at `least` if that is larger."""
    if mpmath.isnan(want) or np.isnan(got):
        return 0.0 if mpmath.isnan(want) and np.isnan(got) else np.inf
    if abs(want) >= _MOST[dtype]:
        return 0.0 if np.isinf(got) and (got > 0) == (want > 0) else np.inf
    if np.isinf(got):
        return np.inf
    bits, lowest = _PRECISION[dtype]
    size = max(abs(want), least)
    exponent = max(mpmath.frexp(size)[1] - bits, lowest) if size else lowest
    return float(abs(mpmath.mpf(float(got)) - want) / mpmath.mpf(2) ** exponent)


def errors(name: str, dtype: DType, n: int, seed: int = 0) -> Iterator[tuple[float, tuple[float, ...]]]:
    """The error of each sample, with its arguments."""
    function, case = compiled(name, dtype), CASES[name]
    with mpmath.workprec(300), np.errstate(all="ignore"):
        for arguments in samples(case, dtype, n, seed):
            results = function(*arguments)
            for *xs, got in zip(*arguments, results, strict=True):
                plain = tuple(float(x) for x in xs)
                if all(x != 0 and np.isfinite(x) for x in plain):  # the others have tests of their own
                    yield error(got, _reference(case, plain), dtype), plain


def _reference(case: Case, xs: tuple[float, ...]) -> Any:
    try:
        value = case.reference(*map(mpmath.mpf, xs))
    except (ZeroDivisionError, ValueError):
        return mpmath.nan
    return mpmath.nan if isinstance(value, mpmath.mpc) else value


def errors_everywhere(name: str, every: int) -> tuple[float, float]:
    """The greatest error of the f32 function of one argument, and where, against the f64 function."""
    narrow, wide = compiled(name, F32), compiled(name, F64)
    worst, place, block = 0.0, 0.0, every << 22
    with np.errstate(all="ignore"):
        for start in range(0, 1 << 32, block):
            x = np.arange(start, min(start + block, 1 << 32), every, dtype=np.uint32).view(np.float32)
            want, got = wide(x.astype(np.float64)), narrow(x)
            unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(want == 0, 1.0, want))[1] - 24, -149))
            off = np.abs(got - want) / unit
            same = (np.isnan(got) & np.isnan(want)) | (got == want.astype(np.float32))
            off = np.where(same, np.where(np.isfinite(off), off, 0.0), np.where(np.isfinite(off), off, np.inf))
            i = int(np.argmax(off))
            if off[i] > worst:
                worst, place = float(off[i]), float(x[i])
    return worst, place


def nanoseconds(name: str, dtype: DType) -> float:
    """The time an element takes, over an array in cache, by one thread."""
    function = compiled(name, dtype)
    random = np.random.default_rng(0)
    low = 1.1 if name == "acosh" else 0.1
    arguments = [random.uniform(low, low + 0.8, 1 << 13).astype(dtype.numpy) for _ in range(function.nin)]
    out = function(*arguments)
    best = np.inf
    for _ in range(100):
        start = time.perf_counter()
        function(*arguments, out)
        best = min(best, time.perf_counter() - start)
    return float(best) / len(out) * 1e9

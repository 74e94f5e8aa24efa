"""Random draws of run-time values from the stream of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.sizes import run_sizes
from graphdsl.ops.type_rules import MOST_ELEMENTS
from graphdsl.ops.types import F64, DType, wrap64
from graphdsl.runtime import native

Kernel = Callable[..., Any]


def kernel(op: Op, dtype: DType, attrs: Attrs) -> Kernel:
    """The function of the stream (and of sizes that only the run knows)."""
    sizes = tuple(attrs["sizes"])
    fill, kind = native.draw(op, dtype), np.dtype(dtype.numpy)
    if not sizes:
        return _single(fill, kind, float if dtype is F64 else kind.type)
    if len(sizes) == 1 and isinstance(sizes[0], int) and 0 <= sizes[0] <= MOST_ELEMENTS:
        return _vector(fill, kind, sizes[0])

    def draw(stream: Any, *operands: int) -> Any:
        shape = run_sizes(sizes, operands)
        out = np.empty(shape, kind)
        fill(wrap64(stream.key), wrap64(stream.take(math.prod(shape))), out.reshape(-1))
        return out

    return draw


def _vector(fill: Kernel, kind: Any, size: int) -> Kernel:
    def draw(stream: Any) -> Any:
        return fill(wrap64(stream.key), wrap64(stream.take(size)), np.empty(size, kind))

    return draw


def _single(fill: Kernel, kind: Any, make: Callable[[Any], Any]) -> Kernel:
    def draw(stream: Any) -> Any:
        return make(fill(wrap64(stream.key), wrap64(stream.take(1)), np.empty(1, kind))[0])

    return draw

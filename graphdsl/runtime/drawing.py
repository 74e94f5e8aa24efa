"""Random draws of run-time values from the stream of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdsl.ops.creation import run_sizes
from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.types import F64, DType
from graphdsl.runtime import native
from graphdsl.runtime.python_code import wrap64


def kernel(op: Op, dtype: DType, attrs: Attrs) -> Callable[..., Any]:
    """The function of the stream (and of sizes that only the run knows)."""
    sizes, name = tuple(attrs["sizes"]), dtype.numpy
    fill = native.draw(op, dtype)
    if not sizes:
        make: Callable[[Any], Any] = float if dtype is F64 else np.float32

        def single(stream: Any) -> Any:
            out = np.empty(1, name)
            fill(wrap64(stream.key), wrap64(stream.take(1)), out)
            return make(out[0])

        return single

    def draw(stream: Any, *operands: int) -> Any:
        shape = run_sizes(sizes, operands)
        out = np.empty(shape, name)
        fill(wrap64(stream.key), wrap64(stream.take(math.prod(shape))), out.reshape(-1))
        return out

    return draw

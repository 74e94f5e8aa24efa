"""What the kernel library calls what it exports. (Nothing here needs llvmlite: eager mode asks for names alone.)

Loops are called as NumPy calls them, `loop(operands, dims, steps, description)`; each description belongs to one loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.ops.types import DType

ELEMENTWISE_LOOP = "gdl.loop"
REDUCE_LOOP = "gdl.reduce_loop"
SEARCH_LOOP = "gdl.search_loop"
PRODUCT_LOOP = "gdl.gemm_loop"
RECORD = "gdl.record"


def description(kind: str, dtype: DType, rank: int) -> str:
    """The description of a reduction over `rank` axes (for `REDUCE_LOOP`; of `max` and `min` also for `SEARCH_LOOP`)."""
    return f"gdl.{kind}.{dtype.value}.rank{rank}"


def product(dtype: DType, guard: int | None = None) -> str:
    """The description of a matrix product."""
    return f"gdl.gemm.{dtype.value}" + ("" if guard is None else f".guard{guard}")


def call_name(operands: Sequence[DType], result: DType) -> str:
    """The function for kernels of this signature."""
    return f"gdl.call.{'.'.join(d.value for d in operands)}.{result.value}"

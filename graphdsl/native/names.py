"""What the kernel library calls what it exports. (Nothing here needs llvmlite: eager mode asks for names alone.)

Loops are called as NumPy calls them, `loop(operands, dims, steps, description)`; each description belongs to one loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from graphdsl.ops.types import DType

ELEMENTWISE_LOOP = "gdl.loop"
REDUCE_LOOP = "gdl.reduce_loop"
SEARCH_LOOP = "gdl.search_loop"
PRODUCT_LOOP = "gdl.gemm_loop"
GUARDED_PRODUCT_LOOP = "gdl.gemm_guarded_loop"
RECORD = "gdl.record"

MOST_AXES = 3  # that a reduction has a loop for; more are packed into one first
WORTH_SHARING = 1 << 18  # multiplications, or elements read: some 5 µs on one thread; less is not shared among threads


def description(kind: str, dtype: DType, rank: int) -> str:
    """The description of a reduction over `rank` axes (for `REDUCE_LOOP`; of `max` and `min` also for `SEARCH_LOOP`)."""
    return f"gdl.{kind}.{dtype.value}.rank{rank}"


def product(dtype: DType) -> str:
    """The description of a matrix product."""
    return f"gdl.gemm.{dtype.value}"


def simple(kind: str, dtype: DType) -> str:
    """The reduction of adjoining elements to one, for compiled programs."""
    return f"gdl.{kind}.{dtype.value}"


def kernel(name: str) -> str:
    """The kernel of an entry of the inventory."""
    return f"gdl.kernel.{name}"


def kernel_description(name: str) -> str:
    """The description of that kernel, for `ELEMENTWISE_LOOP` and for the function of its signature."""
    return f"{kernel(name)}.info"


def draw(name: str) -> str:
    """The loop of a distribution."""
    return f"gdl.draw.{name}"


class ProductRecord(IntEnum):
    """Words of what `GUARDED_PRODUCT_LOOP` gets in place of a description."""

    DESCRIPTION = 0
    GUARD = 1  # bits: where all of the left operand (1), of the right one (2) is 0, so is the result
    SHARE = 2  # address of a function that shares the product among threads, see native/support/parts.py; 0: none
    CONTEXT = 3  # which that function is given


def call_name(operands: Sequence[DType], result: DType) -> str:
    """The function for kernels of this signature."""
    return f"gdl.call.{'.'.join(d.value for d in operands)}.{result.value}"

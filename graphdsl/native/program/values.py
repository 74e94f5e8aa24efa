"""What a value of the graph is in native code, and how it is laid out in words.

Scalars are one LLVM value, tensors a place in a buffer with their sizes (row-major, adjoining), tapes
a record in their maker's frame with local copies of its words, which LLVM keeps in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I64, POINTER, int64
from graphdsl.native.scalar import register_type
from graphdsl.ops.scalar import S
from graphdsl.ops.types import DType, Type


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """Elements at `data`, in the buffer with the header `owner`."""

    dtype: DType
    data: ir.Value
    owner: ir.Value
    sizes: tuple[ir.Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Tape:
    """The record, and the local words `top` and `end` of what is written."""

    record: ir.Value
    top: ir.Value
    end: ir.Value


@dataclass(frozen=True, eq=False, slots=True)
class Shadow:
    """The record of a shadow: its entries are on a stack like a tape's."""

    record: ir.Value


Native = Any  # ir.Value (a scalar) | Tensor | Tape | Shadow


def ref(x: S) -> Any:
    """The LLVM value of a scalar of bodies, which know nothing of LLVM."""
    return x.ref


def parts(value: Native) -> list[ir.Value]:
    """The LLVM values that `value` consists of."""
    match value:
        case Tensor(data=data, owner=owner, sizes=sizes):
            return [data, owner, *sizes]
        case Tape(record=record) | Shadow(record=record):
            return [record]
        case _:
            return [value]


def part_types(type: Type) -> list[Any]:
    """The LLVM types of the parts of a scalar or tensor."""
    if not type.shape:
        return [register_type(type.dtype)]
    return [POINTER, POINTER, *[I64] * type.rank]


def whole(type: Type, given: list[ir.Value]) -> Native:
    """The value made of `parts`. Sizes that the type knows become constants."""
    if not type.shape:
        return given[0]
    data, owner, *sizes = given
    return Tensor(type.dtype, data, owner, known_sizes(type, sizes))


def known_sizes(type: Type, sizes: list[ir.Value]) -> tuple[ir.Value, ...]:
    """`sizes`, with those that the type states as constants."""
    return tuple(int64(d) if isinstance(d, int) else s for d, s in zip(type.shape, sizes, strict=True))

"""Dtypes, dims and tensor types, and the rules on them that every part asks: promotion, joins, wrapping of ints.

Tuples, strings and functions are not here: they exist only while a program is checked.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from graphdsl.source.record import dataclass


class DType(enum.Enum):
    """The element types, in order of promotion."""

    BOOL = "bool"
    I32 = "i32"
    I64 = "i64"
    F32 = "f32"
    F64 = "f64"

    @property
    def is_float(self) -> bool:
        return self in (DType.F32, DType.F64)

    @property
    def is_int(self) -> bool:
        return self in (DType.I32, DType.I64)

    @property
    def bytes(self) -> int:
        return {"bool": 1, "i32": 4, "i64": 8, "f32": 4, "f64": 8}[self.value]

    @property
    def numpy(self) -> str:
        """The name NumPy has for it."""
        return {"bool": "bool", "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}[self.value]

    @classmethod
    def of(cls, array: Any) -> DType:
        """The one that a NumPy array has (it must be one of these)."""
        return next(d for d in cls if d.numpy == array.dtype.name)


BOOL, I32, I64, F32, F64 = DType


class Size:
    """A size known only as the program runs. Compared by identity: dims that share one are equal.

    `name` is the user's (`n` of `f32[n, 3]`) where there is one; `why` says where the size came from.
    """

    __slots__ = ("name", "why")

    def __init__(self, name: str | None = None, why: str | None = None) -> None:
        self.name = name
        self.why = why

    def __repr__(self) -> str:
        return self.name or "_"

    def apart(self) -> Size:
        """Another size, which messages tell as this one."""
        return Size(self.name, self.why)


Dim = int | Size


@dataclass(frozen=True, slots=True)
class Type:
    """A tensor type. A weak value (grammars/README.md, "Conversions") is held as i64 or f64 and marked."""

    dtype: DType
    shape: tuple[Dim, ...] = ()
    weak: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    def with_shape(self, shape: tuple[Dim, ...]) -> Type:
        return replace(self, shape=shape)

    def with_sizes(self, other: Callable[[Size], Dim]) -> Type:
        """The type with other dims in the place of those known only as the program runs."""
        return self.with_shape(tuple(d if isinstance(d, int) else other(d) for d in self.shape))

    def with_dtype(self, dtype: DType) -> Type:
        return Type(dtype, self.shape)

    def __str__(self) -> str:
        dims = ", ".join(str(d) for d in self.shape)
        return f"{self.dtype.value}[{dims}]" if self.shape else self.dtype.value


SCALAR_INT = Type(I64)


def join_dtypes(types: Sequence[Type], default_float: DType) -> tuple[DType, bool]:
    """Dtype and weakness of what joins `types` (grammars/README.md, "Conversions"): operands, list items, paths.

    Only bools join to bool; an op that computes on bools turns that into i64 itself.
    A weak float beside a strong int is `default_float`.
    """
    strong = [t.dtype for t in types if not t.weak and t.dtype is not BOOL]
    weak = [t.dtype for t in types if t.weak]
    if not strong:
        return (_widest(weak), True) if weak else (BOOL, False)
    widest = _widest(strong)
    if F64 in weak and not widest.is_float:
        return default_float, False
    return widest, False


def converts_freely(source: Type, target: DType) -> bool:
    """Whether a conversion loses nothing, as decided by type (grammars/README.md, "Conversions")."""
    if source.weak:
        return target.is_float or (source.dtype is I64 and target.is_int)
    return source.dtype is target or target in _LOSSLESS[source.dtype]


_LOSSLESS = {BOOL: {I32, I64, F32, F64}, I32: {I64, F64}, I64: {F64}, F32: {F64}, F64: set[DType]()}


_ORDER = {dtype: i for i, dtype in enumerate(DType)}


def _widest(dtypes: Sequence[DType]) -> DType:
    return max(dtypes, key=_ORDER.__getitem__)


# ---- ints ----------------------------------------------------------------------------------------------


def wrap32(x: int) -> int:
    """An int modulo 2**32, as i32."""
    return x if -0x80000000 <= x <= 0x7FFFFFFF else (x + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def wrap64(x: int) -> int:
    """An int modulo 2**64, as i64."""
    if -0x8000000000000000 <= x <= 0x7FFFFFFFFFFFFFFF:
        return x
    return (x + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


WRAP = {I32: wrap32, I64: wrap64}

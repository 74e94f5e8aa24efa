"""Measuring bodies without compiling them: how many steps one has, and whether NumPy could take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType
from graphdsl.source.diagnostic import FaultKind


class Steps(Code):
    """Counts. `native` is set by what NumPy cannot do, or not to the same bits."""

    def __init__(self) -> None:
        self.count = 0
        self.native = False
        self.fails = False

    def _step(self, dtype: DType) -> S:
        self.count += 1
        return S(self, dtype, None)

    def const(self, dtype: DType, value: float | int | bool) -> S:
        return S(self, dtype, None)

    def op2(self, name: str, x: S, y: S) -> S:
        self.native |= name == "rem" and x.dtype.is_float
        return self._step(x.dtype)

    def compare(self, name: str, x: S, y: S) -> S:
        return self._step(BOOL)

    def op1(self, name: str, x: S) -> S:
        return self._step(x.dtype)

    def fma(self, x: S, y: S, z: S) -> S:
        self.native = True
        return self._step(x.dtype)

    def select(self, condition: S, x: S, y: S) -> S:
        return self._step(x.dtype)

    def convert(self, x: S, dtype: DType) -> S:
        self.native |= x.dtype.is_float and dtype.is_int
        return self._step(dtype) if x.dtype is not dtype else x

    def bits(self, x: S) -> S:
        return self._step(I32 if x.dtype is F32 else I64)

    def from_bits(self, x: S) -> S:
        return self._step(F32 if x.dtype is I32 else F64)

    def mul_high(self, x: S, y: S) -> S:
        self.native = True
        return self._step(x.dtype)

    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        self.count += 1
        self.fails = True


@dataclass(frozen=True)
class Measure:
    """What is known of a body: its number of steps, whether only native code can take them, whether one can fail, and
    the dtype of its result."""

    count: int
    native: bool
    fails: bool
    dtype: DType


def measure(body: Callable[..., S], operands: Sequence[DType]) -> Measure:
    """The measure of a body over operands of these dtypes."""
    steps = Steps()
    result = body(steps, *(S(steps, d, None) for d in operands))
    return Measure(steps.count, steps.native, steps.fails, result.dtype)

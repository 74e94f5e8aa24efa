"""The notation in which op entries say what they compute, one element at a time.

A body is a Python function over `S` values; running it against a `Code` writes straight-line code
(LLVM IR in `graphdsl.native.scalar`). A NumPy ufunc and a fused kernel come from the same body. Bodies
have no loops and no branches (but `rarely`): both sides of a `select` are computed. Arithmetic on `S` is IEEE 754
(floats) or wraps (ints); nothing is contracted, `fma` stands where it is meant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from graphdsl.ops.types import DType
from graphdsl.source.diagnostic import FaultKind


class Code(ABC):
    """Writes scalar code. Every operand of one call has one dtype unless said otherwise."""

    @abstractmethod
    def const(self, dtype: DType, value: float | int | bool) -> S: ...

    @abstractmethod
    def op2(self, name: str, x: S, y: S) -> S:
        """add sub mul div (floats: IEEE; ints: wrap; int div is `sdiv`, the caller excludes 0 and MIN/-1) rem,
        and or xor shl lshr ashr (ints, bools), copysign."""

    @abstractmethod
    def compare(self, name: str, x: S, y: S) -> S:
        """eq ne lt le gt ge → bool; with a NaN all are false but `ne`."""

    @abstractmethod
    def op1(self, name: str, x: S) -> S:
        """neg (flips the sign bit of a float) not abs sqrt floor ceil trunc rint (to even)."""

    @abstractmethod
    def fma(self, x: S, y: S, z: S) -> S:
        """`x * y + z`, rounded once."""

    @abstractmethod
    def select(self, condition: S, x: S, y: S) -> S: ...

    @abstractmethod
    def convert(self, x: S, dtype: DType) -> S:
        """The language's cast: float to int truncates, saturates, NaN is 0; int to int wraps; to bool is `x != 0`."""

    def rarely(self, condition: S, exact: Callable[..., S], usual: S, *xs: S) -> S:
        """`select(condition, exact(code, *xs), usual)`, where the condition seldom holds and `exact` is long.

        Compiled code has `exact` once, and calls it where a lane needs it: so it is a function of a module, or a
        `partial` of one whose arguments are named by `str`, and uses nothing but what it is given.
        """
        return self.select(condition, exact(self, *xs), usual)

    @abstractmethod
    def bits(self, x: S) -> S:
        """A float's bits as the int of its width."""

    @abstractmethod
    def from_bits(self, x: S) -> S:
        """The float of an int's width with those bits."""

    @abstractmethod
    def mul_high(self, x: S, y: S) -> S:
        """The upper half of the unsigned product of two i64 or two i32."""

    @abstractmethod
    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        """Record a fault for this element where `condition` holds (the first in row-major order counts)."""


class S:
    """A scalar in the code being written. Python numbers beside it become constants of its dtype."""

    __slots__ = ("code", "dtype", "ref")

    def __init__(self, code: Code, dtype: DType, ref: object) -> None:
        self.code = code
        self.dtype = dtype
        self.ref: Any = ref  # what the `Code` knows it by

    def _lift(self, x: S | float | int | bool) -> S:
        return x if isinstance(x, S) else self.code.const(self.dtype, x)

    def __add__(self, y: S | float) -> S:
        return self.code.op2("add", self, self._lift(y))

    def __radd__(self, x: float) -> S:
        return self.code.op2("add", self._lift(x), self)

    def __sub__(self, y: S | float) -> S:
        return self.code.op2("sub", self, self._lift(y))

    def __rsub__(self, x: float) -> S:
        return self.code.op2("sub", self._lift(x), self)

    def __mul__(self, y: S | float) -> S:
        return self.code.op2("mul", self, self._lift(y))

    def __rmul__(self, x: float) -> S:
        return self.code.op2("mul", self._lift(x), self)

    def __truediv__(self, y: S | float) -> S:
        return self.code.op2("div", self, self._lift(y))

    def __rtruediv__(self, x: float) -> S:
        return self.code.op2("div", self._lift(x), self)

    def __neg__(self) -> S:
        return self.code.op1("neg", self)

    def __abs__(self) -> S:
        return self.code.op1("abs", self)

    def __and__(self, y: S | int | bool) -> S:
        return self.code.op2("and", self, self._lift(y))

    def __or__(self, y: S | int | bool) -> S:
        return self.code.op2("or", self, self._lift(y))

    def __xor__(self, y: S | int | bool) -> S:
        return self.code.op2("xor", self, self._lift(y))

    def __invert__(self) -> S:
        return self.code.op1("not", self)

    def __lshift__(self, y: S | int) -> S:
        return self.code.op2("shl", self, self._lift(y))

    def __rshift__(self, y: S | int) -> S:
        """Arithmetic; `lshr` is `code.op2("lshr", …)`."""
        return self.code.op2("ashr", self, self._lift(y))

    def __lt__(self, y: S | float) -> S:
        return self.code.compare("lt", self, self._lift(y))

    def __le__(self, y: S | float) -> S:
        return self.code.compare("le", self, self._lift(y))

    def __gt__(self, y: S | float) -> S:
        return self.code.compare("gt", self, self._lift(y))

    def __ge__(self, y: S | float) -> S:
        return self.code.compare("ge", self, self._lift(y))

    def eq(self, y: S | float) -> S:
        return self.code.compare("eq", self, self._lift(y))

    def ne(self, y: S | float) -> S:
        return self.code.compare("ne", self, self._lift(y))


class Reader(Protocol):
    """An operand of a pointwise op: its element at a place, and its sizes, as code."""

    @property
    def dtype(self) -> DType: ...

    @property
    def rank(self) -> int: ...

    def at(self, place: tuple[S, ...]) -> S:
        """The element at `place` (one i64 an axis)."""

    def size(self, axis: int) -> S:
        """The length of an axis, an i64."""

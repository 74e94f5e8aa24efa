"""Short bodies of ops as Python: over arrays by NumPy's functions, over single numbers by Python's own arithmetic.

Only what has the same bits as native code: arithmetic that IEEE 754 defines, comparisons, copies. Faults are found in
row-major order: so this is also how eager mode finds out where a native kernel failed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, WRAP, DType, wrap32
from graphdsl.runtime.numbers import NUMBERS
from graphdsl.source.diagnostic import Fault, FaultKind

_INT_OF, _FLOAT_OF = {F32: I32, F64: I64}, {I32: F32, I64: F64}
_UFUNCS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "shl": "left_shift",
    "ashr": "right_shift",
    "copysign": "copysign",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "not": "invert",
    "abs": "absolute",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class _Text(Code):
    """Writes one line a step; `names` holds what the lines refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}

    def step(self, dtype: DType, expression: str) -> S:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return S(self, dtype, name)

    def bound(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def numpy(self, name: str) -> str:
        """The name of a function of NumPy."""
        self.names[name] = getattr(np, name)
        return name

    def fma(self, x: S, y: S, z: S) -> S:
        raise NotImplementedError("a fused multiply-add is native")

    def mul_high(self, x: S, y: S) -> S:
        raise NotImplementedError("a long product is native")

    @abstractmethod
    def failing(self, condition: S) -> str:
        """The expression for: does it hold anywhere?"""

    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        given = ", ".join(str(x.ref) for x in (condition, *numbers))
        stop = self.bound(_stop)
        self.lines.append(f"if {self.failing(condition)}: {stop}({self.bound(kind)}, {given})")


def _stop(kind: FaultKind, condition: Any, *numbers: Any) -> None:
    """Fails with the numbers of the first element in row-major order."""
    at, *rest = np.broadcast_arrays(condition, *numbers)
    place = int(np.argmax(at))
    raise Fault(kind, *(int(x.flat[place]) for x in rest))


# ---- arrays -------------------------------------------------------------------------------------------


class _Arrays(_Text):
    """Over arrays (and numbers beside them), by NumPy's functions."""

    def const(self, dtype: DType, value: float | int | bool) -> S:
        return S(self, dtype, self.bound(_number(dtype, value)))

    def op2(self, name: str, x: S, y: S) -> S:
        if name == "lshr":
            unsigned = self.bound(np.dtype(f"u{x.dtype.bytes}"))
            signed = self.bound(np.dtype(x.dtype.numpy))
            shifted = (
                f"{self.numpy('right_shift')}(asarray({x.ref}).view({unsigned}), asarray({y.ref}).view({unsigned}))"
            )
            self.numpy("asarray")
            return self.step(x.dtype, f"asarray({shifted}).view({signed})")
        if x.dtype.is_int and name in ("div", "rem"):
            return self.step(x.dtype, f"{self.bound(_truncated[name])}({x.ref}, {y.ref})")
        return self.step(x.dtype, f"{self.numpy(_UFUNCS[name])}({x.ref}, {y.ref})")

    def compare(self, name: str, x: S, y: S) -> S:
        return self.step(BOOL, f"{self.numpy(_UFUNCS[name])}({x.ref}, {y.ref})")

    def op1(self, name: str, x: S) -> S:
        return self.step(x.dtype, f"{self.numpy(_UFUNCS[name])}({x.ref})")

    def select(self, condition: S, x: S, y: S) -> S:
        return self.step(x.dtype, f"{self.numpy('where')}({condition.ref}, {x.ref}, {y.ref})")

    def convert(self, x: S, dtype: DType) -> S:
        if x.dtype is dtype:
            return x
        if x.dtype.is_float and dtype.is_int:
            raise NotImplementedError("float to int is native")
        self.numpy("asarray")
        return self.step(dtype, f"asarray({x.ref}).astype({self.bound(np.dtype(dtype.numpy))})")

    def bits(self, x: S) -> S:
        return self._viewed(x, _INT_OF[x.dtype])

    def from_bits(self, x: S) -> S:
        return self._viewed(x, _FLOAT_OF[x.dtype])

    def _viewed(self, x: S, dtype: DType) -> S:
        self.numpy("asarray")
        return self.step(dtype, f"asarray({x.ref}).view({self.bound(np.dtype(dtype.numpy))})")

    def failing(self, condition: S) -> str:
        return f"{self.numpy('any')}({condition.ref})"


def _truncated_div(x: Any, y: Any) -> Any:
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) ^ (y < 0)))


_truncated = {"div": _truncated_div, "rem": np.fmod}


# ---- numbers ------------------------------------------------------------------------------------------


class _Numbers(_Text):
    """Over Python's floats, ints and bools, and NumPy's f32."""

    def const(self, dtype: DType, value: float | int | bool) -> S:
        return S(self, dtype, self.bound(_number(dtype, value) if dtype is F32 else NUMBERS[dtype](value)))

    def op2(self, name: str, x: S, y: S) -> S:
        sign = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>"}.get(
            name
        )
        if name == "copysign" or (name == "div" and x.dtype is F64):
            function = self.bound(math.copysign if name == "copysign" and x.dtype is F64 else _FLOATS2[name])
            return self.step(x.dtype, f"{function}({x.ref}, {y.ref})")
        if x.dtype.is_float:
            return self.step(x.dtype, f"{x.ref} {sign or '/'} {y.ref}")
        if sign is None:
            return self.step(x.dtype, f"{self.bound(_INTS2[name, x.dtype])}({x.ref}, {y.ref})")
        if name in ("add", "sub", "mul", "shl"):
            return self.step(x.dtype, f"{self.bound(WRAP[x.dtype])}({x.ref} {sign} {y.ref})")
        return self.step(x.dtype, f"{x.ref} {sign} {y.ref}")

    def compare(self, name: str, x: S, y: S) -> S:
        text = f"{x.ref} {_SIGNS[name]} {y.ref}"
        return self.step(BOOL, f"{self.bound(bool)}({text})" if x.dtype is F32 else text)

    def op1(self, name: str, x: S) -> S:
        if name in ("neg", "abs", "not"):
            text = {
                "neg": f"-{x.ref}",
                "abs": f"abs({x.ref})",
                "not": f"not {x.ref}" if x.dtype is BOOL else f"~{x.ref}",
            }[name]
            return self.step(x.dtype, f"{self.bound(WRAP[x.dtype])}({text})" if x.dtype.is_int else text)
        text = f"{self.numpy(_UFUNCS[name])}({x.ref})"
        return self.step(x.dtype, f"{self.bound(float)}({text})" if x.dtype is F64 else text)

    def select(self, condition: S, x: S, y: S) -> S:
        return self.step(x.dtype, f"{x.ref} if {condition.ref} else {y.ref}")

    def convert(self, x: S, dtype: DType) -> S:
        if x.dtype is dtype:
            return x
        if x.dtype.is_float and dtype.is_int:
            raise NotImplementedError("float to int is native")
        return self.step(dtype, f"{self.bound(number_maker(x.dtype, dtype))}({x.ref})")

    def bits(self, x: S) -> S:
        ints = np.dtype(_INT_OF[x.dtype].numpy)
        return self.step(
            _INT_OF[x.dtype], f"int({self.bound(np.dtype(x.dtype.numpy).type)}({x.ref}).view({self.bound(ints)}))"
        )

    def from_bits(self, x: S) -> S:
        dtype = _FLOAT_OF[x.dtype]
        ints, floats = self.bound(np.dtype(x.dtype.numpy).type), self.bound(np.dtype(dtype.numpy))
        text = f"{ints}({x.ref}).view({floats})"
        return self.step(dtype, f"float({text})" if dtype is F64 else text)

    def failing(self, condition: S) -> str:
        return str(condition.ref)


def number_maker(source: DType, dtype: DType) -> Callable[[Any], Any]:
    """The conversion of a number to another dtype (not of floats to ints)."""
    if dtype is I32 and source is I64:
        return wrap32
    if dtype is F32 and source.is_int:
        # Python would round to f64 first
        kind = np.dtype(source.numpy).type
        return lambda x: np.float32(kind(x))
    return NUMBERS[dtype]


def _number(dtype: DType, value: float | int | bool) -> Any:
    if dtype in WRAP:
        return np.dtype(dtype.numpy).type(WRAP[dtype](int(value)))
    return np.dtype(dtype.numpy).type(value)


def divide(x: float, y: float) -> float:
    """The IEEE quotient of two floats."""
    try:
        return x / y
    except ZeroDivisionError:
        if x == 0.0 or math.isnan(x):
            return math.nan
        return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _int_quotient(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


_FLOATS2 = {"div": divide, "copysign": np.copysign}
_INTS2: dict[tuple[str, DType], Callable[[int, int], int]] = {}
for _dtype, _bits in ((I32, 32), (I64, 64)):
    _INTS2["div", _dtype] = lambda x, y, wrap=WRAP[_dtype]: wrap(_int_quotient(x, y))  # type: ignore[misc]
    _INTS2["rem", _dtype] = lambda x, y: x - y * _int_quotient(x, y)
    _INTS2["lshr", _dtype] = lambda x, y, bits=_bits, wrap=WRAP[_dtype]: wrap((x & (1 << bits) - 1) >> y)  # type: ignore[misc]


# ---- functions ----------------------------------------------------------------------------------------


def function(body: Callable[..., S], operands: Sequence[DType], scalar: bool) -> Callable[..., Any]:
    """The body as a Python function, of numbers only (`scalar`) or with arrays among its operands."""
    code: _Text = _Numbers() if scalar else _Arrays()
    params = [f"x{i}" for i in range(len(operands))]
    result = body(code, *(S(code, d, p) for d, p in zip(operands, params, strict=True)))
    lines = "".join(f"    {line}\n" for line in code.lines)
    text = f"def step({', '.join(params)}):\n{lines}    return {result.ref}\n"
    space: dict[str, Any] = dict(code.names)
    exec(compile(text, "<op>", "exec"), space)
    made: Callable[..., Any] = space["step"]
    return made

"""Places in a kernel's vector code, known as `base + lane * step` for as long as they can be.

A kernel computes `lanes` adjoining elements at once. Access patterns of ops are written for one place; run over these
they tell whether a read is of adjoining elements, of one element for all lanes, or of scattered ones.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I32, I64, int64
from graphdsl.native.scalar import Llvm
from graphdsl.ops.scalar import S
from graphdsl.ops.types import I64 as INT
from graphdsl.ops.types import DType, wrap64


class Affine(S):
    """An i64 in each lane: `base + lane * step` (both one LLVM value for all lanes). The vector is made when it is
    asked for.
    """

    __slots__ = ("_vector", "base", "step")

    def __init__(self, code: VectorCode, base: ir.Value, step: ir.Value) -> None:
        self.code = code
        self.dtype = INT
        self.base = base
        self.step = step
        self._vector: ir.Value | None = None

    @property
    def ref(self) -> ir.Value:
        if self._vector is None:
            code: Any = self.code
            self._vector = code.vector_of(self.base, self.step)
        return self._vector


class Uniform(S):
    """A scalar that is the same in every lane."""

    __slots__ = ("_vector", "one")

    def __init__(self, code: VectorCode, dtype: DType, one: ir.Value) -> None:
        self.code = code
        self.dtype = dtype
        self.one = one
        self._vector: ir.Value | None = None

    @property
    def ref(self) -> ir.Value:
        if self._vector is None:
            code: Any = self.code
            self._vector = code.splat(self.one)
        return self._vector


class VectorCode(Llvm):
    """Vector code in which i64 arithmetic on places stays scalar while it can."""

    def splat(self, one: ir.Value) -> ir.Value:
        """`one` in every lane."""
        if self.lanes == 1:
            return one
        if isinstance(one, ir.Constant):
            return _repeated(one, self.lanes)
        vector = ir.VectorType(one.type, self.lanes)
        b = self.builder
        first = b.insert_element(ir.Constant(vector, ir.Undefined), one, ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes)
        return b.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

    def vector_of(self, base: ir.Value, step: ir.Value) -> ir.Value:
        """The vector of `base + lane * step`."""
        if self.lanes == 1:
            return base
        numbers = ir.Constant(ir.VectorType(I64, self.lanes), list(range(self.lanes)))
        if not is_int(step, 1):
            numbers = self.builder.mul(numbers, self.splat(step))
        return self.builder.add(self.splat(base), numbers)

    def uniform(self, dtype: DType, one: ir.Value) -> Uniform:
        """A scalar as an operand."""
        return Uniform(self, dtype, one)

    def op2(self, name: str, x: S, y: S) -> S:
        if x.dtype is INT and name in ("add", "sub", "mul"):
            a, c = self._affine(x), self._affine(y)
            if a is not None and c is not None:
                known = self._affine2(name, a, c)
                if known is not None:
                    return known
        if isinstance(x, Uniform) and isinstance(y, Uniform):
            return self.uniform(x.dtype, self._scalar().op2(name, *self._ones(x, y)).ref)
        return super().op2(name, x, y)

    def op1(self, name: str, x: S) -> S:
        if isinstance(x, Uniform):
            return self.uniform(x.dtype, self._scalar().op1(name, *self._ones(x)).ref)
        return super().op1(name, x)

    def compare(self, name: str, x: S, y: S) -> S:
        if isinstance(x, Uniform) and isinstance(y, Uniform):
            known = _compared(name, x.one, y.one)
            if known is not None:
                return self.const(DType.BOOL, known)
            result = self._scalar().compare(name, *self._ones(x, y))
            return self.uniform(result.dtype, result.ref)
        return super().compare(name, x, y)

    def select(self, condition: S, x: S, y: S) -> S:
        if not isinstance(condition, Uniform):
            return super().select(condition, x, y)
        if isinstance(condition.one, ir.Constant):
            return x if condition.one.constant else y
        if isinstance(x, Uniform) and isinstance(y, Uniform):
            return self.uniform(x.dtype, self._scalar().select(*self._ones(condition, x, y)).ref)
        a, c = (self._affine(v) if v.dtype is INT else None for v in (x, y))
        if a is not None and c is not None:
            base, step = (self._chosen(condition.one, v, w) for v, w in zip(a, c, strict=True))
            return self._known(base, step)
        return super().select(condition, x, y)

    def _chosen(self, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        same = isinstance(x, ir.Constant) and isinstance(y, ir.Constant) and x.constant == y.constant
        return x if same else self.builder.select(condition, x, y)

    def convert(self, x: S, dtype: DType) -> S:
        if isinstance(x, Uniform):
            return self.uniform(dtype, self._scalar().convert(self._ones(x)[0], dtype).ref)
        return super().convert(x, dtype)

    def const(self, dtype: DType, value: float | int | bool) -> S:
        return self.uniform(dtype, self._scalar().const(dtype, value).ref)

    def _scalar(self) -> Llvm:
        return Llvm(self.builder, self.target)

    def _ones(self, *xs: Uniform) -> list[S]:
        code = self._scalar()
        return [code.value(x.dtype, x.one) for x in xs]

    def _affine(self, x: S) -> tuple[ir.Value, ir.Value] | None:
        match x:
            case Affine(base=base, step=step):
                return base, step
            case Uniform(one=one):
                return one, int64(0)
            case _:
                return None

    def _affine2(self, name: str, x: tuple[ir.Value, ir.Value], y: tuple[ir.Value, ir.Value]) -> S | None:
        code = self._scalar()

        def made(operation: str, a: ir.Value, c: ir.Value) -> ir.Value:
            return folded(code.builder, operation, a, c)

        if name != "mul":
            return self._known(made(name, x[0], y[0]), made(name, x[1], y[1]))
        if is_int(x[1], 0):
            x, y = y, x
        if not is_int(y[1], 0):
            return None
        return self._known(made("mul", x[0], y[0]), made("mul", x[1], y[0]))

    def _known(self, base: ir.Value, step: ir.Value) -> S:
        return self.uniform(INT, base) if is_int(step, 0) else Affine(self, base, step)


def _compared(name: str, x: ir.Value, y: ir.Value) -> bool | None:
    """What a comparison of int constants gives."""
    if not (isinstance(x, ir.Constant) and isinstance(y, ir.Constant)) or not isinstance(x.type, ir.IntType):
        return None
    a, b = int(x.constant), int(y.constant)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name]


_REPEATED: dict[tuple[str, str, int], ir.Constant] = {}


def _repeated(one: ir.Constant, lanes: int) -> ir.Constant:
    """The constant in every lane; each is made once, for that takes long."""
    key = (str(one.type), repr(one.constant), lanes)
    if key not in _REPEATED:
        _REPEATED[key] = ir.Constant(ir.VectorType(one.type, lanes), [one.constant] * lanes)
    return _REPEATED[key]


def is_int(value: ir.Value, number: int) -> bool:
    """Whether an LLVM value is this constant."""
    return isinstance(value, ir.Constant) and value.constant == number


def folded(b: ir.IRBuilder, name: str, x: ir.Value, y: ir.Value) -> ir.Value:
    """`x + y`, `x - y` or `x * y` on i64, computed now where that is possible: it decides how memory is read."""
    if isinstance(x, ir.Constant) and isinstance(y, ir.Constant):
        number = {"add": x.constant + y.constant, "sub": x.constant - y.constant, "mul": x.constant * y.constant}[name]
        return int64(wrap64(number))
    if name == "mul":
        if is_int(x, 0) or is_int(y, 0):
            return int64(0)
        if is_int(x, 1):
            return y
        if is_int(y, 1):
            return x
    elif is_int(y, 0):
        return x
    elif name == "add" and is_int(x, 0):
        return y
    method: Any = getattr(b, name)
    return method(x, y)

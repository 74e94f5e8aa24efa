"""Scalar bodies of ops as LLVM IR: the implementation of `graphdsl.ops.scalar.Code`.

With `lanes` above 1 every `S` is a vector of so many elements and the same body computes them all at once.
Bools are `i1` in registers and bytes in memory. What the target lacks is emulated (`graphdsl.native.soft`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from graphdsl.native import soft
from graphdsl.native.flow import intrinsic
from graphdsl.native.target import Target, function
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType
from graphdsl.source.diagnostic import FaultKind

I1, I8 = ir.IntType(1), ir.IntType(8)
_TYPES = {BOOL: I1, I32: ir.IntType(32), I64: ir.IntType(64), F32: ir.FloatType(), F64: ir.DoubleType()}
_SUFFIX = {BOOL: "i1", I32: "i32", I64: "i64", F32: "f32", F64: "f64"}
_INT_OF = {F32: I32, F64: I64}
_FLOAT_OF = {I32: F32, I64: F64}

# Called where a body says `fail`: the condition, the kind, the numbers. The owner of the loop knows what to do.
FailHook = Callable[[S, FaultKind, tuple[S, ...]], None]


def register_type(dtype: DType, lanes: int = 1) -> Any:
    """The LLVM type of a value in code."""
    return _TYPES[dtype] if lanes == 1 else ir.VectorType(_TYPES[dtype], lanes)


def memory_type(dtype: DType, lanes: int = 1) -> Any:
    """The LLVM type of elements in memory."""
    element = I8 if dtype is BOOL else _TYPES[dtype]
    return element if lanes == 1 else ir.VectorType(element, lanes)


def load(builder: ir.IRBuilder, pointer: ir.Value, dtype: DType, lanes: int = 1) -> ir.Value:
    """The element (or `lanes` adjoining ones) at a pointer, which need be aligned for one element only."""
    value = builder.load(pointer, typ=memory_type(dtype, lanes), align=dtype.bytes)
    if dtype is BOOL:
        return builder.icmp_unsigned("!=", value, ir.Constant(value.type, None))
    return value


def store(builder: ir.IRBuilder, value: ir.Value, pointer: ir.Value, dtype: DType, lanes: int = 1) -> None:
    """Writes what `load` reads."""
    if dtype is BOOL:
        value = builder.zext(value, memory_type(dtype, lanes))
    builder.store(value, pointer, align=dtype.bytes)


class Llvm(Code):
    """Writes at the place where `builder` stands.

    `fail` is only needed for bodies that can fail.
    """

    def __init__(self, builder: ir.IRBuilder, target: Target, lanes: int = 1, fail: FailHook | None = None) -> None:
        self.builder = builder
        self.target = target
        self.lanes = lanes
        self._fail = fail

    def value(self, dtype: DType, ref: ir.Value) -> S:
        """A value of the IR as an operand of bodies."""
        return S(self, dtype, ref)

    def load(self, dtype: DType, pointer: ir.Value) -> S:
        """The element, or `lanes` adjoining ones, at a pointer."""
        return S(self, dtype, load(self.builder, pointer, dtype, self.lanes))

    def store(self, x: S, pointer: ir.Value) -> None:
        """Writes an element, or `lanes` of them."""
        store(self.builder, x.ref, pointer, x.dtype, self.lanes)

    # ---- Code --------------------------------------------------------------------------------------

    def const(self, dtype: DType, value: float | int | bool) -> S:
        number: float | int
        if dtype is BOOL:
            number = int(bool(value))
        elif dtype.is_int:
            number = wrapped(int(value), dtype)
        else:
            number = float(value)
        return S(self, dtype, self._constant(dtype, number))

    def op2(self, name: str, x: S, y: S) -> S:
        if name == "copysign":
            return S(self, x.dtype, self._call("copysign", x, y))
        if x.dtype.is_float:
            if name == "rem":
                return soft.rem(self, x, y)
            return S(self, x.dtype, getattr(self.builder, f"f{name}")(x.ref, y.ref))
        method = {"div": "sdiv", "rem": "srem", "and": "and_", "or": "or_"}.get(name, name)
        return S(self, x.dtype, getattr(self.builder, method)(x.ref, y.ref))

    def compare(self, name: str, x: S, y: S) -> S:
        sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[name]
        if x.dtype.is_float:
            compare = self.builder.fcmp_unordered if name == "ne" else self.builder.fcmp_ordered
        elif x.dtype is BOOL:
            compare = self.builder.icmp_unsigned
        else:
            compare = self.builder.icmp_signed
        return S(self, BOOL, compare(sign, x.ref, y.ref))

    def op1(self, name: str, x: S) -> S:
        b = self.builder
        if name == "not":
            return S(self, x.dtype, b.xor(x.ref, self._constant(x.dtype, 1 if x.dtype is BOOL else -1)))
        if not x.dtype.is_float:
            negated = S(self, x.dtype, b.sub(self._constant(x.dtype, 0), x.ref))
            return negated if name == "neg" else self.select(x < 0, negated, x)
        match name:
            case "neg":
                return S(self, x.dtype, b.fneg(x.ref))
            case "abs":
                return S(self, x.dtype, self._call("fabs", x))
            case "sqrt":
                return S(self, x.dtype, self._call("sqrt", x))
            case "floor" | "ceil" | "trunc" | "rint":
                if not self.target.rounds:
                    return soft.rounded(self, name, x)
                return S(self, x.dtype, self._call("roundeven" if name == "rint" else name, x))
        raise ValueError(name)

    def fma(self, x: S, y: S, z: S) -> S:
        if not self.target.fma:
            return soft.fma(self, x, y, z)
        return S(self, x.dtype, self._call("fma", x, y, z))

    def select(self, condition: S, x: S, y: S) -> S:
        return S(self, x.dtype, self.builder.select(condition.ref, x.ref, y.ref))

    def rarely(self, condition: S, exact: Callable[..., S], usual: S, *xs: S) -> S:
        b = self.builder
        some: Any = condition.ref
        other: Any = usual.ref
        given = [x.ref for x in xs]  # an `S` may make its vector where it is first asked for: not in a branch
        if self.lanes > 1:
            lanes = b.bitcast(some, ir.IntType(self.lanes))
            some = b.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0))
        before = b.block
        with b.if_then(some, likely=False):
            slow = b.select(condition.ref, b.call(self._outlined(exact, usual.dtype, xs), given), other)
            after = b.block
        joined = b.phi(other.type)
        joined.add_incoming(other, before)
        joined.add_incoming(slow, after)
        return self.value(usual.dtype, joined)

    def convert(self, x: S, dtype: DType) -> S:
        if x.dtype is dtype:
            return x
        if dtype is BOOL:
            return self.compare("ne", x, self.const(x.dtype, 0))
        return S(self, dtype, self._converted(x, dtype))

    def bits(self, x: S) -> S:
        dtype = _INT_OF[x.dtype]
        return S(self, dtype, self.builder.bitcast(x.ref, register_type(dtype, self.lanes)))

    def from_bits(self, x: S) -> S:
        dtype = _FLOAT_OF[x.dtype]
        return S(self, dtype, self.builder.bitcast(x.ref, register_type(dtype, self.lanes)))

    def mul_high(self, x: S, y: S) -> S:
        if x.dtype is I64 and self.lanes > 1:
            return self._mul_high_by_halves(x, y)
        width = x.dtype.bytes * 8
        wide: Any = ir.IntType(2 * width)
        if self.lanes > 1:
            wide = ir.VectorType(wide, self.lanes)
        b = self.builder
        product = b.mul(b.zext(x.ref, wide), b.zext(y.ref, wide))
        shift = ir.Constant(wide, width if self.lanes == 1 else [width] * self.lanes)
        return S(self, x.dtype, b.trunc(b.lshr(product, shift), x.ref.type))

    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        if self._fail is None:
            raise TypeError(f"nothing is prepared to fail here: {kind.code}")
        self._fail(condition, kind, numbers)

    # ---- steps -------------------------------------------------------------------------------------

    def _constant(self, dtype: DType, value: float | int) -> ir.Constant:
        type = register_type(dtype, self.lanes)
        return ir.Constant(type, value if self.lanes == 1 else [value] * self.lanes)

    def _call(self, name: str, *xs: S) -> ir.Value:
        """An intrinsic on operands of one dtype with a result of the same."""
        type = register_type(xs[0].dtype, self.lanes)
        full = f"llvm.{name}.{_mangled(xs[0].dtype, self.lanes)}"
        callee = intrinsic(self.builder.module, full, type, *(type for _ in xs))
        return self.builder.call(callee, [x.ref for x in xs])

    def _outlined(self, body: Callable[..., S], dtype: DType, xs: Sequence[S]) -> ir.Function:
        """A function of the module for a body, made where it is first needed."""
        name = ".".join(["gdl.body", *_labels(body), *(x.dtype.value for x in xs), str(self.lanes)])
        module = self.builder.module
        if name in module.globals:
            return module.globals[name]
        types = [register_type(x.dtype, self.lanes) for x in xs]
        made = function(
            module, self.target, name, ir.FunctionType(register_type(dtype, self.lanes), types), private=True
        )
        made.attributes.add("noinline")
        made.attributes.add("cold")
        inside = Llvm(ir.IRBuilder(made.append_basic_block()), self.target, self.lanes)
        result = body(inside, *(inside.value(x.dtype, a) for x, a in zip(xs, made.args, strict=True)))
        inside.builder.ret(result.ref)
        return made

    def _converted(self, x: S, dtype: DType) -> ir.Value:
        b, type = self.builder, register_type(dtype, self.lanes)
        if x.dtype.is_float:
            if dtype.is_float:
                return b.fpext(x.ref, type) if dtype is F64 else b.fptrunc(x.ref, type)
            name = f"llvm.fptosi.sat.{_mangled(dtype, self.lanes)}.{_mangled(x.dtype, self.lanes)}"
            return b.call(intrinsic(b.module, name, type, x.ref.type), [x.ref])
        if dtype.is_float:
            return b.uitofp(x.ref, type) if x.dtype is BOOL else b.sitofp(x.ref, type)
        if x.dtype is BOOL:
            return b.zext(x.ref, type)
        return b.sext(x.ref, type) if dtype is I64 else b.trunc(x.ref, type)

    def _mul_high_by_halves(self, x: S, y: S) -> S:
        """Vectors have no 64 × 64 → 128 bit product, but one of 32 × 32 → 64."""
        low = (1 << 32) - 1

        def upper(v: S) -> S:
            return self.op2("lshr", v, self.const(I64, 32))

        x0, x1, y0, y1 = x & low, upper(x), y & low, upper(y)
        middle = upper(x0 * y0) + x1 * y0
        other = (middle & low) + x0 * y1
        return x1 * y1 + upper(middle) + upper(other)


def _labels(body: Any) -> list[str]:
    """What tells a body from others: the name of a function, and the arguments bound to it."""
    if isinstance(body, partial):
        bound = [*body.args, *body.keywords.values()]
        return [*_labels(body.func), *(label for argument in bound for label in _labels(argument))]
    return [f"{body.__module__.rpartition('.')[2]}.{body.__qualname__}" if callable(body) else str(body)]


def wrapped(value: int, dtype: DType) -> int:
    """`value` modulo the width of an int dtype."""
    half = 1 << (dtype.bytes * 8 - 1)
    return (value + half) % (2 * half) - half


def _mangled(dtype: DType, lanes: int) -> str:
    return _SUFFIX[dtype] if lanes == 1 else f"v{lanes}{_SUFFIX[dtype]}"

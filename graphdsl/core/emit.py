"""Writing instructions into a block: the one interface through which ops are applied.

The checker lowers calls with it, composite ops and derivative rules are written against it, and the graph's
transforms use it. So there is one place where a type rule is asked and operands are converted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from graphdsl.core.ir import Apply, Block, Const, Value
from graphdsl.ops.op import Composite, Op, Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F64, I32, I64, DType, Type
from graphdsl.source.span import Span

_LOOK_BACK = 16  # instructions among which a literal is looked for
_EXACT = 2**53  # ints up to here are exact in f64, so that converting them rounds once


class Emit:
    """Appends to `block`; every instruction gets `span`. `emit.mul(a, b)` applies the op `mul`."""

    def __init__(self, block: Block, setting: Setting, span: Span) -> None:
        self.block = block
        self.setting = setting
        self.span = span

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in OPS:
            raise AttributeError(name)
        return partial(self.apply, OPS[name])

    def apply(self, op: Op, *args: Value | None, **attrs: Any) -> Any:
        """Apply `op`: one value where it has one result, else a tuple.

        Only a composite op takes None for an operand: an argument that was left out.
        Raises `TypeProblem` where the operands do not fit.
        """
        if isinstance(op.compute, Composite):
            return op.compute.expand(self, *args, **attrs)
        given, known = cast(tuple[Value, ...], args), attrs
        if op.prepare is not None:
            given, prepared = op.prepare(self, given, attrs)
            known = dict(prepared)
        typing = op.typing(self.setting, tuple(a.type for a in given), known)
        operands = tuple(self.convert(a, d) for a, d in zip(given, typing.operands, strict=True))
        outs = tuple(Value(t) for t in typing.outs)
        settled = known if typing.attrs is None else typing.attrs
        self.block.body.append(Apply(self.span, op, operands, settled, outs, typing.fails))
        return outs[0] if len(outs) == 1 else outs

    def convert(self, value: Value, dtype: DType) -> Value:
        """`value` in `dtype`; itself where it is in that already: weakness is a matter of types, not of bits.

        A weak int that does not fit i32 fails where it is converted.
        """
        if value.type.dtype is dtype:
            return value
        number = self.literal(value)
        if number is not None and _converts(number, dtype) and not _may_be_target(value):
            return self.const(number, dtype)
        checked = value.type.weak and dtype is I32
        return cast(Value, self.apply(OPS["cast"], value, dtype=dtype, checked=checked))

    def const(self, value: float | int | bool, dtype: DType, weak: bool = False) -> Value:
        """A scalar literal."""
        out = Value(Type(dtype, (), weak))
        self.block.body.append(Const(self.span, value, out))
        return out

    def like(self, value: float | int, other: Value) -> Value:
        """A scalar of the dtype of `other`, weak where that is."""
        return self.const(value, other.type.dtype, other.type.weak)

    def nothing_like(self, other: Value, dtype: DType | None = None) -> Value:
        """Zeros of the shape of `other`, and of its dtype unless another is given; not of the default dtype where it is
        weak.
        """
        return cast(Value, self.apply(OPS["zeros_like"], other, dtype=dtype or other.type.dtype))

    def literal(self, value: Value) -> float | int | bool | None:
        """The number that `value` is, if it was written just before."""
        for instr in self.block.body[: -_LOOK_BACK - 1 : -1]:
            if isinstance(instr, Const) and instr.out is value and not isinstance(instr.value, tuple):
                return instr.value
        return None


def _converts(number: float | int | bool, dtype: DType) -> bool:
    """Whether the literal, written in `dtype`, is what its conversion gives."""
    if isinstance(number, bool):
        return False
    if dtype.is_float:
        return abs(number) <= _EXACT
    return isinstance(number, int) and (dtype is I64 or (dtype is I32 and -(2**31) <= number < 2**31))


def _may_be_target(value: Value) -> bool:
    """Whether a derivative may ask for this literal by a name: then it stays the value that is used."""
    return value.name is not None and value.type.dtype.is_float


def literal_type(value: float | int | bool) -> Type:
    """The type of a literal: numbers are weak, bools are not."""
    if isinstance(value, bool):
        return Type(BOOL)
    return Type(I64 if isinstance(value, int) else F64, (), True)

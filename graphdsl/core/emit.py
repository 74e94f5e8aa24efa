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

    def apply(self, op: Op, *args: Value, **attrs: Any) -> Value | tuple[Value, ...]:
        """Apply `op`: one value where it has one result, else a tuple.

        Raises `TypeProblem` where the operands do not fit.
        """
        if isinstance(op.compute, Composite):
            return op.compute.expand(self, *args, **attrs)
        typing = op.typing(self.setting, tuple(a.type for a in args), attrs)
        operands = tuple(self.convert(a, d) for a, d in zip(args, typing.operands, strict=True))
        outs = tuple(Value(t) for t in typing.outs)
        known = attrs if typing.attrs is None else typing.attrs
        self.block.body.append(Apply(self.span, op, operands, known, outs, typing.fails))
        return outs[0] if len(outs) == 1 else outs

    def convert(self, value: Value, dtype: DType) -> Value:
        """`value` as `dtype`, not weak; itself where it is that already.

        A weak int that does not fit i32 fails where it is converted.
        """
        if value.type.dtype is dtype and not value.type.weak:
            return value
        if value.type.dtype is dtype:
            return self._strengthened(value)
        checked = value.type.weak and dtype is I32
        return cast(Value, self.apply(OPS["cast"], value, dtype=dtype, checked=checked))

    def const(self, value: float | int | bool, dtype: DType, weak: bool = False) -> Value:
        """A scalar literal."""
        out = Value(Type(dtype, (), weak))
        self.block.body.append(Const(self.span, value, out))
        return out

    def like(self, value: float | int, other: Value) -> Value:
        """A scalar of the dtype of `other`."""
        return self.const(value, other.type.dtype)

    def _strengthened(self, value: Value) -> Value:
        # weakness is a matter of types only: the bits are the same
        return value


def literal_type(value: float | int | bool) -> Type:
    """The type of a literal: numbers are weak, bools are not."""
    if isinstance(value, bool):
        return Type(BOOL)
    return Type(I64 if isinstance(value, int) else F64, (), True)

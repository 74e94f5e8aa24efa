"""Whether operands fit each other, as an instruction of its own: so that what computes with them can go into a kernel.

The check stays where it is, for it can fail; the op that it was part of cannot any more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from graphdsl.core.ir import Apply, Value
from graphdsl.graph.kinds import rearranges_nothing
from graphdsl.ops.op import Attrs, Elementwise, Op, Pointwise, Setting, Typing
from graphdsl.ops.types import BOOL, Type


def _fits_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    return Typing(tuple(t.dtype for t in types), (Type(BOOL),), True)


def _fits_op(operands: int) -> Op:
    return Op(
        name="fits",
        doc="Fails where the sizes of the operands do not broadcast together; else true.",
        typing=_fits_types,
        compute=Elementwise(lambda code, *xs: code.const(BOOL, True)),
        shape_only=tuple(range(operands)),
    )


@cache
def _sizes_op(op: Op, tensors: tuple[int, ...]) -> Op:
    """The test of the sizes that a result of `op` has, of whose operands `tensors` have axes."""
    assert isinstance(op.compute, Pointwise)
    true = replace(op.compute, at=lambda code, place, xs, sizes, attrs: code.const(BOOL, True))
    return Op(
        name=f"{op.name}_fits",
        doc="Fails where there is no result of these sizes; else true.",
        typing=_fits_types,
        compute=true,
        shape_only=tensors,
        faults=op.faults,
    )


_FITS = {n: _fits_op(n) for n in range(2, 6)}


def split_checks(instr: Any) -> list[Any]:
    """An op that can only fail for its operands' sizes becomes the check, and the op without it."""
    if not (isinstance(instr, Apply) and instr.fails and instr.outs[0].type.shape):
        return [instr]
    op, args = instr.op, instr.args
    match op.compute:
        case Elementwise() if not op.faults and not instr.attrs.get("checked") and len(args) in _FITS:
            fits = Apply(instr.span, _FITS[len(args)], args, {}, (Value(Type(BOOL)),), True)
        case Pointwise(sizes=rule) if rule is not None and not rearranges_nothing(op):
            check = _sizes_op(op, tuple(i for i, a in enumerate(args) if a.type.shape))
            fits = Apply(instr.span, check, args, instr.attrs, (Value(Type(BOOL)),), True)
        case _:
            return [instr]
    return [fits, Apply(instr.span, op, args, instr.attrs, instr.outs)]

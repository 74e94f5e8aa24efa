"""Whether operands fit each other, as an instruction of its own: so that what computes with them can go into a kernel.

The check stays where it is, for it can fail; the op that it was part of cannot any more.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Apply, Value
from graphdsl.ops.op import Attrs, Elementwise, Op, Setting, Typing
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


_FITS = {n: _fits_op(n) for n in range(2, 6)}


def split_checks(instr: Any) -> list[Any]:
    """An elementwise op that can only fail for its operands' sizes becomes the check, and the op without it."""
    if not (isinstance(instr, Apply) and instr.fails and isinstance(instr.op.compute, Elementwise)):
        return [instr]
    if instr.op.faults or instr.attrs.get("checked") or not instr.outs[0].type.shape or len(instr.args) not in _FITS:
        return [instr]
    fits = Apply(instr.span, _FITS[len(instr.args)], instr.args, {}, (Value(Type(BOOL)),), True)
    return [fits, Apply(instr.span, instr.op, instr.args, instr.attrs, instr.outs)]

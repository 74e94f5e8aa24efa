"""What part an instruction can have in a kernel."""

from __future__ import annotations

import enum
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Apply
from graphdsl.graph.kinds import adjoining, rearranges_nothing
from graphdsl.ops.choosing import cast_attrs
from graphdsl.ops.op import Effect, Elementwise, Pointwise, Reduce, Reducing, SumTo
from graphdsl.ops.table import OPS
from graphdsl.ops.types import Dim

Shape = tuple[Dim, ...]


class Part(enum.Enum):
    NONE = "none"
    ELEMENTS = "elements"  # computes elements from those at the same place
    MOVES = "moves"  # reads elements at other places
    VIRTUAL = "virtual"  # made of scalars alone
    TOTAL = "total"  # the sum of all elements


def part(instr: Any) -> Part:
    """What an instruction can be in a kernel."""
    if not isinstance(instr, Apply) or instr.fails or instr.op.effect is not Effect.NONE or not instr.args:
        return Part.VIRTUAL if _made(instr) else Part.NONE
    match instr.op.compute:
        case Elementwise() if instr.outs[0].type.shape:
            return Part.ELEMENTS
        case Pointwise() if instr.outs[0].type.shape and not rearranges_nothing(instr.op):
            if not any(a.type.shape for i, a in enumerate(instr.args) if i not in instr.op.shape_only):
                return Part.VIRTUAL
            return Part.NONE if adjoining(instr) else Part.MOVES
        case Reduce() | SumTo() if is_total(instr):
            return Part.TOTAL
        case _:
            return Part.NONE


def is_total(instr: Apply) -> bool:
    """Whether an op is the sum of all elements of a tensor."""
    rank = instr.args[0].type.rank
    match instr.op.compute:
        case Reduce(fold="sum"):
            return rank > 0 and len(instr.attrs["axes"]) == rank
        case SumTo():
            return rank > 0 and not instr.args[1].type.shape
        case _:
            return False


def _made(instr: Any) -> bool:
    return (
        isinstance(instr, Apply)
        and not instr.fails
        and isinstance(instr.op.compute, Pointwise)
        and bool(instr.outs[0].type.shape)
    )


def as_apply(instr: Any) -> Any:
    """A conversion of a tensor between floats as the op that it is."""
    match instr:
        case ir.Convert(span=span, arg=arg, out=out) if out.type.shape and arg.type.dtype is not out.type.dtype:
            attrs = cast_attrs(out.type.dtype, checked=False, weak=out.type.weak)
            return Apply(span, OPS["cast"], (arg,), attrs, (out,))
        case _:
            return instr


def space(instr: Apply) -> Shape:
    """The shape whose elements an op walks."""
    source = instr.args[0] if isinstance(instr.op.compute, Reducing) else instr.outs[0]
    return source.type.shape

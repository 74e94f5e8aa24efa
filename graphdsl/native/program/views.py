"""Results that lie in an operand's buffer: reshapes, leading indices and slices, new axes."""

from __future__ import annotations

from llvmlite import ir

from graphdsl.core.ir import Apply
from graphdsl.graph.kinds import adjoining, rearranges_nothing
from graphdsl.native.flow import at
from graphdsl.native.program import shapes
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.reading import Operand
from graphdsl.native.program.values import Tensor, ref
from graphdsl.native.scalar import memory_type
from graphdsl.ops.places import entries, slice_bounds
from graphdsl.ops.scalar import S
from graphdsl.ops.types import I64 as INT


def view(frame: Frame, instr: Apply) -> bool:
    """Make the result a view, if it can be one."""
    if rearranges_nothing(instr.op):
        if not instr.args[0].type.shape:
            return False
        data = frame.tensor(instr.args[0]).data
    elif adjoining(instr):
        data = None
    else:
        return False
    sizes = shapes.sizes(frame.code, instr, [Operand(frame, a) for a in instr.args])
    if data is None:
        data = _offset(frame, instr)
    owner = frame.hand_on(instr.args[0]).owner
    frame.values[instr.outs[0]] = Tensor(instr.outs[0].type.dtype, data, owner, sizes)
    return True


def _offset(frame: Frame, instr: Apply) -> ir.Value:
    """The address of the first element picked."""
    x, *operands = (Operand(frame, a) for a in instr.args)
    code = frame.code
    offset: S = code.const(INT, 0)
    for entry in entries(instr.attrs["spec"], operands, x.rank):
        if entry.axis is None:
            continue
        first = None
        if entry.kind == "at":
            first = entry.operands[0].at(()) if entry.operands else code.const(INT, entry.words[0])
        elif entry.kind == "slice":
            first = slice_bounds(code, entry.words, [o.at(()) for o in entry.operands], x.size(entry.axis))[0]
        if first is not None:
            below = code.const(INT, 1)
            for axis in range(entry.axis + 1, x.rank):
                below = below * x.size(axis)
            offset = offset + first * below
    tensor = frame.tensor(instr.args[0])
    return at(frame.b, tensor.data, ref(offset), memory_type(tensor.dtype))

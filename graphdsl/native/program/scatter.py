"""Assignment and addition into elements: in place where the tensor is used for the last time and nobody else has its
buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from graphdsl.core.ir import Apply, Value
from graphdsl.native.flow import at, int64, loop
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.reading import Operand
from graphdsl.native.program.values import Tensor, parts, ref, whole
from graphdsl.native.scalar import memory_type
from graphdsl.ops import faults
from graphdsl.ops.op import Scatter
from graphdsl.ops.places import region_sizes, source_place
from graphdsl.ops.scalar import S
from graphdsl.ops.sizes import check_takes
from graphdsl.ops.types import I64 as INT


def scatter(frame: Frame, instr: Apply) -> None:
    """`x` with `v` at, or added to, the places of an index, in row-major order of what it picks."""
    compute = instr.op.compute
    assert isinstance(compute, Scatter)
    code, b = frame.code, frame.b
    x, v, *operands = (Operand(frame, a) for a in instr.args)
    spec, out = instr.attrs["spec"], instr.outs[0]
    check_takes(code, x, operands, spec)
    region = region_sizes(code, spec, x, operands)
    if instr.fails:
        _check_value(frame, v, region)
    target = own_copy(frame, instr.args[0], instr.args)
    with ExitStack() as loops:
        place = tuple(code.value(INT, loops.enter_context(loop(b, ref(size)))) for size in region)
        goal = source_place(code, place, spec, x, operands)
        offset = code.const(INT, 0)
        for i, size in zip(goal, target.sizes, strict=True):
            offset = offset * code.value(INT, size) + i
        address = at(b, target.data, ref(offset), memory_type(target.dtype))
        element = v.at(_value_place(frame, instr.args[1], v, place))
        if compute.add:
            element = code.load(target.dtype, address) + element
        code.store(element, address)
    frame.values[out] = whole(out.type, parts(target))


def _check_value(frame: Frame, v: Operand, region: Sequence[S]) -> None:
    for back in range(min(v.rank, len(region)), 0, -1):
        size, wanted = v.size(v.rank - back), region[-back]
        axis = frame.code.const(INT, len(region) - back)
        frame.code.fail(size.ne(wanted) & size.ne(1), faults.BROADCAST, size, wanted, axis)


def _value_place(frame: Frame, value: Value, v: Operand, place: Sequence[S]) -> tuple[S, ...]:
    """Where the value is read for a place: it broadcasts, and may have more axes, of size 1."""
    zero = frame.code.const(INT, 0)
    found = []
    for axis, dim in enumerate(value.type.shape):
        own = axis - v.rank + len(place)
        if own < 0 or dim == 1:
            found.append(zero)
        else:
            found.append(frame.code.select(v.size(axis).eq(1), zero, place[own]))
    return tuple(found)


def own_copy(frame: Frame, value: Value, args: Sequence[Value]) -> Tensor:
    """The tensor in a buffer that is nobody else's: its own, if this is its last use, or a copy."""
    b, tensor = frame.b, frame.tensor(value)
    if args.count(value) == 1 and frame.take(value):
        made = frame.own(tensor, tensor.dtype, tensor.sizes)
        with b.if_then(b.icmp_unsigned("!=", made.owner, tensor.owner), likely=False):
            _copy(frame, made, tensor)  # its other owners keep it alive
        return made
    made = frame.new(tensor.dtype, tensor.sizes)
    _copy(frame, made, tensor)
    return made


def _copy(frame: Frame, to: Tensor, source: Tensor) -> None:
    bytes = frame.b.mul(frame.count(source), int64(source.dtype.bytes))
    frame.b.call(frame.unit.outside("run.copy"), [to.data, source.data, bytes])

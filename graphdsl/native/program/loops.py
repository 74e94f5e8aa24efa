"""Calls that a program makes to the kernel library's inner loops, whose rows large ones share among the threads."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from graphdsl.native.flow import int64
from graphdsl.native.program.frame import Frame
from graphdsl.native.support.rows import LOOP, Record


def call_loop(
    frame: Frame,
    name: str,
    data: str,
    operands: Sequence[ir.Value],
    dims: Sequence[ir.Value],
    steps: Sequence[ir.Value],
    which: int,
    row_steps: Sequence[ir.Value],
    multiple: int = 1,
) -> None:
    """Call `name(operands, dims, steps, data)`: `dims[which]` rows, from one to the next operands move by `row_steps`."""
    b = frame.b
    work = int64(1)
    for dim in dims:
        work = b.mul(work, dim)
    code, info = frame.unit.outside(name, LOOP), frame.unit.outside_data(data)
    record = Record(code, info, int64(which), int64(multiple), work, operands, row_steps, dims, steps)
    frame.check(b.call(frame.unit.outside("run.rows"), [frame.context, record.stored(b)]))

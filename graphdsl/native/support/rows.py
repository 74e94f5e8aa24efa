"""Calls of the kernel library's inner loops, whose rows large ones share among the threads.

A row of a product, and a reduced row, depend on nothing but the row, so the bits are the same in any number of parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, field, int64, loop, slot
from graphdsl.native.names import WORTH_SHARING
from graphdsl.native.support.team import KERNEL
from graphdsl.native.support.words import Status, Team, Word
from graphdsl.native.target import Target, function

LOOP = ir.FunctionType(VOID, [POINTER, POINTER, POINTER, POINTER])

# Words of a record, in the order of its fields.
_CODE, _DATA, _WHICH, _MULTIPLE, _WORK = range(5)
_OPERANDS, _ROW_STEPS, _DIMS, _STEPS = 5, 8, 11, 15
_WORDS = 24

SIGNATURES = {"run.rows": ir.FunctionType(I32, [POINTER, POINTER])}


@dataclass(frozen=True)
class Record:
    """A call of `code(operands, dims, steps, data)` over rows: `dims[which]` of them, from one to the next operands
    move by `row_steps` bytes. `multiple` rows belong together, and `work` is the cost: multiplications, or elements
    read.
    """

    code: ir.Value
    data: ir.Value
    which: ir.Value
    multiple: ir.Value
    work: ir.Value
    operands: Sequence[ir.Value]  # at most three
    row_steps: Sequence[ir.Value]
    dims: Sequence[ir.Value]  # at most four
    steps: Sequence[ir.Value]  # at most nine

    def stored(self, b: ir.IRBuilder) -> ir.Value:
        """The address of the record's words, on the stack."""
        made = slot(b, I64, _WORDS)
        single = (self.code, self.data, self.which, self.multiple, self.work)
        several = ((_OPERANDS, self.operands), (_ROW_STEPS, self.row_steps), (_DIMS, self.dims), (_STEPS, self.steps))
        for first, values in ((_CODE, single), *several):
            for i, value in enumerate(values):
                assert first + i < _WORDS
                b.store(value, at(b, made, first + i, I64))
        return made


def define(module: ir.Module, target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines `run.rows(context, record)`."""
    part = _define_part(module, target)
    made = functions["run.rows"]
    b = ir.IRBuilder(made.append_basic_block())
    context, record = made.args
    team = field(b, context, Word.TEAM, POINTER)
    few = b.icmp_signed("<", field(b, record, _WORK), int64(WORTH_SHARING))
    alone = b.or_(few, b.icmp_unsigned("==", team, ir.Constant(POINTER, None)))
    with b.if_then(alone):
        places = [at(b, record, word, I64) for word in (_OPERANDS, _DIMS, _STEPS)]
        call_address(b, field(b, record, _CODE, POINTER), LOOP, [*places, field(b, record, _DATA, POINTER)])
        b.ret(ir.Constant(I32, Status.DONE))
    total = b.load(at(b, record, b.add(field(b, record, _WHICH), int64(_DIMS)), I64), typ=I64)
    threads, multiple = b.add(field(b, team, Team.HELPERS), int64(1)), field(b, record, _MULTIPLE)
    each = b.udiv(b.add(total, b.sub(threads, int64(1))), threads)
    size = b.mul(b.udiv(b.add(each, b.sub(multiple, int64(1))), multiple), multiple)
    b.ret(b.call(functions["run.team.run"], [context, part, record, total, int64(0), size]))


def _define_part(module: ir.Module, target: Target) -> ir.Function:
    """The kernel that does some rows of a call."""
    made = function(module, target, "rows.part", KERNEL, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    _, begin, end, record = made.args
    operands, dims = slot(b, POINTER, 3), slot(b, I64, 4)
    with loop(b, 3) as i:
        place = b.load(at(b, record, b.add(i, int64(_OPERANDS)), I64), typ=POINTER)
        step = b.load(at(b, record, b.add(i, int64(_ROW_STEPS)), I64), typ=I64)
        b.store(at(b, place, b.mul(step, begin)), at(b, operands, i, POINTER))
    with loop(b, 4) as i:
        b.store(b.load(at(b, record, b.add(i, int64(_DIMS)), I64), typ=I64), at(b, dims, i, I64))
    b.store(b.sub(end, begin), at(b, dims, field(b, record, _WHICH), I64))
    code, data = field(b, record, _CODE, POINTER), field(b, record, _DATA, POINTER)
    call_address(b, code, LOOP, [operands, dims, at(b, record, _STEPS, I64), data])
    b.ret(ir.Constant(I32, Status.DONE))
    return made

"""The way that a fault took: each call and each loop that it leaves is noted in the context, the innermost first."""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, at, field, int64
from graphdsl.native.support.words import LEFT, Word
from graphdsl.source.diagnostic import MOST_TRAIL

SIGNATURES = {"run.left": ir.FunctionType(I32, [POINTER, I64, I64, I32])}


def define(functions: dict[str, ir.Function]) -> None:
    """`run.left(context, site, trip, status)`: notes a call, or a loop and which trip of it, unless enough is noted.

    It gives `status` back, so that its caller keeps nothing over the call: that would cost a register where all is well.
    """
    made = functions["run.left"]
    made.attributes.add("cold")
    b = ir.IRBuilder(made.append_basic_block())
    context, site, trip, status = made.args
    count = field(b, context, Word.TRAIL)
    with b.if_then(b.icmp_unsigned("<", count, int64(MOST_TRAIL))):
        entry = at(b, at(b, context, LEFT, I64), b.shl(count, int64(1)), I64)
        b.store(site, entry)
        b.store(trip, at(b, entry, 1, I64))
        b.store(b.add(count, int64(1)), at(b, context, Word.TRAIL, I64))
    b.ret(status)

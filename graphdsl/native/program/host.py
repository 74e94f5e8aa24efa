"""What Python does for a program as it runs: native code hands over a site and the words of the operands."""

from __future__ import annotations

from llvmlite import ir as llvm

from graphdsl.core import ir
from graphdsl.core.structure import operands
from graphdsl.native.flow import I32, I64, POINTER, call_address, int64
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.usage import Instr
from graphdsl.native.support.words import Status, Word, words

CALLBACK = llvm.FunctionType(I32, [I64, POINTER])


def call_back(frame: Frame, instr: Instr) -> None:
    """Python does it; the values of the operands are handed over as words."""
    _call_python(frame, instr, frame.spill(operands(instr)))


def host(frame: Frame, instr: ir.Apply) -> None:
    """An op that a Python function computes: its results' words follow on those of its operands."""
    given = [w for v in instr.args for w in frame.typed_parts(v)]
    room = [(int64(0), None) for v in instr.outs for _ in range(words(v.type))]
    memory = frame.spill_parts([*given, *room])
    _call_python(frame, instr, memory)
    first = len(given)
    for out in instr.outs:
        frame.values[out] = frame.read_words(out.type, memory, first)
        first += words(out.type)


def _call_python(frame: Frame, instr: Instr, memory: llvm.Value) -> None:
    site = int64(frame.unit.sites.site(instr))
    status = call_address(frame.b, frame.get(Word.CALLBACK, POINTER), CALLBACK, [site, memory])
    with frame.b.if_then(frame.b.icmp_unsigned("!=", status, llvm.Constant(I32, 0)), likely=False):
        frame.leave(Status.RAISED)

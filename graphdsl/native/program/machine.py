"""The state of floating-point arithmetic that compiled programs run in: to nearest, subnormals kept, no traps."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from graphdsl.native.flow import I32, POINTER, VOID, intrinsic, slot
from graphdsl.native.program.frame import Frame

_DEFAULT = 0x1F80  # MXCSR: all exceptions masked, to nearest, no flushing to zero


def plain_floats(frame: Frame) -> Callable[[], None]:
    """Sets that state; the function returned restores what was before. On other than x86 it is the state of every new
    thread.
    """
    if not frame.unit.target.triple.startswith(("x86_64", "i386", "i686")):
        return lambda: None
    b, module = frame.b, frame.unit.module
    store = intrinsic(module, "llvm.x86.sse.stmxcsr", VOID, POINTER)
    load = intrinsic(module, "llvm.x86.sse.ldmxcsr", VOID, POINTER)
    before, ours = slot(b, I32), slot(b, I32)
    b.call(store, [before])
    b.store(ir.Constant(I32, _DEFAULT), ours)
    b.call(load, [ours])
    return lambda: b.call(load, [before])

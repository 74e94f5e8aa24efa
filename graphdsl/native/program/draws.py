"""Random numbers: elements from blocks of the run's stream, one after the other."""

from __future__ import annotations

from llvmlite import ir

from graphdsl.core.ir import Apply
from graphdsl.native.draws import philox
from graphdsl.native.flow import I64, POINTER, VOID, at, int64, loop
from graphdsl.native.program import shapes
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.places import Affine, VectorCode
from graphdsl.native.program.reading import Operand
from graphdsl.native.program.values import ref, whole
from graphdsl.native.scalar import memory_type
from graphdsl.native.support.words import Word
from graphdsl.ops.op import Draw
from graphdsl.ops.types import I64 as INT

_FILL = ir.FunctionType(VOID, [POINTER, I64, I64, I64])


def draw(frame: Frame, instr: Apply) -> None:
    """A draw moves the counter by its size."""
    compute, out = instr.op.compute, instr.outs[0]
    assert isinstance(compute, Draw)
    key, counter = frame.get(Word.KEY), frame.get(Word.COUNTER)
    if not out.type.shape:
        code = frame.code
        words = philox(code, code.value(INT, key), code.value(INT, counter))
        result = compute.body(code, *words, dtype=out.type.dtype)
        frame.values[out] = ref(result)
        frame.put(Word.COUNTER, frame.b.add(counter, int64(1)))
        return
    sizes = shapes.sizes(frame.code, instr, [Operand(frame, a) for a in instr.args])
    tensor = frame.new(out.type.dtype, sizes)
    count = frame.count(tensor)
    fill = frame.unit.private(
        ("draw", instr.op.name, out.type.dtype), "draw", _FILL, lambda made: _write(frame, instr, made)
    )
    frame.b.call(fill, [tensor.data, key, counter, count])
    frame.put(Word.COUNTER, frame.b.add(counter, count))
    frame.values[out] = whole(out.type, [tensor.data, tensor.owner, *sizes])


def _write(frame: Frame, instr: Apply, made: ir.Function) -> None:
    """The loop over the elements, whole vectors of blocks at a time (the buffer is padded)."""
    compute, dtype = instr.op.compute, instr.outs[0].type.dtype
    assert isinstance(compute, Draw)
    b = ir.IRBuilder(made.append_basic_block())
    data, key, counter, count = made.args
    code = VectorCode(b, frame.unit.target, frame.unit.target.lanes(64))
    keys = code.value(INT, code.splat(key))
    with loop(b, count, code.lanes) as j:
        block = code.value(INT, Affine(code, b.add(counter, j), int64(1)).ref)
        result = compute.body(code, *philox(code, keys, block), dtype=dtype)
        code.store(result, at(b, data, j, memory_type(dtype)))
    b.ret_void()

"""Kernels of elementwise bodies, and the one loop that runs any of them over strided arrays.

A kernel computes whole vectors of adjoining elements: `kernel(operands, n, record)`, where `operands` holds the
addresses of the inputs and of the output, and `n` is a multiple of its lanes. `gdl.loop` feeds it, directly where
operands adjoin and through small buffers where they do not; NumPy calls it as the inner loop of a ufunc. So a body is
compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from graphdsl.native.flow import (
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    at,
    call_address,
    field,
    int64,
    intrinsic,
    loop,
    minimum,
    slot,
)
from graphdsl.native.names import ELEMENTWISE_LOOP, RECORD
from graphdsl.native.scalar import Llvm, memory_type
from graphdsl.native.target import Target, function
from graphdsl.ops.scalar import S
from graphdsl.ops.types import BOOL, DType
from graphdsl.source.diagnostic import FaultKind

KERNEL = ir.FunctionType(VOID, [POINTER, I64, POINTER])
LOOP = ir.FunctionType(VOID, [POINTER, POINTER, POINTER, POINTER])
RUN = ir.FunctionType(VOID, [POINTER, I64, POINTER, POINTER, POINTER])

# Words of a record of faults. `COUNT` only grows; `FIRST` is the element, -1 if none yet.
COUNT, FIRST, KIND, BASE, NUMBERS = 0, 1, 2, 3, 4
RECORD_WORDS = 8

# Words of a kernel's description, as `gdl.loop` reads it.
CODE, OPERANDS, LANES, SIZES = 0, 1, 2, 3
MOST_OPERANDS = 5
_BUFFER = 256  # elements: a buffer for each operand stays well within L1

_CHUNK = 32  # bytes copied at once

_Failure = tuple[S, int, tuple[S, ...]]


def lanes_for(target: Target, dtypes: Sequence[DType]) -> int:
    """The vector length of a kernel over these dtypes: a full register of the widest."""
    return target.lanes(8 * max(d.bytes for d in dtypes))


def define_kernel(
    module: ir.Module,
    target: Target,
    name: str,
    body: Callable[..., S],
    operands: Sequence[DType],
    kinds: Sequence[FaultKind] = (),
) -> DType:
    """Defines the kernel `name` and its description `name.info`; returns the dtype of its result.

    Faults are recorded as places in `kinds`.
    """
    lanes = lanes_for(target, operands)
    made = function(module, target, name, KERNEL)
    b = ir.IRBuilder(made.append_basic_block())
    pointers, n, record = made.args
    bases = [b.load(at(b, pointers, i, POINTER), typ=POINTER) for i in range(len(operands) + 1)]
    failures: list[_Failure] = []

    def fail(condition: S, kind: FaultKind, numbers: tuple[S, ...]) -> None:
        failures.append((condition, kinds.index(kind), numbers))

    with loop(b, n, lanes) as i:
        code = Llvm(b, target, lanes, fail)
        xs = [code.load(d, at(b, base, i, memory_type(d))) for d, base in zip(operands, bases, strict=False)]
        result = body(code, *xs)
        if failures:
            _record(code, failures, i, record)
        code.store(result, at(b, bases[-1], i, memory_type(result.dtype)))
    b.ret_void()
    _describe(module, made, lanes, (*operands, result.dtype))
    return result.dtype


def _describe(module: ir.Module, kernel: ir.Function, lanes: int, dtypes: Sequence[DType]) -> None:
    sizes = [d.bytes for d in dtypes]
    words: list[Any] = [len(dtypes), lanes, *sizes, *[0] * (MOST_OPERANDS - len(sizes))]
    type = ir.LiteralStructType([POINTER, *[I64] * len(words)])
    info = ir.GlobalVariable(module, type, f"{kernel.name}.info")
    info.global_constant = True
    info.initializer = ir.Constant(type, [kernel, *words])


def _record(code: Llvm, failures: list[_Failure], index: ir.Value, record: ir.Value) -> None:
    """Where any lane failed: count it, and note the first one with its numbers, if none was noted before."""
    b = code.builder
    masks = [_mask(code, condition) for condition, _, _ in failures]
    some = masks[0]
    for mask in masks[1:]:
        some = b.or_(some, mask)
    with b.if_then(b.icmp_unsigned("!=", some, ir.Constant(some.type, 0)), likely=False):
        b.atomic_rmw("add", record, int64(1), "monotonic")
        fresh = b.icmp_signed("<", field(b, record, FIRST), int64(0))
        with b.if_then(fresh):
            zeros = intrinsic(b.module, f"llvm.cttz.i{code.lanes}", some.type, some.type, ir.IntType(1))
            lane = b.call(zeros, [some, ir.Constant(ir.IntType(1), 1)])
            lane32 = _resized(b, lane, I32)
            place = b.add(b.add(index, field(b, record, BASE)), _resized(b, lane, I64))
            b.store(place, at(b, record, FIRST, I64))
            for (_, kind, numbers), mask in reversed(list(zip(failures, masks, strict=True))):
                bit = b.trunc(b.lshr(mask, lane), ir.IntType(1)) if code.lanes > 1 else mask
                with b.if_then(bit):
                    b.store(int64(kind), at(b, record, KIND, I64))
                    for word, number in enumerate(numbers):
                        b.store(_number(code, number, lane32), at(b, record, NUMBERS + word, I64))


def _mask(code: Llvm, condition: S) -> ir.Value:
    return condition.ref if code.lanes == 1 else code.builder.bitcast(condition.ref, ir.IntType(code.lanes))


def _number(code: Llvm, number: S, lane: ir.Value) -> ir.Value:
    b = code.builder
    value = number.ref if code.lanes == 1 else b.extract_element(number.ref, lane)
    return b.zext(value, I64) if number.dtype is BOOL else _resized(b, value, I64)


def _resized(b: ir.IRBuilder, value: ir.Value, type: Any) -> ir.Value:
    width = value.type.width
    if width == type.width:
        return value
    if width > type.width:
        return b.trunc(value, type)
    # lane numbers are unsigned, numbers of messages signed; lanes are few enough for both
    return b.zext(value, type) if width < 32 else b.sext(value, type)


# ---- the loop ---------------------------------------------------------------------------------------


def define_loops(module: ir.Module, target: Target) -> None:
    """Defines the global record `gdl.record`, `gdl.run(operands, n, steps, info, record)` and, for NumPy,
    `gdl.loop(operands, dims, steps, info)`."""
    type = ir.ArrayType(I64, RECORD_WORDS)
    shared = ir.GlobalVariable(module, type, RECORD)
    shared.initializer = ir.Constant(type, [0] * RECORD_WORDS)
    run = _define_run(module, target)
    made = function(module, target, ELEMENTWISE_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, dims, steps, info = made.args
    b.call(run, [operands, field(b, dims, 0), steps, info, shared])
    b.ret_void()


def _define_run(module: ir.Module, target: Target) -> ir.Function:
    copy = copy_function(module, target)
    made = function(module, target, "gdl.run", RUN)
    b = ir.IRBuilder(made.append_basic_block())
    operands, n, steps, info, record = made.args
    kernel, count, lanes = field(b, info, CODE, POINTER), field(b, info, OPERANDS), field(b, info, LANES)
    pointers = slot(b, POINTER, MOST_OPERANDS)
    buffers = slot(b, I64, MOST_OPERANDS * _BUFFER, align=64)
    direct = _whole_vectors(b, n, lanes, count, steps, info)
    with b.if_then(b.icmp_signed(">", direct, int64(0)), likely=True):
        b.store(int64(0), at(b, record, BASE, I64))
        call_address(b, kernel, KERNEL, [operands, direct, record])
    with loop(b, n, _BUFFER, start=direct) as start:
        m = minimum(b, b.sub(n, start), int64(_BUFFER))
        padded = b.and_(b.add(m, b.sub(lanes, int64(1))), b.sub(int64(0), lanes))
        with loop(b, count) as o:
            buffer = at(b, buffers, b.mul(o, int64(8 * _BUFFER)))
            step, size = _word(b, steps, o), _word(b, info, b.add(o, int64(SIZES)))
            source = at(b, b.load(at(b, operands, o, POINTER), typ=POINTER), b.mul(start, step))
            is_input = b.icmp_signed("<", o, b.sub(count, int64(1)))
            adjoining = b.and_(b.icmp_signed("==", step, size), b.icmp_signed("==", padded, m))
            b.store(b.select(adjoining, source, buffer), at(b, pointers, o, POINTER))
            with b.if_then(b.and_(is_input, b.not_(adjoining))):
                b.call(copy, [buffer, size, source, step, m, padded, size])
        b.store(start, at(b, record, BASE, I64))
        call_address(b, kernel, KERNEL, [pointers, padded, record])
        last = b.sub(count, int64(1))
        step, size = _word(b, steps, last), _word(b, info, b.add(last, int64(SIZES)))
        target_place = at(b, b.load(at(b, operands, last, POINTER), typ=POINTER), b.mul(start, step))
        written = b.load(at(b, pointers, last, POINTER), typ=POINTER)
        with b.if_then(b.icmp_unsigned("!=", written, target_place)):
            b.call(copy, [target_place, step, written, size, m, m, size])
    b.ret_void()
    return made


def _word(b: ir.IRBuilder, pointer: ir.Value, index: ir.Value) -> ir.Value:
    return b.load(at(b, pointer, index, I64), typ=I64)


def _whole_vectors(
    b: ir.IRBuilder, n: ir.Value, lanes: ir.Value, count: ir.Value, steps: ir.Value, info: ir.Value
) -> ir.Value:
    """How many elements the kernel can take from where they are: all whole vectors if every operand adjoins, else 0."""
    gap = slot(b, I64)
    b.store(int64(0), gap)
    with loop(b, count) as o:
        off = b.xor(_word(b, steps, o), _word(b, info, b.add(o, int64(SIZES))))
        b.store(b.or_(b.load(gap, typ=I64), off), gap)
    whole = b.and_(n, b.sub(int64(0), lanes))
    return b.select(b.icmp_signed("==", b.load(gap, typ=I64), int64(0)), whole, int64(0))


def copy_function(module: ir.Module, target: Target) -> ir.Function:
    """`gdl.copy(to, to_step, from, from_step, n, padded, size)`: `n` elements, then the last one again up to
    `padded`.
    """
    if "gdl.copy" in module.globals:
        return module.globals["gdl.copy"]
    type = ir.FunctionType(VOID, [POINTER, I64, POINTER, I64, I64, I64, I64])
    made = function(module, target, "gdl.copy", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    to, to_step, source, from_step, n, _, size = made.args
    dense = b.and_(b.icmp_signed("==", to_step, size), b.icmp_signed("==", from_step, size))
    bytes = b.and_(b.mul(n, size), int64(-_CHUNK))
    chunk = ir.VectorType(I8, _CHUNK)
    with loop(b, b.select(dense, bytes, int64(0)), _CHUNK) as i:
        b.store(b.load(at(b, source, i), typ=chunk, align=1), at(b, to, i), align=1)
    start = b.select(dense, b.udiv(bytes, size), int64(0))
    done = made.append_basic_block("done")
    switch = b.switch(size, done)
    for width, type in ((1, I8), (4, I32), (8, I64)):
        block = made.append_basic_block(f"bytes{width}")
        switch.add_case(int64(width), block)
        b.position_at_end(block)
        _copy_elements(b, type, made.args, start)
        b.branch(done)
    b.position_at_end(done)
    b.ret_void()
    return made


def _copy_elements(b: ir.IRBuilder, type: Any, args: Sequence[ir.Value], start: ir.Value) -> None:
    to, to_step, source, from_step, n, padded, _ = args
    align = type.width // 8
    last = at(b, source, b.mul(b.sub(n, int64(1)), from_step))
    for end, first, repeated in ((n, start, False), (padded, n, True)):
        with loop(b, end, start=first) as i:
            place = last if repeated else at(b, source, b.mul(i, from_step))
            b.store(b.load(place, typ=type, align=align), at(b, to, b.mul(i, to_step)), align=align)

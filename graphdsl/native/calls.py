"""Kernels on single numbers, as functions that Python calls directly: `PyCFunction`s whose code is here.

`gdl.call.<operands>.<result>` takes Python numbers, fills one register of each, runs the kernel that `self` (a
capsule) points to, and makes the result a Python number, or an instance of the capsule's context (`numpy.float32`).
Only the stable C interface is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from graphdsl.native.elementwise import CODE, KERNEL, LANES
from graphdsl.native.flow import I8, I32, I64, POINTER, at, call_address, field, intrinsic, slot
from graphdsl.native.folds import splat
from graphdsl.native.names import RECORD, call_name
from graphdsl.native.scalar import memory_type
from graphdsl.native.target import Target, function
from graphdsl.ops.types import BOOL, F32, DType

_CALL = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_DOUBLE = ir.DoubleType()


def define_call(module: ir.Module, target: Target, operands: Sequence[DType], result: DType) -> None:
    """Defines that function, if it is not there."""
    name = call_name(operands, result)
    if name in module.globals:
        return
    made = function(module, target, name, _CALL)
    b = ir.IRBuilder(made.append_basic_block())
    capsule, args, _ = made.args
    info = b.call(
        intrinsic(module, "PyCapsule_GetPointer", POINTER, POINTER, POINTER), [capsule, ir.Constant(POINTER, None)]
    )
    places = slot(b, POINTER, len(operands) + 1)
    for i, dtype in enumerate((*operands, result)):
        register = slot(b, I8, target.vector_bits // 8, align=64)
        b.store(register, at(b, places, i, POINTER))
        if i < len(operands):
            lanes = target.lanes(8 * dtype.bytes)
            value = splat(b, _unboxed(b, dtype, field(b, args, i, POINTER)), lanes)
            b.store(value, register, align=64)
    record = module.globals[RECORD]
    call_address(b, field(b, info, CODE, POINTER), KERNEL, [places, field(b, info, LANES), record])
    value = b.load(field(b, places, len(operands), POINTER), typ=memory_type(result))
    b.ret(_boxed(b, result, value, capsule))


def _unboxed(b: ir.IRBuilder, dtype: DType, number: ir.Value) -> ir.Value:
    """The element in a Python number.

    (The checker saw to its type; a failure leaves its exception set, and Python notices.)
    """
    module = b.module
    if dtype.is_float:
        value = b.call(intrinsic(module, "PyFloat_AsDouble", _DOUBLE, POINTER), [number])
        return b.fptrunc(value, memory_type(F32)) if dtype is F32 else value
    if dtype is BOOL:
        return b.trunc(b.call(intrinsic(module, "PyObject_IsTrue", I32, POINTER), [number]), I8)
    value = b.call(intrinsic(module, "PyLong_AsLongLong", I64, POINTER), [number])
    return value if dtype.bytes == 8 else b.trunc(value, I32)


def _boxed(b: ir.IRBuilder, dtype: DType, value: ir.Value, capsule: ir.Value) -> ir.Value:
    module = b.module
    if dtype is BOOL:
        return b.call(intrinsic(module, "PyBool_FromLong", POINTER, I64), [b.zext(value, I64)])
    if dtype.is_int:
        wide = value if dtype.bytes == 8 else b.sext(value, I64)
        return b.call(intrinsic(module, "PyLong_FromLongLong", POINTER, I64), [wide])
    wide = b.fpext(value, _DOUBLE) if dtype is F32 else value
    number = b.call(intrinsic(module, "PyFloat_FromDouble", POINTER, _DOUBLE), [wide])
    if dtype is not F32:
        return number
    kind = b.call(intrinsic(module, "PyCapsule_GetContext", POINTER, POINTER), [capsule])
    make = module.globals.get("PyObject_CallFunctionObjArgs") or ir.Function(
        module, ir.FunctionType(POINTER, [POINTER], var_arg=True), "PyObject_CallFunctionObjArgs"
    )
    instance = b.call(make, [kind, number, ir.Constant(POINTER, None)])
    forget = intrinsic(module, "Py_DecRef", ir.VoidType(), POINTER)
    b.call(forget, [number])
    return instance

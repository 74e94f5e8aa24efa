"""Applying ops: the Python of one `Apply`, and of literals, placeholders and conversions.

Scalars whose op is one of Python's own are written in place where they have the same bits;
everything else is a call of a kernel, bound when the program is made.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.core import ir
from graphdsl.core.ir import Value
from graphdsl.ops.attrs import frozen
from graphdsl.ops.choosing import cast_attrs
from graphdsl.ops.op import Draw, Elementwise, Host, Scatter
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Size, Type

if TYPE_CHECKING:
    from graphdsl.eager.function import FunctionWriter
    from graphdsl.eager.module import Module

_SPECIAL = {"inf": "inf", "-inf": "(-inf)", "nan": "nan"}
_BITS = {I64: 63, I32: 31}
_SMALL = 2**20  # bytes
_OPERAND = re.compile(r"\b[xyz]\b")


def write(w: FunctionWriter, instr: ir.Apply) -> None:
    """The line of an op, and the line that records it."""
    if len(instr.outs) != 1:
        w.add(f"{w.tuple([w.target(out) for out in instr.outs])} = {expression(w, instr)}", instr)
        return
    out = instr.outs[0]
    _check_size(w, instr)
    record = w.recorder.applied(w, instr, out)
    if _takes_over(w, instr) and not record.saves(0):
        _write_over(w, instr)
        w.record(out, record.text(w.value(out)), instr)
        return
    computed, name = expression(w, instr), w.target(out)
    overwritten = any(record.saves(k) and w.value(a) == name for k, a in enumerate(instr.args))
    if not overwritten:
        w.add(f"{name} = {computed}", instr)
        w.record(out, record.text(name), instr)
    elif record.saves(len(instr.args)):
        w.add(f"{name}, {w.node_target(out)} = (y := {computed}), {record.text('y')}; y = None", instr)
    else:
        w.add(f"{name}, {w.node_target(out)} = {computed}, {record.text(name)}", instr)


def _check_size(w: FunctionWriter, instr: ir.Apply) -> None:
    """What makes a tensor from sizes asks first whether that is allowed; small ones that are known are."""
    sizes, out = instr.attrs.get("sizes"), instr.outs[0].type
    if sizes is None or any(a.type.rank for a in instr.args):
        return
    if all(isinstance(s, int) for s in sizes) and prod(sizes) * out.dtype.bytes <= _SMALL:
        return
    given = w.tuple([w.value(a) for a in instr.args[len(instr.args) - sum(not isinstance(s, int) for s in sizes) :]])
    w.add(f"allow(rt, {w.module.constant(sizes)}, {given}, {out.dtype.bytes})", instr)


def _write_over(w: FunctionWriter, instr: ir.Apply) -> None:
    x = w.value(instr.args[0])
    rest = [w.value(a) for a in instr.args[1:]]
    w.add(f"box = [{x}]; del {x}", instr)
    w.add(f"{w.target(instr.outs[0])} = {_bind(w.module, instr, 'own')}(box, {', '.join(rest)})", instr)
    w.moved.add(instr.args[0])


def expression(w: FunctionWriter, instr: ir.Apply) -> str:
    """What computes the op."""
    args = [w.value(a) for a in instr.args]
    written = _python(w.module, instr, args)
    if written is not None:
        return written
    if isinstance(instr.op.compute, Elementwise) and any(a.type.rank for a in instr.args):
        args = [_as_array(w, a) or text for a, text in zip(instr.args, args, strict=True)]
    state = {Draw: ["rt.random"], Host: ["rt"]}.get(type(instr.op.compute), [])
    how = "apart" if instr in w.plan.apart else "copy"
    return f"{_bind(w.module, instr, how)}({', '.join(state + args)})"


def _as_array(w: FunctionWriter, value: Value) -> str | None:
    """A literal scalar as an array of rank 0, which a ufunc takes faster beside an array."""
    number = w.numbers.get(value)
    if number is None or value.type.rank:
        return None
    name = value.type.dtype.numpy
    return w.module.bound(("array", name, repr(number)), lambda: np.array(number, name), "c")


def _bind(module: Module, instr: ir.Apply, how: str = "copy") -> str:
    types = tuple(a.type for a in instr.args)
    sizes: dict[Size, int] = {}  # kernels differ by which of them are equal, not by what they are

    def numbered(size: Size) -> int:
        return sizes.setdefault(size, len(sizes))

    held = [(t.dtype, t.shape) for t in types]
    key = (how, instr.op, frozen(held, numbered), frozen(instr.attrs, numbered))
    return module.bound(key, lambda: _apart(instr, types) if how == "apart" else _kernel(instr, types, how == "own"))


def _apart(instr: ir.Apply, types: tuple[Type, ...]) -> Any:
    run = _kernel(instr, types, False)
    return lambda *operands: run(*operands).copy()


def _kernel(instr: ir.Apply, types: tuple[Type, ...], own: bool) -> Any:
    from graphdsl.runtime.kernels import kernel  # many programs over scalars need none

    return kernel(instr.op, types, instr.attrs, own)


def _python(module: Module, instr: ir.Apply, args: list[str]) -> str | None:
    """The op as an expression of Python over scalars, if that has the same bits."""
    compute, dtype, out = instr.op.compute, instr.args[0].type.dtype if instr.args else F64, instr.outs[0].type.dtype
    if not isinstance(compute, Elementwise) or any(a.type.rank for a in instr.args):
        return None
    text = compute.python if dtype is F64 or compute.numpy_ints else None
    in_range = dtype.is_int and compute.python_ints is not None
    if in_range:
        text = compute.python_ints
    if text is None:
        return None
    operands = dict(zip("xyz", args, strict=False))
    # Python's ~ takes a bool for an int
    text = _OPERAND.sub(lambda m: operands[m[0]], text.replace("~", "not ") if out is BOOL else text)
    if "kernel" in text:
        text = text.replace("kernel", _bind(module, instr))
    if out in _BITS and not in_range:
        bits = _BITS[out]
        return f"t if {-(2**bits)} <= (t := {text}) <= {2**bits - 1} else wrap{bits + 1}(t)"
    return f"bool({text})" if dtype is F32 and out is BOOL else text


def _takes_over(w: FunctionWriter, instr: ir.Apply) -> bool:
    """Whether the op writes into operand 0 and that has its last use here."""
    if not isinstance(instr.op.compute, Scatter):
        return False
    return instr.args.count(instr.args[0]) == 1 and ends(w, instr.args[0], instr)


def ends(w: FunctionWriter, x: Value, instr: ir.Apply | ir.Call) -> bool:
    """Whether a tensor has its last use here, and its local can go."""
    last = x in w.plan.dies_after.get(instr, ()) or w.plan.names[x] in [w.plan.names[out] for out in instr.outs]
    return last and x.type.rank > 0 and x not in w.literals and w.home.get(x) is w.scope


# ---- literals and conversions --------------------------------------------------------------------------


def literal(module: Module, number: float | int | bool | tuple[Any, ...], type: Type) -> str:
    """A literal as Python text, in its run-time form."""
    if isinstance(number, tuple):
        return module.bound((number, type.dtype, type.shape, repr(number)), lambda: _array(number, type), "c")
    return scalar(module, number, type.dtype)


def scalar(module: Module, number: float | int | bool, dtype: DType) -> str:
    """A scalar as Python text."""
    if dtype is BOOL:
        return repr(bool(number))
    if dtype.is_int:
        return repr(int(number)) if number >= 0 else f"({int(number)})"
    if dtype is F32:
        return module.bound(("f32", repr(float(number))), lambda: np.float32(number), "c")
    text = repr(float(number))
    return _SPECIAL.get(text, f"({text})" if text[0] == "-" else text)


def _array(number: tuple[Any, ...], type: Type) -> Any:
    array = np.array(number, type.dtype.numpy).reshape([d for d in type.shape if isinstance(d, int)])
    array.flags.writeable = False
    return array


def placeholder(module: Module, type: Type) -> str:
    """What stands for a value that is not set and never read."""
    if not type.rank:
        return scalar(module, 0, type.dtype)
    return module.bound(("none", type.dtype, type.rank), lambda: np.zeros((0,) * type.rank, type.dtype.numpy), "c")


def converted(w: FunctionWriter, arg: Value, out: Value) -> str:
    """A value in another dtype, or the same one."""
    if arg.type.dtype is out.type.dtype:
        return w.value(arg)
    attrs = cast_attrs(out.type.dtype, checked=False, weak=False)
    return expression(w, ir.Apply(_NOWHERE, OPS["cast"], (arg,), attrs, (out,)))


_NOWHERE: Any = None

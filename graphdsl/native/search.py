"""Finding the first element that is the extreme of its array: what `argmax` and `argmin` do after `max` and `min`."""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.flow import I64, POINTER, Carried, at, int64
from graphdsl.native.folds import Fold, splat, vector_of
from graphdsl.native.target import Target, function
from graphdsl.ops.types import DType

# search(x, n, value): the place among n adjoining elements, or -1
SEARCH_CODE = ir.FunctionType(I64, [POINTER, I64, POINTER])


def define_search(module: ir.Module, target: Target, dtype: DType) -> ir.Function:
    """The code for one dtype. Signed zeros are equal; where the extreme is nan, any nan is it."""
    name = f"gdl.search.{dtype.value}"
    if name in module.globals:
        return module.globals[name]
    made = function(module, target, name, SEARCH_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    x, n, wanted = made.args
    vector = vector_of(Fold("max", dtype), target)
    value = b.load(wanted, typ=vector.element, align=dtype.bytes)
    every, width = splat(b, value, vector.count), vector.count
    with Carried(b, b.and_(n, int64(-width)), [], width) as turn:
        some = b.bitcast(
            _is(b, dtype, b.load(at(b, x, turn.index, vector.element), typ=vector, align=dtype.bytes), every),
            ir.IntType(width),
        )
        with b.if_then(b.icmp_unsigned("!=", some, ir.Constant(some.type, 0)), likely=False):
            b.ret(_first(b, dtype, x, value, turn.index, n))
    b.ret(_first(b, dtype, x, value, b.and_(n, int64(-width)), n))
    return made


def _is(b: ir.IRBuilder, dtype: DType, x: ir.Value, value: ir.Value) -> ir.Value:
    if not dtype.is_float:
        return b.icmp_signed("==", x, value)
    # there are no nans beside an extreme that is none
    return b.or_(b.fcmp_ordered("==", x, value), b.fcmp_unordered("uno", x, x))


def _first(b: ir.IRBuilder, dtype: DType, x: ir.Value, value: ir.Value, start: ir.Value, n: ir.Value) -> ir.Value:
    """One element at a time, from `start` on."""
    before = b.block
    body, found, done = (b.append_basic_block(name) for name in ("look", "on", "found"))
    b.branch(body)
    b.position_at_end(body)
    i = b.phi(I64)
    i.add_incoming(start, before)
    b.cbranch(b.icmp_signed("<", i, n), found, done)
    b.position_at_end(found)
    element = b.load(at(b, x, i, value.type), typ=value.type, align=dtype.bytes)
    i.add_incoming(b.add(i, int64(1)), found)
    b.cbranch(_is(b, dtype, element, value), done, body)
    b.position_at_end(done)
    result = b.phi(I64)
    result.add_incoming(int64(-1), body)
    result.add_incoming(i, found)
    return result

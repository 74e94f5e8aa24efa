"""Matrix products: every element is one chain of fused multiply-adds from +0.0 for each block of 256 `k`, the blocks
added in order.

Here are the descriptions of products, NumPy's inner loop, and the guards; `product` cuts a product into pieces,
`tiles` computes them.

`gdl.gemm_loop(operands, dims, steps, description)` is NumPy's inner loop for `(m,k),(k,n)->(m,n)`, and what compiled
programs call. The descriptions are `gdl.gemm.<dtype>`. `gdl.gemm_guarded_loop` is the same with a record that adds to
the description a guard and how threads share the work. A guard is about the whole operand: where NumPy loops over
several products, it is the caller who has to look.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import LOOP
from graphdsl.native.flow import I32, I64, POINTER, Carried, at, call_address, field, int64, loop, slot
from graphdsl.native.names import GUARDED_PRODUCT_LOOP, PRODUCT_LOOP, ProductRecord, product
from graphdsl.native.product import MASK, PRODUCT_CODE, Product, define_product
from graphdsl.native.target import Target, function
from graphdsl.native.tiles import WIDE, define_pack, define_thin, define_tile, tile_rows, uneven_rests
from graphdsl.ops.types import F32, F64, DType
from graphdsl.ops.types import I32 as INT32
from graphdsl.ops.types import I64 as INT64

DTYPES = (F32, F64, INT32, INT64)
# share(context, loop, description, operands, dims, steps): as `loop(operands, dims, steps, description)`; 0: all went well
SHARE = ir.FunctionType(I32, [POINTER] * 6)


def define_gemm(module: ir.Module, target: Target) -> list[str]:
    """Defines the products of all dtypes; returns the names of the descriptions."""
    plain = _define_loop(module, target, define_product(module, target))
    _define_guarded_loop(module, target, plain)
    return [_define_description(module, target, dtype) for dtype in DTYPES]


def _define_description(module: ir.Module, target: Target, dtype: DType) -> str:
    rows = tile_rows(target, dtype)
    tiles = {height: define_tile(module, target, dtype, height) for height in sorted(set(rows))}
    numbers = (dtype.bytes, target.vector_bits // 8 * WIDE, _zero_mask(dtype), uneven_rests(rows))
    parts: list[Any] = [int64(number) for number in numbers]
    parts += [define_pack(module, target, dtype), define_thin(module, target, dtype)]
    for height in rows:
        parts += [int64(height), tiles[height]]
    type = ir.LiteralStructType([*[I64] * len(numbers), POINTER, POINTER, *[I64, POINTER] * len(rows)])
    made = ir.GlobalVariable(module, type, product(dtype))
    made.global_constant = True
    made.initializer = ir.Constant(type, parts)
    return str(made.name)


def _zero_mask(dtype: DType) -> int:
    bits = 8 * dtype.bytes
    return (1 << (bits - 1)) - 1 if dtype.is_float else (1 << bits) - 1


# ---- NumPy's inner loop -------------------------------------------------------------------------------


def _define_loop(module: ir.Module, target: Target, product: ir.Function) -> ir.Function:
    made = function(module, target, PRODUCT_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, dims, steps, info = made.args
    sizes = _sizes(b, dims)
    places = slot(b, POINTER, 3)
    core_steps = at(b, steps, 3, I64)
    with loop(b, field(b, dims, 0)) as i:
        for o in range(3):
            place = at(b, field(b, operands, o, POINTER), b.mul(i, field(b, steps, o)))
            b.store(place, at(b, places, o, POINTER))
        b.call(product, [info, sizes, places, core_steps])
    b.ret_void()
    return made


def _sizes(b: ir.IRBuilder, dims: ir.Value) -> ir.Value:
    sizes = slot(b, I64, 3)
    for i, word in enumerate((1, 3, 2)):  # m, n, k, of which NumPy names k second
        b.store(field(b, dims, word), at(b, sizes, i, I64))
    return sizes


def _define_guarded_loop(module: ir.Module, target: Target, plain: ir.Function) -> None:
    """Looks at a guarded operand, and then multiplies, or has the product shared."""
    nonzero = _define_nonzero(module, target)
    made = function(module, target, GUARDED_PRODUCT_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, given, steps, record = made.args
    info, guard = field(b, record, ProductRecord.DESCRIPTION, POINTER), field(b, record, ProductRecord.GUARD)
    dims = slot(b, I64, 4)
    for i in range(4):
        b.store(field(b, given, i), at(b, dims, i, I64))
    one = b.icmp_signed("==", field(b, dims, 0), int64(1))
    sizes = _sizes(b, given)
    for right in (0, 1):
        guarded = b.icmp_signed("!=", b.and_(guard, int64(1 << right)), int64(0))
        with b.if_then(b.and_(one, guarded)):
            place = at(b, steps, 3, I64)
            some = b.call(nonzero, [info, sizes, operands, place, ir.Constant(ir.IntType(1), right)])
            k = b.select(some, field(b, dims, 2), int64(0))  # a product over nothing is +0.0
            b.store(k, at(b, dims, 2, I64))
    share = field(b, record, ProductRecord.SHARE, POINTER)
    with b.if_else(b.icmp_unsigned("==", share, ir.Constant(POINTER, None))) as (alone, shared):
        with alone:
            b.call(plain, [operands, dims, steps, info])
        with shared:
            context = field(b, record, ProductRecord.CONTEXT, POINTER)
            call_address(b, share, SHARE, [context, plain, info, operands, dims, steps])
    b.ret_void()


def _define_nonzero(module: ir.Module, target: Target) -> ir.Function:
    """Whether any element of the right operand, or else of the left one, is not 0: `nonzero(description, sizes,
    operands, steps, right)`, as for a product.
    """
    type = ir.FunctionType(ir.IntType(1), [*PRODUCT_CODE.args, ir.IntType(1)])
    made = function(module, target, "gdl.gemm_nonzero", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    *product, right = made.args
    p = Product(b, product)
    x, rows, columns = b.select(right, p.b, p.a), b.select(right, p.k, p.m), b.select(right, p.n, p.k)
    row_step, column_step = b.select(right, p.b_row, p.a_row), b.select(right, p.b_column, p.a_column)
    wide = b.icmp_signed("==", p.size, int64(8))
    mask = field(b, p.info, MASK)
    found = slot(b, I64)
    b.store(int64(0), found)
    with loop(b, rows) as r, b.if_then(b.icmp_signed("==", b.load(found, typ=I64), int64(0))):
        row = at(b, x, b.mul(r, row_step))
        with b.if_else(wide) as (then, otherwise):
            for branch, element in ((then, I64), (otherwise, I32)):
                with branch:
                    some = _any_bits(b, row, columns, column_step, element)
                    b.store(b.and_(some, mask), found)
    b.ret(b.icmp_signed("!=", b.load(found, typ=I64), int64(0)))
    return made


def _any_bits(b: ir.IRBuilder, row: ir.Value, columns: ir.Value, step: ir.Value, element: Any) -> ir.Value:
    with Carried(b, columns, [ir.Constant(element, 0)]) as turn:
        bits = b.load(at(b, row, b.mul(turn.index, step)), typ=element, align=element.width // 8)
        turn.next = [b.or_(turn.values[0], bits)]
    return turn.out[0] if element is I64 else b.zext(turn.out[0], I64)

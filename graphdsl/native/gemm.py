"""Matrix products: every element is one chain of fused multiply-adds from +0.0 for each block of 256 `k`, the blocks
added in order.

Here are the descriptions of products, NumPy's inner loop, and the guards; `product` cuts a product into pieces,
`tiles` computes them.

`gdl.gemm_loop(operands, dims, steps, description)` is NumPy's inner loop for `(m,k),(k,n)->(m,n)`, and what compiled
programs call. The descriptions are `gdl.gemm.<dtype>`, and `gdl.gemm.<dtype>.guard0`, `.guard1` for `Contract` with
that guard. A guard is about the whole operand: where NumPy loops over several products, it is the caller who has to
look.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from graphdsl.native.elementwise import LOOP
from graphdsl.native.flow import I32, I64, POINTER, Carried, at, field, int64, loop, slot
from graphdsl.native.names import PRODUCT_LOOP, product
from graphdsl.native.product import GUARD, MASK, PRODUCT_CODE, K, Product, define_product
from graphdsl.native.target import Target, function
from graphdsl.native.tiles import WIDE, define_pack, define_thin, define_tile, tile_rows, uneven_rests
from graphdsl.ops.types import F32, F64, DType
from graphdsl.ops.types import I32 as INT32
from graphdsl.ops.types import I64 as INT64

DTYPES = (F32, F64, INT32, INT64)
GUARDS = {"": 0, ".guard0": 1, ".guard1": 2}


def define_gemm(module: ir.Module, target: Target) -> list[str]:
    """Defines the products of all dtypes; returns the names of the descriptions."""
    names = []
    one = define_product(module, target)
    _define_gemm_loop(module, target, one)
    for dtype in DTYPES:
        rows = tile_rows(target, dtype)
        tiles = {height: define_tile(module, target, dtype, height) for height in sorted(set(rows))}
        pack, thin = define_pack(module, target, dtype), define_thin(module, target, dtype)
        width = target.vector_bits // 8 * WIDE
        parts: list[Any] = [
            int64(dtype.bytes),
            int64(width),
            None,
            int64(_zero_mask(dtype)),
            int64(uneven_rests(rows)),
            pack,
            thin,
        ]
        for height in rows:
            parts += [int64(height), tiles[height]]
        type = ir.LiteralStructType([*[I64] * 5, POINTER, POINTER, *[I64, POINTER] * len(rows)])
        for suffix, guard in GUARDS.items():
            parts[GUARD] = int64(guard)
            made = ir.GlobalVariable(module, type, product(dtype) + suffix)
            made.global_constant = True
            made.initializer = ir.Constant(type, parts)
            names.append(made.name)
    return names


def _zero_mask(dtype: DType) -> int:
    bits = 8 * dtype.bytes
    return (1 << (bits - 1)) - 1 if dtype.is_float else (1 << bits) - 1


# ---- NumPy's inner loop -------------------------------------------------------------------------------


def _define_gemm_loop(module: ir.Module, target: Target, product: ir.Function) -> None:
    nonzero = _define_nonzero(module, target)
    made = function(module, target, PRODUCT_LOOP, LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, dims, steps, info = made.args
    sizes = slot(b, I64, 3)
    for i, word in enumerate((1, 3, 2)):  # m, n, k, of which NumPy names k second
        b.store(field(b, dims, word), at(b, sizes, i, I64))
    k = field(b, dims, 2)
    places = slot(b, POINTER, 3)
    one = b.icmp_signed("==", field(b, dims, 0), int64(1))
    guarded = b.and_(one, b.icmp_signed("!=", field(b, info, GUARD), int64(0)))
    core_steps = at(b, steps, 3, I64)
    with loop(b, field(b, dims, 0)) as i:
        for o in range(3):
            place = at(b, field(b, operands, o, POINTER), b.mul(i, field(b, steps, o)))
            b.store(place, at(b, places, o, POINTER))
        with b.if_then(guarded):
            some = b.call(nonzero, [info, sizes, places, core_steps])
            b.store(b.select(some, k, int64(0)), at(b, sizes, K, I64))  # a product over nothing is +0.0
        b.call(product, [info, sizes, places, core_steps])
    b.ret_void()


def _define_nonzero(module: ir.Module, target: Target) -> ir.Function:
    """Whether any element of the guarded operand is not 0: `nonzero(description, sizes, operands, steps)`, as for a
    product.
    """
    type = ir.FunctionType(ir.IntType(1), PRODUCT_CODE.args)
    made = function(module, target, "gdl.gemm_nonzero", type, private=True)
    made.attributes.add("noinline")
    b = ir.IRBuilder(made.append_basic_block())
    p = Product(b, made.args)
    right = b.icmp_signed("==", field(b, p.info, GUARD), int64(2))
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

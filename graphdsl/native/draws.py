"""Random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), and what is
made of it.

Element `j` of a draw comes from block `counter + j` under the key alone. `gdl.draw.<op>.<dtype>` are the inner loops
of gufuncs `(),()->(n)` (key, counter, result); `gdl.block` gives one block's words, for compiled programs and tests.
"""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native import names
from graphdsl.native.elementwise import LOOP, copy_function
from graphdsl.native.flow import I32, I64, POINTER, VOID, at, field, int64, loop, minimum, slot
from graphdsl.native.folds import splat
from graphdsl.native.inventory import Entry
from graphdsl.native.scalar import Llvm
from graphdsl.native.target import Target, function
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import I64 as INT64

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # the golden ratio and the square root of 3, less 1
_ROUNDS = 10
_LOW = 0xFFFFFFFF


def philox(code: Code, key: S, block: S) -> tuple[S, S, S, S]:
    """The four 32-bit words of a block, as i64 below 2**32. The upper half of the 128-bit counter is 0."""

    def upper(x: S) -> S:
        return code.op2("lshr", x, code.const(INT64, 32))

    zero = code.const(INT64, 0)
    c0, c1, c2, c3 = block & _LOW, upper(block), zero, zero
    k0, k1 = key & _LOW, upper(key)
    for turn in range(_ROUNDS):
        if turn:
            k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = upper(right) ^ c1 ^ k0, right & _LOW, upper(left) ^ c3 ^ k1, left & _LOW
    return c0, c1, c2, c3


def define_block(module: ir.Module, target: Target) -> str:
    """`gdl.block(key, block, words)` stores the four words."""
    made = function(module, target, "gdl.block", ir.FunctionType(VOID, [I64, I64, POINTER]))
    b = ir.IRBuilder(made.append_basic_block())
    key, block, words = made.args
    code = Llvm(b, target)
    for i, word in enumerate(philox(code, code.value(INT64, key), code.value(INT64, block))):
        b.store(b.trunc(word.ref, I32), at(b, words, i, I32))
    b.ret_void()
    return str(made.name)


def define_draw(module: ir.Module, target: Target, entry: Entry) -> str:
    """The loop of one distribution over one dtype."""
    lanes = target.lanes(64)
    made = function(module, target, names.draw(entry.name), LOOP)
    b = ir.IRBuilder(made.append_basic_block())
    operands, dims, steps, _ = made.args
    n, step = field(b, dims, 1), field(b, steps, 3)
    copy = copy_function(module, target)
    buffer = slot(b, I64, lanes, align=64)
    code = Llvm(b, target, lanes)
    numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    with loop(b, field(b, dims, 0)) as o:
        key, counter = (_operand(b, operands, steps, i, o) for i in range(2))
        out = at(b, field(b, operands, 2, POINTER), b.mul(o, field(b, steps, 2)))
        keys = code.value(INT64, splat(b, key, lanes))
        with loop(b, n, lanes) as j:
            block = b.add(splat(b, b.add(counter, j), lanes), numbers)
            result = entry.body(code, *philox(code, keys, code.value(INT64, block)))
            size = int64(result.dtype.bytes)
            code.store(result, buffer)
            count = minimum(b, b.sub(n, j), int64(lanes))
            b.call(copy, [at(b, out, b.mul(j, step)), step, buffer, size, count, count, size])
    b.ret_void()
    return str(made.name)


def _operand(b: ir.IRBuilder, operands: ir.Value, steps: ir.Value, i: int, o: ir.Value) -> ir.Value:
    place = at(b, field(b, operands, i, POINTER), b.mul(o, field(b, steps, i)))
    return b.load(place, typ=I64, align=8)

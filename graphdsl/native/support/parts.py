"""How a matrix product is cut into parts for the team: between the products of a stack, columns, or rows."""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.flow import POINTER, field, int64
from graphdsl.native.gemm import SHARE
from graphdsl.native.support import rows
from graphdsl.native.target import Target

SIGNATURES = {"run.product": SHARE}

# A part is whole multiples: rows of the left operand as they fill tiles, columns of the right one as they fill panels.
_ROWS, _COLUMNS = 4, 32
_STACK, _M, _K, _N = range(4)  # dims, as NumPy orders them
# steps: from product to product; then those of (row, column) of each operand
_BETWEEN, _LEFT, _RIGHT, _OUT = 0, 3, 5, 7


def define(module: ir.Module, target: Target, functions: dict[str, ir.Function]) -> None:
    """Defines `run.product(context, loop, description, operands, dims, steps)`."""
    made = functions["run.product"]
    b = ir.IRBuilder(made.append_basic_block())
    context, code, info, operands, dims, steps = made.args
    stack, m, k, n = (field(b, dims, i) for i in range(4))

    def chosen(of_stack: ir.Value, of_columns: ir.Value, of_rows: ir.Value) -> ir.Value:
        # Each part copies what it reads of the right operand: parts of columns copy it once between them.
        one = b.select(b.icmp_signed(">=", n, m), of_columns, of_rows)
        return b.select(b.icmp_signed(">", stack, int64(1)), of_stack, one)

    def step(word: int) -> ir.Value:
        return field(b, steps, word)

    zero = int64(0)
    record = rows.Record(
        code=code,
        data=info,
        which=chosen(int64(_STACK), int64(_N), int64(_M)),
        multiple=chosen(int64(1), int64(_COLUMNS), int64(_ROWS)),
        work=b.mul(b.mul(stack, m), b.mul(k, n)),
        operands=tuple(field(b, operands, i, POINTER) for i in range(3)),
        row_steps=(
            chosen(step(_BETWEEN), zero, step(_LEFT)),
            chosen(step(_BETWEEN + 1), step(_RIGHT + 1), zero),
            chosen(step(_BETWEEN + 2), step(_OUT + 1), step(_OUT)),
        ),
        dims=(stack, m, k, n),
        steps=tuple(step(i) for i in range(9)),
    )
    b.ret(b.call(functions["run.rows"], [context, record.stored(b)]))

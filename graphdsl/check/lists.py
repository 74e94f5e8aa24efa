"""List literals: one constant where all is literal, else the stacked items."""

from __future__ import annotations

from graphdsl.check.context import MOST_DIMS, Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor
from graphdsl.check.values import POISON, Binding, Static, Tensor
from graphdsl.core.emit import literal_type
from graphdsl.core.ir import Const, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import F64, DType, Type, join_dtypes
from graphdsl.syntax import ast

MOST_STATIC = 64  # longer lists are not axes or sizes


@handles(ast.ListLit)
def list_literal(f: Frame, node: ast.ListLit) -> Steps[Binding]:
    if (constant := _constant(node)) is not None:
        f.block.body.append(constant)
        return Tensor(constant.out, _static(constant))
    bindings: list[Binding] = []
    for item in node.items:
        binding: Binding = yield expression(f, item)
        bindings.append(binding)
    found = [as_tensor(f, b, item.span, "an item of a list") for b, item in zip(bindings, node.items, strict=True)]
    values = [v for v in found if v is not None]
    if len(values) < len(found):
        return POISON
    return f.apply("stack", node.span, values, [i.span for i in node.items], axis=0)


def _constant(node: ast.ListLit) -> Const | None:
    """The list as one constant, if it holds only literals and its rows have one length."""
    level: list[ast.Node] = [node]
    shape: list[int] = []
    while level and isinstance(level[0], ast.ListLit):
        lengths = {len(n.items) if isinstance(n, ast.ListLit) else -1 for n in level}
        if len(lengths) > 1 or len(shape) == MOST_DIMS:
            return None
        shape.append(lengths.pop())
        level = [item for n in level for item in n.items]  # type: ignore[attr-defined]
    values: list[float | int | bool] = []
    for item in level:
        if isinstance(item, ast.Number | ast.Bool):
            values.append(item.value)
        elif isinstance(item, ast.Unary) and item.op == "-" and isinstance(item.operand, ast.Number):
            values.append(-item.operand.value)
        else:
            return None
    if any(type(v) is int and v == 2**63 for v in values):
        return None  # only a unary minus makes an int of it
    kinds = {type(v): literal_type(v) for v in values}
    dtype, weak = join_dtypes(list(kinds.values()), F64) if kinds else (F64, True)
    kind = {"bool": bool, "i64": int, "f64": float}[dtype.value]
    return Const(node.span, tuple(map(kind, values)), Value(Type(dtype, tuple(shape), weak)))


def _static(constant: Const) -> Static | None:
    value = constant.value
    if isinstance(value, tuple) and len(value) <= MOST_STATIC and constant.out.type.rank == 1:
        return value if constant.out.type.dtype is not DType.F64 else None
    return None

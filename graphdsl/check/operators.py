"""Operators: arithmetic, comparison, `and` and `or` (which stop early), and what they make of known values."""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor, check_condition, condition
from graphdsl.check.expressions import literal, side
from graphdsl.check.joins import undefined
from graphdsl.check.values import POISON, Binding, Static, Tensor
from graphdsl.core.ir import Apply, Block, Const, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.op import Effect
from graphdsl.ops.signs import OPERATORS, UNARY
from graphdsl.ops.types import BOOL, Type, wrap64
from graphdsl.source.span import Span
from graphdsl.syntax import ast

# those that stop early, with what `graphdsl ops` says of them
EARLY = {
    "and": "`a and b`: Whether both conditions hold; `b` is evaluated only where `a` holds.",
    "or": "`a or b`: Whether a condition holds; `b` is evaluated only where `a` does not hold.",
}

MOST_SQUARINGS = 8  # `x ** k` with a literal k up to this is repeated squaring (grammars/README.md, "Powers")


@handles(ast.Binary)
def binary(f: Frame, node: ast.Binary) -> Steps[Binding]:
    if node.op in EARLY:
        result: Binding = yield short_circuit(f, node)
        return result
    left: Binding = yield expression(f, node.left)
    if node.op == "**" and (k := literal_exponent(node.right)) is not None:
        return power(f, node, left, k)
    right: Binding = yield expression(f, node.right)
    a = as_tensor(f, left, node.left.span, f"the left side of `{node.op}`")
    b = as_tensor(f, right, node.right.span, f"the right side of `{node.op}`")
    if a is None or b is None:
        return POISON
    return operate(f, node.op, node.span, (left, right), (a, b), (node.left.span, node.right.span))


def operate(
    f: Frame,
    op: str,
    span: Span,
    bindings: tuple[Binding, Binding],
    values: tuple[Value, Value],
    spans: tuple[Span, Span],
) -> Binding:
    """Apply a binary operator."""
    result = f.apply(OPERATORS[op], span, values, spans)
    if isinstance(result, Tensor) and (known := _known(op, bindings)) is not None:
        return Tensor(result.value, known)
    return result


def literal_exponent(node: ast.Node) -> int | None:
    """A literal int, small enough that a power by it is repeated squaring."""
    sign = 1
    if isinstance(node, ast.Unary) and node.op == "-":
        node, sign = node.operand, -1
    if isinstance(node, ast.Number) and isinstance(node.value, int) and abs(node.value) <= MOST_SQUARINGS:
        return sign * node.value
    return None


def power(f: Frame, node: ast.Binary, base: Binding, k: int) -> Binding:
    """`x ** k` with a small literal `k`."""
    value = as_tensor(f, base, node.left.span, "the left side of `**`")
    if value is None:
        return POISON
    result = f.apply("powi", node.span, (value,), (node.left.span,), k=k)
    if isinstance(result, Tensor) and isinstance(base, Tensor) and type(base.static) is int and k >= 0:
        return Tensor(result.value, wrap64(base.static**k))
    return result


@handles(ast.Unary)
def unary(f: Frame, node: ast.Unary) -> Steps[Binding]:
    if node.op == "not":
        cond: Value | None = yield condition(f, node.operand, "the operand of `not`")
        return POISON if cond is None else f.apply(UNARY["not"], node.span, (cond,), (node.operand.span,))
    if node.op == "-" and isinstance(node.operand, ast.Number):
        return literal(f, _negated(node.operand.value), node.span)
    operand: Binding = yield expression(f, node.operand)
    value = as_tensor(f, operand, node.operand.span, f"the operand of `{node.op}`")
    if value is None:
        return POISON
    result = f.apply(UNARY[node.op], node.span, (value,), (node.operand.span,))
    match node.op, result, operand:
        case "-", Tensor(value=negative), Tensor(static=int(k) | float(k)) if not isinstance(k, bool):
            return Tensor(negative, _negated(k))
    return result


def _negated(value: int | float) -> int | float:
    return wrap64(-value) if isinstance(value, int) else -value


# ---- and, or ------------------------------------------------------------------------------------------


def short_circuit(f: Frame, node: ast.Binary) -> Steps[Binding]:
    """The right side is evaluated only where the left one does not settle it."""
    left: Value | None = yield condition(f, node.left, f"the left side of `{node.op}`")
    right, binding = yield side(f, node.right)
    value = right_condition(f, node, binding)
    if left is None or (value is None and not f.guessing):
        return POISON
    if value is None:
        return Tensor(undefined(f, Type(BOOL), node.span))
    if _is_plain(right.block):
        f.block.body += right.block.body
        return f.apply("and_" if node.op == "and" else "or_", node.span, (left, value))
    right.block.yields.append(value)
    settled = Block()
    outside = f.open(settled)
    settled.yields.append(f.truth(node.op == "or", node.span))
    f.open(outside)
    out = Value(Type(BOOL))
    then, orelse = (right.block, settled) if node.op == "and" else (settled, right.block)
    f.block.body.append(If(node.span, left, then, orelse, (out,)))
    return Tensor(out)


def right_condition(f: Frame, node: ast.Binary, binding: Binding) -> Value | None:
    """The right side as a scalar bool; the problem is reported as for any condition."""
    value = as_tensor(f, binding, node.right.span, f"the right side of `{node.op}`")
    return None if value is None else check_condition(f, value, node.right, f"the right side of `{node.op}`")


def _is_plain(block: Block) -> bool:
    """Whether nobody could tell if this was evaluated or not: a few comparisons."""
    return len(block.body) <= 4 and all(
        isinstance(i, Const)
        or (
            isinstance(i, Apply)
            and not i.fails
            and i.op.effect is Effect.NONE
            and all(v.type.dtype is BOOL and not v.type.rank for v in i.outs)
        )
        for i in block.body
    )


# ---- known values -------------------------------------------------------------------------------------

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "//": int.__floordiv__,
    "%": int.__mod__,
}


def _known(op: str, bindings: tuple[Binding, Binding]) -> Static | None:
    """The result of int arithmetic on what is known when the program is checked."""
    match bindings:
        case (Tensor(static=a), Tensor(static=b)) if type(a) is int and type(b) is int and op in _ARITHMETIC:
            if op in ("//", "%") and b == 0:
                return None
            return wrap64(_ARITHMETIC[op](a, b))
    return None

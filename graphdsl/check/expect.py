"""Expressions of which something is expected: a tensor, a scalar bool, an int scalar, something known when checked."""

from __future__ import annotations

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.values import (
    Binding,
    Builtin,
    Closure,
    Named,
    Special,
    Static,
    Str,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
)
from graphdsl.core.ir import Block, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import BOOL, I64
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def tensor(f: Frame, node: ast.Node, what: str = "this") -> Steps[Value | None]:
    """The value of an expression that must be a tensor; None where it is not, which is then reported."""
    binding: Binding = yield expression(f, node)
    return as_tensor(f, binding, node.span, what)


def as_tensor(f: Frame, binding: Binding, span: Span, what: str = "this") -> Value | None:
    """The value in a binding that must be a tensor."""
    hint: str | None
    match binding:
        case Tensor(value=value):
            return value
        case Special(kind="poison"):
            return None
        case Tuple() if has_poison(binding):
            return None
        case Tuple():
            hint = "a list `[a, b]` stacks its items to a tensor"
        case Special(kind="nothing"):
            hint = "the function that is called returns nothing"
        case Closure() | Named() | Builtin():
            hint = "call it: `f(x)`"
        case _:
            hint = None
    f.error("E0313", f"{what} must be a tensor, and is {kind_name(binding)}", span, hint)
    return None


def condition(f: Frame, node: ast.Node, what: str = "a condition") -> Steps[Value | None]:
    """A scalar bool."""
    value: Value | None = yield tensor(f, node, what)
    return None if value is None else check_condition(f, value, node, what)


def check_condition(f: Frame, value: Value, node: ast.Node, what: str) -> Value | None:
    """The value, if it is a scalar bool."""
    if value.type.dtype is BOOL and value.type.rank == 0:
        return value
    inner = node.span.text if len(node.span.text) <= 40 and "\n" not in node.span.text else "…"
    inner = inner if value.type.dtype is BOOL else f"{inner} != 0"
    hint = f"`all({inner})` or `any({inner})` makes one bool of it" if value.type.rank else f"compare it: `{inner}`"
    f.error("E0314", f"{what} must be a scalar bool, and is {value.type}", node.span, hint)
    return None


def int_scalar(f: Frame, node: ast.Node, what: str) -> Steps[Value | None]:
    """An int scalar, as i64."""
    binding: Binding = yield expression(f, node)
    return int_scalar_of(f, binding, node, what)


def int_scalar_of(f: Frame, binding: Binding, node: ast.Node, what: str) -> Value | None:
    """The int scalar in a binding, as i64."""
    value = as_tensor(f, binding, node.span, what)
    if value is None:
        return None
    if not value.type.dtype.is_int or value.type.rank:
        hint = "cast it: `i64(…)`" if value.type.dtype.is_float and not value.type.rank else None
        f.error("E0315", f"{what} must be an int scalar, and is {value.type}", node.span, hint)
        return None
    return f.at(node.span).convert(value, I64)


def known(f: Frame, node: ast.Node) -> Steps[tuple[Binding, Static | None]]:
    """An expression that must be known when the program is checked; its instructions are thrown away."""
    outside = f.open(Block())
    mark = f.names.mark()
    binding: Binding = yield expression(f, node)
    f.names.rollback(mark)
    f.open(outside)
    return binding, static_of(binding)


def static_of(binding: Binding) -> Static | None:
    """What a binding is, where that is known."""
    match binding:
        case Tensor(static=static):
            return static
        case Tuple(items=items):
            parts = [static_of(i) for i in items]
            return None if None in parts else tuple(parts)  # type: ignore[arg-type]
        case Str():
            return binding.plain
        case _:
            return None

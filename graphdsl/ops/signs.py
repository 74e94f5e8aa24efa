"""The operators of the language, and the ops that they mean."""

from __future__ import annotations

from graphdsl.ops.op import Op

OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floordiv",
    "%": "mod",
    "@": "matmul",
    "**": "pow",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "&": "and_",
    "|": "or_",
}

UNARY = {"-": "neg", "~": "not_", "not": "not_"}

_SIGNS = {name: sign for table in (UNARY, OPERATORS) for sign, name in table.items()} | {"powi": "**", "not_": "not"}


def sign(op: Op) -> str:
    """How a program writes an op: its operator, or its name."""
    return _SIGNS.get(op.name, op.name)


def unnamed(op: Op) -> bool:
    """Whether no program names an op: it is part of others, and of derivative rules."""
    return op.params is None and op.name not in _SIGNS and op.name != "cast"

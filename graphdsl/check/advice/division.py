"""Int divisions that look meant as float: what they cut off is lost to float arithmetic.

`n // 2` may well be meant so, whatever it is used for. Three forms are not: a quotient of two literals that is not
whole, 1 by something, and the share of how often something holds. And nobody may use the result as an int.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from graphdsl.check.advice.subject import Subject, brief, warning
from graphdsl.core.ir import Apply, Print, Save, Value
from graphdsl.core.structure import operands
from graphdsl.ops.types import BOOL
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.syntax import ast


def cut_quotients(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    found = [(quotient, why) for quotient in s.applied("floordiv") if (why := _why(s, quotient))]
    users = _users(s) if found else {}
    for quotient, why in found:
        use = _float_use(users, quotient)
        if use is not None:
            span = quotient.span
            labels = () if use.span.start <= span.start < use.span.end else (Label(use.span, "used as a float here"),)
            text = brief(span)
            what = f"`{text}`" if text else "this int division"
            better = text.replace("//", "/") if text and text.count("//") == 1 else "/"
            yield warning("W0204", f"{what} {why}", span, f"`{better}` keeps the fraction", *labels)


def _why(s: Subject, quotient: Apply) -> str | None:
    """What is lost, if that cannot be meant."""
    node = s.nodes.get(quotient.span)
    if not quotient.outs[0].type.dtype.is_int or not isinstance(node, ast.Binary):
        return None
    a, b = _written(node.left), _written(node.right)
    if a is not None and b is not None:
        return f"is the int {a // b}" if b and a % b else None
    if b is None and a == 1:
        return "is 0 for every int above 1"
    if b is None and _is_count(s, quotient.args[0]):
        return "is an int, and so a share is 0 or 1"
    return None


def _written(node: ast.Node) -> int | None:
    """The int that is written there."""
    match node:
        case ast.Number(value=int(k)):
            return k
        case ast.Unary(op="-", operand=ast.Number(value=int(k))):
            return -k
    return None


def _is_count(s: Subject, value: Value) -> bool:
    """Whether a value is how many of some bools are true."""
    total = s.applier(value, "sum")
    ones = None if total is None else s.applier(total.args[0], "cast")
    return ones is not None and ones.args[0].type.dtype is BOOL


def _users(s: Subject) -> dict[Value, list[Any]]:
    users: dict[Value, list[Any]] = defaultdict(list)
    for instr in s.instructions():
        for value in operands(instr):
            users[value].append(instr)
    for block in s.links.owner:
        for value in block.yields:
            users[value].append(block)
    return users


def _float_use(users: dict[Value, list[Any]], quotient: Apply) -> Apply | None:
    """The first place where the quotient becomes a float, if it is used as nothing else."""
    uses = [u for u in users.get(quotient.outs[0], ()) if not isinstance(u, Print | Save)]
    floats = [u for u in uses if isinstance(u, Apply) and u.op.name == "cast" and u.outs[0].type.dtype.is_float]
    return floats[0] if floats and len(floats) == len(uses) else None

"""`print`, texts with values in them, and the message of an `assert`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphdsl.check import faults
from graphdsl.check.branches import FALLS, Flow, Path, trial
from graphdsl.check.context import PRINTED, Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor, condition
from graphdsl.check.joins import converted
from graphdsl.check.values import POISON, Binding, Str, Tensor, Tuple, has_poison, kind_name
from graphdsl.core.ir import Block, Fail, If, Item, Print, Text, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Type
from graphdsl.runtime.format import spec_problem
from graphdsl.source.span import Span
from graphdsl.syntax import ast

_GAPS = re.compile(r'"(?:\\.|[^"\\])*"|(?:#[^\n]*|\s)+')


def source_text(span: Span) -> str:
    """An expression as written, each gap one blank."""
    return _GAPS.sub(lambda m: m[0] if m[0][0] == '"' else " ", span.text)


def default_typed(f: Frame, value: Value, span: Span) -> Value:
    """A weak value as the default type: as what it is printed, saved and differentiated."""
    if not value.type.weak or not value.type.dtype.is_float:
        return value
    return converted(f, value, Type(f.setting.default_float, value.type.shape), span)


@handles(ast.PrintStmt)
def print_(f: Frame, stmt: ast.PrintStmt) -> Steps[None]:
    """All items are evaluated, then printed."""
    given: list[tuple[Binding, ast.Expr]] = yield evaluated(f, stmt.items)
    items: list[Item | Text] = []
    good = True
    for binding, node in given:
        for part, name in parts_of(binding, source_text(node.span), "{}[{}]"):
            if isinstance(part, Str):
                items.append(part.parts)
            elif isinstance(part, Tensor):
                items.append(Item(default_typed(f, part.value, node.span), name))
            else:
                good = False
                if not has_poison(part):
                    f.error("E0218", f"{kind_name(part)} cannot be printed", node.span)
        note_scalar(f, binding, node)
    if good:
        f.block.body.append(Print(stmt.span, tuple(items)))


def evaluated(f: Frame, nodes: Sequence[ast.Expr]) -> Steps[list[tuple[Binding, ast.Expr]]]:
    """The items of a statement, all evaluated before anything is done with them."""
    found: list[tuple[Binding, ast.Expr]] = []
    for node in nodes:
        binding: Binding = yield expression(f, node)
        found.append((binding, node))
    return found


def parts_of(binding: Binding, name: str, form: str) -> Iterator[tuple[Binding, str]]:
    """What is no tuple: the binding itself, or the items of a tuple, named by `form` from its name and their number."""
    if not isinstance(binding, Tuple):
        yield binding, name
        return
    for i, item in enumerate(binding.items):
        yield from parts_of(item, form.format(name, i), form)


def note_scalar(f: Frame, binding: Binding, node: ast.Expr) -> None:
    """Remember a float scalar that is bound or printed: `graphdsl grad` differentiates the last one.

    Not what is a declared value or a derivative: nobody means the gradient of `w` itself, or of `grad(loss, w)`."""
    if f.outer is not None or not isinstance(binding, Tensor) or binding.value in f.shared.derived:
        return
    if isinstance(node, ast.Name) and f.shared.kinds.get(node.id) is not None:
        return
    if binding.type.rank == 0 and binding.type.dtype.is_float:
        f.shared.scalars.append(node.id if isinstance(node, ast.Name) else f"{PRINTED}{node.span.start}")


# ---- texts --------------------------------------------------------------------------------------------


@handles(ast.String)
def text(f: Frame, node: ast.String) -> Steps[Binding]:
    """A string; values in it are those of this moment."""
    parts: list[str | Item] = []
    good = True
    for part in node.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        binding: Binding = yield expression(f, part.expr)
        if isinstance(binding, Str) and not part.spec:
            parts += binding.parts
            continue
        value = as_tensor(f, binding, part.expr.span, "a value in a text")
        item = None if value is None else _item(f, part, value)
        good &= item is not None
        if item is not None:
            parts.append(item)
    return Str(tuple(parts)) if good else POISON


def _item(f: Frame, gap: ast.Gap, value: Value) -> Item | None:
    """A value in a text, its format spec checked."""
    value = default_typed(f, value, gap.expr.span)
    if gap.spec:
        if value.type.rank:
            f.error("E0323", f"a format spec needs a scalar, not {value.type}", gap.span)
            return None
        if (problem := spec_problem(gap.spec, value.type.dtype)) is not None:
            f.error("E0323", problem, gap.span)
            return None
    return Item(value, source_text(gap.expr.span), gap.spec or None)


@handles(ast.AssertStmt)
def assert_(f: Frame, stmt: ast.AssertStmt) -> Steps[None]:
    """The message is evaluated only where the condition is false."""
    cond: Value | None = yield condition(f, stmt.cond, "the condition of an `assert`")
    box: list[Binding] = []

    def failing() -> Steps[Flow]:
        if stmt.message is None:
            box.append(Str((f"this does not hold: {source_text(stmt.cond.span)}",)))
        else:
            message: Binding = yield expression(f, stmt.message)
            box.append(message)
        return FALLS

    path: Path = yield trial(f, failing())
    message = box[0]
    if has_poison(message):
        return
    if not isinstance(message, Str):
        assert stmt.message is not None
        f.error("E0219", f"the message of an `assert` is a string, not {kind_name(message)}", stmt.message.span)
        return
    path.block.body.append(Fail(stmt.span, faults.ASSERT, text=message.parts))
    if cond is not None:
        f.block.body.append(If(stmt.span, cond, Block(), path.block, ()))

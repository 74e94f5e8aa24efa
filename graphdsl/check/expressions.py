"""The simple expressions: literals, names, tuples, lambdas, and the choice between two."""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.branches import CHOICE, FALLS, Flow, Path, join_slots, trial
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import condition
from graphdsl.check.values import (
    MOST_LEAVES,
    MOST_LEVELS,
    NONE,
    NOTHING,
    POISON,
    Binding,
    Closure,
    Slot,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
    measure,
)
from graphdsl.core.emit import literal_type
from graphdsl.core.ir import Const, If, Value
from graphdsl.core.steps import Steps
from graphdsl.source.span import Span
from graphdsl.syntax import ast


@handles(ast.Number, ast.Bool)
def number(f: Frame, node: ast.Number | ast.Bool) -> Binding:
    return literal(f, node.value, node.span)


@handles(ast.Name)
def name(f: Frame, node: ast.Name) -> Binding:
    return names.read(f, node)


@handles(ast.NoneLit)
def none(f: Frame, node: ast.NoneLit) -> Binding:
    return NONE


def literal(f: Frame, value: float | int | bool, span: Span) -> Tensor:
    """A literal scalar."""
    out = Value(literal_type(value))
    f.block.body.append(Const(span, value, out))
    return Tensor(out, value)


@handles(ast.Conditional)
def conditional(f: Frame, node: ast.Conditional) -> Steps[Binding]:
    """`a if c else b`: only the side taken is evaluated."""
    cond: Value | None = yield condition(f, node.cond)
    then: tuple[Path, Binding] = yield side(f, node.then)
    orelse: tuple[Path, Binding] = yield side(f, node.orelse)
    return choose(f, node.span, cond, then, orelse)


def side(f: Frame, node: ast.Node) -> Steps[tuple[Path, Binding]]:
    """One side of a choice: what it gives, and the instructions to it."""
    box: list[Binding] = []

    def steps() -> Steps[Flow]:
        result: Binding = yield expression(f, node)
        box.append(result)
        return FALLS

    path: Path = yield trial(f, steps())
    return path, box[0]


def choose(
    f: Frame, span: Span, cond: Value | None, then: tuple[Path, Binding], orelse: tuple[Path, Binding]
) -> Binding:
    """The `If` around two sides that have been checked."""
    if cond is None:
        return POISON
    outs: list[Value] = []
    paths = then[0], orelse[0]
    slots = Slot(then[1], span), Slot(orelse[1], span)
    joined = join_slots(f, span, CHOICE, paths, slots, outs)
    f.block.body.append(If(span, cond, then[0].block, orelse[0].block, tuple(outs)))
    assert joined is not None
    return joined.binding


@handles(ast.TupleLit)
def tuple_literal(f: Frame, node: ast.TupleLit) -> Steps[Binding]:
    items: list[Binding] = []
    for item in node.items:
        binding: Binding = yield expression(f, item)
        if binding is NOTHING or binding is NONE:
            binding = f.error("E0313", f"a tuple cannot hold {kind_name(binding)}", item.span)
        items.append(binding)
    made = Tuple(tuple(items))
    if has_poison(made):
        return POISON
    count, levels = measure(made)
    if count > MOST_LEAVES or levels > MOST_LEVELS:
        message = f"a tuple holds at most {MOST_LEAVES} values, nested {MOST_LEVELS} deep"
        return f.error("E0312", message, node.span)
    return made


@handles(ast.Lambda)
def closure(f: Frame, node: ast.Lambda) -> Binding:
    """A lambda, with what its free names are now."""
    captured: dict[str, Slot | None] = {}
    for name, place in f.shared.outline.free_names(node).items():
        slot = names.variable(f, name)
        if slot is None and (names.is_local(f, name) or names.function(f, name) is None):
            slot = Slot(names.unknown(f, place), node.span)
        if slot is not None:
            captured[name] = slot
    made = f.shared.closures[node] = Closure(node, tuple(captured.items()))
    count, levels = measure(made)
    if count > MOST_LEAVES or levels > MOST_LEVELS:
        return f.error("E0312", "this function captures too much", node.span)
    return made

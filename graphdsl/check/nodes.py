"""Every named value of the top level with its gradient, as `graphdsl grad --all` asks for.

Each time that a name is given a value outside loops and branches is one; of what loops and branches set, the value at the
end is, and of a param that they set, the leaf on which the result last depended. Two names of one value are one.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.context import Frame
from graphdsl.check.derivatives import derivative_type
from graphdsl.check.reads import own_targets, statements
from graphdsl.check.values import Slot, Tensor, Tuple
from graphdsl.core.ir import Checkpoint, Derive, Feed, For, If, ParamTarget, Program, Target, Undef, Value, While
from graphdsl.core.structure import results
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast

_JOINS = (If, While, For, Checkpoint)  # what they give may not be set, and is not of one place in the text


@dataclass(frozen=True)
class Node:
    """One value: `key` names it among the exports and the derivatives. `leaf`: it is the leaf of a param on which the result
    last depended, and not what the export holds."""

    key: str
    name: str
    line: int
    leaf: bool = False


@dataclass(frozen=True)
class _Found:
    """A value to differentiate by, and where a name was given to it; `is_set`: whether it was."""

    name: str
    span: Span
    value: Value
    target: Target
    is_set: Value | None = None


def add_nodes(f: Frame, program: Program, y: Value, span: Span, module: ast.Module) -> tuple[Node, ...]:
    """Take the derivatives of `y` by all of them, in one walk; they are exports and derivatives under the same keys."""
    joined = list(_at_the_end(f, module))
    changing = {node.name for node in joined if isinstance(node.target, ParamTarget)}
    straight = [node for node in _straight(f) if node.name not in changing]
    found = sorted((*straight, *joined), key=lambda node: node.span.start)
    outs = tuple(Value(derivative_type(f, y, node.value)) for node in found)
    if not found:
        return ()
    f.shared.derives = True
    f.block.body.append(Derive(span, "grad", y, tuple(node.target for node in found), None, outs))
    nodes = []
    for i, (node, out) in enumerate(zip(found, outs, strict=True)):
        key = f"$node {i}"
        program.exports[key] = node.value, node.is_set
        program.derivatives[key] = out
        nodes.append(Node(key, node.name, node.span.line, isinstance(node.target, ParamTarget)))
    return tuple(nodes)


def _straight(f: Frame) -> Iterator[_Found]:
    """What the top level computes and names, outside loops and branches."""
    for instr in f.block.body:
        if isinstance(instr, (*_JOINS, Undef)):
            continue
        for value in results(instr):
            span = instr.span if isinstance(instr, Feed) else f.shared.made.get(value)
            if value.name and span is not None and _counts(f, value.name, span, value):
                yield _Found(value.name, span, value, value)


def _at_the_end(f: Frame, module: ast.Module) -> Iterator[_Found]:
    """What loops and branches leave, each at the last place that sets it."""
    joined = {v for instr in f.block.body if isinstance(instr, _JOINS) for v in results(instr)}
    places = {name.id: name.span for stmt in statements(module.body) for name in own_targets(stmt)}
    for name in f.names.names():
        slot = f.names.get(name)
        for part, held in _parts(name, slot):
            if held in joined and slot is not None and _counts(f, part, span := places.get(name, slot.span), held):
                param = f.shared.kinds.get(name) == "param"
                at = f.shared.declared[name] if param else span
                yield _Found(part, at, held, ParamTarget(name) if param else held, slot.is_set)
                joined.discard(held)


def _parts(name: str, slot: Slot | None) -> Iterator[tuple[str, Value]]:
    binding = None if slot is None else slot.binding
    match binding:
        case Tensor(value=value):
            yield name, value
        case Tuple(items=items):
            for i, item in enumerate(items):
                yield from _parts(f"{name}[{i}]", Slot(item, slot.span) if slot is not None else None)


def _counts(f: Frame, name: str, span: Span, value: Value) -> bool:
    own = span.source is f.shared.source and name[0] not in "$%" and "." not in name.partition("[")[0]
    return own and value.type.dtype.is_float and f.shared.kinds.get(name) not in ("const", "dim")

"""The body of a function: its parameters' dims, its statements, and what its `return`s give."""

from __future__ import annotations

from graphdsl.check import faults
from graphdsl.check.branches import DEAD, EXIT, LOST, RESULT, Flow
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.instances import Callee
from graphdsl.check.probes import watch
from graphdsl.check.reads import statements
from graphdsl.check.statements import body as check_statements
from graphdsl.check.types import bind_dims, convert_freely, type_text
from graphdsl.check.values import (
    NOTHING,
    POISON,
    Binding,
    Closure,
    Slot,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
    without_static,
)
from graphdsl.core.ir import Block, Fail, If, Value
from graphdsl.core.steps import Steps
from graphdsl.source.diagnostic import Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def check_body(g: Frame, callee: Callee) -> Steps[Binding]:
    """Check a function's body; returns what it gives."""
    if isinstance(callee, Closure):
        yield watch(g, callee.node.params)
        result: Binding = yield expression(g, callee.node.body)
        return result
    node = callee.node
    for param in node.params:
        slot = g.names.get(param.name.id)
        if param.type is not None and slot is not None and isinstance(slot.binding, Tensor):
            value = bind_dims(g, param.type, slot.binding.value, param.span)
            g.names.set(param.name.id, Slot(POISON if value is None else Tensor(value), slot.span))
    yield watch(g, [param.name for param in node.params])
    flow: Flow = yield check_statements(g, node.body.body)
    return _result(g, node, flow)


def _result(g: Frame, node: ast.FnDef, flow: Flow) -> Binding:
    """What the paths give together; a path that ends without a result fails there."""
    slot = g.names.get(RESULT)
    if slot is None or slot is DEAD or slot is LOST:
        if node.result is not None:
            return g.error("E0215", f"`{node.name.id}` declares a result and never returns one", node.result.span)
        return NOTHING
    if slot.is_set is not None and slot.binding is not NOTHING:
        end = Span(node.span.source, node.span.end - 1, node.span.end)
        failing = Block([], [Fail(end, faults.NO_RESULT, (), (node.name.id,))])
        g.block.body.append(If(end, slot.is_set, Block(), failing, ()))
    return _dims(g, node.result, slot.binding)


def _dims(g: Frame, type: ast.TypeExpr | ast.TupleType | None, binding: Binding) -> Binding:
    """Test the result's sizes against its declared dims."""
    match type, binding:
        case ast.TypeExpr(), Tensor(value=value):
            narrowed = bind_dims(g, type, value, type.span)
            return POISON if narrowed is None else Tensor(narrowed)
        case ast.TupleType(items=types), Tuple(items=items) if len(types) == len(items):
            return Tuple(tuple(_dims(g, t, b) for t, b in zip(types, items, strict=True)))
    return binding


@handles(ast.Return)
def return_(f: Frame, node: ast.Return) -> Steps[Flow]:
    """`return` sets the hidden name of the result, and leaves."""
    result: Binding = NOTHING
    if node.value is not None:
        result = yield expression(f, node.value)
    if not isinstance(f.node, ast.FnDef):
        f.error("E0106", "`return` stands outside a function", node.span)
        f.names.set(EXIT, Slot(NOTHING, node.span))
        return Flow(False, frozenset())
    if node.value is not None:
        result = _declared(f, f.node.result, without_static(result), node.value.span)
    elif gives(f.node):
        f.block.body.append(Fail(node.span, faults.NO_RESULT, (), (f.node.name.id,)))
        result = POISON
    slot = DEAD if node.value is None and result is POISON else Slot(result, node.span)
    f.names.set(RESULT, slot)
    f.names.set(EXIT, Slot(NOTHING, node.span))
    return Flow(False, frozenset())


def gives(node: ast.FnDef) -> bool:
    """Whether some `return` of the function has a value."""
    return any(isinstance(s, ast.Return) and s.value is not None for s in statements(node.body.body))


def _declared(f: Frame, type: ast.TypeExpr | ast.TupleType | None, binding: Binding, span: Span) -> Binding:
    """What is returned, with the declared dtypes."""
    if type is None or has_poison(binding):
        return binding
    labels = (Label(type.span, "declared here"),)
    match type, binding:
        case ast.TypeExpr(), Tensor(value=value):
            converted: Value | None = convert_freely(f, value, DTYPES[type.dtype], span, "the result", type.span)
            if converted is not None and converted.type.rank != len(type.dims):
                message = f"the result must be {type_text(type)}, and is {converted.type}"
                return f.error("E0319", message, span, labels=labels)
            return POISON if converted is None else Tensor(converted)
        case ast.TupleType(items=types), Tuple(items=items) if len(types) == len(items):
            return Tuple(tuple(_declared(f, t, b, span) for t, b in zip(types, items, strict=True)))
        case ast.TypeExpr(), _:
            wanted = type_text(type)
        case _:
            wanted = f"a tuple of {len(type.items)}"
    return f.error("E0313", f"the result must be {wanted}, and is {kind_name(binding)}", span, labels=labels)

"""What `graphdsl grad` asks for: derivatives at the program's end, beside those that the program takes itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement

from graphdsl.check.branches import DEAD, LOST
from graphdsl.check.context import Frame, Request
from graphdsl.check.jacobians import gradient, jacobian
from graphdsl.check.nodes import Node, add_nodes
from graphdsl.check.problems import nearest
from graphdsl.check.reads import statements
from graphdsl.check.values import Tensor, has_poison
from graphdsl.core.ir import ParamTarget, Program, Target, Value
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def params(module: ast.Module) -> tuple[str, ...]:
    """The names of all params."""
    return tuple(s.name.id for s in module.body if isinstance(s, ast.Declare) and s.kind == "param")


def add_derivatives(f: Frame, program: Program, request: Request, module: ast.Module) -> tuple[Node, ...]:
    """Take the derivatives by the names given, else by all params that are floats; or by every node, which are given back.

    What is wrong with a name is said where the name is set."""
    span = Span(f.shared.source, len(f.shared.source.text), len(f.shared.source.text))
    y = _differentiated(f, request.of or "", span)
    if y is None:
        return ()
    if request.every:
        return add_nodes(f, program, y, span, module)
    held = {name: value for name in request.wrt or params(module) if (value := _held(f, name, span, bool(request.wrt)))}
    first = {name: gradient(f, span, y, value, _target(f, name, value)) for name, value in held.items()}
    if request.order == 1:
        program.derivatives.update(first)
        return ()
    _fixed(f, held, module)
    for a, b in combinations_with_replacement(held, 2):
        row, target = first[a], _target(f, b, held[b])
        if isinstance(target, ParamTarget):
            row = _leading_as(f, span, row, y)
        program.derivatives[f"{a},{b}"] = jacobian(f, span, row, held[b], target)
    return ()


def _fixed(f: Frame, held: Iterable[str], module: ast.Module) -> None:
    """A second derivative by a param is there where the text says on which of its leaves `y` last depends."""
    changed = {s.name.id: s for s in statements(module.body) if isinstance(s, ast.Update) and s not in module.body}
    for name in held:
        if name in changed:
            message = f"there is no second derivative by `{name}`, to which a loop or a branch gives new values"
            hint = f"give its value a name before it is used, and differentiate by that: `v = {name}`, `--wrt v`"
            f.error("E0405", message, changed[name].span, hint)


def _target(f: Frame, name: str, held: Value) -> Target:
    return ParamTarget(name) if f.shared.kinds.get(name) == "param" else held


def _leading_as(f: Frame, span: Span, value: Value, y: Value) -> Value:
    """`value`, and beside it `y` with a weight of 0: so the last leaf of a param that leads to it is that of `y`, also where
    the derivative of `y` by this leaf does not depend on the leaf any more."""
    zero = f.at(span).const(0.0, y.type.dtype)
    return f.value("add", span, value, f.value("scale", span, y, zero))


def _differentiated(f: Frame, name: str, span: Span) -> Value | None:
    y = _wanted(f, name, span)
    if y is None:
        return None
    if y.type.rank or not y.type.dtype.is_float:
        hint = "differentiate its sum: `loss = sum(…)`" if y.type.rank else "make it a float: `f64(…)`"
        f.error("E0403", f"`{name}` is {y.type}, and only a float scalar has a gradient", _set_at(f, name), hint)
        return None
    f.shared.asked.setdefault(y, []).append((span, name))
    return y


def _held(f: Frame, name: str, span: Span, by_name: bool) -> Value | None:
    """What a name holds by which to differentiate; where it was not given, only if it can be done."""
    held = _wanted(f, name, span)
    if held is None or (not held.type.dtype.is_float and not by_name):
        return None
    if not held.type.dtype.is_float or f.shared.kinds.get(name) in ("const", "dim"):
        message = f"`{name}` is {held.type}, and has no derivative"
        f.error("E0405", message, _set_at(f, name), "only floats have one")
        return None
    f.shared.asked.setdefault(held, []).append((span, name))
    return held


def _set_at(f: Frame, name: str | None) -> Span:
    """Where a name that holds something was set."""
    slot = f.names.get(name or "")
    assert slot is not None
    return slot.span


def _wanted(f: Frame, name: str, span: Span) -> Value | None:
    slot = f.names.get(name)
    if slot is None or slot is LOST or slot is DEAD:
        close = nearest(name, f.names.names())
        f.error("E0201", f"the program binds no `{name}`", span, f"did you mean `{close}`?" if close else None)
        return None
    if has_poison(slot.binding) or not isinstance(slot.binding, Tensor):
        f.error("E0405", f"`{name}` is no tensor", slot.span)
        return None
    return slot.binding.value

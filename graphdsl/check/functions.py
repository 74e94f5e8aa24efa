"""Calls of functions of the file: each is checked once for each kind of call, and shared by all calls of that kind.

A kind is the types of the arguments, the functions among them, and the types of the outer names that are read. Outer names
and what lambdas captured become further params, so that a checked function sees only its params.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable

from graphdsl.check.arguments import match_arguments
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.custom import cut_off, with_rule
from graphdsl.check.dispatch import expression
from graphdsl.check.instances import Callee, Instance, Passed, emit_call, instance_key, new_frame
from graphdsl.check.outline import Outline
from graphdsl.check.problems import in_order
from graphdsl.check.recursion import call_again, check_recursive, fit_to_params, is_recursive, open_instance
from graphdsl.check.results import check_body
from graphdsl.check.types import convert_freely, type_text
from graphdsl.check.values import (
    NOTHING,
    POISON,
    Binding,
    Closure,
    Named,
    Slot,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
    without_static,
)
from graphdsl.core.steps import Steps
from graphdsl.source.diagnostic import Label
from graphdsl.source.span import Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast

MOST_DEEP = 1000  # calls within one another that are checked, each for its arguments


def call_function(f: Frame, node: ast.CallExpr, args: tuple[ast.Arg, ...], callee: Callee) -> Steps[Binding]:
    """A call of a `fn` or a lambda, as it is written."""
    names = (
        [p.id for p in callee.node.params] if isinstance(callee, Closure) else [p.name.id for p in callee.node.params]
    )
    what = callee_name(callee)
    optional = frozenset(p.name.id for p in _params(callee) if p.default is not None)
    declared = callee.node.name.span if isinstance(callee, Named) else callee.node.span
    found = match_arguments(f, what, node.span, args, names, optional, declared=declared)
    by_arg = {} if found is None else {id(group[0]): name for name, group in found.items()}
    given: dict[str, tuple[Binding, Span]] = {}
    for arg in args:
        binding: Binding = yield expression(f, arg.value)
        if id(arg) in by_arg:
            given[by_arg[id(arg)]] = without_static(binding), arg.value.span
    if found is None:
        return POISON
    result: Binding = yield _with_defaults(f, node.span, callee, names, given)
    return result


def _with_defaults(
    f: Frame, span: Span, callee: Callee, names: list[str], given: dict[str, tuple[Binding, Span]]
) -> Steps[Binding]:
    """Evaluate the defaults of what was left out, and call."""
    for param in _params(callee):
        if param.name.id not in given and param.default is not None:
            view = top_level(f)
            with view.inside(param.default.span.source):
                binding: Binding = yield expression(view, param.default)
            given[param.name.id] = without_static(binding), param.default.span
    result: Binding = yield invoke(f, span, callee, [given[n] for n in names])
    return result


def call_with(f: Frame, span: Span, callee: Callee, args: list[Binding]) -> Steps[Binding]:
    """Call a function with values instead of expressions, by position."""
    names = _param_names(callee)
    needed = [n for n in names if n not in {p.name.id for p in _params(callee) if p.default is not None}]
    if len(args) > len(names) or any(n not in names[: len(args)] for n in needed):
        message = f"{callee_name(callee)} takes {counted(len(names), 'argument')}, and is called with {len(args)} here"
        return f.error("E0209", message, span)
    given = {name: (arg, span) for name, arg in zip(names, args, strict=False)}
    result: Binding = yield _with_defaults(f, span, callee, names, given)
    return result


def _param_names(callee: Callee) -> list[str]:
    if isinstance(callee, Closure):
        return [p.id for p in callee.node.params]
    return [p.name.id for p in callee.node.params]


def callee_name(callee: Callee) -> str:
    """How messages call it."""
    return f"`{callee.node.name.id}`" if isinstance(callee, Named) else "this function"


def _params(callee: Callee) -> tuple[ast.FnParam, ...]:
    return callee.node.params if isinstance(callee, Named) else ()


def top_level(f: Frame) -> Frame:
    """The scope in which a default is evaluated: it sees only top-level names."""
    if f.outer is None:
        return f
    view = copy.copy(f)
    view.own = frozenset()
    return view


def invoke(f: Frame, span: Span, callee: Callee, args: list[tuple[Binding, Span]]) -> Steps[Binding]:
    """Call a function with as many arguments as it has params."""
    if f.depth >= MOST_DEEP:
        return f.error("E0214", f"calls stand in one another more than {MOST_DEEP:,} deep", span)
    fitted = _fit_arguments(f, callee, args)
    if fitted is None or any(has_poison(b) for b in fitted):
        return POISON
    f.shared.called.add(callee.node)
    passed = Passed(callee, fitted, _outer_slots(f, callee, fitted))
    rule = f.shared.outline.rules.get(callee.node) if isinstance(callee, Named) else None
    if rule is None:
        called: Binding = yield _call(f, span, passed)
        return called
    called = yield _call(f, span, cut_off(f, span, passed))
    if has_poison(called):
        return POISON
    result: Binding = yield with_rule(f, span, rule, passed, _outer_slots(f, Named(rule), fitted), called)
    return result


def _call(f: Frame, span: Span, passed: Passed) -> Steps[Binding]:
    callee = passed.callee
    recursive = is_recursive(f.shared, callee)
    if recursive and (opened := open_instance(f.shared, callee)) is not None:
        return call_again(f, span, opened, passed)
    key = instance_key(f.shared, passed)
    instance = f.shared.instances.get(key)
    if instance is None:
        problems = f.shared.problems.mark()
        instance = yield check_recursive(f, passed) if recursive else _check(f, key, passed)
        f.shared.instances[key] = instance
        instance.problems = list(in_order(f.shared.problems.take(problems)))
    elif not instance.done:
        message = f"{callee_name(callee)} calls itself by way of a function that it was given"
        return f.error("E0225", message, span, "name it in its own text, and declare its result")
    if recursive:
        passed = fit_to_params(f, instance, passed, span)
    label = Label(span, f"in this call of {callee_name(callee)}")
    f.shared.problems.add(instance.problems, label)
    if has_poison(instance.result):
        return POISON
    return emit_call(f, span, instance, passed)


def _check(f: Frame, key: Hashable, passed: Passed) -> Steps[Instance]:
    """Check the body of a function for one kind of call; it is known from the start, so that a call of itself shows."""
    instance = f.shared.instances[key] = Instance.begin(passed.callee)
    g = new_frame(f, instance, passed)
    result: Binding = yield check_body(g, passed.callee)
    instance.finish(g, result)
    return instance


def _fit_arguments(f: Frame, callee: Callee, args: list[tuple[Binding, Span]]) -> list[Binding] | None:
    """The arguments, converted as the annotations say; sizes that are known to disagree are reported here."""
    if isinstance(callee, Closure):
        for binding, span in args:
            if binding is NOTHING:
                f.error("E0211", "this gives nothing, and stands where a value is needed", span)
                return None
        return [b for b, _ in args]
    dims: dict[str, tuple[int, Span]] = {}
    fitted = []
    for param, (binding, span) in zip(callee.node.params, args, strict=True):
        fitted.append(_fit(f, param, binding, span, dims))
    return fitted


def _fit(f: Frame, param: ast.FnParam, binding: Binding, span: Span, dims: dict[str, tuple[int, Span]]) -> Binding:
    if param.type is None or has_poison(binding):
        return binding
    what = f"`{param.name.id}`"
    labels: tuple[Label, ...] = (Label(param.type.span, "declared here"),)
    if not isinstance(binding, Tensor):
        message = f"{what} must be {type_text(param.type)}, and is {kind_name(binding)}"
        return f.error("E0313", message, span, labels=labels)
    value = convert_freely(f, binding.value, DTYPES[param.type.dtype], span, what, param.type.span)
    if value is None:
        return POISON
    if value.type.rank != len(param.type.dims):
        message = f"{what} must be {type_text(param.type)}, and is {value.type}"
        return f.error("E0319", message, span, labels=labels)
    for axis, (dim, has) in enumerate(zip(param.type.dims, value.type.shape, strict=True)):
        wanted: object = dim
        if isinstance(dim, ast.Name) and isinstance(has, int):
            wanted, place = dims.setdefault(dim.id, (has, span))
            labels = (*labels, Label(place, f"{wanted} here")) if wanted != has else labels
        if isinstance(wanted, int) and isinstance(has, int) and wanted != has:
            message = f"axis {axis} of {what} has size {has}, and should have {wanted}"
            return f.error("E0319", message, span, labels=labels)
    return Tensor(value)


# ---- outer names --------------------------------------------------------------------------------------


def _outer_slots(f: Frame, callee: Callee, args: Iterable[Binding]) -> list[tuple[str, Slot | None]]:
    """The top-level names that the call reads, as they are now."""
    names: set[str] = set()
    _outer_names(f.shared.outline, (callee, *args), names)
    source = f.names.get if f.outer is None else f.outer.get
    return [(name, source(name)) for name in sorted(names)]


def _outer_names(outline: Outline, bindings: Iterable[Binding], names: set[str]) -> None:
    for binding in bindings:
        match binding:
            case Named(node=node):
                names |= outline.outer[node]
            case Closure(node=node, captured=captured):
                names |= lambda_outer(outline, node)
                _outer_names(outline, (s.binding for _, s in captured if s is not None), names)
            case Tuple(items=items):
                _outer_names(outline, items, names)


def lambda_outer(outline: Outline, node: ast.Lambda) -> frozenset[str]:
    """The top-level names that the functions named in a lambda read."""
    if node not in outline.lambdas:
        called = [outline.functions[name] for name in outline.free_names(node) if name in outline.functions]
        outline.lambdas[node] = frozenset(name for c in called for name in outline.outer[c])
    return outline.lambdas[node]

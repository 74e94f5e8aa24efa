"""Derivative rules of a function's own: `vjp f(x; y, gy) = …`.

A rule is checked like a function, once for each kind of call of the function whose rule it is: with its arguments, its
results, and a cotangent for each result. It is called where a derivative comes to such a call, so it may have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphdsl.check.context import Frame, Shared
from graphdsl.check.instances import Instance, Passed, instance_key, new_frame
from graphdsl.check.reads import statements
from graphdsl.check.results import check_body
from graphdsl.check.types import seed_for
from graphdsl.check.values import (
    POISON,
    Binding,
    Named,
    Slot,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
    leaves,
    rebuild,
    slot_leaves,
)
from graphdsl.core.effects import outward
from graphdsl.core.ir import Custom, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Type
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast

Outer = list[tuple[str, Slot | None]]


def cut_off(f: Frame, span: Span, passed: Passed) -> Passed:
    """The same call, into which no derivative goes."""

    def cut(value: Value) -> Value:
        return f.value("stop_gradient", span, value) if value.type.dtype.is_float else value

    args = [rebuild(arg, cut) for arg in passed.args]
    outer = [(name, None if slot is None else _cut_slot(slot, cut)) for name, slot in passed.outer]
    return Passed(passed.callee, args, outer)


def _cut_slot(slot: Slot, cut: Callable[[Value], Value]) -> Slot:
    return Slot(rebuild(slot.binding, cut), slot.span, slot.is_set, slot.why)


def with_rule(f: Frame, span: Span, rule: ast.FnDef, passed: Passed, outer: Outer, result: Binding) -> Steps[Binding]:
    """What a call gave, with the derivative that `rule` says. `passed` is the call as it was written."""
    parts: list[Binding] = list(result.items) if isinstance(result, Tuple) else [result]
    if not _fits(f, rule, passed, parts):
        return POISON
    targets = [v for arg in passed.args if _is_float(arg) for v in leaves(arg)]
    if not targets or not any(v.type.dtype.is_float for v in leaves(result)):
        return result
    cotangents = [rebuild(part, lambda v: _cotangent(f, span, v)) for part in parts]
    call = Passed(Named(rule), [*passed.args, *parts, *cotangents], outer)
    roles = list(_roles(call, len(passed.args), len(parts)))
    instance: Instance = yield _instance(f, rule, call, len(passed.args), roles)
    problems = Label(span, f"in this call of `{rule.name.id}`")
    f.shared.problems.add(instance.problems, problems)
    values = list(call.values())
    given = tuple(v for v, role in zip(values, roles, strict=True) if role == _GIVEN)
    made = tuple(v for v, role in zip(values, roles, strict=True) if role == _MADE)
    outs = {v: Value(v.type, v.name) for v in made}
    f.block.body.append(Custom(span, instance.func, tuple(targets), given, tuple(outs), tuple(outs.values())))
    return rebuild(result, lambda v: outs.get(v, v))


# ---- what a rule is given ------------------------------------------------------------------------------

_GIVEN, _MADE, _COTANGENT = range(3)  # in this order they are a rule's params


def _roles(call: Passed, args: int, parts: int) -> Iterator[int]:
    """What each value is that a rule is given: results that are floats, and their cotangents, are known by the walk."""
    for i, binding in enumerate(call.args):
        for value in leaves(binding):
            walked = i >= args and value.type.dtype.is_float
            yield _GIVEN if not walked else _MADE if i < args + parts else _COTANGENT
    for slot in call.slots():
        yield from (_GIVEN for _ in slot_leaves(slot))


def _cotangent(f: Frame, span: Span, value: Value) -> Value:
    """What stands for the cotangent of a result; an int has none but zeros."""
    if value.type.dtype.is_float:
        return Value(Type(value.type.dtype, value.type.shape))
    return f.value("zeros_like", span, value)


def _is_float(binding: Binding) -> bool:
    """Whether an argument has a cotangent: a float, or a tuple of floats."""
    match binding:
        case Tensor(value=value):
            return value.type.dtype.is_float
        case Tuple(items=items):
            return all(_is_float(item) for item in items)
    return False


def _fits(f: Frame, rule: ast.FnDef, passed: Passed, parts: list[Binding]) -> bool:
    """Whether the rule names each result, and a cotangent for it."""
    name = rule.name.id
    for part in parts:
        if not all(isinstance(p, Tensor | Tuple) for p in _flat(part)):
            f.error("E0408", f"`{name}` gives {kind_name(part)}, which has no derivative", rule.name.span)
            return False
    named = (len(rule.params) - len(passed.args)) // 2
    if named != len(parts):
        message = f"`{name}` gives {counted(len(parts), 'result')}, and its `vjp` names {named}"
        f.error("E0408", message, rule.name.span, "after `;` come the results, then a cotangent for each")
        return False
    return True


def _flat(binding: Binding) -> Iterator[Binding]:
    if isinstance(binding, Tuple):
        for item in binding.items:
            yield from _flat(item)
    else:
        yield binding


# ---- one kind of call ----------------------------------------------------------------------------------


def _instance(f: Frame, rule: ast.FnDef, call: Passed, args: int, roles: list[int]) -> Steps[Instance]:
    """The rule checked for this kind of call. It may call the function whose rule it is."""
    key = instance_key(f.shared, call)
    if key in f.shared.instances:
        return f.shared.instances[key]
    instance = f.shared.instances[key] = Instance.begin(Named(rule))
    instance.func.name = f"vjp {rule.name.id}"
    f.shared.rules.append(instance)
    f.shared.called.add(rule)
    problems = f.shared.problems.mark()
    g = new_frame(f, instance, call)
    bound = [g.names.get(p.name.id) for p in rule.params[:args]]
    wanted = [slot.binding for slot in bound if slot is not None and _is_float(slot.binding)]
    before, f.shared.in_rule = f.shared.in_rule, True
    result: Binding = yield check_body(g, Named(rule))
    f.shared.in_rule = before
    fitted = _fit(g, rule, result, wanted)
    instance.params = [p for _, p in sorted(zip(roles, instance.params, strict=True), key=lambda pair: pair[0])]
    instance.finish(g, fitted)
    instance.problems = f.shared.problems.take(problems)
    return instance


def _fit(g: Frame, rule: ast.FnDef, result: Binding, wanted: list[Binding]) -> Binding:
    """The cotangents that a rule gives, each of the type of its argument."""
    if has_poison(result):
        return POISON
    returned = [s.value for s in statements(rule.body.body) if isinstance(s, ast.Return)]
    span = returned[-1].span if returned and returned[-1] is not None else rule.name.span
    given = list(result.items) if isinstance(result, Tuple) and len(wanted) > 1 else [result]
    if len(given) != len(wanted):
        message = (
            f"a derivative rule of `{rule.name.id}` gives {counted(len(wanted), 'cotangent')}, and not {len(given)}"
        )
        return g.error("E0408", message, span, "one for each argument that is a float")
    fitted = [_one(g, rule, cotangent, like, span) for cotangent, like in zip(given, wanted, strict=True)]
    return POISON if any(b is POISON for b in fitted) else Tuple(tuple(fitted))


def _one(g: Frame, rule: ast.FnDef, cotangent: Binding, like: Binding, span: Span) -> Binding:
    match cotangent, like:
        case Tensor(value=value), Tensor(value=x):
            fitted = seed_for(g, value, x, x.type.dtype, span, f"the cotangent of `{x.name}`")
            return POISON if fitted is None else Tensor(fitted)
        case Tuple(items=items), Tuple(items=xs) if len(items) == len(xs):
            parts = [_one(g, rule, item, x, span) for item, x in zip(items, xs, strict=True)]
            return POISON if any(b is POISON for b in parts) else Tuple(tuple(parts))
    what = "a tensor" if isinstance(like, Tensor) else "a tuple like it"
    return g.error("E0408", f"the cotangent of an argument is {what}, and not {kind_name(cotangent)}", span)


# ---- effects -------------------------------------------------------------------------------------------


def effects_in_rules(shared: Shared) -> Iterator[Diagnostic]:
    """An error for each effect in a rule or in what it calls: when and how often a rule is called is not said."""
    seen = set()
    for instance in shared.rules:
        for instr in outward(instance.func):
            if instr not in seen:
                seen.add(instr)
                yield Diagnostic(
                    "E0409",
                    "a derivative rule has no effects: it prints, saves, loads and draws nothing",
                    instr.span,
                    "do it in the function, and give what the rule needs as one more result",
                    (Label(instance.func.span, "this rule gets here"),),
                )

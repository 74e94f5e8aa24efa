"""Loops and branches as functions: `while_loop`, `cond`, `fold`, `scan`, `map`. They are written out as the core's own."""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.applying import apply_function, function_argument
from graphdsl.check.branches import FALLS, Flow, Path, trial
from graphdsl.check.calls import Args, evaluate_all
from graphdsl.check.carrying import Carried, Trip, carried_loop, start_region, write
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.expect import as_tensor, check_condition, condition
from graphdsl.check.expressions import choose
from graphdsl.check.sources import Source, rows_of
from graphdsl.check.stacking import finish_stack, stack_item
from graphdsl.check.values import NOTHING, POISON, Binding, Slot, Tuple, has_poison, kind_name, without_static
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import I64, Type
from graphdsl.source.span import Span
from graphdsl.syntax import ast

Given = tuple[Binding, Span]


def positional(f: Frame, node: ast.CallExpr, args: Args, what: str, least: int) -> Steps[list[Given] | None]:
    """All arguments, evaluated in order; they have no names."""
    given: list[Given] = []
    for arg in args:
        binding: Binding = yield expression(f, arg.value)
        given.append((without_static(binding), arg.value.span))
    if len(args) < least or any(a.name is not None for a in args):
        f.error("E0209", f"`{what}` takes at least {least} arguments, by position", node.span)
        return None
    return None if any(has_poison(b) for b, _ in given) else given


def _hidden(node: ast.CallExpr, kind: str, count: int) -> list[str]:
    return [f"%{kind}{node.span.start}.{node.span.end}.{i}" for i in range(count)]


def _held(f: Frame, carried: list[str]) -> list[Binding]:
    slots = [f.names.get(n) for n in carried]
    return [POISON if s is None else s.binding for s in slots]


def _set(f: Frame, carried: list[str], bindings: list[Binding], span: Span) -> None:
    for name, binding in zip(carried, bindings, strict=True):
        f.names.set(name, Slot(without_static(binding), span))


def _carried(f: Frame, node: ast.CallExpr, what: str, names: list[str]) -> Carried:
    why = "there was no trip"
    return Carried(names, node.span, why, why, {n: f.names.get(n) for n in names}, called=f"`{what}`")


def _results(f: Frame, carried: list[str]) -> list[Binding]:
    """What the hidden names hold in the end; they are free again."""
    found = _held(f, carried)
    for name in carried:
        f.names.set(name, None)
    return found


def _one_or_tuple(bindings: list[Binding]) -> Binding:
    if any(has_poison(b) for b in bindings):
        return POISON
    return bindings[0] if len(bindings) == 1 else Tuple(tuple(bindings))


# ---- while_loop ---------------------------------------------------------------------------------------


def while_loop(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`while_loop(cond, body, init…)`: The values that `body` makes of the ones before, as long as `cond` of them holds."""
    given: list[Given] | None = yield positional(f, node, args, "while_loop", 3)
    if given is None:
        return POISON
    (test, test_span), (step, step_span), *inits = given
    if not (function_argument(f, test, test_span, "`cond`") and function_argument(f, step, step_span, "`body`")):
        return POISON
    carried = _hidden(node, "carry", len(inits))
    _set(f, carried, [b for b, _ in inits], node.span)

    def trip(loop: Carried) -> Steps[Trip]:
        cond = start_region(f, loop)
        outside = f.open(cond)
        flag: Binding = yield apply_function(f, test_span, test, _held(f, carried))
        value = as_tensor(f, flag, test_span, "what `cond` gives")
        good = None if value is None else check_condition(f, value, args[0].value, "what `cond` gives")
        cond.yields.append(f.truth(False, test_span) if good is None else good)
        block = start_region(f, loop)
        f.open(block)
        result: Binding = yield apply_function(f, step_span, step, _held(f, carried))
        _set(f, carried, _parts(f, result, len(carried), step_span), node.span)
        f.open(outside)
        return Trip(cond, block)

    loop = _carried(f, node, "while_loop", carried)
    made, ends = yield carried_loop(f, node, loop, trip)
    write(f, loop, made, ends)
    return _one_or_tuple(_results(f, carried))


def _parts(f: Frame, result: Binding, count: int, span: Span) -> list[Binding]:
    """What a body gives, one for each carried value."""
    if count == 1:
        return [result]
    if isinstance(result, Tuple) and len(result.items) == count:
        return list(result.items)
    if not has_poison(result):
        shown = "nothing" if result is NOTHING else kind_name(result)
        f.error("E0216", f"the body must give a tuple of {count}, one for each value carried, and gives {shown}", span)
    return [POISON] * count


# ---- cond ---------------------------------------------------------------------------------------------


def cond_form(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`cond(p, f, g, args…)`: What `f(args…)` gives where `p` holds, else `g(args…)`."""
    if len(args) < 3 or any(a.name is not None for a in args):
        f.error("E0209", "`cond` takes a condition and two functions, then their arguments", node.span)
        yield evaluate_all(f, args)
        return POISON
    test: Value | None = yield condition(f, args[0].value)
    given: list[Given] | None = yield positional(f, node, args[1:], "cond", 2)
    if given is None or not all(function_argument(f, b, s, "a side of `cond`") for b, s in given[:2]):
        return POISON
    passed = [b for b, _ in given[2:]]
    sides: list[tuple[Path, Binding]] = []
    for callee, span in given[:2]:
        box: list[Binding] = []
        path: Path = yield trial(f, _boxed(f, span, callee, passed, box))
        sides.append((path, box[0]))
    return choose(f, node.span, test, sides[0], sides[1])


def _boxed(f: Frame, span: Span, callee: Binding, passed: list[Binding], box: list[Binding]) -> Steps[Flow]:
    result: Binding = yield apply_function(f, span, callee, passed)
    box.append(result)
    return FALLS


# ---- over rows ----------------------------------------------------------------------------------------


def fold(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`fold(f, init, xs)`: The last carry of a loop over rows; `f(carry, x)` gives the next carry."""
    result: Binding = yield _over_rows(f, node, args, "fold", True, False)
    return result


def scan(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`scan(f, init, xs)`: The last carry and the stacked `y`s; `f(carry, x)` gives the next carry and a `y`."""
    result: Binding = yield _over_rows(f, node, args, "scan", True, True)
    return result


def map_form(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`map(f, xs…)`: The stacked results of `f` on each row."""
    result: Binding = yield _over_rows(f, node, args, "map", False, True)
    return result


def _over_rows(f: Frame, node: ast.CallExpr, args: Args, what: str, carries: bool, stacks: bool) -> Steps[Binding]:
    given: list[Given] | None = yield positional(f, node, args, what, 2 + carries)
    if given is not None and carries and len(given) > 3:
        f.error("E0209", f"`{what}` takes 3 arguments, and {len(given)} are given", node.span)
        given = None
    if given is None or not function_argument(f, *given[0], f"the first argument of `{what}`"):
        return POISON
    (step, span), inputs = given[0], given[1 + carries :]
    source: Source | None = rows_of(f, inputs, node.span, as_arguments=not carries)
    if source is None:
        return POISON
    carry = _hidden(node, "carry", 1) if carries else []
    stacked = _hidden(node, "stack", 1) if stacks else []
    _set(f, carry, [given[1][0]] if carries else [], node.span)

    def trip(loop: Carried) -> Steps[Trip]:
        block = start_region(f, loop)
        number = Value(Type(I64))
        block.params.insert(0, number)
        outside = f.open(block)
        row = source.item(f, number)
        passed = list(row.items) if not carries and isinstance(row, Tuple) else [row]
        result: Binding = yield apply_function(f, span, step, [*_held(f, carry), *passed])
        if carries:
            parts = _parts(f, result, 2, span) if stacks else [result]
            _set(f, carry, parts[:1], node.span)
            result = parts[-1]
        if stacks:
            stack_item(f, stacked[0], result, source, number, node.span)
        f.open(outside)
        return Trip(None, block)

    loop = _carried(f, node, what, [*carry, *stacked])
    made, ends = yield carried_loop(f, node, loop, trip)
    if stacks:
        finish_stack(f, loop, stacked[0], source, node.span)
    write(f, loop, made, ends, source.count)
    return _one_or_tuple(_results(f, [*carry, *stacked]))


names.FORMS.update({"while_loop": while_loop, "cond": cond_form, "fold": fold, "scan": scan, "map": map_form})

"""Functions that call themselves. Their result is the declared one; the types of their params are those of the call from
outside, joined with those of the calls inside until nothing changes, as a loop's are.

While a function is checked it is *open*: a call of it from its own text is a call of the instance being checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.context import Frame, Shared
from graphdsl.check.instances import Instance, Passed, emit_call, new_frame
from graphdsl.check.joins import Fixed, Joiner, JoinProblem, Shape, converted, shape_of, types_in
from graphdsl.check.results import check_body, gives
from graphdsl.check.types import declared_type
from graphdsl.check.values import NOTHING, POISON, Binding, Named, Tensor, Tuple, leaves, rebuild
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.type_rules import same_dim
from graphdsl.ops.types import Dim, Size, Type
from graphdsl.source.diagnostic import Label
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span
from graphdsl.syntax import ast


@dataclass(eq=False, slots=True)
class Open:
    """An instance of a recursive function that is being checked, with the types of the values in its arguments; `grown`:
    those that a call inside joined to more."""

    node: ast.FnDef
    instance: Instance
    args: list[Binding]
    types: list[Type]
    grown: dict[int, Type] = field(default_factory=dict)


def is_recursive(shared: Shared, callee: object) -> bool:
    """Whether the text of a function calls it, directly or through others."""
    return isinstance(callee, Named) and callee.node in shared.outline.recursive


def open_instance(shared: Shared, callee: object) -> Open | None:
    """The innermost one of this function that is being checked."""
    return next((o for o in reversed(shared.open) if isinstance(callee, Named) and o.node is callee.node), None)


# ---- from outside -------------------------------------------------------------------------------------


def check_recursive(f: Frame, passed: Passed) -> Steps[Instance]:
    """Check a function's body until the types of its params hold all that it is called with."""
    shared, callee = f.shared, passed.callee
    assert isinstance(callee, Named)
    types = list(_types(passed.args))
    while True:
        marks = shared.problems.mark(), len(shared.warnings), len(shared.instances)
        args = _of_types(passed.args, types)
        instance = Instance.begin(callee)
        g = new_frame(f, instance, Passed(callee, args, passed.outer))
        inside = [slot.binding for p in callee.node.params if (slot := g.names.get(p.name.id)) is not None]
        instance.result = _declared(callee.node, inside)
        opened = Open(callee.node, instance, inside, types)
        shared.open.append(opened)
        result: Binding = yield check_body(g, callee)
        shared.open.pop()
        if not opened.grown:
            instance.finish(g, result)
            return instance
        shared.problems.take(marks[0])
        del shared.warnings[marks[1] :]
        for key in list(shared.instances)[marks[2] :]:  # they may call what was given up
            del shared.instances[key]
        types = [opened.grown.get(i, t) for i, t in enumerate(types)]


def _of_types(args: list[Binding], types: list[Type]) -> list[Binding]:
    """Such arguments, but of these types."""
    rest = iter(types)
    return [rebuild(arg, lambda v: Value(next(rest), v.name)) for arg in args]


def fit_to_params(f: Frame, instance: Instance, passed: Passed, span: Span) -> Passed:
    """The arguments with the dtypes that the params have by now."""
    params = iter(instance.params)

    def fit(value: Value) -> Value:
        type = next(params).type
        same = value.type.dtype is type.dtype and value.type.weak == type.weak
        return value if same else converted(f, value, type.with_shape(value.type.shape), span)

    return Passed(passed.callee, [rebuild(arg, fit) for arg in passed.args], passed.outer)


def _declared(node: ast.FnDef, args: list[Binding]) -> Binding:
    """What a function gives, by its declaration. A dim of a param is the one that the param has."""
    known: dict[str, Dim] = {}
    for param, arg in zip(node.params, args, strict=True):
        if param.type is not None and isinstance(arg, Tensor):
            names = zip(param.type.dims, arg.type.shape, strict=False)
            known.update((d.id, dim) for d, dim in names if isinstance(d, ast.Name))

    def dim(name: ast.Name | None) -> Dim:
        size = Size(None, f"the result of `{node.name.id}`")
        return size if name is None else known.setdefault(name.id, size)

    def made(type: ast.TypeExpr | ast.TupleType) -> Binding:
        if isinstance(type, ast.TupleType):
            return Tuple(tuple(made(t) for t in type.items))
        return Tensor(Value(declared_type(type, dim)))

    return NOTHING if node.result is None else made(node.result)


# ---- from inside --------------------------------------------------------------------------------------


def call_again(f: Frame, span: Span, opened: Open, passed: Passed) -> Binding:
    """A call that a function makes of itself."""
    node, name = opened.node, f"`{opened.node.name.id}`"
    if node.result is None and gives(node):
        hint = f"as in `fn {node.name.id}(…) -> f64`"
        labels = (Label(node.name.span, "declared here"),)
        return f.error("E0223", f"{name} calls itself, and has to declare its result", span, hint, labels)
    for param, mine, arg in zip(node.params, opened.args, passed.args, strict=True):
        problem = _other(f, shape_of(mine), shape_of(arg))
        if problem is not None:
            message = f"{name} calls itself with another `{param.name.id}`: it {problem}"
            hint = "a recursive call has the dtypes, ranks and functions of the call that it stands in"
            return f.error("E0224", message, span, hint, (Label(param.span, "declared here"),))
    opened.grown.update(_grown(opened, list(_types(passed.args))))
    if opened.grown:
        return POISON  # all of this is checked again
    return emit_call(f, span, opened.instance, fit_to_params(f, opened.instance, passed, span))


def _types(args: list[Binding]) -> Iterator[Type]:
    return (v.type for arg in args for v in leaves(arg))


def _other(f: Frame, mine: Shape, given: Shape) -> str | None:
    """What is not the same, other than sizes."""
    joiner = Joiner(f.setting.default_float, lambda _path, _axis: Size(None, None))
    try:
        joined = joiner.join(mine, given)
    except JoinProblem as problem:
        if isinstance(mine, Fixed) and isinstance(given, Fixed):
            return "is not the function that it was called with"
        return str(problem).replace("on one path", "outside").replace("on another", "inside")
    for before, after, type in zip(types_in(mine), types_in(joined), types_in(given), strict=True):
        if before.dtype is not after.dtype or (before.dtype is not type.dtype and not type.weak):
            return f"is {before} outside and {type} inside"
    return None


def _grown(opened: Open, given: list[Type]) -> dict[int, Type]:
    """The types of params that do not hold what is given: sizes that differ, or that are equal outside alone; weak
    values. The axes become sizes of their own."""
    found: dict[int, Type] = {}
    same: dict[Dim, Dim] = {}
    mine = list(_types(opened.args))
    for i, (param, arg) in enumerate(zip(mine, given, strict=True)):
        dims: list[Dim] = []
        for axis, (p, d) in enumerate(zip(param.shape, arg.shape, strict=True)):
            holds = same_dim(p, d) if isinstance(p, int) else same_dim(same.setdefault(p, d), d)
            dims.append(opened.types[i].shape[axis] if holds else Size(None, _why(opened, i)))
        weak = param.weak and arg.weak
        if weak != param.weak or tuple(dims) != opened.types[i].shape:
            found[i] = Type(param.dtype, tuple(dims), weak)
    return found


def _why(opened: Open, leaf: int) -> str:
    for param, arg in zip(opened.node.params, opened.args, strict=True):
        count = sum(1 for _ in leaves(arg))
        if leaf < count:
            return f"`{param.name.id}`, which changes from call to call"
        leaf -= count
    raise AssertionError("no argument holds this value")

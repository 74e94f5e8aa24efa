"""Assignments: `x = …`, `x: f64[n] = …`, `x += …`, `a, b = …`, and `w := …`."""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor
from graphdsl.check.files import load, load_call
from graphdsl.check.indexing import assign_place, chain_of, places_of, read_target, store
from graphdsl.check.loops import unpack
from graphdsl.check.operators import operate
from graphdsl.check.printing import note_scalar
from graphdsl.check.types import Bound, annotated, convert_freely, match_dim
from graphdsl.check.values import NONE, POISON, Binding, Slot, Tensor, Tuple, has_poison, kind_name
from graphdsl.core.ir import Leaf, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Dim, Type
from graphdsl.source.diagnostic import Label
from graphdsl.source.words import counted
from graphdsl.syntax import ast


@handles(ast.Assign)
def assign(f: Frame, stmt: ast.Assign) -> Steps[None]:
    if stmt.op is not None:
        yield _augmented(f, stmt, stmt.targets[0], stmt.op)
    elif len(stmt.targets) > 1:
        yield _unpacked(f, stmt)
    elif isinstance(stmt.targets[0], ast.Index):
        yield assign_place(f, stmt.targets[0], None, stmt.value)
    else:
        yield _single(f, stmt, stmt.targets[0])


def _single(f: Frame, stmt: ast.Assign, name: ast.Name) -> Steps[None]:
    """`x = …`, perhaps annotated."""
    if stmt.type is not None and (call := load_call(f, stmt.value)) is not None:
        binding: Binding = yield load(f, call, stmt.type)
    else:
        binding = yield expression(f, stmt.value)
    if binding is NONE:
        binding = f.error("E0313", "`none` stands in an index or as an argument", stmt.value.span)
    if stmt.type is not None:
        binding = annotated(f, binding, stmt.type, stmt.value.span, f"`{name.id}`")
    if names.assignable(f, name):
        names.bind(f, name, binding)
        note_scalar(f, binding, name)


def _augmented(f: Frame, stmt: ast.Assign, target: ast.Name | ast.Index, op: str) -> Steps[None]:
    """`x += …`"""
    if isinstance(target, ast.Index):
        yield assign_place(f, target, op, stmt.value)
        return
    before = names.read(f, target)
    given: Binding = yield expression(f, stmt.value)
    x = as_tensor(f, before, target.span, f"the left side of `{op}=`")
    v = as_tensor(f, given, stmt.value.span, f"the right side of `{op}=`")
    result: Binding = POISON
    if x is not None and v is not None:
        result = operate(f, op, stmt.span, (POISON, POISON), (x, v), (target.span, stmt.value.span))
    if names.assignable(f, target, f"`{op}=`"):
        names.bind(f, target, result)
        note_scalar(f, result, target)


def _unpacked(f: Frame, stmt: ast.Assign) -> Steps[None]:
    """`a, b = …`: the right side, then the targets from left to right."""
    given: Binding = yield expression(f, stmt.value)
    if all(isinstance(t, ast.Name) for t in stmt.targets):
        name_targets = tuple(t for t in stmt.targets if isinstance(t, ast.Name))
        unpack(f, name_targets, given, stmt.value.span)
        if isinstance(given, Tuple):
            for name, part in zip(name_targets, given.items, strict=False):
                note_scalar(f, part, name)
        return
    parts: tuple[Binding, ...] = (POISON,) * len(stmt.targets)
    if isinstance(given, Tuple) and len(given.items) == len(parts):
        parts = given.items
    elif not has_poison(given):
        f.error("E0216", f"{kind_name(given)} does not unpack into {counted(len(parts), 'place')}", stmt.value.span)
    for target, part in zip(stmt.targets, parts, strict=True):
        yield _one_target(f, target, part, stmt.value)


def _one_target(f: Frame, target: ast.Name | ast.Index, part: Binding, value: ast.Expr) -> Steps[None]:
    if isinstance(target, ast.Name):
        if names.assignable(f, target):
            names.bind(f, target, part)
        return
    chain = chain_of(target)
    name = chain[0].value
    if not isinstance(name, ast.Name):
        f.error("E0207", "only a name, or a place in one, can be assigned to", name.span)
        return
    base = read_target(f, name)
    places = yield places_of(f, chain)
    new = store(f, base, places, part, value, None)
    if names.assignable(f, name, "an indexed assignment"):
        names.bind(f, name, POISON if new is None else new)


@handles(ast.Update)
def update(f: Frame, stmt: ast.Update) -> Steps[None]:
    """`w := …`: a fresh leaf of the same type."""
    name = stmt.name
    given: Binding = yield expression(f, stmt.value)
    if f.outer is not None:
        f.error("E0220", "`:=` stands at top level: a function cannot set a param", stmt.span)
        return
    if f.shared.kinds.get(name.id) != "param":
        hint = f"write `{name.id} = …`" if name.id in f.shared.outline.variables else None
        f.error("E0220", f"`:=` sets a param, and `{name.id}` is none", name.span, hint)
        return
    slot = f.names.get(name.id)
    if slot is None:
        names.unknown(f, name)
        return
    value = as_tensor(f, given, stmt.value.span, f"the value of `{name.id}`")
    old = slot.binding
    if value is None or not isinstance(old, Tensor):
        return
    fitting = same_type_value(f, stmt, value, old.value)
    if fitting is not None:
        leaf(f, name, fitting, old.type.shape)
        note_scalar(f, Tensor(fitting), name)


def same_type_value(f: Frame, stmt: ast.Update, value: Value, old: Value) -> Value | None:
    """The new value, converted; it must have the dtype, rank and sizes of the old one."""
    declared = f.shared.declared[stmt.name.id]
    span = stmt.value.span
    fitting = convert_freely(f, value, old.type.dtype, span, f"the new value of `{stmt.name.id}`", declared)
    if fitting is None:
        return None
    if fitting.type.rank != old.type.rank:
        labels = (Label(declared, f"`{stmt.name.id}` is {old.type}"),)
        f.error("E0319", f"`{stmt.name.id}` is {old.type}, and its new value {value.type}", span, labels=labels)
        return None
    for axis, dim in enumerate(old.type.shape):
        wanted = f.size(old, axis, span) if fitting.type.shape[axis] is not dim else old
        if not match_dim(f, fitting, axis, Bound(dim, wanted), span, declared):
            return None
    return fitting


def leaf(f: Frame, name: ast.Name, value: Value, shape: tuple[Dim, ...]) -> None:
    """A fresh value of a param, with no history."""
    out = Value(Type(value.type.dtype, shape), name.id)
    f.block.body.append(Leaf(name.span, name.id, value, out))
    f.shared.made[out] = f.shared.declared.get(name.id, name.span)
    f.names.set(name.id, Slot(Tensor(out), name.span))

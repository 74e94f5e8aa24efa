"""`param`, `input` and `const`: names with rules of their own, at top level only."""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.assignment import leaf
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor
from graphdsl.check.files import load, load_call
from graphdsl.check.joins import converted
from graphdsl.check.printing import note_scalar
from graphdsl.check.types import Problem, annotated, bind_dims, wanted_dim
from graphdsl.check.values import POISON, Binding, Slot, Tensor, without_static
from graphdsl.core.effects import outward
from graphdsl.core.ir import Block, Feed, Func, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Dim, Size, Type
from graphdsl.source.diagnostic import Label
from graphdsl.syntax import ast


def _of_module(f: Frame, stmt: ast.Declare, before: int) -> None:
    """A const of a module may be computed, and no more."""
    computed = Func(stmt.name.id, Block(body=f.block.body[before:]), stmt.span)
    for instr in outward(computed):
        labels = (Label(stmt.name.span, "this const"),)
        f.error("E0228", "a const of a module prints, saves, loads and draws nothing", instr.span, labels=labels)


@handles(ast.Declare)
def declare(f: Frame, stmt: ast.Declare) -> Steps[None]:
    name = stmt.name
    if not _may_stand(f, stmt):
        if stmt.value is not None:
            yield expression(f, stmt.value)
        f.names.set(name.id, Slot(POISON, name.span))
        return
    if stmt.kind == "const":
        yield _const(f, stmt)
    elif name.id in f.shared.request.fed or stmt.value is None:
        yield _fed(f, stmt)
    else:
        binding: Binding = yield _default(f, stmt)
        _bind(f, stmt, binding)
    f.shared.kinds[name.id] = stmt.kind
    f.shared.declared[name.id] = name.span


def _may_stand(f: Frame, stmt: ast.Declare) -> bool:
    if f.outer is not None or f.blocks_deep:
        f.error("E0108", f"`{stmt.kind}` stands at top level only, outside loops and branches", stmt.span)
        return False
    if (before := f.shared.declared.get(stmt.name.id)) is not None:
        labels = (Label(before, "declared here"),)
        f.error("E0203", f"`{stmt.name.id}` is declared already", stmt.name.span, labels=labels)
        return False
    if (slot := f.names.get(stmt.name.id)) is not None:
        labels = (Label(slot.span, "set here"),)
        f.error("E0203", f"`{stmt.name.id}` is a variable already", stmt.name.span, labels=labels)
        return False
    return True


def _value(f: Frame, stmt: ast.Declare) -> Steps[Binding]:
    """The default as written, or as its annotation says."""
    assert stmt.value is not None
    binding: Binding
    if stmt.type is not None and (call := load_call(f, stmt.value)) is not None:
        binding = yield load(f, call, stmt.type)
    else:
        binding = yield expression(f, stmt.value)
    if stmt.type is not None:
        binding = annotated(f, binding, stmt.type, stmt.value.span, f"`{stmt.name.id}`")
    return binding


def _const(f: Frame, stmt: ast.Declare) -> Steps[None]:
    """A const stays weak, and known where it is."""
    if stmt.value is None:
        f.error("E0221", f"the const `{stmt.name.id}` has no value", stmt.span)
        names.bind(f, stmt.name, POISON)
        return
    before = len(f.block.body)
    with f.inside(stmt.span.source):
        binding: Binding = yield _value(f, stmt)
    names.bind(f, stmt.name, binding, keep_static=True)
    if stmt.span.source is not f.shared.source:
        _of_module(f, stmt, before)
    elif f.names.get(stmt.name.id) is not None:
        note_scalar(f, binding, stmt.name)


def _default(f: Frame, stmt: ast.Declare) -> Steps[Binding]:
    """The default of a param or an input, as a strong value."""
    assert stmt.value is not None
    binding: Binding = yield _value(f, stmt)
    value = as_tensor(f, binding, stmt.value.span, f"the value of `{stmt.name.id}`")
    if value is None:
        return POISON
    if value.type.weak:
        dtype = f.setting.default_float if value.type.dtype.is_float else value.type.dtype
        value = converted(f, value, Type(dtype, value.type.shape), stmt.value.span)
    return Tensor(value)


def _bind(f: Frame, stmt: ast.Declare, binding: Binding) -> None:
    if stmt.kind == "param" and isinstance(binding, Tensor):
        leaf(f, stmt.name, binding.value, binding.type.shape)
    else:
        names.bind(f, stmt.name, without_static(binding))
    note_scalar(f, binding, stmt.name)


def _fed(f: Frame, stmt: ast.Declare) -> Steps[None]:
    """A first value from outside; the default only says its type, and is not evaluated."""
    if stmt.value is None and stmt.type is None:
        hint = f"write its type, `{stmt.kind} {stmt.name.id}: f64[n]`, or a default"
        f.error("E0221", f"`{stmt.name.id}` has neither a type nor a value", stmt.span, hint)
        names.bind(f, stmt.name, POISON)
        return
    if stmt.value is None and stmt.kind == "param" and stmt.name.id not in f.shared.request.fed:
        f.error(
            "E0221", f"the param `{stmt.name.id}` has no first value", stmt.span, f"write `param {stmt.name.id} = …`"
        )
        names.bind(f, stmt.name, POISON)
        return
    if stmt.type is not None:
        type: Type | None = _declared_type(f, stmt.type)
    else:
        outside = f.open(Block())
        binding: Binding = yield _default(f, stmt)
        f.open(outside)
        type = None
        if isinstance(binding, Tensor):
            type = binding.type.with_shape(tuple(Size(None, f"the fed `{stmt.name.id}`") for _ in binding.type.shape))
    if type is None:
        names.bind(f, stmt.name, POISON)
        return
    out: Value | None = Value(type, stmt.name.id)
    assert out is not None
    f.block.body.append(Feed(stmt.name.span, stmt.name.id, out))
    if stmt.type is not None:
        out = bind_dims(f, stmt.type, out, stmt.name.span)
    _bind(f, stmt, POISON if out is None else Tensor(out))


def _declared_type(f: Frame, type: ast.TypeExpr) -> Type | None:
    """The annotation as a type. A name bound by an earlier feed is the same size, which is tested before the run."""
    dims: list[Dim] = []
    fresh: dict[str, Size] = {}
    for dim in type.dims:
        if isinstance(dim, int):
            dims.append(dim)
        elif dim is None:
            dims.append(Size())
        else:
            bound = wanted_dim(f, dim)
            if isinstance(bound, Problem):
                return None
            if bound is None:
                dims.append(fresh.setdefault(dim.id, Size(dim.id)))
            else:
                dims.append(bound.dim if bound.dim in f.shared.fed_sizes else Size())
    f.shared.fed_sizes.update(fresh.values())
    return Type(DTYPES[type.dtype], tuple(dims))

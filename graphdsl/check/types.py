"""Annotations: `f64[n, 3]` against a value. Dim names are bound where they first stand, and tested afterwards."""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check import faults
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.joins import converted
from graphdsl.check.values import POISON, Binding, Slot, Tensor, has_poison, kind_name
from graphdsl.core.ir import Block, Fail, If, Value
from graphdsl.ops.types import BOOL, Dim, DType, Size, Type, converts_freely
from graphdsl.source.diagnostic import Label
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def convert_freely(
    f: Frame, value: Value, dtype: DType, span: Span, what: str, where: Span | None = None, hint: str | None = None
) -> Value | None:
    """`value` as `dtype`, if that loses nothing; a derivative looks through it. `hint`: what helps better than a cast."""
    if converts_freely(value.type, dtype):
        f.at(span)
        return converted(f, value, Type(dtype, value.type.shape), span)
    labels = (Label(where, "asked for here"),) if where is not None else ()
    shown = f"weak {value.type}" if value.type.weak else str(value.type)
    if hint is None:
        text = _short(span)
        hint = f"cast it: `{dtype.value}({text})`" if dtype is not BOOL else f"compare it: `{text} != 0`"
    f.error(
        "E0318", f"{what} must be {dtype.value}, and {shown} does not convert to it without loss", span, hint, labels
    )
    return None


def _short(span: Span) -> str:
    text = " ".join(span.text.split())
    return text if len(text) <= 40 else "…"


def annotated(f: Frame, binding: Binding, type: ast.TypeExpr, span: Span, what: str) -> Binding:
    """A binding as its annotation says."""
    if has_poison(binding):
        bind_dims(f, type, None, span)
        return POISON
    if not isinstance(binding, Tensor):
        bind_dims(f, type, None, span)
        return f.error("E0313", f"{what} must be {type_text(type)}, and is {kind_name(binding)}", span)
    value = convert_freely(f, binding.value, DTYPES[type.dtype], span, what, type.span)
    if value is None:
        bind_dims(f, type, None, span)
        return POISON
    if value.type.rank != len(type.dims):
        bind_dims(f, type, None, span)
        labels = (Label(type.span, "declared here"),)
        return f.error("E0319", f"{what} must be {type_text(type)}, and is {value.type}", span, labels=labels)
    narrowed = bind_dims(f, type, value, span)
    return POISON if narrowed is None else Tensor(narrowed)


def declared_type(type: ast.TypeExpr, dim: Callable[[ast.Name | None], Dim]) -> Type:
    """An annotation as a type; `dim` gives what stands for a name, or for `_`."""
    return Type(DTYPES[type.dtype], tuple(d if isinstance(d, int) else dim(d) for d in type.dims))


def type_text(type: ast.TypeExpr) -> str:
    """An annotation as written."""
    dims = ", ".join("_" if d is None else d.id if isinstance(d, ast.Name) else str(d) for d in type.dims)
    return f"{type.dtype}[{dims}]" if type.dims else type.dtype


# ---- dims ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """A dim name that is bound: the dim, and its value."""

    dim: Dim
    value: Value


def bind_dims(f: Frame, type: ast.TypeExpr, value: Value | None, span: Span) -> Value | None:
    """Test a value against the dims of its annotation, and bind the names that are new.

    Returns the value with what is known now; with `value` None, the names are only bound, to something unknown.
    """
    dims: list[Dim] = []
    fits = True
    for axis, dim in enumerate(type.dims):
        if value is None:
            _bind_unknown(f, dim)
            continue
        has = value.type.shape[axis]
        wanted = _wanted(f, dim, value, axis)
        if wanted is None:
            dims.append(has)
        elif isinstance(wanted, Problem):
            fits = False
        else:
            fits &= match_dim(f, value, axis, wanted, span, type.span)
            dims.append(wanted.dim)
    if value is None or not fits:
        return None
    return converted(f, value, Type(value.type.dtype, tuple(dims)), span)


class Problem:
    """A dim name that could not be used; reported."""


def _wanted(f: Frame, dim: int | ast.Name | None, value: Value, axis: int) -> Bound | Problem | None:
    match dim:
        case None:
            return None
        case int():
            return Bound(dim, value)
    bound = wanted_dim(f, dim)
    if bound is None:
        _bind_new(f, dim, value, axis)
    return bound


def wanted_dim(f: Frame, dim: ast.Name) -> Bound | Problem | None:
    """What a dim name asks for; None: it is new here."""
    slot = f.names.get(dim.id)
    is_dim = dim.id in f.dims if f.outer is not None else f.shared.kinds.get(dim.id) == "dim"
    if slot is None:
        if f.blocks_deep:
            f.error("E0206", f"`{dim.id}` is bound nowhere, and inside loops and branches no dim is bound", dim.span)
            return Problem()
        return None
    if not is_dim:
        labels = (Label(slot.span, "set here"),)
        f.error("E0205", f"`{dim.id}` is no dim: it holds something else already", dim.span, labels=labels)
        return Problem()
    if not isinstance(slot.binding, Tensor):
        return Problem()  # reported where it was bound
    value, static = slot.binding.value, slot.binding.static
    return Bound(static if type(static) is int else f.shared.sizes[value], value)


def _bind_new(f: Frame, name: ast.Name, value: Value, axis: int) -> None:
    """The first time that a dim name stands: it is the size that is found there."""
    dim = value.type.shape[axis]
    if isinstance(dim, Size):
        dim.name = dim.name or name.id
        dim.why = dim.why or f"axis {axis} of `{value.name or name.id}` at line {name.span.line}"
    size = f.size(value, axis, name.span)
    size.name = name.id
    f.names.set(name.id, Slot(Tensor(size, dim if isinstance(dim, int) else None), name.span))
    _is_dim(f, name)


def _bind_unknown(f: Frame, dim: int | ast.Name | None) -> None:
    if isinstance(dim, ast.Name) and f.names.get(dim.id) is None:
        f.names.set(dim.id, Slot(POISON, dim.span))
        _is_dim(f, dim)


def _is_dim(f: Frame, name: ast.Name) -> None:
    if f.outer is not None:
        f.dims.add(name.id)
    else:
        f.shared.kinds[name.id] = "dim"
        f.shared.declared.setdefault(name.id, name.span)


def match_dim(f: Frame, value: Value, axis: int, wanted: Bound, span: Span, where: Span | None = None) -> bool:
    """Test that an axis has a size: now where both are known, else as the program runs."""
    has = value.type.shape[axis]
    if has is wanted.dim or (isinstance(has, int) and isinstance(wanted.dim, int) and has == wanted.dim):
        return True
    if isinstance(has, int) and isinstance(wanted.dim, int):
        labels = (Label(where, f"{wanted.dim} here"),) if where is not None else ()
        f.error("E0319", f"axis {axis} has size {has}, and should have {wanted.dim}", span, labels=labels)
        return False
    found = f.size(value, axis, span)
    target = f.whole(wanted.dim, span) if isinstance(wanted.dim, int) else wanted.value
    number = f.whole(axis, span)
    labels = () if where is None else (Label(where, "declared here"),)
    failing = Block([], [Fail(span, faults.DIM, (found, target, number), labels=labels)])
    f.block.body.append(If(span, f.value("ne", span, found, target), failing, Block(), ()))
    return True


def seed_for(f: Frame, value: Value, like: Value, dtype: DType, span: Span, what: str) -> Value | None:
    """A cotangent or tangent: of the shape of `like`."""
    fitted = convert_freely(f, value, dtype, span, what)
    if fitted is None:
        return None
    if fitted.type.rank != like.type.rank:
        f.error("E0406", f"{what} must be shaped like {like.type}, and is {value.type}", span)
        return None
    for axis, dim in enumerate(like.type.shape):
        wanted = like if fitted.type.shape[axis] is dim else f.size(like, axis, span)
        if not match_dim(f, fitted, axis, Bound(dim, wanted), span):
            return None
    return converted(f, fitted, Type(dtype, like.type.shape), span)

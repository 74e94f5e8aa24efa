"""Indexing, `x[…]`, and assignment to places, `x[…] = v`: items become the `spec` of the ops `index` and `update`."""

from __future__ import annotations

from typing import Any

from graphdsl.check import names
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor, known
from graphdsl.check.operators import operate
from graphdsl.check.types import convert_freely
from graphdsl.check.values import NONE, POISON, Binding, Special, Static, Tensor, Tuple, kind_name
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import BOOL
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast

Entry = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """An index, evaluated: the spec, its operands, and where it stands."""

    spec: tuple[Entry, ...]
    operands: tuple[Value, ...]
    node: ast.Index

    @property
    def ints_only(self) -> bool:
        return all(entry[0] == "int" for entry in self.spec)


@handles(ast.Index)
def index(f: Frame, node: ast.Index) -> Steps[Binding]:
    base: Binding = yield expression(f, node.value)
    if isinstance(base, Tuple):
        part: Binding = yield tuple_part(f, base, node)
        return part
    place: Place | None = yield place_of(f, node)
    x = as_tensor(f, base, node.value.span, "what is indexed")
    return POISON if x is None or place is None else read_place(f, x, place)


def read_place(f: Frame, x: Value, place: Place) -> Binding:
    """`x[…]`"""
    spec = _without_ellipsis(place, x.type.rank)
    match f.shared.shapes.get(x), spec:
        case Value() as whole, (("int", int(axis)),) if -whole.type.rank <= axis < whole.type.rank:
            return Tensor(f.size(whole, axis % whole.type.rank, place.node.span))
    if _is_all_of_scalar(x, spec):
        # A scalar has no elements to pick from: what its new axes do is a reshape.
        return f.apply("reshape", place.node.span, (x,), (place.node.value.span,), sizes=(1,) * len(spec))
    return f.apply("index", place.node.span, (x, *place.operands), (place.node.value.span,), spec=spec)


def tuple_part(f: Frame, base: Tuple, node: ast.Index) -> Steps[Binding]:
    """`t[0]`: which part must be known when the program is checked."""
    if len(node.items) != 1 or isinstance(node.items[0], ast.Slice | ast.Ellipsis_ | ast.NoneLit):
        return f.error("E0321", "a tuple takes one int as its index", node.span)
    item = node.items[0]
    found: tuple[Binding, Static | None] = yield known(f, item)
    binding, k = found
    if binding is POISON:
        return POISON
    if type(k) is not int:
        message = "an index into a tuple must be known when the program is checked"
        return f.error("E0320", message, item.span, "a literal, a const, or arithmetic on these")
    if not -len(base.items) <= k < len(base.items):
        return f.error("E0321", f"index {k} is out of range for a tuple of {len(base.items)}", item.span)
    return base.items[k]


def place_of(f: Frame, node: ast.Index) -> Steps[Place | None]:
    """Evaluate the items of an index, left to right."""
    spec: list[Entry] = []
    operands: list[Value] = []
    good = True
    for item in node.items:
        match item:
            case ast.Slice():
                words = []
                for part in (item.start, item.stop, item.step):
                    word: object = None if part is None else (yield _word(f, part, operands))
                    good &= word is not POISON
                    words.append(word)
                spec.append(("full",) if words == [None, None, None] else ("slice", *words))
            case ast.Ellipsis_():
                if ("...",) in spec:
                    f.error("E0321", "`...` stands at most once in an index", item.span)
                    good = False
                spec.append(("...",))
            case _:
                binding: Binding = yield expression(f, item)
                entry = _entry(f, binding, item, operands)
                good &= entry is not None
                if entry is not None:
                    spec.append(entry)
    return Place(tuple(spec), tuple(operands), node) if good else None


def _word(f: Frame, node: ast.Expr, operands: list[Value]) -> Steps[object]:
    """A bound or the step of a slice: a known int, or "v" and an operand."""
    binding: Binding = yield expression(f, node)
    if isinstance(binding, Tensor) and type(binding.static) is int:
        return binding.static
    value = as_tensor(f, binding, node.span, "a bound of a slice")
    if value is None:
        return POISON
    if not value.type.dtype.is_int or value.type.rank:
        return f.error("E0315", f"a bound of a slice must be an int scalar, and is {value.type}", node.span)
    operands.append(value)
    return "v"


def _entry(f: Frame, binding: Binding, item: ast.Expr, operands: list[Value]) -> Entry | None:
    """One item that is no slice."""
    match binding:
        case Special() if binding is NONE:
            return ("new",)
        case Tensor(static=int(k)) if not isinstance(k, bool):
            return ("int", k)
        case Tuple():
            f.error(
                "E0315",
                f"an index is not {kind_name(binding)}",
                item.span,
                "a list of ints picks elements: `x[[0, 2]]`",
            )
            return None
    value = as_tensor(f, binding, item.span, "an index")
    if value is None:
        return None
    if value.type.dtype.is_float:
        f.error("E0315", f"an index must be an int, and is {value.type}", item.span, "cast it: `i64(…)`")
        return None
    operands.append(value)
    if value.type.dtype is BOOL:
        return ("mask",)
    return ("tensor",) if value.type.rank else ("int",)


def _is_all_of_scalar(x: Value, spec: tuple[Entry, ...]) -> bool:
    """Whether an index takes a scalar as it is, with new axes at most."""
    return not x.type.rank and all(entry == ("new",) for entry in spec)


def _without_ellipsis(place: Place, rank: int) -> tuple[Entry, ...]:
    """The spec with `...` written out as the axes that it stands for."""
    spec = place.spec
    if ("...",) not in spec:
        return spec
    masks = sum(o.type.rank - 1 for o in place.operands if o.type.dtype is BOOL)
    used = sum(entry[0] not in ("new", "...") for entry in spec) + masks
    at = spec.index(("...",))
    return (*spec[:at], *((("full",),) * max(0, rank - used)), *spec[at + 1 :])


# ---- assignment ---------------------------------------------------------------------------------------


def assign_place(f: Frame, target: ast.Index, op: str | None, value: ast.Expr) -> Steps[None]:
    """`x[i] = v`, `x[i][j] = v`, `x[i] += v`: `x` holds a copy with the elements changed."""
    chain = chain_of(target)
    name = chain[0].value
    if not isinstance(name, ast.Name):
        f.error("E0207", "only a name, or a place in one, can be assigned to", name.span)
        yield expression(f, value)
        return
    if op is None:
        given: Binding = yield expression(f, value)
        base = read_target(f, name)
        places = yield places_of(f, chain)
        new = store(f, base, places, given, value, None)
    else:
        base = read_target(f, name)
        places = yield places_of(f, chain)
        parts = None if places is None or base is None else _read_parts(f, base, places)
        given = yield expression(f, value)
        new = store(f, base, places, given, value, (op, parts) if parts else None)
    if names.assignable(f, name, "an indexed assignment"):
        names.bind(f, name, POISON if new is None else new)


def read_target(f: Frame, name: ast.Name) -> Value | None:
    """The tensor that an indexed assignment changes a copy of."""
    slot = names.variable(f, name.id)
    if slot is None:
        names.unknown(f, name)
        return None
    return as_tensor(f, names.use(f, slot, name), name.span, "what is assigned into")


def chain_of(target: ast.Index) -> list[ast.Index]:
    """The indices of `x[i][j]`, from the name outwards."""
    chain = [target]
    while isinstance(chain[-1].value, ast.Index):
        chain.append(chain[-1].value)
    return chain[::-1]


def places_of(f: Frame, chain: list[ast.Index]) -> Steps[list[Place] | None]:
    """Evaluate all indices of a target; ints followed by more become one index."""
    places: list[Place] = []
    good = True
    for node in chain:
        place: Place | None = yield place_of(f, node)
        if place is None:
            good = False
        elif places and places[-1].ints_only:
            last = places.pop()
            places.append(Place(last.spec + place.spec, last.operands + place.operands, node))
        else:
            places.append(place)
    return places if good else None


def _read_parts(f: Frame, base: Value, places: list[Place]) -> list[Value] | None:
    """`x`, `x[i]`, `x[i][j]`, … for the places of a target."""
    parts = [base]
    for place in places:
        part = read_place(f, parts[-1], place)
        if not isinstance(part, Tensor):
            return None
        parts.append(part.value)
    return parts


def store(
    f: Frame,
    base: Value | None,
    places: list[Place] | None,
    given: Binding,
    node: ast.Expr,
    update: tuple[str, list[Value]] | None,
) -> Binding | None:
    """The copy of `base` in which `given` stands at the places."""
    value = as_tensor(f, given, node.span, "what is assigned")
    hint = "`//=` divides ints" if update is not None and update[0] == "/" else None
    if base is None or places is None or value is None:
        return None
    target = places[-1].node
    if update is not None:
        op, parts = update
        result = operate(
            f, op, target.span.to(node.span), (POISON, POISON), (parts[-1], value), (target.span, node.span)
        )
        if not isinstance(result, Tensor):
            return None
        value = result.value
    else:
        inner = _read_parts(f, base, places[:-1])
        if inner is None:
            return None
        parts = inner
    for part, place in zip(reversed(parts[: len(places)]), reversed(places), strict=True):
        if not part.type.weak:
            fitting = convert_freely(f, value, part.type.dtype, node.span, "what is assigned", hint=hint)
            if fitting is None:
                return None
            value = fitting
        updated = _updated(f, part, value, place, (target.span, node.span))
        if not isinstance(updated, Tensor):
            return None
        value = updated.value
    return Tensor(value)


def _updated(f: Frame, part: Value, value: Value, place: Place, spans: tuple[Span, Span]) -> Binding:
    spec = _without_ellipsis(place, part.type.rank)
    scalar = _is_all_of_scalar(part, spec)
    if scalar:  # it has no elements to write to: it becomes the one of a vector
        part = f.value("reshape", spans[0], part, sizes=(1,))
        spec = (*spec, ("full",))
    updated = f.apply("update", spans[0], (part, value, *place.operands), spans, spec=spec)
    return (
        f.apply("reshape", spans[0], (updated.value,), sizes=()) if scalar and isinstance(updated, Tensor) else updated
    )

"""Stacking what the trips of a loop give: a tensor with room for all, made at the first trip, written row by row."""

from __future__ import annotations

from graphdsl.check.carrying import Carried
from graphdsl.check.context import Frame
from graphdsl.check.joins import Bottom, hold, joined, types_in
from graphdsl.check.sources import Source
from graphdsl.check.values import NOTHING, POISON, Binding, Slot, Special, Tensor, Tuple, has_poison, kind_name, leaves
from graphdsl.core.ir import Block, If, Value
from graphdsl.ops.types import Dim, Size, Type, join_dtypes
from graphdsl.source.span import Span


def stack_item(f: Frame, name: str, item: Binding, source: Source, trip: Value, span: Span) -> None:
    """Put what this trip gives in its place, in what the hidden name holds."""
    if has_poison(item) or not _only_tensors(item):
        if not has_poison(item):
            shown = "nothing" if item is NOTHING else kind_name(item)
            f.error("E0313", f"what is stacked must be tensors, and is {shown}", span)
        f.names.set(name, Slot(POISON, span))
        return
    slot = f.names.get(name)
    old = list(leaves(slot.binding)) if slot is not None else []
    new: list[Binding] = []
    rows = list(leaves(item))
    if slot is not None and len(old) != len(rows):
        f.error("E0311", "what is stacked has different parts from trip to trip", span)
        f.names.set(name, Slot(POISON, span))
        return
    for i, row in enumerate(rows):
        room = _room(f, row, source, None if slot is None else (old[i], slot.is_set), span)
        new.append(f.apply("update", span, (room, row, trip), (span, span), spec=(("at",),)))
    f.names.set(name, Slot(POISON if any(has_poison(b) for b in new) else _like(item, new), span))


def _only_tensors(item: Binding) -> bool:
    if isinstance(item, Tuple):
        return all(_only_tensors(part) for part in item.items)
    return isinstance(item, Tensor)


def _like(item: Binding, parts: list[Binding]) -> Binding:
    """The parts in the form of `item`."""
    if isinstance(item, Tuple):
        return Tuple(tuple(_like(part, parts) for part in item.items))
    return parts.pop(0)


def _room(f: Frame, row: Value, source: Source, before: tuple[Value, Value | None] | None, span: Span) -> Value:
    """What holds the rows so far; new at the first trip."""
    old, is_set = before or (None, None)
    type = row.type
    if old is not None:  # rows of a later trip may be of a larger type
        dtype, weak = join_dtypes((old.type, row.type), f.setting.default_float)
        type = Type(dtype, row.type.shape, weak)
        old = joined(f, old, Type(dtype, old.type.shape, weak), span)
    first = Block()
    outside = f.open(first)
    made = zeros(f, source, [f.size(row, a, span) for a in range(row.type.rank)], type, span)
    f.open(outside)
    if old is None or is_set is None:
        f.block.body += first.body
        return made
    first.yields.append(made)
    out = Value(old.type)
    f.block.body.append(If(span, is_set, Block(yields=[old]), first, (out,)))
    return out


def zeros(f: Frame, source: Source, sizes: list[Value], row: Type, span: Span) -> Value:
    """As many rows as there are trips."""
    length = source.length if source.length is not None else Size()
    dims: list[Dim] = [length, *row.shape]
    operands = [v for v, d in zip([source.count, *sizes], dims, strict=True) if not isinstance(d, int)]
    return f.value("zeros", span, *operands, sizes=tuple(dims), dtype=row.dtype)


def finish_stack(f: Frame, loop: Carried, name: str, source: Source, span: Span) -> None:
    """Before the loop: what the stack is if there is no trip."""
    shape = loop.types.shapes[name]
    if isinstance(shape, Bottom) or name in loop.types.problems:
        return
    values: list[Value] = []
    for type in types_in(shape):
        first = type.shape[0]
        none = [f.whole(0, span) for _ in type.shape]
        dims = [d if isinstance(d, int) else 0 for d in type.shape[1:]]
        empty = Type(type.dtype, tuple(dims))
        length = first if isinstance(first, int) else 0
        values.append(zeros(f, Source(none[0], length, source.item), none[1:], empty, span))
    binding: Binding | Special = hold(shape, values, None)
    loop.entry[name] = Slot(binding, span, f.truth(False, span), "there was no trip")

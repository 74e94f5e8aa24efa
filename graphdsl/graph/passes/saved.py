"""Saved values that need not be saved: literals, what another field holds too, and what is quickly computed again.

`1 - x` beside `x` is computed where it is read: one op there, by which the same bits come, instead of an array that is kept
for each trip. Fields that are no longer read go with dead code.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from graphdsl.core.ir import Apply, Const, Func, Value
from graphdsl.graph.ir import Push, Read, Record
from graphdsl.graph.rename import blocks_of, graph_body, rename
from graphdsl.ops.types import Dim

_QUICK = {"add", "sub", "mul", "neg", "scale", "scale_both", "eq", "ne", "lt", "le", "gt", "ge", "not_", "and_", "or_"}


def save_less(main: Func) -> None:
    """Read fewer fields."""
    makers: dict[Value, Any] = {}
    pushes: dict[Record, list[Push]] = defaultdict(list)
    for block in blocks_of(main):
        for instr in graph_body(block):
            match instr:
                case Const(out=out) | Apply(outs=(out,)):
                    makers[out] = instr
                case Push(record=record):
                    pushes[record].append(instr)
    values = {record: found[0].values for record, found in pushes.items() if len(found) == 1}
    same: dict[Value, Value] = {}
    for block in blocks_of(main):
        body: list[Any] = []
        for instr in graph_body(block):
            body.append(instr)
            if isinstance(instr, Read) and instr.record in values:
                reading = _Reading(instr, values[instr.record], makers, body)
                same.update((out, reading.out(out, i)) for i, out in list(zip(instr.fields, instr.outs, strict=True)))
        block.body = body
    rename(main, {v: to for v, to in same.items() if v is not to})


class _Reading:
    """One `Read` while it is made to read less. `body` is written after it."""

    def __init__(self, read: Read, values: tuple[Value, ...], makers: dict[Value, Any], body: list[Any]) -> None:
        self.read = read
        self.values = values
        self.makers = makers
        self.body = body
        self.known: dict[Value, Value] = {}
        # a trip's sizes have other names where it is read: those of what is read already, else one of its own
        self.sizes: dict[Dim, Dim] = {}
        for field, out in zip(read.fields, read.outs, strict=True):
            self.sizes.update(zip(values[field].type.shape, out.type.shape, strict=True))

    def _here(self, value: Value) -> Value:
        """A value like a saved one, with the sizes that it has where it is read."""
        return Value(value.type.with_sizes(lambda d: self.sizes.setdefault(d, d.apart())), value.name)

    def out(self, out: Value, field: int) -> Value:
        """What stands for a value that was read."""
        made = self._again(self.values[field])
        return out if made is None else made

    def _again(self, value: Value) -> Value | None:
        """The saved `value`, without reading the field that was meant for it; None where that is the way."""
        if value in self.known:
            return self.known[value]
        made = self.makers.get(value)
        found = None
        if isinstance(made, Const):
            found = self._here(value)
            self.body.append(Const(made.span, made.value, found))
        elif isinstance(made, Apply) and made.op.name in _QUICK and not made.fails:
            found = self._computed(made)
        if found is None:
            found = self._field(value)
        if found is not None:
            self.known[value] = found
        return found

    def _computed(self, made: Apply) -> Value | None:
        """An op once more, where its operands are saved, too."""
        if not all(self._reachable(a) for a in made.args):
            return None
        args = tuple(self._again(a) for a in made.args)
        out = self._here(made.outs[0])
        self.body.append(Apply(made.span, made.op, tuple(a for a in args if a is not None), made.attrs, (out,), False))
        return out

    def _reachable(self, value: Value) -> bool:
        return value in self.values or isinstance(self.makers.get(value), Const)

    def _field(self, value: Value) -> Value | None:
        """The first field that holds it."""
        if value not in self.values:
            return None
        field = self.values.index(value)
        if field not in self.read.fields:
            self.read.fields = (*self.read.fields, field)
            self.read.outs = (*self.read.outs, self._here(value))
        return self.read.outs[self.read.fields.index(field)]

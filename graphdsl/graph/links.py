"""Links of a graph: those of the core, and through tapes.

A field of a record stands for every value saved in it: (record, i). What a `Read` gives comes from there, and from the
entry's place; places are values that hold no cotangent but lead the walk to the blocks where something was saved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from graphdsl.core.ir import Call, Func, Value
from graphdsl.core.links import Links, Node
from graphdsl.core.structure import regions
from graphdsl.graph.ir import NewShadow, Push, Put, Read, Record, Result, Take
from graphdsl.ops.types import DType

Field = tuple[str, Record, int]


def saved(record: Record, i: int) -> Field:
    """Stands for what is saved in field `i`."""
    return ("saved", record, i)


def summed(record: Record, i: int) -> Field:
    """Stands for the sums kept for field `i`."""
    return ("summed", record, i)


def leads(value: Value) -> bool:
    """Whether a value may be the place of an entry."""
    return value.type.dtype is DType.I64 and not value.type.shape


class GraphLinks(Links):
    """Of a graph in which some derivatives may have been built already."""

    def __init__(self, main: Func) -> None:
        self.shadows: set[Value] = set()
        self._behind: dict[Value, list[tuple[Call, Value]]] = defaultdict(list)
        super().__init__(main)
        self._given_shadows()
        self._used: dict[Any, frozenset[Value]] = {}

    def _given_shadows(self) -> None:
        """Params for which shadows are passed are shadows; what a function puts there it puts into what it was given."""
        before = -1
        while len(self.shadows) != before:
            before = len(self.shadows)
            for call in self.calls:
                pairs = zip(call.args, call.func.body.params, strict=True)
                self.shadows.update(p for a, p in pairs if a in self.shadows)
        for call in self.calls:
            for arg, param in zip(call.args, call.func.body.params, strict=True):
                if param in self.shadows:
                    self.effects[param].append(arg)
                    self._behind[arg].append((call, param))

    def ends(self, call: Call) -> Iterator[tuple[Value, Value]]:
        yield from super().ends(call)
        pairs = zip(call.args, call.func.body.params, strict=True)
        yield from ((arg, param) for arg, param in pairs if param in self.shadows)

    def calls_behind(self, node: Node) -> Iterator[tuple[Call, Value]]:
        yield from super().calls_behind(node)
        if isinstance(node, Value):
            yield from self._behind.get(node, ())

    def shadows_in(self, instr: Any) -> frozenset[Value]:
        """The shadows into which something may be put in a region or by a call."""
        if instr not in self._used:
            found: set[Value] = set()
            todo = [instr]
            while todo:
                match todo.pop():
                    case Put(shadow=shadow):
                        found.add(shadow)
                    case Call(args=args):
                        found.update(a for a in args if a in self.shadows)
                    case other:
                        todo.extend(i for block in regions(other) for i in block.body)
            self._used[instr] = frozenset(found)
        return self._used[instr]

    def carries(self, value: Value) -> bool:
        return value.type.dtype.is_float or leads(value)

    def link(self, instr: Any) -> None:
        match instr:
            case Result(arg=arg, out=out):
                self.makes(arg, out)
            case Push(record=record, values=values, out=out):
                for i, v in enumerate(values):
                    self.makes(v, saved(record, i))
                    self.makes(v, out)
            case Read(record=record, at=at, fields=fields, outs=outs):
                for i, v in zip(fields, outs, strict=True):
                    self.makes(saved(record, i), v)
                    self.makes(at, v)
            case NewShadow(out=out):
                self.shadows.add(out)
            case Put(shadow=shadow, record=record, fields=fields, values=values):
                for i, v in zip(fields, values, strict=True):
                    self.makes(v, summed(record, i))
                    self.makes(v, shadow)
            case Take(shadow=shadow, record=record, fields=fields, outs=outs):
                for i, v in zip(fields, outs, strict=True):
                    self.makes(summed(record, i), v)
                    self.makes(shadow, v)
            case _:
                super().link(instr)

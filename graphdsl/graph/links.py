"""Links of a graph: those of the core, and through tapes.

A field of a record stands for every value saved in it: (record, i). What a `Read` gives comes from there, and from the
entry's place; places are values that hold no cotangent but lead the walk to the blocks where something was saved.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Value
from graphdsl.core.links import Links
from graphdsl.graph.ir import Push, Put, Read, Record, Result, Take
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

"""Entries of tapes: where their fields are, and how they are read and written."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm

from graphdsl.graph.ir import Record
from graphdsl.native.flow import at
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.values import Native, part_types, whole
from graphdsl.native.scalar import I1, I8


def read_field(frame: Frame, record: Record, number: int, place: llvm.Value) -> Native:
    """One field of the entry at `place`."""
    places, _ = layout(frame, record)
    type = record.types[number]
    given = []
    for i, part in enumerate(part_types(type)):
        given.append(_load(frame.b, part, at(frame.b, place, places[number] + 8 * i)))
    return whole(type, given)


def layout(frame: Frame, record: Record) -> tuple[list[int], int]:
    """Where the fields of an entry are, and its length. Where there are shadows, its first word is the list of its
    sums.
    """
    offset = 8 if frame.unit.shadowed else 0
    places = []
    for type in record.types:
        places.append(offset)
        offset += 8 * len(part_types(type))
    return places, max(offset, 8)


def write_parts(b: llvm.IRBuilder, given: list[llvm.Value], place: llvm.Value, offset: int) -> None:
    """The parts of a value as words."""
    for i, part in enumerate(given):
        b.store(b.zext(part, I8) if part.type == I1 else part, at(b, place, offset + 8 * i))


def _load(b: llvm.IRBuilder, type: Any, place: llvm.Value) -> llvm.Value:
    if type == I1:
        return b.trunc(b.load(place, typ=I8), I1)
    return b.load(place, typ=type)

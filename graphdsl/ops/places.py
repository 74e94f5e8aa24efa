"""Arithmetic on places, as code: row-major numbers, and what an index says about where its elements stand.

An index is a *spec*, one entry for each item, and operands in order. As a program writes it:
    ("int",)            an int scalar operand; or ("int", k): the literal k, no operand
    ("tensor",)         an int tensor operand; several stand side by side and broadcast together
    ("mask",)           a bool tensor operand
    ("slice", a, b, c)  each None, a literal int, or "v": an operand (in this order)
    ("full",)           `:`; missing entries at the end are this too
    ("new",)            a new axis of size 1
In the core, `prepare` of the ops (graphdsl.ops.indexing) has checked ints and tensors and counted them from 0:
    ("at",) or ("at", k), ("take",)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphdsl.ops.ranges import MOST
from graphdsl.ops.types import I64
from graphdsl.source.record import dataclass

if TYPE_CHECKING:
    from graphdsl.ops.scalar import Code, Reader, S

Spec = tuple[tuple[Any, ...], ...]

# ---- row-major numbers ---------------------------------------------------------------------------------


def product(code: Code, sizes: Sequence[S]) -> S:
    """The number of elements."""
    total = code.const(I64, 1)
    for size in sizes:
        total = total * size
    return total


def flat_place(code: Code, place: Sequence[S], sizes: Sequence[S]) -> S:
    """The number of the element at `place`."""
    number = code.const(I64, 0)
    for p, size in zip(place, sizes, strict=True):
        number = number * size + p
    return number


def from_flat(code: Code, number: S, sizes: Sequence[S]) -> tuple[S, ...]:
    """The place of the element with this number."""
    place: list[S] = []
    for size in reversed(sizes[1:]):
        place.append(code.op2("rem", number, size))
        number = number / size
    return (*([number] if sizes else []), *reversed(place))


# ---- specs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One entry of a spec: the axis of the indexed tensor it takes (None: it takes none), and its operands."""

    kind: str
    axis: int | None
    words: tuple[Any, ...]
    operands: tuple[Any, ...]  # those that are "v", in order


def entries(spec: Spec, operands: Sequence[Any], rank: int) -> list[Entry]:
    """The entries with their axes and operands; the axes that are left over are taken whole."""
    left = iter(operands)
    found = []
    axis = 0
    for kind, *words in spec:
        if kind in ("int", "at"):
            given = () if words else (next(left),)
        elif kind in ("tensor", "take", "mask"):
            given = (next(left),)
        else:
            given = tuple(next(left) for w in words if w == "v")
        takes = kind != "new"
        found.append(Entry(kind, axis if takes else None, tuple(words), given))
        axis += takes
    found.extend(Entry("full", a, (), ()) for a in range(axis, rank))
    return found


def result_axes(found: list[Entry], taken: int) -> list[tuple[Entry, int]]:
    """The entries that make axes of the result, each with its first one; tensors together make `taken` axes."""
    axes = []
    next_axis = 0
    seen = False
    for entry in found:
        if entry.kind in ("int", "at") or (entry.kind == "take" and seen):
            continue
        axes.append((entry, next_axis))
        next_axis += taken if entry.kind == "take" else 1
        seen |= entry.kind == "take"
    return axes


def taken_rank(ranks: Sequence[int]) -> int:
    """The rank of tensors broadcast together."""
    return max(ranks, default=0)


def slice_bounds(code: Code, words: Sequence[Any], operands: Sequence[S], size: S) -> tuple[S, S, S]:
    """Start, step and count of a slice, clipped as in Python. A step of 0 was excluded before."""
    left = iter(operands)
    given = [next(left) if w == "v" else w if w is None else code.const(I64, w) for w in words]
    zero = code.const(I64, 0)
    step = given[2] if given[2] is not None else code.const(I64, 1)
    down = step < 0
    low, high = code.select(down, zero - 1, zero), code.select(down, size - 1, size)

    def clipped(bound: S | None, default: S) -> S:
        if bound is None:
            return default
        counted = code.select(bound < 0, bound + size, bound)
        return code.select(counted < low, low, code.select(counted > high, high, counted))

    start = clipped(given[0], code.select(down, high, low))
    stop = clipped(given[1], code.select(down, low, high))
    span = code.select(down, start - stop, stop - start)
    stride = code.select(down, -step, step)
    stride = code.select(stride < 1, code.const(I64, MOST), stride)  # of the least i64
    count = code.select(span > 0, (span - 1) / stride + 1, zero)
    return start, step, count


def source_place(code: Code, place: Sequence[S], spec: Spec, x: Reader, operands: Sequence[Reader]) -> tuple[S, ...]:
    """Where in `x` the element stands that an indexed result has at `place`; or, for `update`, where it goes."""
    found = entries(spec, operands, x.rank)
    takes = [e.operands[0] for e in found if e.kind == "take"]
    ranks = taken_rank([t.rank for t in takes])
    at = {id(entry): axis for entry, axis in result_axes(found, ranks)}
    first = next((at[id(e)] for e in found if e.kind == "take"), 0)
    group = place[first : first + ranks]
    result: list[S] = []
    for entry in found:
        match entry.kind:
            case "at":
                result.append(entry.operands[0].at(()) if entry.operands else code.const(I64, entry.words[0]))
            case "take":
                result.append(_broadcast_read(code, entry.operands[0], group))
            case "full":
                result.append(place[at[id(entry)]])
            case "slice":
                bounds = [o.at(()) for o in entry.operands]
                assert entry.axis is not None
                start, step, _ = slice_bounds(code, entry.words, bounds, x.size(entry.axis))
                result.append(start + place[at[id(entry)]] * step)
            case "new":
                pass
            case kind:
                raise AssertionError(f"`{kind}` should have been prepared")
    return tuple(result)


def region_sizes(code: Code, spec: Spec, x: Reader, operands: Sequence[Reader]) -> tuple[S, ...]:
    """The sizes of what an index picks out of `x`: what `update` goes over."""
    found = entries(spec, operands, x.rank)
    takes = [e.operands[0] for e in found if e.kind == "take"]
    ranks = taken_rank([t.rank for t in takes])
    sizes: list[S] = []
    for entry, _ in result_axes(found, ranks):
        match entry.kind:
            case "take":
                sizes.extend(_joined_sizes(code, takes, ranks))
            case "slice":
                assert entry.axis is not None
                bounds = [o.at(()) for o in entry.operands]
                sizes.append(slice_bounds(code, entry.words, bounds, x.size(entry.axis))[2])
            case "new":
                sizes.append(code.const(I64, 1))
            case _:
                assert entry.axis is not None
                sizes.append(x.size(entry.axis))
    return tuple(sizes)


def _joined_sizes(code: Code, takes: Sequence[Reader], rank: int) -> list[S]:
    one = code.const(I64, 1)
    sizes = [one] * rank
    for t in takes:
        for axis in range(t.rank):
            at = rank - t.rank + axis
            sizes[at] = code.select(sizes[at].eq(1), t.size(axis), sizes[at])
    return sizes


def _broadcast_read(code: Code, t: Reader, place: Sequence[S]) -> S:
    zero = code.const(I64, 0)
    own = place[len(place) - t.rank :]
    return t.at(tuple(code.select(t.size(axis).eq(1), zero, p) for axis, p in enumerate(own)))

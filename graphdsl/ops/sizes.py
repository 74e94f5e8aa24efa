"""Sizes of results as code, where the type does not tell them, with the checks that only the run can make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphdsl.ops import faults
from graphdsl.ops.places import Spec, entries, product, region_sizes
from graphdsl.ops.type_rules import MOST_ELEMENTS, extent
from graphdsl.ops.types import BOOL, F64, I64, Size
from graphdsl.source.diagnostic import Fault

if TYPE_CHECKING:
    from graphdsl.ops.op import Attrs
    from graphdsl.ops.scalar import Code, Reader, S

Readers = Sequence["Reader"]


def all_sizes(x: Reader) -> list[S]:
    """Of every axis."""
    return [x.size(axis) for axis in range(x.rank)]


def given(code: Code, xs: Readers, sizes: Sequence[int | Size | None], least: int = 0) -> list[S]:
    """The sizes of a SIZES attr, whose operands come last; none may be below `least`."""
    unknown = [s for s in sizes if not isinstance(s, int)]
    left = iter(xs[len(xs) - len(unknown) :])
    found = [code.const(I64, s) if isinstance(s, int) else next(left).at(()) for s in sizes]
    for known, size in zip(sizes, found, strict=True):
        if known is None:
            code.fail(size < least, faults.NEGATIVE_SIZE, size)
    few_enough(code, found)
    return found


def few_enough(code: Code, sizes: Sequence[S]) -> None:
    """Fail where sizes multiply to more than a tensor may have: `type_rules.extent` as code."""
    total = code.const(F64, 1.0)
    for size in sizes:
        total = total * code.convert(code.select(size < 1, code.const(I64, 1), size), F64)
    code.fail(total > float(MOST_ELEMENTS), faults.TOO_MANY)


def run_sizes(sizes: Sequence[int | Size | None], operands: Sequence[int], least: int = 0) -> tuple[int, ...]:
    """What `given` does, when the operands are known."""
    left = iter(operands)
    dims = tuple(s if isinstance(s, int) else int(next(left)) for s in sizes)
    for d in dims:
        if d < least:
            raise Fault(faults.NEGATIVE_SIZE, d)
    if extent(dims) > MOST_ELEMENTS:
        raise Fault(faults.TOO_MANY)
    return dims


def made(code: Code, xs: Readers, attrs: Attrs) -> list[S]:
    """Of what has its sizes in `attrs["sizes"]`."""
    return given(code, xs, attrs["sizes"])


def same(code: Code, xs: Readers, but: int | None = None) -> None:
    """All operands must have the sizes of the first, on every axis but one."""
    for x in xs[1:]:
        for axis in range(x.rank):
            if axis != but:
                a, b = xs[0].size(axis), x.size(axis)
                code.fail(a.ne(b), faults.LENGTHS, a, b, code.const(I64, axis))


def joined(code: Code, a: S, b: S, axis: int) -> S:
    """The size of two that broadcast together."""
    code.fail(a.ne(b) & a.ne(1) & b.ne(1), faults.BROADCAST, a, b, code.const(I64, axis))
    return code.select(a.eq(1), b, a)


def check_takes(code: Code, x: Reader, operands: Readers, spec: Spec) -> None:
    """Int tensors in one index must broadcast together."""
    takes: list[Reader] = [e.operands[0] for e in entries(spec, operands, x.rank) if e.kind == "take"]
    if len(takes) < 2:
        return
    most = max(t.rank for t in takes)
    for axis in range(most):
        size = code.const(I64, 1)
        for t in takes:
            own = axis - most + t.rank
            if own >= 0:
                size = joined(code, size, t.size(own), axis)


def indexed(code: Code, xs: Readers, attrs: Attrs) -> Sequence[S]:
    """Of what an index picks."""
    check_takes(code, xs[0], xs[1:], attrs["spec"])
    return region_sizes(code, attrs["spec"], xs[0], xs[1:])


def reshaped(code: Code, xs: Readers, attrs: Attrs) -> list[S]:
    """Those given, one of which may be -1: what is left."""
    one, minus_one = code.const(I64, 1), code.const(I64, -1)
    sizes = given(code, xs, attrs["sizes"], least=-1)
    elements = product(code, all_sizes(xs[0]))
    known = [isinstance(s, int) and s != -1 for s in attrs["sizes"]]
    opened = [code.const(BOOL, False) if k else s.eq(-1) for s, k in zip(sizes, known, strict=True)]
    count = code.const(I64, 0)
    for flag in opened:
        count = count + code.convert(flag, I64)
    rest = product(code, [code.select(flag, one, s) for flag, s in zip(opened, sizes, strict=True)])
    divisor = code.select(rest.eq(0), one, rest)
    missing = elements / divisor
    uneven = rest.eq(0) | (missing * divisor).ne(elements)
    code.fail(count.eq(1) & uneven, faults.RESHAPE, elements, rest)
    code.fail(count > 1, faults.NEGATIVE_SIZE, minus_one)
    result = [code.select(flag, missing, s) for flag, s in zip(opened, sizes, strict=True)]
    total = product(code, result)
    code.fail(total.ne(elements), faults.RESHAPE, elements, total)
    return result


def broadcast_to(code: Code, xs: Readers, attrs: Attrs) -> list[S]:
    """Those given, to which the operand must broadcast."""
    wanted = given(code, xs, attrs["sizes"])
    lead = len(wanted) - xs[0].rank
    for axis, size in enumerate(all_sizes(xs[0])):
        goal = wanted[lead + axis]
        code.fail(size.ne(goal) & size.ne(1), faults.CANNOT_BROADCAST, size, goal, code.const(I64, axis))
    return wanted

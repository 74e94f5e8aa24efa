"""How many steps a range of ints has, written in ops, without overflow on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphdsl.ops.types import I64

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

MOST = 2**63 - 1


def count_by_step(e: Emit, values: Sequence[Value], known: Sequence[object]) -> Value | None:
    """The number of steps of start, stop and step, which are `known` where they are ints; None: the sign of the step is
    not, which decides."""
    start, stop, step = values
    match known:
        case int(a), int(b), int(s) if s:
            count: Value = e.const(known_count(a, b, s), I64)
            return count
        case _, _, 1:
            return unit_count(e, start, stop, known[0])
        case _, _, int(s):
            return strided_count(e, start, stop, step, s > 0)
        case _:
            return None


def known_count(start: int, stop: int, step: int) -> int:
    """The number of steps of ints that are known; at most what an i64 holds."""
    return min(max(0, -((start - stop) // step)), MOST)


def unit_count(e: Emit, start: Value, stop: Value, known_start: object) -> Value:
    """The number of steps of 1."""
    end = e.maximum(stop, start)
    count: Value = e.sub(end, start)
    return count if isinstance(known_start, int) and known_start >= 0 else _capped(e, count)


def strided_count(e: Emit, start: Value, stop: Value, step: Value, up: bool) -> Value:
    """By the quotients of both ends, whose difference cannot overflow: with last = q·step + r and
    start = p·step + s, there are q - p + 1 steps, or one less where r lies before s."""
    one, zero = e.const(1, I64), e.const(0, I64)
    last = e.sub(stop, one) if up else e.add(stop, one)
    q, p = (e.floordiv(x, step) for x in (last, start))
    r, s = (e.mod(x, step) for x in (last, start))
    short = e.lt(r, s) if up else e.gt(r, s)
    capped = _capped(e, e.add(e.sub(q, p), e.where(short, zero, one)))
    some = e.gt(stop, start) if up else e.lt(stop, start)
    count: Value = e.where(some, capped, zero)
    return count


def _capped(e: Emit, count: Value) -> Value:
    """A count that is not below 0 unless it is more than an i64 holds."""
    capped: Value = e.where(e.lt(count, e.const(0, I64)), e.const(MOST, I64), count)
    return capped

"""Ranges `a..b step s`: how many steps they have, as a loop's count and as a tensor."""

from __future__ import annotations

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import int_scalar_of
from graphdsl.check.values import POISON, Binding
from graphdsl.core.ir import Block, Fail, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops import faults
from graphdsl.ops.types import I64, Size, Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast

MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RangeParts:
    """A range, evaluated: where it starts, how far apart, how many. Ints are known ones."""

    start: Value
    step: Value
    count: Value
    plain: bool  # it starts at 0, in steps of 1
    known: int | None  # the count, where it is known


def range_of(f: Frame, node: ast.Range) -> Steps[RangeParts | None]:
    """Evaluate the ends and the step, once."""
    start: Binding = yield expression(f, node.start)
    stop: Binding = yield expression(f, node.stop)
    step: Binding | None = None
    if node.step is not None:
        step = yield expression(f, node.step)
    a = int_scalar_of(f, start, node.start, "the start of a range")
    b = int_scalar_of(f, stop, node.stop, "the end of a range")
    s = f.whole(1, node.span)
    known_step: object = 1
    if step is not None and node.step is not None:
        given = int_scalar_of(f, step, node.step, "the step of a range")
        if given is None:
            return None
        s, known_step = given, getattr(step, "static", None)
    if a is None or b is None:
        return None
    if known_step == 0 and node.step is not None:
        f.error("E0316", "a step of 0 leads nowhere", node.step.span)
        return None
    ends = getattr(start, "static", None), getattr(stop, "static", None), known_step
    known = None
    if all(type(e) is int for e in ends):
        known = min(len_of(*ends), MOST)  # type: ignore[arg-type]
    count = _count(f, node.span if node.step is None else node.step.span, (a, b, s), ends)
    return RangeParts(a, s, count, ends[0] == 0 and known_step == 1, known)


def _count(f: Frame, span: Span, values: tuple[Value, Value, Value], known: tuple[object, object, object]) -> Value:
    """How many steps there are: ⌈(stop - start) / step⌉, or 0, without overflow on the way."""
    match known:
        case int(a), int(b), int(s):
            return f.whole(min(len_of(a, b, s), MOST), span)
        case 0, _, 1:
            return values[1]
        case _, _, 1:
            return _unit_count(f, span, values[0], values[1], known[0])
        case _, _, int(s):
            return _strided_count(f, span, values, s > 0)
    step = values[2]
    zero = f.whole(0, span)
    failing = Block([], [Fail(span, faults.STEP)])
    f.block.body.append(If(span, f.value("eq", span, step, zero), failing, Block(), ()))
    up, down, out = Block(), Block(), Value(Type(I64))
    for block, positive in ((up, True), (down, False)):
        outside = f.open(block)
        block.yields.append(_strided_count(f, span, values, positive))
        f.open(outside)
    f.block.body.append(If(span, f.value("gt", span, step, zero), up, down, (out,)))
    return out


def len_of(start: int, stop: int, step: int) -> int:
    """The number of steps, of any size."""
    return max(0, -((start - stop) // step))


def _unit_count(f: Frame, span: Span, start: Value, stop: Value, known_start: object) -> Value:
    end = f.value("maximum", span, stop, start)
    count = f.value("sub", span, end, start)
    if isinstance(known_start, int) and known_start >= 0:
        return count
    too_many = f.value("lt", span, count, f.whole(0, span))
    return f.value("where", span, too_many, f.whole(MOST, span), count)


def _strided_count(f: Frame, span: Span, values: tuple[Value, Value, Value], up: bool) -> Value:
    """By the quotients of both ends, whose difference cannot overflow: with last = q·step + r and
    start = p·step + s, there are q - p + 1 steps, or one less where r lies before s."""
    start, stop, step = values
    one = f.whole(1, span)
    last = f.value("sub" if up else "add", span, stop, one)
    q, p = (f.value("floordiv", span, x, step) for x in (last, start))
    r, s = (f.value("mod", span, x, step) for x in (last, start))
    short = f.value("lt" if up else "gt", span, r, s)
    less = f.value("where", span, short, f.whole(0, span), one)
    count = f.value("add", span, f.value("sub", span, q, p), less)
    too_many = f.value("lt", span, count, f.whole(0, span))
    capped = f.value("where", span, too_many, f.whole(MOST, span), count)
    some = f.value("gt" if up else "lt", span, stop, start)
    return f.value("where", span, some, capped, f.whole(0, span))


def element(f: Frame, span: Span, steps: RangeParts, trip: Value) -> Value:
    """The value of a range at a trip of a loop over it."""
    if steps.plain:
        return trip
    return f.value("add", span, steps.start, f.value("mul", span, trip, steps.step))


@handles(ast.Range)
def range_tensor(f: Frame, node: ast.Range) -> Steps[Binding]:
    """A range as an i64 tensor."""
    steps: RangeParts | None = yield range_of(f, node)
    if steps is None:
        return POISON
    span = node.span
    count = steps.count
    if isinstance(steps.known, int):
        return f.apply("range", span, (steps.start, count, steps.step), size=steps.known)
    size = f.shared.sizes.get(count)
    if size is None and steps.plain:
        count = f.value("maximum", span, count, f.whole(0, span))
    if size is None:
        size = Size()
        f.shared.sizes[count] = size
    return f.apply("range", span, (steps.start, count, steps.step), size=size)

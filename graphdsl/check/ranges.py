"""Ranges `a..b step s`: how many steps they have, as a loop's count and as a tensor."""

from __future__ import annotations

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import int_scalar_of
from graphdsl.check.values import POISON, Binding, Tensor
from graphdsl.core.ir import Block, Fail, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops import faults
from graphdsl.ops.ranges import count_by_step, known_count, strided_count
from graphdsl.ops.types import I64, Size, Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast


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
        known = known_count(*ends)  # type: ignore[arg-type]
    count = _count(f, node.span if node.step is None else node.step.span, (a, b, s), ends)
    return RangeParts(a, s, count, ends[0] == 0 and known_step == 1, known)


def _count(f: Frame, span: Span, values: tuple[Value, Value, Value], known: tuple[object, object, object]) -> Value:
    """How many steps there are: ⌈(stop - start) / step⌉, or 0, without overflow on the way."""
    match known:
        case 0, stop, 1 if not isinstance(stop, int):
            return values[1]
    counted = count_by_step(f.at(span), values, known)
    if counted is not None:
        return counted
    step = values[2]
    zero = f.whole(0, span)
    failing = Block([], [Fail(span, faults.STEP)])
    f.block.body.append(If(span, f.value("eq", span, step, zero), failing, Block(), ()))
    up, down, out = Block(), Block(), Value(Type(I64))
    for block, positive in ((up, True), (down, False)):
        outside = f.open(block)
        block.yields.append(strided_count(f.at(span), *values, positive))
        f.open(outside)
    f.block.body.append(If(span, f.value("gt", span, step, zero), up, down, (out,)))
    return out


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
    made = f.apply("range", span, (steps.start, count, steps.step), size=size)
    if isinstance(made, Tensor) and isinstance(dim := made.value.type.shape[0], Size):
        f.shared.sizes[count] = dim
    return made

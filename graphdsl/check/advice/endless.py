"""Loops that cannot end: nothing that the condition reads changes from trip to trip, and nothing else leaves the loop.

A `break` or a `return` changes what the condition tests in the core. A loop may also be ended by a test that fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.advice.subject import Subject, brief, reached, warning
from graphdsl.core.ir import Apply, Const, Fail, Value, While
from graphdsl.core.structure import operands, results, walk
from graphdsl.ops.op import Effect
from graphdsl.source.diagnostic import Diagnostic


def endless_loops(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    for loop in s.instructions():
        if isinstance(loop, While) and _is_endless(s, loop):
            yield _told(s, loop)


def _is_endless(s: Subject, loop: While) -> bool:
    changed = {
        param
        for param, before, after in zip(loop.cond.params, loop.body.params, loop.body.yields, strict=True)
        if after is not before
    }
    if not changed.isdisjoint(_read(loop)) or _constant(s, loop) is False:
        return False
    if any(isinstance(i, Apply) and i.op.effect is not Effect.NONE for i in reached(loop.cond, loop.span)):
        return False
    tests = (i for block in (loop.cond, loop.body) for i in reached(block, loop.span))
    return not any(isinstance(i, Fail) for i in tests)


def _read(loop: While) -> list[Value]:
    """What the condition reads."""
    return [*(v for instr in walk(loop.cond) for v in operands(instr)), *loop.cond.yields]


def _constant(s: Subject, loop: While) -> bool | None:
    """The condition, if it is written out."""
    made = s.maker(loop.cond.yields[0])
    return made.value if isinstance(made, Const) and isinstance(made.value, bool) else None


def _may_fail(loop: While) -> bool:
    return any(isinstance(i, Apply) and i.fails for i in reached(loop.body, loop.span))


def _told(s: Subject, loop: While) -> Diagnostic:
    end = "only a failure ends this loop" if _may_fail(loop) else "this loop never ends"
    if _constant(s, loop):
        message = f"{end}: its condition is always true, and nothing leaves it"
        return warning("W0202", message, loop.span, "leave it with `break`, or test what changes in it")
    inside = {v for instr in walk(loop.cond) for v in results(instr)}
    names = dict.fromkeys(f"`{v.name}`" for v in _read(loop) if v not in inside and v.name)
    text = brief(loop.span)
    what = f"`{text}`" if text else "its condition"
    hint = f"change {' or '.join(names)} in the loop, or leave it with `break`" if names else "leave it with `break`"
    return warning("W0202", f"once it has begun, {end}: it changes nothing that {what} reads", loop.span, hint)

"""`if` statements, and with them `break`, `continue` and `return`, which become branches of what follows.

An `if` of which one side always leaves the block takes the rest of the block into its other side; after any other statement
that may have left the block, the rest stands under a test of a hidden name. Hidden names (`%…`) are set, carried
and joined as others are: `%exit` (this block was left), `%stop1` (a `break` was reached), `%result`.
"""

from __future__ import annotations

from functools import partial

from graphdsl.check.context import Frame
from graphdsl.check.joins import BOTTOM, Joiner, JoinProblem, Shape, fit, hold, shape_of, types_in
from graphdsl.check.values import POISON, Binding, Slot
from graphdsl.core.ir import Block, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import BOOL, Size, Type
from graphdsl.source.diagnostic import Label
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span

EXIT = "%exit"
RESULT = "%result"
CHOICE = "%choice"  # what `a if c else b` gives


@dataclass(frozen=True, slots=True)
class Flow:
    """How statements end: whether they may reach their end, and the names live where they may leave to (None: they do not)."""

    falls: bool = True
    exits: frozenset[str] | None = None


FALLS = Flow()
DEAD = Slot(POISON, None)  # type: ignore[arg-type]  # on a path where the name will not be read
LOST = Slot(POISON, None)  # type: ignore[arg-type]  # not joined, because it will not be read


@dataclass(slots=True)
class Path:
    """One side of an `if`, checked: what it changed, where its instructions are, how it ends."""

    block: Block
    changes: dict[str, Slot | None]
    flow: Flow
    why: str = ""  # how it came that this path was taken

    def reads(self, name: str, after: frozenset[str]) -> bool:
        """Whether the name may be read after this path."""
        return bool((self.flow.falls and name in after) or (self.flow.exits and name in self.flow.exits))


def trial(f: Frame, steps: Steps[Flow], why: str = "") -> Steps[Path]:
    """Check one side from the present state, and go back to that."""
    block = Block()
    outside = f.open(block)
    mark = f.names.mark()
    f.blocks_deep += 1
    flow: Flow = yield steps
    f.blocks_deep -= 1
    f.open(outside)
    return Path(block, f.names.rollback(mark), flow, why)


def merge(f: Frame, span: Span, cond: Value, then: Path, orelse: Path, after: frozenset[str]) -> Flow:
    """Write the `If`, and let each name hold what it holds on the path taken."""
    outs: list[Value] = []
    names = list(dict.fromkeys([*then.changes, *orelse.changes]))
    for name in names:
        base = f.names.get(name)
        slots = then.changes.get(name, base), orelse.changes.get(name, base)
        f.names.set(name, _slot(f, span, name, (then, orelse), slots, after, outs))
    f.block.body.append(If(span, cond, then.block, orelse.block, tuple(outs)))
    exits = [p.flow.exits for p in (then, orelse) if p.flow.exits is not None]
    return Flow(then.flow.falls or orelse.flow.falls, frozenset().union(*exits) if exits else None)


def _slot(
    f: Frame,
    span: Span,
    name: str,
    paths: tuple[Path, Path],
    slots: tuple[Slot | None, Slot | None],
    after: frozenset[str],
    outs: list[Value],
) -> Slot | None:
    """What one name holds after an `if`."""
    if name == EXIT and not f.exit_needed:
        return LOST if any(s is not None for s in slots) else None
    if name[0] != "%":
        base = f.names.get(name)
        same = base is not None and all(s is not None and s.binding is base.binding for s in slots)
        if same and base not in (None, LOST, DEAD):
            return base  # one side only tested whether it is set
        if not any(p.reads(name, after) or name in f.shared.outline.pinned for p in paths):
            return slots[0] if slots[0] is slots[1] else LOST
        slots = tuple(s if p.reads(name, after) else DEAD for p, s in zip(paths, slots, strict=True))  # type: ignore[assignment]
    return join_slots(f, span, name, paths, slots, outs)


def join_slots(
    f: Frame, span: Span, name: str, paths: tuple[Path, Path], slots: tuple[Slot | None, Slot | None], outs: list[Value]
) -> Slot | None:
    """One slot for two: the values that differ become outs of the `If`."""
    first, second = (None if s is LOST else s for s in slots)
    if first is second:
        return first
    given = [s for s in (first, second) if s is not None and s is not DEAD]
    if not given:
        return DEAD if DEAD in (first, second) and None not in (first, second) else None
    a, b = (BOTTOM if s is None or s is DEAD else shape_of(s.binding) for s in (first, second))
    joiner = Joiner(f.setting.default_float, partial(_new_size, name, span))
    try:
        shape = joiner.join(a, b)
    except JoinProblem as problem:
        labels = tuple(Label(s.span, "set here") for s in given if s.span != span)
        shown = {RESULT: "the result", CHOICE: "what is chosen"}.get(name, f"`{name}`")
        f.error(
            "E0311",
            f"{shown} {problem} that join here"
            if str(problem).endswith("paths")
            else f"{shown} {problem} where these join",
            span,
            labels=labels,
        )
        return Slot(POISON, span)
    place = given[-1].span
    binding = _joined_binding(f, place, paths, (first, second), shape, name, outs)
    flag, why = _joined_flag(f, place, paths, (first, second), outs)
    return Slot(binding, place, flag, why)


def _new_size(name: str, span: Span, path: tuple[int, ...], axis: int) -> Size:
    return Size(None, f"`{name}`, which differs between paths, at line {span.line}")


def _joined_binding(
    f: Frame,
    span: Span,
    paths: tuple[Path, Path],
    slots: tuple[Slot | None, Slot | None],
    shape: Shape,
    name: str,
    outs: list[Value],
) -> Binding:
    bindings = [None if s is None or s is DEAD else s.binding for s in slots]
    if bindings[0] is not None and bindings[0] is bindings[1]:
        return bindings[0]
    if any(b is POISON for b in bindings) and not f.guessing:
        return POISON
    sides = []
    for path, binding in zip(paths, bindings, strict=True):
        outside = f.open(path.block)
        sides.append(fit(f, binding, shape, span))
        f.open(outside)
    values: list[Value] = []
    for type, a, b in zip(types_in(shape), *sides, strict=True):
        values.append(a if a is b else _out(paths, Value(type, None if name[0] == "%" else name), a, b, outs))
    return hold(shape, values, name)


def _joined_flag(
    f: Frame, span: Span, paths: tuple[Path, Path], slots: tuple[Slot | None, Slot | None], outs: list[Value]
) -> tuple[Value | None, str]:
    """Whether the name is set, and how it may not be."""
    known = [s for s in slots if s is not DEAD]
    if all(s is not None and s.is_set is None for s in known):
        return None, ""
    first, second = slots
    if first is not None and second is not None and first.is_set is second.is_set is not None:
        return first.is_set, first.why
    sides: list[Value] = []
    why = ""
    for path, slot in zip(paths, slots, strict=True):
        outside = f.open(path.block)
        if slot is not None and slot is not DEAD and slot.is_set is not None:
            sides.append(slot.is_set)
            why = why or slot.why
        else:
            sides.append(f.truth(slot is not None, span))
            if slot is None:
                why = path.why
        f.open(outside)
    return _out(paths, Value(Type(BOOL)), sides[0], sides[1], outs), why


def _out(paths: tuple[Path, Path], out: Value, a: Value, b: Value, outs: list[Value]) -> Value:
    paths[0].block.yields.append(a)
    paths[1].block.yields.append(b)
    outs.append(out)
    return out

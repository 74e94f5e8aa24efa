"""The types of what a loop carries: they start from what enters and are joined upwards with what a trip leaves.

They stay as found when the loop is checked again, as the inner loop of one whose own types grew: so nested loops
cost what their depth adds, not multiplies.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphdsl.check.branches import DEAD, LOST
from graphdsl.check.context import Frame
from graphdsl.check.joins import (
    BOTTOM,
    Bottom,
    Items,
    Joiner,
    JoinProblem,
    Path,
    Shape,
    equal_shapes,
    hold,
    shape_of,
    types_in,
)
from graphdsl.check.values import POISON, Binding, Slot, leaves
from graphdsl.core.ir import Value
from graphdsl.ops.types import BOOL, Dim, Size, Type
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span


@dataclass(eq=False, slots=True)
class LoopTypes:
    """For each name carried: its shape, whether it may not be set when a trip starts, and what went wrong with it."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    flagged: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    sizes: dict[tuple[str, Path, int], Size] = field(default_factory=dict)

    def size(self, name: str, span: Span, path: Path, axis: int) -> Size:
        """The size that differs from trip to trip; the same object however often it is asked for."""
        key = name, path, axis
        if key not in self.sizes:
            self.sizes[key] = Size(None, f"`{name}`, which changes in the loop at line {span.line}")
        return self.sizes[key]

    def enter(self, f: Frame, names: Iterable[str], span: Span) -> None:
        """Start from what enters the loop, joined with how these types were left."""
        self.problems.clear()
        for name in names:
            slot = f.names.get(name)
            if slot is None or slot is LOST or slot.is_set is not None:
                self.flagged.add(name)
            if slot is not None and slot is not LOST and slot is not DEAD and name in self.shapes:
                self.shapes[name] = self._fresh(name, self.shapes[name], shape_of(slot.binding), ())
            self._join(f, name, slot, span)

    def _fresh(self, name: str, left: Shape, entering: Shape, path: Path) -> Shape:
        """How a shape was left, with the dims that enter now, where these were not found to change."""
        match left, entering:
            case Type(), Type() if left.rank == entering.rank:
                dims = (self.sizes.get((name, path, axis), dim) for axis, dim in enumerate(entering.shape))
                return left.with_shape(tuple(dims))
            case Items(parts=p), Items(parts=q) if len(p) == len(q):
                return Items(
                    tuple(self._fresh(name, x, y, (*path, i)) for i, (x, y) in enumerate(zip(p, q, strict=True)))
                )
        return left

    def leave(self, f: Frame, ends: dict[str, Slot | None], span: Span) -> bool:
        """Join what a trip leaves; whether that changed anything. The names are back to what entered the loop."""
        changed = False
        outside: set[Size] | None = None
        for name, end in ends.items():
            before = self.shapes[name]
            self._join(f, name, end, span)
            if isinstance(before, Bottom) and any(t.shape for t in types_in(self.shapes[name])):
                outside = known_sizes(f) if outside is None else outside
                self.shapes[name] = self._widened(name, span, self.shapes[name], outside, ())
            changed |= not equal_shapes(before, self.shapes[name])
        return changed

    def _join(self, f: Frame, name: str, slot: Slot | None, span: Span) -> None:
        if slot is None or slot is DEAD or slot is LOST:
            self.shapes.setdefault(name, BOTTOM)
            return
        joiner = Joiner(f.setting.default_float, lambda path, axis: self.size(name, span, path, axis))
        try:
            self.shapes[name] = joiner.join(self.shapes.get(name, BOTTOM), shape_of(slot.binding))
        except JoinProblem as problem:
            self.problems[name] = str(problem)

    def _widened(self, name: str, span: Span, shape: Shape, outside: set[Size], path: Path) -> Shape:
        """A size made in a trip is not that of the next one."""
        match shape:
            case Type(shape=dims):
                new: list[Dim] = []
                for axis, dim in enumerate(dims):
                    made_here = isinstance(dim, Size) and dim not in outside
                    new.append(self.size(name, span, path, axis) if made_here else dim)
                return shape.with_shape(tuple(new))
            case Items(parts=parts):
                return Items(tuple(self._widened(name, span, p, outside, (*path, i)) for i, p in enumerate(parts)))
        return shape

    def slot(self, name: str, entry: Slot | None, span: Span, params: list[Value], why: str) -> Slot | None:
        """What the name holds when a trip starts: new values, which go to `params`."""
        shape = self.shapes[name]
        if isinstance(shape, Bottom) or name in self.problems:
            return entry if entry is None or entry.binding is POISON else Slot(POISON, span)
        values = [Value(t, None if name[0] == "%" else name) for t in types_in(shape)]
        params += values
        binding: Binding = hold(shape, list(values), name)
        flag = None
        if name in self.flagged:
            flag = Value(Type(BOOL))
            params.append(flag)
        return Slot(binding, span if entry is None or entry in (LOST, DEAD) else entry.span, flag, why)


def known_sizes(f: Frame) -> set[Size]:
    """The sizes of everything that names hold here."""
    found: set[Size] = set()
    for name in f.names.names():
        slot = f.names.get(name)
        if slot is not None:
            for value in leaves(slot.binding):
                found.update(d for d in value.type.shape if isinstance(d, Size))
    for outer in (f.outer or {}).values():
        if outer is not None:
            for value in leaves(outer.binding):
                found.update(d for d in value.type.shape if isinstance(d, Size))
    return found

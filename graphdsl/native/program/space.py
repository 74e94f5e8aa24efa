"""The iteration space of a kernel: which axes it walks, and how each operand lies in them.

Axes that all operands walk alike are walked as one. Where that makes a single axis, the kernel is flat: one loop over
adjoining elements.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from graphdsl.core.ir import Apply, Value
from graphdsl.ops.op import Elementwise, Pointwise, Reducing
from graphdsl.ops.type_rules import same_dim
from graphdsl.ops.types import Dim

Shape = tuple[Dim, ...]


class Lies(enum.Enum):
    """An operand along one axis of the space."""

    FULL = "full"  # an element each
    ONE = "one"  # the same element throughout
    EITHER = "either"  # only the run can tell


@dataclass(frozen=True, eq=False)
class Region:
    """Ops that are computed together: `params` are read, `outs` are kept."""

    params: tuple[Value, ...]
    body: tuple[Apply, ...]
    outs: tuple[Value, ...]

    @cached_property
    def space(self) -> Shape:
        """The shape whose elements are walked: that of the first op's results, or of what it reduces."""
        last = self.body[-1]
        source = last.args[0] if isinstance(last.op.compute, Reducing) else last.outs[0]
        return source.type.shape

    @cached_property
    def reduces(self) -> list[Apply]:
        """The sums that are kept."""
        return [a for a in self.body if isinstance(a.op.compute, Reducing) and a.outs[0] in self.outs]

    @cached_property
    def home_readers(self) -> set[Value]:
        """The params that some elementwise op or reduction reads at its own place."""
        params = set(self.params)
        return {
            arg
            for a in self.body
            if isinstance(a.op.compute, Elementwise | Reducing)
            for arg in a.args
            if arg in params and arg.type.shape
        }

    @cached_property
    def place_readers(self) -> set[Value]:
        """The values that some pointwise op reads at a place of its choice."""
        return {
            arg
            for a in self.body
            if isinstance(a.op.compute, Pointwise)
            for i, arg in enumerate(a.args)
            if arg.type.shape and i not in a.op.shape_only
        }


@dataclass(frozen=True)
class Space:
    """`groups` of axes that are walked as one, the last one innermost; `lies` says for each param that is read at its
    own place how it lies along each group.
    """

    groups: tuple[tuple[int, ...], ...]
    lies: dict[Value, tuple[Lies, ...]]

    @property
    def flat(self) -> bool:
        return len(self.groups) == 1


def lies_in(shape: Shape, space: Shape) -> tuple[Lies, ...]:
    """How an operand of a shape that broadcasts to `space` lies along its axes."""
    padded: Shape = (1,) * (len(space) - len(shape)) + shape
    return tuple(_along(d, s) for d, s in zip(padded, space, strict=True))


def _along(dim: Dim, space: Dim) -> Lies:
    if same_dim(dim, space):
        return Lies.FULL
    return Lies.ONE if dim == 1 else Lies.EITHER


def arrange(region: Region, coordinates: bool) -> Space:
    """The space of a region; with `coordinates` every axis is walked by itself."""
    space = region.space
    by_axis = {v: lies_in(v.type.shape, space) for v in region.params if v in region.home_readers}
    groups: list[list[int]] = []
    for axis in range(len(space)):
        if groups and not coordinates and _alike(by_axis.values(), axis - 1, axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    lies = {v: tuple(kinds[g[0]] for g in groups) for v, kinds in by_axis.items()}
    return Space(tuple(tuple(g) for g in groups), lies)


def _alike(operands: Iterable[tuple[Lies, ...]], a: int, b: int) -> bool:
    return all(k[a] is k[b] and k[a] is not Lies.EITHER for k in operands)

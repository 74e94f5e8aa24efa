"""When two regions can share a kernel (the same ops on values of the same dtypes, put together and shaped in the same
way), and what one costs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from graphdsl.core.ir import Value
from graphdsl.native.program.space import Region
from graphdsl.ops.attrs import frozen
from graphdsl.ops.types import Size, Type

if TYPE_CHECKING:
    from graphdsl.native.program.frame import Frame


def key(frame: Frame, region: Region) -> tuple[Hashable, ...]:
    """Equal for regions with the same kernel. An op that can fail knows its own place in the text."""
    numbers: dict[Any, int] = {}

    def number(thing: Value | Size) -> int:
        return numbers.setdefault(thing, len(numbers))

    def shown(type: Type) -> Hashable:
        return type.dtype, tuple(d if isinstance(d, int) else ("size", number(d)) for d in type.shape)

    parts: list[Hashable] = [(number(p), shown(p.type)) for p in region.params]
    for apply in region.body:
        site = frame.unit.sites.numbers[apply] if apply.fails else None
        attrs = frozen(apply.attrs, number)
        made = tuple((number(o), shown(o.type)) for o in apply.outs)
        parts.append((apply.op.name, site, attrs, tuple(map(number, apply.args)), made))
    return (*parts, tuple(map(number, region.outs)))


def cost(region: Region) -> int:
    """About how many vector instructions an element takes, times a vector's length: what memory costs counts as some
    too.
    """
    return 2 * (len(region.params) + len(region.outs)) + sum(apply.op.cost for apply in region.body)

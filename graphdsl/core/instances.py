"""Which values may depend on the very value that another one holds, at one moment of a run.

A value of the core stands for many in the course of a run: in `for … { w, b = w - f(b), b - g(w) }` this trip's `w`
depends on the last trip's `b`, and not on this one's. Both values asked about are taken at the same moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from graphdsl.core.clone import free_values
from graphdsl.core.ir import Call, Convert, For, If, Value, While
from graphdsl.core.links import Links, Node
from graphdsl.core.structure import regions

Pair = tuple[Value, Value]


class Instances:
    """Answers for one program, kept."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self._known: dict[Pair, bool] = {}
        self._later: dict[Node, set[Node]] = {}
        self._free: dict[While | For, list[Value]] = {}
        self._within: dict[tuple[Value, While | For], set[Node]] = {}
        self._handed: dict[Value, set[Node]] = {}
        self._reach: dict[frozenset[Node], set[Node]] = {}

    def depends(self, value: Node, holder: Node) -> bool:
        """Whether `value` may be, or depend on, what `holder` holds (where it is known that some path leads there)."""
        if not isinstance(value, Value) or not isinstance(holder, Value):
            return True
        if (value, holder) in self._known:
            return self._known[value, holder]
        seen = {(value, holder)}
        todo = list(seen)
        found = False
        while todo and not found:
            for other in self._reduced(*todo.pop()):
                if other is True or self._known.get(other, False):
                    found = True
                elif other not in seen and other not in self._known:
                    seen.add(other)
                    todo.append(other)
        self._known.update(dict.fromkeys([(value, holder)] if found else seen, found))
        return found

    def _reduced(self, v: Value, u: Value) -> Iterator[Any]:
        """The pairs one of which must hold, or True."""
        if v is u:
            yield True
            return
        made = self.links.defs[u]
        loop = self.links.owner[made.block].instr if made.instr is None else None
        inside = loop is not None and self.links.inside(v, loop)
        if not inside and self.links.origins.get(u) and v in self.handed_on(u):
            yield True
        elif isinstance(loop, While | For):
            yield from self._param(v, u, loop)
        elif isinstance(made.instr, If | Convert):
            for origin in self.links.origins.get(u, ()):
                yield v, origin
        elif isinstance(made.instr, While | For):
            yield from self._out(v, made.instr, made.index)
        elif isinstance(made.instr, Call) or v in self.later(u):
            yield True

    def _param(self, v: Value, u: Value, loop: While | For) -> Iterator[Any]:
        k = self._index(u, loop)
        j = self._index(v, loop)
        if j is not None and k is not None:
            yield loop.body.yields[j], loop.body.yields[k]
            yield loop.inits[j], loop.inits[k]
        elif self.links.inside(v, loop):
            if v in self.later(u):
                yield True
            for p in self._block(u).params:
                if p is not u and v in self.later(p) and self._index(p, loop) is not None:
                    yield p, u
            if k is not None:
                yield from self._around(v, loop, loop.inits[k])
        elif k is not None:
            yield v, loop.inits[k]

    def _around(self, v: Value, loop: While | For, init: Value) -> Iterator[Pair]:
        """What a carried value began with may lead to `v`, inside the loop, by values from outside alone."""
        reach = self.reach(frozenset(self.handed_on(init)))
        if loop not in self._free:
            self._free[loop] = free_values(*regions(loop))
        for outer in self._free[loop]:
            if outer in reach and v in self._read_by(outer, loop):
                yield outer, init

    def _read_by(self, outer: Value, loop: While | For) -> set[Node]:
        """What is computed from a value from outside within one trip of `loop`."""
        key = (outer, loop)
        if key not in self._within:
            self._within[key] = self._reached(outer, {loop})
        return self._within[key]

    def _out(self, v: Value, loop: While | For, k: int) -> Iterator[Any]:
        following = loop.body.yields[k]
        if self.links.origins.get(following) or not self.links.inside(following, loop):
            yield True  # it may be from any earlier trip
        else:
            yield v, following
            yield v, loop.inits[k]

    def _block(self, param: Value) -> Any:
        return self.links.defs[param].block

    def _index(self, value: Value, loop: While | For) -> int | None:
        """Which of a loop's carried values a param is."""
        made = self.links.defs[value]
        if made.instr is not None or self.links.owner[made.block].instr is not loop:
            return None
        index = made.index - (1 if isinstance(loop, For) else 0)
        return index if index >= 0 else None

    def reach(self, holders: frozenset[Node]) -> set[Node]:
        """All that may depend on what these values hold at any time."""
        if holders not in self._reach:
            seen = {(v, False, False) for v in holders}
            todo = list(seen)
            while todo:
                for step in self.links.onward(*todo.pop()):
                    if step not in seen:
                        seen.add(step)
                        todo.append(step)
            self._reach[holders] = {node for node, _, _ in seen}
        return self._reach[holders]

    def handed_on(self, holder: Value) -> set[Node]:
        """The values that a join may hand on, through other joins."""
        if holder not in self._handed:
            found: set[Node] = {holder}
            todo: list[Node] = [holder]
            while todo:
                for node in self.links.origins.get(todo.pop(), ()):
                    if node not in found:
                        found.add(node)
                        todo.append(node)
            self._handed[holder] = found
        return self._handed[holder]

    def later(self, value: Node) -> set[Node]:
        """What is computed from `value` before the next trip of a loop around it begins."""
        if value not in self._later:
            self._later[value] = self._reached(value)
        return self._later[value]

    def _reached(self, value: Node, within: Collection[Any] = ()) -> set[Node]:
        around = self._loops(value).union(within)
        found = {value}
        todo: list[tuple[Node, bool]] = [(value, False)]
        seen = set(todo)
        while todo:
            node, entered = todo.pop()
            for step in self._onward(node, entered):
                if step not in seen and not self._again(step[0], around):
                    seen.add(step)
                    found.add(step[0])
                    todo.append(step)
        return found

    def _onward(self, node: Node, entered: bool) -> Iterator[tuple[Node, bool]]:
        return ((to, inner) for to, _, inner in self.links.onward(node, False, entered))

    def _again(self, node: Node, around: set[Any]) -> bool:
        """Whether this is where a loop around begins a trip."""
        made = self.links.defs.get(node) if isinstance(node, Value) else None
        return made is not None and made.instr is None and self.links.owner[made.block].instr in around

    def _loops(self, value: Node) -> set[Any]:
        made = self.links.defs.get(value) if isinstance(value, Value) else None
        found = set()
        block = None if made is None else made.block
        while block is not None:
            owner = self.links.owner[block]
            if isinstance(owner.instr, While | For):
                found.add(owner.instr)
            block = owner.parent
        return found

"""The groups of ops that become kernels, and the order between them.

Groups and single instructions are nodes of a graph of what must come before what. Each has a level above those of all
that come before it; an op may join a group if that makes no circle. Levels bound the search for one (Pearce and
Kelly, "A dynamic topological sort algorithm", 2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from graphdsl.core.ir import Apply, Value
from graphdsl.core.structure import results
from graphdsl.graph.kinds import asks_for_place
from graphdsl.graph.passes.fuse_kinds import Part, Shape, part, space
from graphdsl.ops.op import Pointwise
from graphdsl.ops.type_rules import same_shape

_MOST_OPS = 100  # of a kernel: registers and compile time
_MOST_TENSORS = 24  # that a kernel reads
_RECENT = 8  # groups of one shape that an op is held against
_SEARCHED = 400  # nodes, before a circle is taken for granted
_SMALL = 4096  # elements: so few that a kernel less is worth it even where nothing is shared


class Node:
    """An instruction by itself."""

    def __init__(self, number: int, instr: Any) -> None:
        self.members: list[Any] = [instr]
        self.before: set[Node] = set()
        self.after: set[Node] = set()
        self.level = 0
        self.last = number  # the place of the last member in the program
        self.is_virtual = False


class Group(Node):
    """Ops that are computed together. `virtual` are its own copies of what is made of scalars."""

    def __init__(self, number: int, instr: Apply) -> None:
        super().__init__(number, instr)
        self.space = space(instr)
        self.virtual: dict[Value, Apply] = {}
        self.made = set(instr.outs)
        self.read = {a for a in instr.args if a.type.shape}
        self.totals = set(instr.outs) if part(instr) is Part.TOTAL else set()
        self.scalars = {a for a in instr.args if not a.type.shape}
        self.flat = _is_flat(instr, self.space)
        self.moved = {a for a in instr.args if a.type.shape} if part(instr) is Part.MOVES else set()

    def takes(self, instr: Apply) -> bool:
        """Whether an op fits, apart from the order."""
        if not same_shape(self.space, space(instr)) or len(self.members) >= _MOST_OPS:
            return False
        if len((self.read | set(instr.args)) - self.made) > _MOST_TENSORS:
            return False
        if any(a in self.totals for a in instr.args):
            return False
        if (self.totals or part(instr) is Part.TOTAL) and not (self.flat and _is_flat(instr, self.space)):
            return False
        # what is read at other places must be there as a whole
        return not (part(instr) is Part.MOVES and any(a in self.made for a in instr.args))

    def absorb(self, instr: Apply, number: int) -> None:
        """Take an op in."""
        self.members.append(instr)
        self.made.update(instr.outs)
        self.read.update(a for a in instr.args if a.type.shape)
        self.totals.update(instr.outs if part(instr) is Part.TOTAL else ())
        self.scalars.update(a for a in instr.args if not a.type.shape)
        self.flat &= _is_flat(instr, self.space)
        self.last = max(self.last, number)
        if part(instr) is Part.MOVES:
            self.moved.update(a for a in instr.args if a.type.shape)


class Groups:
    """All nodes of a block, in order of making."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.maker: dict[Value, Node] = {}
        self._virtual: dict[Value, Apply] = {}
        self._recent: dict[Any, list[Group]] = {}
        self._readers: dict[Value, dict[Group, None]] = {}
        self._numbers: dict[Any, int] = {}  # of instructions, in program order

    def add(self, instr: Any, before: Iterable[Node]) -> Node:
        """A node of its own."""
        number = self._number(instr)
        node: Node
        if part(instr) in (Part.ELEMENTS, Part.MOVES, Part.TOTAL):
            before = [*before, *self._virtual_before(instr)]
            node = group = Group(number, instr)
            self._remember(group, instr)
            self._copy_virtual(group, instr)
        else:
            node = Node(number, instr)
        self.nodes.append(node)
        for earlier in before:
            self._edge(earlier, node)
        for value in results(instr):
            self.maker[value] = node
        return node

    def add_virtual(self, instr: Apply, before: list[Node]) -> None:
        """What is made of scalars: kernels make it for themselves."""
        node = self.add(instr, before)
        node.is_virtual = True
        self._virtual[instr.outs[0]] = instr

    def join(self, instr: Apply, before: list[Node]) -> bool:
        """Put an op into a group that has its operands or reads the same, if there is one that takes it."""
        before = [n for n in before if not n.is_virtual] + self._virtual_before(instr)
        for group in self._candidates(instr, before):
            if (
                group.takes(instr)
                and not self._measures(group, instr)
                and not _leads(group, {n for n in before if n is not group})
            ):
                group.absorb(instr, self._number(instr))
                self._copy_virtual(group, instr)
                for earlier in before:
                    self._edge(earlier, group)
                for value in instr.outs:
                    self.maker[value] = group
                self._remember(group, instr)
                self._unite(group, before)
                return True
        return False

    # ---- steps ----

    def _number(self, instr: Any) -> int:
        return self._numbers.setdefault(instr, len(self._numbers))

    def _virtual_before(self, instr: Apply) -> list[Node]:
        made = (self._virtual[a] for a in instr.args if a in self._virtual)
        return [self.maker[v] for m in made for v in m.args if v in self.maker]

    def _measures(self, group: Group, instr: Apply) -> bool:
        """Whether something made of scalars that an op reads is made of a sum of the group."""
        made = (self._virtual[a] for a in instr.args if a in self._virtual)
        return any(a in group.totals for v in made for a in v.args)

    def _copy_virtual(self, group: Group, instr: Apply) -> None:
        for arg in instr.args:
            if arg in self._virtual:
                group.virtual[arg] = self._virtual[arg]
                group.scalars.update(a for a in self._virtual[arg].args if not a.type.shape)

    def _remember(self, group: Group, instr: Apply) -> None:
        recent = self._recent.setdefault(len(group.space), [])
        if group not in recent:
            recent.append(group)
            del recent[:-_RECENT]
        for arg in instr.args:
            if arg.type.shape and arg not in self._virtual:
                self._readers.setdefault(arg, {})[group] = None

    def _candidates(self, instr: Apply, before: list[Node]) -> list[Group]:
        """Groups that make operands, the latest first; then those that read the same; of small tensors any."""
        found = dict.fromkeys(sorted((n for n in before if isinstance(n, Group)), key=lambda n: -n.last))
        for arg in instr.args:
            found.update(self._readers.get(arg, {}))
        if _is_small(space(instr)):
            found.update(dict.fromkeys(reversed(self._recent.get(len(space(instr)), []))))
        return list(found)[:_RECENT]

    def _unite(self, group: Group, before: list[Node]) -> None:
        """Other groups that made operands of the new member go with its group, where that makes no circle."""
        for other in before:
            if isinstance(other, Group) and other is not group and other in self.nodes and self._fits(group, other):
                self._merge(group, other)

    def _fits(self, a: Group, b: Group) -> bool:
        if not same_shape(a.space, b.space) or len(a.members) + len(b.members) > _MOST_OPS:
            return False
        if len((a.read | b.read) - a.made - b.made) > _MOST_TENSORS or (
            (a.totals or b.totals) and not (a.flat and b.flat)
        ):
            return False
        if a.moved & b.made or b.moved & a.made or a.totals & (b.scalars | b.read) or b.totals & (a.scalars | a.read):
            return False
        return not (_leads(a, {b}, skip=b) or _leads(b, {a}, skip=a))

    def _merge(self, group: Group, other: Group) -> None:
        """`other` becomes part of `group`."""
        group.members = sorted([*other.members, *group.members], key=self._numbers.__getitem__)
        group.virtual.update(other.virtual)
        group.made |= other.made
        group.read |= other.read
        group.moved |= other.moved
        group.totals |= other.totals
        group.scalars |= other.scalars
        group.flat &= other.flat
        group.last = max(group.last, other.last)
        for value in other.made:
            self.maker[value] = group
        self.nodes.remove(other)
        for recent in self._recent.values():
            if other in recent:
                recent.remove(other)
        for readers in self._readers.values():
            if readers.pop(other, 0) is None:
                readers[group] = None
        for earlier in other.before:
            earlier.after.discard(other)
            self._edge(earlier, group)
        for later in other.after:
            later.before.discard(other)
            self._edge(group, later)
        group.before.discard(other)
        group.after.discard(other)

    def _edge(self, earlier: Node, later: Node) -> None:
        if earlier is later or earlier in later.before:
            return
        later.before.add(earlier)
        earlier.after.add(later)
        todo = [(later, earlier.level + 1)]
        while todo:
            node, level = todo.pop()
            if node.level < level:
                node.level = level
                todo.extend((n, level + 1) for n in node.after)


def _leads(start: Node, goals: set[Node], skip: Node | None = None) -> bool:
    """Whether something after `start` is one of `goals`; the step straight to `skip` does not count."""
    most = max((g.level for g in goals), default=-1)
    todo = [n for n in start.after if n is not skip and n.level <= most]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node in goals or len(seen) > _SEARCHED:
            return True
        for following in node.after:
            if following.level <= most and following not in seen:
                seen.add(following)
                todo.append(following)
    return False


def _is_flat(instr: Apply, shape: Shape) -> bool:
    """Whether an op's operands lie like the space, element for element."""
    if len(shape) == 1:
        return True
    if isinstance(instr.op.compute, Pointwise) and asks_for_place(instr):
        return False
    return all(
        same_shape(a.type.shape, shape)
        for i, a in enumerate(instr.args)
        if a.type.shape and i not in instr.op.shape_only
    )


def _is_small(shape: Shape) -> bool:
    return all(isinstance(d, int) for d in shape) and prod(d for d in shape if isinstance(d, int)) <= _SMALL

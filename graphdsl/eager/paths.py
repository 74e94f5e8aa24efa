"""The paths on a tape from a result back to what it is differentiated by, with the local derivative on each edge.

An edge goes from what an op made to one of its operands; an operand that it takes twice is two. Where the same value only goes
on (joins, the params of functions) there is no edge. The local derivative is what the op's rule makes of the cotangent 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdsl.eager.custom import ResultRule
from graphdsl.eager.rules import OpRule, PassRule
from graphdsl.eager.tape import Node, between, last_leaf, origin
from graphdsl.eager.traced import Ends
from graphdsl.ops.types import Type
from graphdsl.runtime.numbers import NUMBERS
from graphdsl.source.record import dataclass

Edge = tuple[Node, float]


@dataclass(frozen=True)
class Route:
    """One path: its nodes from the result to the target, and the local derivative between each and the next."""

    nodes: tuple[Node, ...]
    factors: tuple[float, ...]

    @property
    def product(self) -> float:
        """A factor of 0 makes it 0, as a cotangent of 0 does."""
        product = 1.0
        for factor in self.factors:
            product = 0.0 if product == 0 else product * factor
        return product


class Tensor(Exception):
    """A value on a path is no scalar: its node (None: it is the target)."""

    def __init__(self, node: Node | None) -> None:
        super().__init__()
        self.node = node


class Routes:
    """All paths from one end to the other. Raises `Tensor`."""

    def __init__(self, ends: Ends) -> None:
        self.useful: dict[int, Node] = {}
        self.target: int | None = None
        self.top: Node | None = None
        self._edges: dict[int, list[Edge]] = {}
        if ends.top is None or ends.target is None:
            return
        where = last_leaf(ends.top, ends.target) if isinstance(ends.target, str) else origin(ends.target)[0]
        if where is None:
            return
        self.target = where
        self.useful = between(ends.top, {where})
        if where not in self.useful:
            self.useful = {}
            return
        for node in sorted(self.useful.values(), reverse=True, key=lambda node: node[0]):
            if node[0] != where and (type := _type(node)) is not None and type.rank:
                raise Tensor(node)
        self.top = self._passed(ends.top)

    def count(self) -> int:
        """How many there are."""
        counts: dict[int, int] = {}
        for number in sorted(self.useful):
            node = self.useful[number]
            found = 1 if number == self.target else sum(counts.get(p[0], 0) for p in self._parents(node))
            counts[number] = found
        return 0 if self.top is None else counts[self.top[0]]

    def first(self, most: int) -> Iterator[Route]:
        """The first of them, operands from left to right."""
        stack: list[tuple[tuple[Node, ...], tuple[float, ...]]] = [] if self.top is None else [((self.top,), ())]
        while stack and most:
            nodes, factors = stack.pop()
            if nodes[-1][0] == self.target:
                most -= 1
                yield Route(nodes, factors)
                continue
            for parent, factor in reversed(self._from(nodes[-1])):
                stack.append(((*nodes, parent), (*factors, factor)))

    def _passed(self, node: Node) -> Node:
        """The value itself, where it only went on to be this one."""
        while node[0] != self.target and (node[1].passes or isinstance(node[1], PassRule)) and node[2] is not None:
            node = node[2]
        return node

    def _parents(self, node: Node) -> list[Node]:
        """What stands on its edges; those that lead to the target."""
        parents = [p for p in node[2 : node[1].end] if p is not None and p[0] in self.useful]
        return parents if node[1].joint is None else list({p[0]: p for p in parents}.values())

    def _from(self, node: Node) -> list[Edge]:
        if node[0] not in self._edges:
            self._edges[node[0]] = [(self._passed(p), factor) for p, factor in self._local(node)]
        return self._edges[node[0]]

    def _local(self, node: Node) -> Iterator[Edge]:
        """The operands of one op with their local derivatives."""
        type = _type(node)
        one: Any = 1.0 if type is None else NUMBERS[type.dtype](1)
        if isinstance(node[1], ResultRule):
            call: Node = node[2]
            sums: dict[int, Any] = {}
            wanted = {p[0]: p for p in self._parents(call)}
            assert call[1].joint is not None
            call[1].joint(node[1].first[0](one, node), call, sums, wanted)
            yield from ((wanted[number], float(found)) for number, found in sums.items())
            return
        for i, parent in enumerate(node[2 : node[1].end]):
            if parent is not None and parent[0] in self.useful:
                yield parent, float(node[1].first[i](one, node))


def _type(node: Node) -> Type | None:
    """The type of what a node stands for (None: it stands for a call, or comes from nowhere)."""
    rule = node[1]
    if isinstance(rule, OpRule):
        return rule.pairs[0][0].block.params[0].type
    return rule_type if isinstance(rule, ResultRule) and (rule_type := node[2][1].outs[rule.index]) else None

"""The tape: what eager mode records, and the walk back over it.

A node is a plain tuple `(number, rule, *parents, *saved)`, made by the generated code where a tracked value is made.
Numbers grow in order of evaluation; a parent is a node or None; the rest is what the rule's contributions read. Nodes
point only to earlier ones, so a history lives exactly as long as a value that leads to it. There is nothing else: no
list of what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

Node = tuple[Any, ...]
Contribution = Callable[..., Any]

Watch = Callable[[int], None] | None


class Seen(Protocol):
    """Looks at each contribution: at the running sum before it (None: it begins one), which it may change in place; and at
    the sum with it, and what it was made from. `node` is the one of which it is contribution `i`."""

    def before(self, total: Any, node: Node) -> None: ...

    def after(self, total: Any, i: int, cotangent: Any, node: Node) -> None: ...


tick = count(1).__next__


class Rule:
    """What the nodes of one kind share: they hold `count` parents.

    `first[i](cotangent, node)` is the contribution to the i-th parent, a running sum that begins with it;
    `more[i](sum, cotangent, node)` the sum with it added. Or `joint(cotangent, node, sums, useful)` changes the sums of
    all parents that are useful, at once. `recorded` has the same for pairs of value and node, and
    records what is computed.
    """

    passes = False  # the same value as its parent's: `origin` looks through it
    param: str | None = None  # the param of which this is a leaf
    first: Sequence[Contribution] = ()
    more: Sequence[Contribution] = ()
    joint: Callable[[Any, Node, dict[int, Any], dict[int, Node]], None] | None = None
    recorded: Rule

    def __init__(self, count: int = 0) -> None:
        self.end = 2 + count  # the parents stand at 2:end
        self.recorded = self

    def ops(self, i: int, more: bool) -> int:
        """How many ops the contribution to the i-th parent takes, the first one or a later one."""
        return 0


def origin(node: Node) -> Node:
    """The node where the value of `node` was made."""
    while node[1].passes and node[2] is not None:
        node = node[2]
    return node


def last_leaf(top: Node | None, param: str) -> int | None:
    """The number of the latest leaf of a param that leads to `top`."""
    stack = [] if top is None else [top]
    seen = {node[0] for node in stack}
    found = None
    while stack:
        node = stack.pop()
        if node[1].param == param and (found is None or node[0] > found):
            found = node[0]
        for parent in node[2 : node[1].end]:
            if parent is not None and parent[0] not in seen:
                seen.add(parent[0])
                stack.append(parent)
    return found


def backward(
    top: Node, seed: Any, wanted: set[int], record: bool = False, watch: Watch = None, seen: Seen | None = None
) -> dict[int, Any]:
    """The sums of cotangents of the nodes numbered in `wanted`, by number, from `seed` at `top`.

    `watch` is told how many ops each contribution takes; `seen` looks at each."""
    sums = {top[0]: seed}
    found = {}
    useful = between(top, wanted)
    for number in sorted(useful, reverse=True):
        if number not in sums:
            continue
        node = useful[number]
        if number in wanted:
            found[number] = sums[number]
        rule = node[1].recorded if record else node[1]
        if rule.joint is not None:
            rule.joint(sums.pop(number), node, sums, useful)
            continue
        last = rule.end - 3
        for i, parent in enumerate(node[2 : rule.end]):
            if parent is not None and (key := parent[0]) in useful:
                if watch is not None:
                    watch(node[1].ops(i, key in sums))
                held = None
                if seen is not None:
                    held = sums[number]
                    seen.before(sums.get(key), node)
                # popped in the call: an array that only the sum holds is written into in place
                if key in sums:
                    sums[key] = rule.more[i](sums.pop(key), sums.pop(number) if i == last else sums[number], node)
                else:
                    sums[key] = rule.first[i](sums.pop(number) if i == last else sums[number], node)
                if seen is not None:
                    seen.after(sums[key], i, held, node)
        sums.pop(number, None)
    return found


def between(top: Node, wanted: set[int]) -> dict[int, Node]:
    """The nodes on paths from `top` down to the wanted ones, by number."""
    lowest = min(wanted, default=top[0])
    reached = {top[0]: top}
    stack = [top]
    side_paths = False
    while stack:
        node = stack.pop()
        ends = node[0] not in wanted
        for parent in node[2 : node[1].end]:
            if parent is not None and (number := parent[0]) >= lowest:
                ends = False
                if number not in reached:
                    reached[number] = parent
                    stack.append(parent)
        side_paths |= ends
    return _leading(reached, wanted) if side_paths else reached


def _leading(reached: dict[int, Node], wanted: set[int]) -> dict[int, Node]:
    """Those of the nodes from which a wanted one is reached."""
    useful: dict[int, Node] = {}
    for number in sorted(reached):
        node = reached[number]
        if number in wanted:
            useful[number] = node
        else:
            for parent in node[2 : node[1].end]:
                if parent is not None and parent[0] in useful:
                    useful[number] = node
                    break
    return useful

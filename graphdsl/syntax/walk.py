"""Walking the tree without recursion: a node's children, and every node below it.

A Python stack frame a level would end at some 1,000 levels; trees may be 100,000 deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields

from graphdsl.syntax.ast import Node

_PLAIN = {"span", "op_span", "op", "id", "kind", "dtype", "spec", "module", "is_path", "is_prop"}
_PARTS: dict[type[Node], tuple[str, ...]] = {}


def _parts(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a node class that may hold nodes."""
    parts = _PARTS.get(kind)
    if parts is None:
        parts = _PARTS[kind] = tuple(f.name for f in fields(kind) if f.name not in _PLAIN)
    return parts


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the node's fields."""
    for name in _parts(type(node)):
        part = getattr(node, name)
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple | list):
            for item in part:
                if isinstance(item, Node):
                    yield item


def replace_children(node: Node, swap: Callable[[Node], Node]) -> None:
    """Put other nodes in the place of those directly below."""
    for name in _parts(type(node)):
        part = getattr(node, name)
        if isinstance(part, Node):
            setattr(node, name, swap(part))
        elif isinstance(part, tuple | list):
            setattr(node, name, type(part)(swap(item) if isinstance(item, Node) else item for item in part))


def walk(roots: Node | Iterable[Node], enter: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Every node, parents first, in order. Below a node for which `enter` is false nothing is visited."""
    stack: list[Iterator[Node]] = [iter((roots,) if isinstance(roots, Node) else roots)]
    while stack:
        for node in stack[-1]:
            yield node
            if enter is None or enter(node):
                stack.append(children(node))
                break
        else:
            stack.pop()

"""Going over a whole graph: every block of it, and other values in the place of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Block, Func, Value
from graphdsl.core.structure import reconnect, regions


def graph_body(block: Block) -> list[Any]:
    """A block's instructions, among which are those that graph mode adds."""
    return block.body


def blocks_of(main: Func) -> Iterator[Block]:
    """Every block of a graph, also of the functions it calls."""
    for func in [*functions(main), main]:
        todo = [func.body]
        while todo:
            block = todo.pop()
            yield block
            for instr in block.body:
                todo.extend(regions(instr))


def rename(main: Func, same: Mapping[Value, Value]) -> None:
    """Read other values in the place of some, everywhere; what they are called stays known."""
    if not same:
        return

    def read(value: Value) -> Value:
        while value in same:
            named, value = value.name, same[value]
            value.name = value.name or named
        return value

    for block in blocks_of(main):
        for instr in block.body:
            reconnect(instr, read)
        block.yields = [read(v) for v in block.yields]

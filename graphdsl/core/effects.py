"""What a program does beside making values: what it says, writes, reads and draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphdsl.core.call_graph import functions, instructions
from graphdsl.core.ir import Apply, Func, Print, Save, Seed, Stream
from graphdsl.core.structure import regions
from graphdsl.ops.op import Effect


def outward(func: Func) -> Iterator[Any]:
    """The instructions of a function, and of all it calls, that print, save, load, draw or seed. What only may fail is none."""
    for instr in instructions(func):
        match instr:
            case Print() | Save() | Seed() | Stream():
                yield instr
            case Apply(op=op) if op.effect is not Effect.NONE:
                yield instr


def silence(func: Func, which: Callable[[Print], bool]) -> list[Print]:
    """Take out such prints, which cannot fail, from a function and all that it calls; gives them."""
    found: list[Print] = []
    todo = [inner.body for inner in (*functions(func), func)]
    while todo:
        block = todo.pop()
        gone = [instr for instr in block.body if isinstance(instr, Print) and which(instr)]
        if gone:
            found += gone
            block.body = [instr for instr in block.body if instr not in gone]
        todo.extend(region for instr in block.body for region in regions(instr))
    return found

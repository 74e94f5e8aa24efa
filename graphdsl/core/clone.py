"""Copying blocks: every value and region anew, outer values as a map says.

Functions called are shared between the copies unless `func` gives others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdsl.core.ir import Block, Call, Custom, Func, Value
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import operands, rebuilt, regions, results

Values = dict[Value, Value]


def clone_block(
    block: Block,
    values: Values,
    func: Callable[[Func], Func] | None = None,
    copied: Callable[[Any, Any], None] | None = None,
) -> Block:
    """A copy of `block`. `values` maps outer values (those it lacks stay); afterwards also the inner ones.

    `copied` is told of each instruction and block, and its copy.
    """
    return run(_block(block, values, func, copied or (lambda old, new: None)))


def clone_value(value: Value) -> Value:
    """A new value like another one."""
    copy = Value(value.type, value.name)
    copy.tracked, copy.leaf, copy.number = value.tracked, value.leaf, value.number
    return copy


def _block(
    block: Block, values: Values, func: Callable[[Func], Func] | None, copied: Callable[[Any, Any], None]
) -> Steps[Block]:
    def read(value: Value) -> Value:
        return values.get(value, value)

    def make(value: Value) -> Value:
        values[value] = clone_value(value)
        return values[value]

    copy = Block([make(p) for p in block.params])
    for instr in block.body:
        inner: dict[Block, Block] = {}
        for region in regions(instr):
            inner[region] = yield _block(region, values, func, copied)
        made: Any = rebuilt(instr, read, make, inner.__getitem__)
        match made:
            case Call() if func is not None:
                made.func = func(made.func)
            case Custom() if func is not None:
                made.rule = func(made.rule)
        copied(instr, made)
        copy.body.append(made)
    copy.yields = [read(v) for v in block.yields]
    copied(block, copy)
    return copy


def free_values(*blocks: Block) -> list[Value]:
    """The values from outside that blocks read, each once, in order of first use."""
    made: set[Value] = set()
    read: dict[Value, None] = {}
    todo = list(reversed(blocks))
    while todo:
        block = todo.pop()
        made.update(block.params)
        read.update(dict.fromkeys(block.yields))
        for instr in block.body:
            read.update(dict.fromkeys(operands(instr)))
            made.update(results(instr))
            todo.extend(regions(instr))
    return [v for v in read if v not in made]

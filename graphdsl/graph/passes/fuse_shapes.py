"""Operands of which only the shape is read: the earliest value of that shape will do.

So no value is kept, or computed at all, only to be measured. What joins pass on is not taken: where a name
was never set, it has no sizes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Apply, Block, Func, Value
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import regions, results
from graphdsl.graph.ir import Fused, Read

_Known = dict[Hashable, Value]


def share_shapes(func: Func) -> None:
    """Let every operand that is only measured be the first value of its shape."""
    known: _Known = {}
    for param in func.body.params:
        _note(known, [], param)
    run(_block(func.body, known))


def _block(block: Block, known: _Known) -> Steps[None]:
    noted: list[Hashable] = []
    for instr in block.body:
        if isinstance(instr, Apply) and instr.op.shape_only:
            _measured(instr, known)
        if isinstance(instr, Apply | ir.Feed | ir.Leaf | Read):
            for value in results(instr):
                _note(known, noted, value)
        if not isinstance(instr, Fused):
            for inner in regions(instr):
                yield _block(inner, known)
    for key in noted:
        del known[key]


def _measured(instr: Apply, known: _Known) -> None:
    args: list[Any] = list(instr.args)
    for i in instr.op.shape_only:
        if args[i].type.shape:
            args[i] = known.get(_key(args[i]), args[i])
    instr.args = tuple(args)


def _note(known: _Known, noted: list[Hashable], value: Value) -> None:
    key = _key(value)
    if value.type.shape and key not in known:
        known[key] = value
        noted.append(key)


def _key(value: Value) -> Hashable:
    # dtypes are part of it: rules ask for them too
    return (value.type.dtype, value.type.shape)

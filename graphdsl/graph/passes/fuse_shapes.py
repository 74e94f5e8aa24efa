"""Operands of which only the shape is read: another value of that shape will do, best one that is there in any case.

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
from graphdsl.ops.op import Elementwise, Pointwise
from graphdsl.source.record import dataclass, field


@dataclass
class _Known:
    """The value for each shape; `sure`: it is stored whether it is measured or not."""

    values: dict[Hashable, tuple[Value, bool]] = field(default_factory=dict)
    undo: list[tuple[Hashable, tuple[Value, bool] | None]] = field(default_factory=list)

    def note(self, value: Value, sure: bool) -> None:
        key = _key(value)
        known = self.values.get(key)
        if value.type.shape and (known is None or (sure and not known[1])):
            self.undo.append((key, known))
            self.values[key] = (value, sure)

    def forget(self, mark: int) -> None:
        """Go back to what was known when `undo` was so long."""
        while len(self.undo) > mark:
            key, before = self.undo.pop()
            if before is None:
                del self.values[key]
            else:
                self.values[key] = before


def share_shapes(func: Func) -> None:
    """Let every operand that is only measured be such a value."""
    known = _Known()
    for param in func.body.params:
        known.note(param, True)
    run(_block(func.body, known))


def _block(block: Block, known: _Known) -> Steps[None]:
    mark = len(known.undo)
    for instr in block.body:
        match instr:
            case Apply(op=op, outs=outs):
                if op.shape_only:
                    _measured(instr, known)
                for value in outs:
                    known.note(value, not isinstance(op.compute, Elementwise | Pointwise))
            case ir.Feed() | ir.Leaf() | Read():
                for value in results(instr):
                    known.note(value, True)
        if not isinstance(instr, Fused):
            for inner in regions(instr):
                yield _block(inner, known)
    known.forget(mark)


def _measured(instr: Apply, known: _Known) -> None:
    args: list[Any] = list(instr.args)
    for i in instr.op.shape_only:
        if args[i].type.shape:
            args[i] = known.values.get(_key(args[i]), (args[i],))[0]
    instr.args = tuple(args)


def _key(value: Value) -> Hashable:
    # dtypes are part of it: rules ask for them too
    return (value.type.dtype, value.type.shape)

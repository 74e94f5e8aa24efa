"""Common subexpressions: what was computed before from the same values is not computed again.

A second use of an op that can fail goes too: it stands after the first, with the same operands, and cannot fail any
more. Draws, reads of files and the taking of sums depend on when they happen, and stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Apply, Block, Const, Func, Value
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import reconnect, regions
from graphdsl.graph.ir import Fused, Read
from graphdsl.graph.rename import graph_body
from graphdsl.ops.attrs import frozen
from graphdsl.ops.op import Effect


def merge_common(main: Func) -> None:
    """Merge within each function, outer blocks before inner ones."""
    for func in [*functions(main), main]:
        run(_Merging().block(func.body, {}))


class _Merging:
    """Values seen so far, and what became of them."""

    def __init__(self) -> None:
        self.same: dict[Value, Value] = {}

    def read(self, value: Value) -> Value:
        return self.same.get(value, value)

    def block(self, block: Block, outer: Mapping[Hashable, tuple[Value, ...]]) -> Steps[None]:
        known = _Scope(outer)
        kept = []
        for instr in graph_body(block):
            reconnect(instr, self.read)
            key = _key(instr)
            before = None if key is None else known.get(key)
            if before is not None:
                self.same.update(zip(_outs(instr), before, strict=True))
                continue
            if key is not None:
                known[key] = _outs(instr)
            kept.append(instr)
            if not isinstance(instr, Fused):
                for region in regions(instr):
                    yield self.block(region, known)
        block.body = kept
        block.yields = [self.read(v) for v in block.yields]


class _Scope(dict[Hashable, tuple[Value, ...]]):
    """What is known in a block, and in those around it."""

    def __init__(self, outer: Mapping[Hashable, tuple[Value, ...]]) -> None:
        super().__init__()
        self.outer = outer

    def get(self, key: Hashable, default: Any = None) -> Any:
        scope: Any = self
        while isinstance(scope, _Scope):
            if dict.__contains__(scope, key):
                return dict.__getitem__(scope, key)
            scope = scope.outer
        return default


def _outs(instr: Any) -> tuple[Value, ...]:
    return (instr.out,) if isinstance(instr, Const) else tuple(instr.outs)


def _key(instr: Any) -> Hashable | None:
    """Equal for instructions that give the same; None for those that are never merged."""
    match instr:
        case Const(value=value, out=out):
            return ("const", type(value), repr(value), out.type.dtype, out.type.weak, out.type.shape)
        case Apply(op=op, args=args, attrs=attrs) if op.effect is Effect.NONE:
            types = tuple((a.type.dtype, a.type.weak) for a in args)
            return (op, args, types, frozen(attrs), tuple(o.type.dtype for o in instr.outs))
        case Read(record=record, at=at, fields=fields):
            return ("read", record, at, fields)
        case _:
            return None

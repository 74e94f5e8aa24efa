"""Taking out of a graph what liveness says is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from graphdsl.core.ir import Call, For, Func, If, Value, While
from graphdsl.core.structure import regions
from graphdsl.graph.ir import Fused, Push, Put, Read, Record, Take
from graphdsl.graph.rename import graph_body

if TYPE_CHECKING:
    from graphdsl.graph.passes.dead import Liveness

T = TypeVar("T")


def shrink(live: Liveness) -> None:
    """Drop dead instructions, and the dead parts of those that stay."""
    sweep = _Sweep(live)
    for func in live.funcs:
        sweep.function(func)


class _Sweep:
    def __init__(self, live: Liveness) -> None:
        self.live = live
        self.params = {f: self.alive(f.body.params) for f in live.funcs}
        called = {f: [c for c in live.calls[f] if c in live.kept] for f in live.funcs}
        self.results = {
            f: [any(c.outs[i] in live.values for c in called[f]) for i in range(len(f.body.yields))] for f in live.funcs
        }
        self.fields = {r: self._fields(r) for r in live.pushes}
        self.done: set[Record] = set()

    def alive(self, values: Sequence[Value]) -> list[bool]:
        return [v in self.live.values for v in values]

    def _fields(self, record: Record) -> dict[int, int]:
        """The new numbers of the fields that are read."""
        needed = [i for i in range(len(record.types)) if ("field", record, i) in self.live.values]
        return {i: k for k, i in enumerate(needed)}

    def function(self, func: Func) -> None:
        todo = [func.body]
        while todo:
            block = todo.pop()
            block.body = [i for i in graph_body(block) if i in self.live.kept]
            for instr in graph_body(block):
                if not isinstance(instr, Fused):
                    todo.extend(regions(instr))
                self.instr(instr)
        if func is not self.live.main:
            func.body.params = _chosen(func.body.params, self.params[func])
            func.body.yields = _chosen(func.body.yields, self.results[func])

    def instr(self, instr: Any) -> None:
        match instr:
            case If(then=then, orelse=orelse, outs=outs):
                keep = self.alive(outs)
                instr.outs = tuple(_chosen(outs, keep))
                for branch in (then, orelse):
                    branch.yields = _chosen(branch.yields, keep)
            case While(cond=cond, body=body, outs=outs):
                keep = self.alive(outs)
                self.loop(instr, keep)
                cond.params = _chosen(cond.params, keep)
                body.params = _chosen(body.params, keep)
            case For(body=body, outs=outs):
                keep = self.alive(outs)
                self.loop(instr, keep)
                body.params = [body.params[0], *_chosen(body.params[1:], keep)]
            case Call(func=func, args=args, outs=outs):
                instr.args = tuple(_chosen(args, self.params[func]))
                instr.outs = tuple(_chosen(outs, self.results[func]))
            case Push() | Read() | Take() | Put():
                self.saved(instr)

    def loop(self, loop: While | For, keep: list[bool]) -> None:
        loop.inits = tuple(_chosen(loop.inits, keep))
        loop.outs = tuple(_chosen(loop.outs, keep))
        loop.body.yields = _chosen(loop.body.yields, keep)

    def saved(self, instr: Any) -> None:
        """Fields that nobody reads go, and the others get new numbers."""
        numbers = self.fields[instr.record]
        match instr:
            case Push(values=values):
                instr.values = tuple(v for i, v in enumerate(values) if i in numbers)
            case Read(fields=fields, outs=outs) | Take(fields=fields, outs=outs):
                keep = [o in self.live.values for o in outs]
                instr.outs = tuple(_chosen(outs, keep))
                instr.fields = tuple(numbers[i] for i in _chosen(fields, keep))
            case Put(fields=fields, values=values, record=record):
                keep = [("sum", record, i) in self.live.values for i in fields]
                instr.values = tuple(_chosen(values, keep))
                instr.fields = tuple(numbers[i] for i in _chosen(fields, keep))
        self.form(instr.record)

    def form(self, record: Record) -> None:
        """The record itself, once."""
        if len(record.types) != len(self.fields[record]) and record not in self.done:
            record.types = [record.types[i] for i in self.fields[record]]
        self.done.add(record)


def _chosen(values: Sequence[T], keep: Sequence[bool]) -> list[T]:
    return [v for v, k in zip(values, keep, strict=True) if k]

"""The abstract walk of `graphdsl.core.between` over a graph: through saved values, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphdsl.core.between import Between, State
from graphdsl.core.ir import Value
from graphdsl.core.links import Node
from graphdsl.graph.ir import Push, Put, Read, Result, Take
from graphdsl.graph.links import saved, summed


class GraphBetween(Between):
    """What is saved in a field that is read counts as live wherever it is pushed."""

    def follow(self, instr: Any, live: list[Value], state: State) -> None:
        match instr:
            case Result(arg=arg):
                self.walked.update(live)
                self.add(arg, state)
            case Push(record=record, values=values):
                self.walked.update(live)
                for i, v in enumerate(values):
                    if saved(record, i) in self.values:
                        self.add(v, state)
            case Read(record=record, at=at, fields=fields, outs=outs):
                self.walked.update(live)
                self.values.update(saved(record, i) for i, v in zip(fields, outs, strict=True) if v in live)
                self.add(at, state)
            case Take(shadow=shadow, record=record, fields=fields, outs=outs):
                self.walked.update(live)
                self.values.update(summed(record, i) for i, v in zip(fields, outs, strict=True) if v in live)
                self.add(shadow, state)
            case _:
                super().follow(instr, live, state)

    def plain(self, instr: Any, state: State) -> None:
        if isinstance(instr, Put):
            if instr.shadow in state.live:
                for i, v in zip(instr.fields, instr.values, strict=True):
                    if summed(instr.record, i) in self.values:
                        self.add(v, state)
            return
        super().plain(instr, state)

    def _sources(self, node: Node) -> Iterable[Node]:
        made = self.links.defs.get(node) if isinstance(node, Value) else None
        if made is not None and isinstance(made.instr, Push):
            push = made.instr
            return [v for i, v in enumerate(push.values) if saved(push.record, i) in self.values]
        return super()._sources(node)

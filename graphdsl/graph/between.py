"""The abstract walk of `graphdsl.core.between` over a graph: through saved values, too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from graphdsl.core.between import Between, State
from graphdsl.core.ir import Call, Func, Value
from graphdsl.core.links import Node
from graphdsl.core.steps import Steps
from graphdsl.core.structure import regions
from graphdsl.graph.ir import Push, Put, Read, Result, Take
from graphdsl.graph.links import GraphLinks, saved, summed


class GraphBetween(Between):
    """What is saved in a field that is read counts as live wherever it is pushed."""

    links: GraphLinks

    def _walk(self) -> None:
        """What is saved leads on where it is read, and regions and functions are followed in no order: that it is read
        may be found later than where it was saved is looked at. So until nothing more is found.
        """
        before = -1
        while len(self.values) > before:
            before = len(self.values)
            self.effort = 0
            self._needs.clear()
            super()._walk()
            if not any(isinstance(node, tuple) for node in self.values):
                break  # nothing saved was read

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

    def concerns_inside(self, instr: Any, state: State) -> bool:
        if super().concerns_inside(instr, state):
            return True
        return bool(self.links.shadows) and any(s in state.live for s in self.links.shadows_in(instr))

    def enter(self, call: Call, state: State, inner: State) -> None:
        for arg, param in zip(call.args, call.func.body.params, strict=True):
            if arg in state.live and param in self.links.shadows:
                self.add(param, inner)

    def changed(self, instr: Any, state: State) -> Iterable[Node]:
        return [s for s in self.links.shadows_in(instr) if s in state.live]

    def _back(self, start: Collection[Node], region: Any, state: State | None, seen: set[Node]) -> Steps[set[Node]]:
        """What is taken from a shadow was put there before: that is followed, too, as long as it leads to more."""
        outer: set[Node] = yield super()._back(start, region, state, seen)
        put: set[Node] = set()
        while self.links.shadows:
            reached = {*start, *outer}
            shadows = {s for s in self.links.shadows if s in reached or (s in self.values and self.inside(s, region))}
            given: set[Node] = yield self._put_there(region, shadows)
            fresh = {v for v in given - put if self._leads(v, state)}
            if not fresh:
                break
            put |= fresh
            within = {v for v in fresh if isinstance(v, Value) and self.inside(v, region)}
            outer |= fresh - within
            outer |= yield super()._back(within, region, state, seen)
        return outer

    def _put_there(self, region: Any, live: Collection[Node]) -> Steps[set[Node]]:
        """What is put, within a region or function, into shadows from which something live was taken."""
        found: set[Node] = set()
        todo = list(region.body.body) if isinstance(region, Func) else [region]
        while todo:
            instr = todo.pop()
            if not any(s in live for s in self.links.shadows_in(instr)):
                continue
            match instr:
                case Put(record=record, fields=fields, values=values):
                    found.update(v for i, v in zip(fields, values, strict=True) if summed(record, i) in self.values)
                case Call():
                    found |= yield self._through_call(instr, [s for s in self.links.shadows_in(instr) if s in live])
                case other:
                    todo.extend(i for block in regions(other) for i in block.body)
        return found

    def _sources(self, node: Node) -> Iterable[Node]:
        made = self.links.defs.get(node) if isinstance(node, Value) else None
        if made is not None and isinstance(made.instr, Push):
            push = made.instr
            return [v for i, v in enumerate(push.values) if saved(push.record, i) in self.values]
        return () if node in self.links.shadows else super()._sources(node)

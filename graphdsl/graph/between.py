"""The abstract walk of `graphdsl.core.between` over a graph: through saved values, too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from graphdsl.core.between import Between, State
from graphdsl.core.instances import Instances
from graphdsl.core.ir import Call, Derive, Func, Value
from graphdsl.core.links import Node
from graphdsl.core.steps import run
from graphdsl.core.structure import regions
from graphdsl.graph.ir import Push, Put, Read, Result, Take
from graphdsl.graph.links import GraphLinks, saved, summed


class GraphBetween(Between):
    """What is saved in a field that is read counts as live wherever it is pushed."""

    links: GraphLinks

    def __init__(self, links: GraphLinks, derive: Derive, instances: Instances) -> None:
        self._put: dict[tuple[Func, frozenset[Value]], set[Node]] = {}
        super().__init__(links, derive, instances)

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

    def whole(self, instr: Any, state: State) -> None:
        given = self._put_there(instr, state.live)
        super().whole(instr, state)
        within = set() if isinstance(instr, Call) else {v for v in given if self.links.inside(v, instr)}
        outer: set[Node] = run(self._back(within, lambda v: self.links.inside(v, instr), state)) if within else set()
        for v in (given - within) | outer:
            self.add(v, state)

    def _put_there(self, instr: Any, live: Collection[Node]) -> set[Node]:
        """What a region or call puts into shadows from which something live was taken."""
        found: set[Node] = set()
        todo = [instr] if any(s in live for s in self.links.shadows_in(instr)) else []
        while todo:
            match todo.pop():
                case Put(shadow=shadow, record=record, fields=fields, values=values) if shadow in live:
                    found.update(v for i, v in zip(fields, values, strict=True) if summed(record, i) in self.values)
                case Call() as call if any(s in live for s in self.links.shadows_in(call)):
                    found.update(self._args_put(call, live))
                case other:
                    todo.extend(i for block in regions(other) for i in block.body)
        return found

    def _args_put(self, call: Call, live: Collection[Node]) -> set[Node]:
        """The arguments on which it depends what a call puts into live shadows."""
        self.calls[call] = None
        params = call.func.body.params
        shadows = frozenset(p for a, p in zip(call.args, params, strict=True) if a in live and p in self.links.shadows)
        key = (call.func, shadows)
        if key not in self._put:
            self._put[key] = set()
            start = {v for i in call.func.body.body for v in self._put_there(i, shadows)}
            outer: set[Node] = run(self._back(start, lambda v: v not in params, None))
            self._put[key] = outer | start.intersection(params)
            self.values.update(self._put[key])
        return {a for a, p in zip(call.args, params, strict=True) if p in self._put[key]}

    def _sources(self, node: Node) -> Iterable[Node]:
        made = self.links.defs.get(node) if isinstance(node, Value) else None
        if made is not None and isinstance(made.instr, Push):
            push = made.instr
            return [v for i, v in enumerate(push.values) if saved(push.record, i) in self.values]
        return super()._sources(node)

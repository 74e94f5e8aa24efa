"""Dead code: what neither an effect nor a wanted result depends on is dropped.

Everything goes at once, over all functions: instructions, results and carried values of regions, params and results of
functions, fields of saved entries that nobody reads. What can fail, prints, draws, or may never end is an effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import (
    Apply,
    Block,
    Call,
    Fail,
    Feed,
    For,
    Func,
    If,
    NanCheck,
    NanWalk,
    Print,
    Save,
    Seed,
    Value,
    While,
)
from graphdsl.core.structure import counts, operands, regions, results
from graphdsl.graph.ir import Fused, Push, Put, Read, Record, Take
from graphdsl.graph.passes.shrink import shrink
from graphdsl.graph.rename import graph_body
from graphdsl.ops.op import Effect

Node = Any  # a value; a field of a record, or its sums; a call that is to be kept


def drop_dead(main: Func) -> None:
    """Drop all that is dead."""
    live = Liveness(main)
    shrink(live)


class Liveness:
    """What is needed: values, and instructions (for an effect, or for a value)."""

    def __init__(self, main: Func) -> None:
        self.main = main
        self.funcs = [*functions(main), main]
        self.values: set[Node] = set()
        self.kept: set[Any] = set()
        self.effects: set[Any] = set()  # kept for what happens in them
        self.todo: list[Node] = []
        self.maker: dict[Value, tuple[Any, int]] = {}  # result `index` of an instruction
        self.param: dict[Value, tuple[Any, int]] = {}  # param `index` of a loop's region, or of a function
        self.within: dict[Any, Any] = {}  # of an instruction: the region instruction or function around it
        self.calls: dict[Func, list[Call]] = defaultdict(list)
        self.pushes: dict[Record, list[Push]] = defaultdict(list)
        self.puts: dict[Record, list[Put]] = defaultdict(list)
        for instr in [i for func in self.funcs for i in self._scan(func)]:
            self.keep(instr, effect=True)
        self.need(main.body.yields)
        while self.todo:
            self._follow(self.todo.pop())

    # ---- the program ----

    def _scan(self, func: Func) -> list[Any]:
        """Note where everything is made; the effects."""
        self.param.update((p, (func, i)) for i, p in enumerate(func.body.params))
        effects = []
        todo: list[tuple[Block, Any]] = [(func.body, func)]
        while todo:
            block, around = todo.pop()
            for instr in graph_body(block):
                self.within[instr] = around
                self.maker.update((v, (instr, i)) for i, v in enumerate(results(instr)))
                self._note(instr)
                if is_effect(instr):
                    effects.append(instr)
                if not isinstance(instr, Fused):
                    todo.extend((inner, instr) for inner in regions(instr))
        return effects

    def _note(self, instr: Any) -> None:
        match instr:
            case While(cond=cond, body=body):
                self.param.update((p, (instr, i)) for i, p in enumerate(cond.params))
                self.param.update((p, (instr, i)) for i, p in enumerate(body.params))
            case For(body=body):
                self.param.update((p, (instr, i - 1)) for i, p in enumerate(body.params))
            case Call(func=func):
                self.calls[func].append(instr)
            case Push(record=record):
                self.pushes[record].append(instr)
            case Put(record=record):
                self.puts[record].append(instr)

    # ---- marking ----

    def need(self, nodes: Iterable[Node]) -> None:
        """These are needed."""
        for node in nodes:
            if node not in self.values:
                self.values.add(node)
                self.todo.append(node)

    def keep(self, instr: Any, effect: bool = False) -> None:
        """An instruction is needed, and that it is reached; if for an effect, so are the calls of its function."""
        while not isinstance(instr, Func):
            if instr in self.effects or (instr in self.kept and not effect):
                return
            fresh = instr not in self.kept
            self.kept.add(instr)
            if effect:
                self.effects.add(instr)
            if fresh:
                self._reached(instr)
            instr = self.within[instr]
        if effect:
            self.todo.extend(("call", call) for call in self.calls[instr] if call not in self.effects)

    def _reached(self, instr: Any) -> None:
        """What an instruction needs whatever of its results is needed."""
        match instr:
            case If(cond=cond):
                self.need((cond,))
            case While(cond=cond):
                self.need((*cond.yields, *counts(instr)))
            case For():
                self.need(counts(instr))
            case Call():  # arguments are needed where the param is
                pass
            case Push(tape=tape, record=record, values=values):
                self.need((tape,))
                self.need(v for i, v in enumerate(values) if ("field", record, i) in self.values)
            case Put(shadow=shadow, record=record, at=at, fields=fields, values=values):
                self.need((shadow, at))
                self.need(v for i, v in zip(fields, values, strict=True) if ("sum", record, i) in self.values)
            case _:
                self.need(operands(instr))

    def _follow(self, node: Node) -> None:
        match node:
            case Value():
                if node in self.maker:
                    self._result(*self.maker[node])
                elif node in self.param:
                    self._param(*self.param[node])
            case ("call", call):
                self.keep(call, effect=True)
            case ("field", record, i):
                self.need(p.values[i] for p in self.pushes[record] if p in self.kept)
            case ("sum", record, i):
                for put in self.puts[record]:
                    if i in put.fields:
                        self.keep(put, effect=True)
                        self.need((put.values[put.fields.index(i)],))

    def _result(self, instr: Any, index: int) -> None:
        """Result `index` of an instruction is needed."""
        self.keep(instr)
        match instr:
            case If(then=then, orelse=orelse):
                self.need((then.yields[index], orelse.yields[index]))
            case While() | For():
                self._carried(instr, index)
            case Call(func=func):
                self.need((func.body.yields[index],))
            case Read(record=record, fields=fields):
                self.need((("field", record, fields[index]),))
            case Take(record=record, fields=fields):
                self.need((("sum", record, fields[index]), ("field", record, fields[index])))

    def _param(self, owner: Any, index: int) -> None:
        """Param `index` of a function or loop is needed."""
        match owner:
            case Func():
                self.need(call.args[index] for call in self.calls[owner])
            case _ if index >= 0:
                self.keep(owner)
                self._carried(owner, index)

    def _carried(self, loop: While | For, index: int) -> None:
        self.need((loop.inits[index], loop.body.yields[index], loop.outs[index], *_params(loop, index)))


def _params(loop: While | For, index: int) -> tuple[Value, ...]:
    if isinstance(loop, For):
        return (loop.body.params[index + 1],)
    return (loop.cond.params[index], loop.body.params[index])


def is_effect(instr: Any) -> bool:
    """Whether an instruction does more than make values."""
    match instr:
        case Apply(op=op, fails=fails):
            return fails or op.effect is not Effect.NONE
        case Print() | Fail() | Save() | Seed() | Feed() | While() | NanCheck() | NanWalk():
            return True
        case Fused(body=body):
            return any(is_effect(i) for i in body.body)
        case _:
            return False

"""From a checked program to a graph: a copy of its main, in which every derivative is the instructions that compute it.

Derivatives are built one after the other: first those through which others walk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphdsl.core.clone import clone_block
from graphdsl.core.ir import Block, Derive, Func, Program, Value
from graphdsl.core.printer import functions
from graphdsl.core.structure import reconnect, regions
from graphdsl.graph.between import GraphBetween
from graphdsl.graph.ir import Result
from graphdsl.graph.links import GraphLinks
from graphdsl.graph.reverse import Reverse
from graphdsl.graph.saving import Saving
from graphdsl.ops.op import Setting


@dataclass(eq=False)
class Graph:
    """A whole program as a graph. `main.body.yields` are the values of `outputs`, in order: each is a name, and whether
    it is true there that the name is set is the output after it, named `name?` (only for names that some paths do not set).
    """

    main: Func
    outputs: tuple[str, ...]


def build(program: Program, wanted: Iterable[str] = ()) -> Graph:
    """The graph of a program that also gives the values of these names at its end."""
    main, values = _copy(program.main)
    names, yields = [], []
    for name in wanted:
        value, flag = _wanted(program, name)
        names.append(name)
        yields.append(values.get(value, value))
        if flag is not None:
            names.append(f"{name}?")
            yields.append(values.get(flag, flag))
    main.body.yields = yields
    differentiate(main, Setting(program.default_float))
    return Graph(main, tuple(names))


def _wanted(program: Program, name: str) -> tuple[Value, Value | None]:
    if name in program.exports:
        return program.exports[name]
    return program.derivatives[name], None


def _copy(main: Func) -> tuple[Func, dict[Value, Value]]:
    """A copy of a function and of all it calls; what became of the values of `main`."""
    copies = {f: Func(f.name, Block(), f.span) for f in functions(main)}
    values: dict[Value, Value] = {}
    for func, copy in copies.items():
        copy.body = clone_block(func.body, {}, copies.__getitem__)
    return Func(main.name, clone_block(main.body, values, copies.__getitem__), main.span), values


def differentiate(main: Func, setting: Setting) -> None:
    """Build every derivative of `main` and of what it calls, in place."""
    saving = Saving(setting)
    for derive in in_order(main):
        links = saving.links = GraphLinks(main)
        block = links.defs[derive.outs[0]].block
        code = Reverse(derive, links, GraphBetween(links, derive), saving).build()
        position = next(i for i, instr in enumerate(block.body) if instr is derive)
        block.body[position : position + 1] = code
    _finish(main, saving.place_tapes())


def in_order(main: Func) -> list[Derive]:
    """Every derivative after those through whose results it walks."""
    links = GraphLinks(main)
    through = {d: list(GraphBetween(links, d).through) for d in links.derives}
    ordered: dict[Derive, None] = {}
    for derive in links.derives:
        stack = [derive]
        while stack:
            before = [d for d in through[stack[-1]] if d not in ordered and d not in stack]
            if before:
                stack.append(before[0])
            else:
                ordered[stack.pop()] = None
    return list(ordered)


def _finish(main: Func, same: dict[Value, Value]) -> None:
    """Replace values that are others by now, and results of derivatives by what they are equal to."""
    for func in [*functions(main), main]:
        todo = [func.body]
        while todo:
            block = todo.pop()
            kept: list[Any] = []
            for instr in block.body:
                if isinstance(instr, Result):
                    same[instr.out] = instr.arg
                else:
                    kept.append(instr)
                todo.extend(regions(instr))
            block.body = kept
    for func in [*functions(main), main]:
        _rename(func.body, same)


def _rename(body: Block, same: dict[Value, Value]) -> None:
    def read(value: Value) -> Value:
        while value in same:
            value = same[value]
        return value

    todo = [body]
    while todo:
        block = todo.pop()
        for instr in block.body:
            reconnect(instr, read)
            todo.extend(regions(instr))
        block.yields = [read(v) for v in block.yields]

"""From a checked program to a graph: a copy of its main, in which every derivative is the instructions that compute it.

Derivatives are built one after the other: first those through which others walk.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphdsl.core.call_graph import callees_first, functions
from graphdsl.core.clone import clone_block
from graphdsl.core.ir import Block, Custom, Derive, Func, Program, Value
from graphdsl.graph.between import GraphBetween
from graphdsl.graph.forms import prepare
from graphdsl.graph.ir import Result
from graphdsl.graph.links import GraphLinks
from graphdsl.graph.rename import blocks_of, graph_body, rename
from graphdsl.graph.reverse import Reverse
from graphdsl.graph.saving import Saving
from graphdsl.ops.op import Setting
from graphdsl.source.record import dataclass

DERIVATIVE = "∂"  # before the name of a target: the derivative that was asked for, not the name's value


@dataclass(eq=False)
class Graph:
    """A whole program as a graph. `main.body.yields` are the values of `outputs`, in order.

    Where some paths do not set a name, the output after it, `name?`, says whether it is set.
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
    if name.startswith(DERIVATIVE):
        return program.derivatives[name.removeprefix(DERIVATIVE)], None
    return program.exports[name]


def _copy(main: Func) -> tuple[Func, dict[Value, Value]]:
    """A copy of a function and of all it calls; what became of the values of `main`."""
    copies = {f: Func(f.name, Block(), f.span, f.derived) for f in functions(main)}
    values: dict[Value, Value] = {}
    for func, copy in copies.items():
        copy.body = clone_block(func.body, {}, copies.__getitem__)
    return Func(main.name, clone_block(main.body, values, copies.__getitem__), main.span), values


def differentiate(main: Func, setting: Setting) -> None:
    """Build every derivative of `main` and of what it calls, in place."""
    saving = Saving(main, setting)
    first = saving.links
    walks = {d: GraphBetween(first, d, saving.instances) for d in first.derives}
    for derive in in_order(main, walks, first):
        _replace(walks[derive], saving)
        for copy in saving.copies_of(derive):
            _replace(GraphBetween(saving.links, copy, saving.instances), saving)
    _finish(main, saving.place_tapes())


def _replace(walk: GraphBetween, saving: Saving) -> None:
    """Put what computes a derivative in its place."""
    derive = walk.derive
    tape = saving.new_tape(derive.span)
    between = prepare(walk, saving, tape)
    block = saving.links.defs[derive.outs[0]].block
    code = Reverse(derive, between, saving, tape).build()
    position = next(i for i, instr in enumerate(block.body) if instr is derive)
    block.body[position : position + 1] = code
    saving.unlinked.add(derive)


def in_order(main: Func, walks: dict[Derive, GraphBetween], links: GraphLinks) -> list[Derive]:
    """Every derivative after those through whose results it walks, and after those of the functions it calls."""
    through = {d: list(walk.through) for d, walk in walks.items()}
    ordered: dict[Derive, None] = {}
    numbers = callees_first(main)
    for derive in sorted(links.derives, key=lambda d: numbers[links.func_of(d)]):
        stack = [derive]
        while stack:
            before = [d for d in through[stack[-1]] if d not in ordered and d not in stack]
            if before:
                stack.append(before[0])
            else:
                ordered[stack.pop()] = None
    return list(ordered)


def _finish(main: Func, same: dict[Value, Value]) -> None:
    """Replace values that are others by now, and results of derivatives, and of calls with rules, by what they equal."""
    for block in blocks_of(main):
        for instr in graph_body(block):
            match instr:
                case Result(arg=arg, out=out):
                    same[out] = arg
                case Custom(results=results, outs=outs):
                    same.update(zip(outs, results, strict=True))
        block.body = [i for i in graph_body(block) if not isinstance(i, Result | Custom)]
    rename(main, same)

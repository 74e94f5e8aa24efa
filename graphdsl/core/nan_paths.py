"""How values pass on, for those who follow a NaN through a run: by the numbers of the values of a checked program.

A cotangent has the number of its value with a minus. `before[n]` are the values and cotangents that `n` may be, or, of a
cotangent, whose sums it takes over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import (
    Call,
    Const,
    Convert,
    Custom,
    Derive,
    Feed,
    For,
    If,
    Leaf,
    ParamTarget,
    Program,
    Value,
    While,
)
from graphdsl.core.structure import passed, regions, results, walk
from graphdsl.source.span import Span


class Paths:
    """Of one program, whose values it numbers."""

    def __init__(self, program: Program) -> None:
        self.before: dict[int, list[int]] = defaultdict(list)
        self.given: dict[int, tuple[Span, str]] = {}  # values that no op makes: where, and what they are
        self._leaves: dict[str, list[int]] = defaultdict(list)
        self._known: dict[int, tuple[int, ...]] = {}
        self._count = 0
        funcs = [*functions(program.main), program.main]
        for func in funcs:
            self._number(func.body.params)
            for instr in walk(func.body):
                self._number([p for block in regions(instr) for p in block.params])
                self._number(results(instr))
                if isinstance(instr, Leaf):
                    self._leaves[instr.param].append(instr.out.number)
        derives: list[Derive] = []
        for func in funcs:
            for instr in walk(func.body):
                self._link(instr)
                if isinstance(instr, Derive):
                    derives.append(instr)
        for derive in derives:
            self._results(derive)

    def all_before(self, number: int) -> tuple[int, ...]:
        """`number`, and all that it may be."""
        if number not in self._known:
            found = {number: None}
            todo = [number]
            while todo:
                for other in self.before.get(todo.pop(), ()):
                    if other not in found:
                        found[other] = None
                        todo.append(other)
            self._known[number] = tuple(found)
        return self._known[number]

    def _number(self, values: Iterable[Value]) -> None:
        for value in values:
            self._count += 1
            value.number = self._count

    def _passes(self, sources: Sequence[Value], targets: Sequence[Value]) -> None:
        """Values go on under other names, and cotangents come back."""
        for source, target in zip(sources, targets, strict=True):
            self.before[target.number].append(source.number)
            self.before[-source.number].append(-target.number)

    def _link(self, instr: Any) -> None:
        match instr:
            case Const(span=span, out=out):
                self.given[out.number] = (span, "is written here")
            case Feed(span=span, name=name, out=out):
                self.given[out.number] = (span, f"came from outside as `{name}`")
            case Leaf(arg=arg, out=out):
                self.before[out.number].append(arg.number)
            case Convert() | If() | While() | For():
                for sources, targets in passed(instr):
                    self._passes(sources, targets)
            case Call(func=func, args=args, outs=outs):
                self._passes(args, func.body.params)
                self._passes(func.body.yields, outs)
            case Custom():
                self._custom(instr)
            case Derive(y=y, seed=seed) if seed is not None:
                self.before[-y.number].append(seed.number)

    def _custom(self, instr: Custom) -> None:
        """The rule takes cotangents as values, and gives values for cotangents."""
        params = instr.rule.body.params
        taken = [v.number for v in instr.given]
        if instr.through:
            taken += [-v.number for v in (*instr.outs, *instr.args)]
        else:
            taken += [v.number for v in instr.outs] + [-v.number for v in instr.outs]
        for result, out in zip(instr.results, instr.outs, strict=True):
            self.before[out.number].append(result.number)
        for number, param in zip(taken, params, strict=True):
            self.before[param.number].append(number)
        for arg, made in zip(instr.args, instr.rule.body.yields, strict=True):
            self.before[-arg.number].append(made.number)

    def _results(self, derive: Derive) -> None:
        """What a derivative gives is the cotangent of what its target may be."""
        for target, out in zip(derive.targets, derive.outs, strict=True):
            if isinstance(target, ParamTarget):
                held = tuple(self._leaves[target.name])
            else:
                held = self.all_before(target.number)
            self.before[out.number] += [-number for number in held]
        self._known.clear()

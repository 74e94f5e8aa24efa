"""A program as those who advise see it: its tree, its core, and the ways between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from graphdsl.check.outline import Outline, outline
from graphdsl.check.printing import source_text
from graphdsl.core.call_graph import functions
from graphdsl.core.dependence import Sources, all_sources, inverse
from graphdsl.core.ir import Apply, Block, Call, Const, Convert, Func, Program, Value
from graphdsl.core.links import Links
from graphdsl.core.structure import operands, walk
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast
from graphdsl.syntax.walk import walk as nodes_of

_LONGEST = 24


class Subject:
    """A program that has been checked and is right."""

    def __init__(self, module: ast.Module, program: Program) -> None:
        self.module = module
        self.links = Links(program.main)
        self.inputs = {s.name.id for s in module.body if isinstance(s, ast.Declare) and s.kind == "input"}

    @cached_property
    def outline(self) -> Outline:
        """The functions and the names of the file."""
        return outline(self.module)

    @cached_property
    def sources(self) -> Sources:
        """From which values each value is computed."""
        return all_sources(self.links)

    @cached_property
    def onwards(self) -> Sources:
        """Which values are computed from each."""
        return inverse(self.sources)

    @cached_property
    def nodes(self) -> dict[Span, ast.Node]:
        """The operators and calls of the text, by place."""
        kinds = (ast.Binary, ast.CallExpr)
        return {node.span: node for node in nodes_of(self.module.body) if isinstance(node, kinds)}

    def instructions(self) -> Iterator[Any]:
        """Every instruction of the core."""
        for func in self.links.funcs:
            yield from walk(func.body)

    def applied(self, *names: str) -> Iterator[Apply]:
        """Where ops of these names are applied."""
        for instr in self.instructions():
            if isinstance(instr, Apply) and instr.op.name in names:
                yield instr

    def maker(self, value: Value) -> Any:
        """The instruction that computes a value, looked for through conversions and into calls; None: it came from outside."""
        seen: set[Value] = set()
        while value not in seen and value.name not in self.inputs:
            seen.add(value)
            found = self.links.defs[value]
            match found.instr:
                case Convert(arg=arg):
                    value = arg
                case Call(func=func):
                    value = func.body.yields[found.index]
                case instr:
                    return instr
        return None

    def applier(self, value: Value, name: str) -> Apply | None:
        """The `Apply` of this op that computes a value, if one does."""
        made = self.maker(value)
        return made if isinstance(made, Apply) and made.op.name == name else None

    def place(self, value: Value) -> Span:
        """Where a value is computed: of what a function gives, the call."""
        made = self.links.defs[value].instr
        while isinstance(made, Convert):
            made = self.links.defs[made.arg].instr
        assert made is not None
        found: Span = made.span
        return found

    def literal(self, value: Value) -> int | float | None:
        """The number that is written where this value is used; one that has a name may be another tomorrow."""
        made = self.links.defs[value].instr
        while value.name is None and (
            isinstance(made, Convert) or (isinstance(made, Apply) and made.op.name == "cast")
        ):
            (value,) = operands(made)
            made = self.links.defs[value].instr
        if value.name is None and isinstance(made, Const) and not isinstance(made.value, tuple):
            return made.value
        return None


def reached(block: Block, span: Span) -> Iterator[Any]:
    """The instructions of a block, and of all functions that are called there."""
    inside = Func("", block, span)
    for func in (inside, *functions(inside)):
        yield from walk(func.body)


def brief(span: Span) -> str | None:
    """The text that stands there, if it is short enough to be quoted."""
    text = source_text(span) if span.end - span.start < 4 * _LONGEST else ""
    return text if 0 < len(text) <= _LONGEST else None


def warning(code: str, message: str, span: Span, hint: str | None, *labels: Label) -> Diagnostic:
    """A warning of this package."""
    return Diagnostic(code, message, span, hint, labels, severity="warning")

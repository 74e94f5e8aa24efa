"""Warnings that the text alone gives, before anything is checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphdsl.check.outline import Outline
from graphdsl.check.problems import nearest
from graphdsl.check.reads import function_reads, own_expressions, reads, statements
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.syntax import ast

_SHORTEST = 4  # shorter names are alike by chance
_ALIKE = 0.8


def lint(module: ast.Module, outline: Outline) -> Iterator[Diagnostic]:
    """All such warnings for a file."""
    for node in outline.functions.values():
        inside = [r.node for s in statements(node.body.body) for r in reads(*own_expressions(s))]
        outer = [r.node for r in function_reads(node, outline.own[node]) if r.node.id in outline.variables]
        yield from _mistaken(f"`{node.name.id}`", [p.name for p in node.params], inside, outer)
    for stmt in statements(module.body):
        match stmt:
            case ast.ForStmt(targets=targets, body=body):
                inside = [r.node for s in statements(body.body) for r in reads(*own_expressions(s))]
                yield from _mistaken("this loop", list(targets), inside, inside)


def _mistaken(
    what: str, own: list[ast.Name], inside: Iterable[ast.Name], outer: list[ast.Name]
) -> Iterator[Diagnostic]:
    """An outer name is read, and an argument of nearly that name is not."""
    used = {n.id for n in inside}
    for name in own:
        if name.id in used or len(name.id) < _SHORTEST:
            continue
        close = nearest(name.id, {n.id for n in outer if len(n.id) >= _SHORTEST}, _ALIKE)
        read = next((n for n in outer if n.id == close), None)
        if read is not None:
            yield Diagnostic(
                "W0102",
                f"{what} reads the outer `{close}`, and never its own `{name.id}`",
                read.span,
                f"did you mean `{name.id}`?",
                (Label(name.span, f"`{name.id}` is not used"),),
                severity="warning",
            )

"""From a source to its tree: `parse`. Problems are raised as `ProgramError` with codes E01xx."""

from __future__ import annotations

from typing import cast

from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source
from graphdsl.syntax import ast
from graphdsl.syntax.build_statements import Builder
from graphdsl.syntax.explain import explain
from graphdsl.syntax.lalr import Unexpected, tables
from graphdsl.syntax.lexer import Lexer


def parse(source: Source) -> ast.Module:
    """The tree of a whole file."""
    lexer = Lexer(tables().vocabulary, source)
    body = _run("module", lexer)
    return ast.Module(source, cast(list[ast.Stmt], body), lexer.comments)


def parse_expression(source: Source, start: int, end: int) -> ast.Expr:
    """The expression that a range of a source holds: a gap of a string."""
    lexer = Lexer(tables().vocabulary, source, start, end)
    return cast(ast.Expr, _run("expression", lexer))


def _run(start: str, lexer: Lexer) -> object:
    machine = tables()
    try:
        return machine.run(start, lexer.tokens(), Builder(lexer.source))
    except Unexpected as unexpected:
        raise ProgramError(explain(machine, lexer, unexpected)) from None

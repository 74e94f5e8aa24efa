"""From a source to its tree: `parse`. Problems are raised as `ProgramError` with codes E01xx."""

from __future__ import annotations

from typing import cast

from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.span import Source
from graphdsl.syntax import ast
from graphdsl.syntax.build_statements import Builder
from graphdsl.syntax.lalr import Machine, Unexpected, tables
from graphdsl.syntax.lexer import Lexer

MOST_ERRORS = 20


def parse(source: Source) -> ast.Module:
    """The tree of a whole file. After a problem the next statement is read, so that all are found."""
    lexer = Lexer(tables().vocabulary, source)
    builder = Builder(source)
    machine = Machine(tables(), "module", builder)
    problems: list[Diagnostic] = []
    while True:
        try:
            body = _run(machine, lexer)
        except ProgramError as error:
            from graphdsl.syntax.recover import skip_statement

            problems += error.diagnostics
            if len(problems) < MOST_ERRORS and skip_statement(machine, lexer, problems[-1]):
                continue
        else:
            problems += builder.unclaimed()
            if not problems:
                return ast.Module(source, cast(list[ast.Stmt], body), lexer.comments)
        raise ProgramError(*sorted(problems, key=lambda p: p.span.start)) from None


def parse_expression(source: Source, start: int, end: int) -> ast.Expr:
    """The expression that a range of a source holds: a gap of a string."""
    lexer = Lexer(tables().vocabulary, source, start, end)
    builder = Builder(source)
    expr = _run(Machine(tables(), "expression", builder), lexer)
    if problems := builder.unclaimed():
        raise ProgramError(*problems)
    return cast(ast.Expr, expr)


def _run(machine: Machine, lexer: Lexer) -> object:
    try:
        return machine.run(lexer.tokens())
    except Unexpected as unexpected:
        from graphdsl.syntax.explain import explain

        raise ProgramError(explain(machine.tables, lexer, unexpected)) from None

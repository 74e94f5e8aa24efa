"""Printed expressions that are asked for by `graphdsl grad`: for that check they are given a name, which lives to the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphdsl.check.context import PRINTED
from graphdsl.check.reads import inner_blocks, statements
from graphdsl.syntax import ast


@contextmanager
def named_print(module: ast.Module, name: str | None) -> Iterator[None]:
    """While this lasts, the `print` with the expression of that name reads `name = expression; print name`."""
    found = None if name is None or not name.startswith(PRINTED) else _find(module, int(name.removeprefix(PRINTED)))
    if found is None:
        yield
        return
    body, at = found
    before = body[at]
    assert isinstance(before, ast.PrintStmt)
    body[at : at + 1] = _written_out(before)
    try:
        yield
    finally:
        body[at : at + len(_written_out(before))] = [before]


def _find(module: ast.Module, start: int) -> tuple[list[ast.Stmt], int] | None:
    blocks = [module.body, *(b.body for s in statements(module.body) for b in inner_blocks(s))]
    for body in blocks:
        for at, stmt in enumerate(body):
            if isinstance(stmt, ast.PrintStmt) and any(item.span.start == start for item in stmt.items):
                return body, at
    return None


def _written_out(stmt: ast.PrintStmt) -> list[ast.Stmt]:
    """The items in order, each under a name of its own; names keep theirs."""
    made: list[ast.Stmt] = []
    items: list[ast.Expr] = []
    for item in stmt.items:
        if isinstance(item, ast.Name):
            items.append(item)
            continue
        name = ast.Name(item.span, f"{PRINTED}{item.span.start}")
        made.append(ast.Assign(item.span, (name,), None, None, item))
        items.append(name)
    return [*made, ast.PrintStmt(stmt.span, tuple(items))]

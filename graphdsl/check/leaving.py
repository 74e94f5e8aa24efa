"""Which statements may leave their block, by `break`, `continue` or `return`: decided by the text."""

from __future__ import annotations

from typing import NamedTuple

from graphdsl.check.liveness import chain
from graphdsl.core.steps import Steps, run
from graphdsl.syntax import ast
from graphdsl.syntax.walk import children


class Leaves(NamedTuple):
    """Whether a block may be left before its end, always is, and has a `return` or a `break` of its own in it."""

    may: bool = False
    always: bool = False
    returns: bool = False
    breaks: bool = False


Leaving = dict[ast.Node, Leaves]


def leaving(stmts: list[ast.Stmt]) -> Leaving:
    """For every branch, loop and block below these statements."""
    known: Leaving = {}
    run(_stmts(known, stmts))
    return known


def _stmts(known: Leaving, stmts: list[ast.Stmt]) -> Steps[Leaves]:
    found = Leaves()
    for stmt in stmts:
        here: Leaves = yield _statement(known, stmt)
        found = Leaves(*(a or b for a, b in zip(found, here, strict=True)))
    return found


def _block(known: Leaving, block: ast.BlockNode) -> Steps[Leaves]:
    known[block] = yield _stmts(known, block.body)
    return known[block]


def _statement(known: Leaving, stmt: ast.Stmt) -> Steps[Leaves]:
    match stmt:
        case ast.Return():
            return Leaves(True, True, returns=True)
        case ast.Break():
            return Leaves(True, True, breaks=True)
        case ast.Continue():
            return Leaves(True, True)
        case ast.IfStmt():
            found: Leaves = yield _branches(known, stmt)
            return found
        case ast.WhileStmt(body=body) | ast.ForStmt(body=body):
            inside: Leaves = yield _block(known, body)
            known[stmt] = Leaves(inside.returns, False, inside.returns)
            return known[stmt]
        case _:
            for node in children(stmt):
                if isinstance(node, ast.BlockNode):  # none of which can be left
                    yield _block(known, node)
    return Leaves()


def _branches(known: Leaving, stmt: ast.IfStmt) -> Steps[Leaves]:
    links, last = chain(stmt)
    after = Leaves()
    if last is not None:
        after = yield _block(known, last)
    for link in reversed(links):
        if link is not links[-1] and link.orelse is not None:
            known[link.orelse] = after
        then: Leaves = yield _block(known, link.then)
        always = then.always and after.always
        after = Leaves(then.may or after.may, always, then.returns or after.returns, then.breaks or after.breaks)
        known[link] = after
    return after

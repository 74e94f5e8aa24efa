"""Which names may be read afterwards before they are set again, at each branch and loop of a scope.

Only names that a statement sets are recorded for it: no others can differ between its paths. Two walks from the end to
the start: the first finds what each loop reads from the trip before, the second records. Both cost what the text costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from graphdsl.check.journal import Journal
from graphdsl.check.outline import Outline
from graphdsl.check.reads import inner_blocks, own_expressions, own_targets, reads, statements
from graphdsl.core.steps import Steps, run
from graphdsl.source.record import dataclass, field
from graphdsl.syntax import ast

Loop = ast.WhileStmt | ast.ForStmt


@dataclass(eq=False, slots=True)
class Liveness:
    """For branches and loops: names live `after` them; for loops also those live at the `head` of a trip,
    and the names `assigned` in them, in order. `unread`: assignments to one name whose value nothing reads."""

    after: dict[ast.Stmt, frozenset[str]] = field(default_factory=dict)
    head: dict[ast.Stmt, frozenset[str]] = field(default_factory=dict)
    assigned: dict[ast.Stmt, tuple[str, ...]] = field(default_factory=dict)
    unread: list[ast.Assign] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Walk:
    names: Callable[[ast.Stmt], Iterable[str]]
    exposed: dict[Loop, frozenset[str]] = field(default_factory=dict)
    found: Liveness | None = None
    live: Journal[bool] = field(default_factory=Journal)
    loops: list[tuple[int, int]] = field(default_factory=list)  # where the journal stood after a loop, and at its head


def liveness(body: list[ast.Stmt], outline: Outline, at_end: frozenset[str]) -> Liveness:
    """Analyse the statements of the top level or of a function for their joins; where there are none, nothing is found."""
    if not any(isinstance(s, ast.IfStmt | ast.WhileStmt | ast.ForStmt) for s in statements(body)):
        return Liveness()
    return analysed(body, outline, at_end)


def analysed(body: list[ast.Stmt], outline: Outline, at_end: frozenset[str]) -> Liveness:
    """All there is to know of these statements, if the names `at_end` are read after them."""
    known: dict[ast.Stmt, set[str]] = {}

    def names(stmt: ast.Stmt) -> Iterable[str]:
        if stmt not in known:
            known[stmt] = outline.names_read(reads(*own_expressions(stmt)))
        return known[stmt]

    found = Liveness()
    first = _Walk(names)
    run(_block(first, body))
    second = _Walk(names, first.exposed, found)
    for name in at_end:
        second.live.set(name, True)
    run(_block(second, body))
    return found


def _block(w: _Walk, body: list[ast.Stmt]) -> Steps[None]:
    for stmt in reversed(body):
        match stmt:
            case ast.IfStmt():
                yield _branches(w, stmt)
            case ast.WhileStmt() | ast.ForStmt():
                yield _loop(w, stmt)
            case ast.Break() | ast.Continue() if w.loops:
                _back_to(w, w.loops[-1][isinstance(stmt, ast.Continue)])
            case ast.Return():
                for name in w.live.names():
                    w.live.set(name, None)
                _read(w, stmt)
            case _:
                for inner in reversed(inner_blocks(stmt)):
                    yield _block(w, inner.body)
                if w.found is not None and isinstance(stmt, ast.Assign) and _is_unread(w, stmt):
                    w.found.unread.append(stmt)
                for target in own_targets(stmt):
                    w.live.set(target.id, None)
                _read(w, stmt)


def _is_unread(w: _Walk, stmt: ast.Assign) -> bool:
    return len(stmt.targets) == 1 and not any(w.live.get(name.id) for name in own_targets(stmt))


def _read(w: _Walk, stmt: ast.Stmt) -> None:
    for name in w.names(stmt):
        w.live.set(name, True)


def _back_to(w: _Walk, mark: int) -> None:
    for name, before in w.live.changed_since(mark).items():
        w.live.set(name, before)


def chain(stmt: ast.IfStmt) -> tuple[list[ast.IfStmt], ast.BlockNode | None]:
    """An `if` with its `else if`s, and the last `else`."""
    links = [stmt]
    while (last := links[-1].orelse) is not None and len(last.body) == 1 and isinstance(last.body[0], ast.IfStmt):
        links.append(last.body[0])
    return links, links[-1].orelse


def _branches(w: _Walk, stmt: ast.IfStmt) -> Steps[None]:
    links, last = chain(stmt)
    if w.found is not None:
        after = _kept(w, _assigned(w.found, stmt))
        for link in links:
            w.found.after[link] = after
    arms = [link.then for link in links] + ([last] if last is not None else [])
    touched: dict[str, int] = {}
    alive: set[str] = set()
    for arm in arms:
        mark = w.live.mark()
        yield _block(w, arm.body)
        for name, live in w.live.rollback(mark).items():
            touched[name] = touched.get(name, 0) + 1
            if live:
                alive.add(name)
    paths = len(links) + 1
    for name, times in touched.items():
        w.live.set(name, True if name in alive or (times < paths and w.live.get(name)) else None)
    for link in links:
        _read(w, link)


def _loop(w: _Walk, stmt: Loop) -> Steps[None]:
    if w.found is None and stmt not in w.exposed:
        w.exposed[stmt] = yield _exposed(w, stmt)
    after = w.live.mark()
    if w.found is not None:
        names = _assigned(w.found, stmt)
        w.found.after[stmt] = _kept(w, names)
    if isinstance(stmt, ast.WhileStmt):
        _read(w, stmt)
    for name in w.exposed[stmt]:
        w.live.set(name, True)
    if w.found is not None:
        w.found.head[stmt] = _kept(w, names)
        head = w.live.mark()
        w.loops.append((after, head))
        yield _block(w, stmt.body.body)
        w.loops.pop()
        w.live.rollback(head)
    if isinstance(stmt, ast.ForStmt):
        _read(w, stmt)


def _exposed(w: _Walk, stmt: Loop) -> Steps[frozenset[str]]:
    """The names that a trip reads before it sets them."""
    inner = _Walk(w.names, w.exposed, None, Journal(), [(0, 0)])
    yield _block(inner, stmt.body.body)
    if isinstance(stmt, ast.ForStmt):
        for target in stmt.targets:
            inner.live.set(target.id, None)
    return frozenset(inner.live.names())


def _kept(w: _Walk, names: Iterable[str]) -> frozenset[str]:
    return frozenset(n for n in names if w.live.get(n))


def _assigned(found: Liveness, stmt: ast.Stmt) -> tuple[str, ...]:
    """The names that a branch or loop sets, in the order in which they first stand there."""
    if stmt not in found.assigned:
        names: dict[str, None] = dict.fromkeys(n.id for n in own_targets(stmt))
        for block in inner_blocks(stmt):
            for inner in statements(block.body):
                names.update(dict.fromkeys(n.id for n in own_targets(inner)))
        found.assigned[stmt] = tuple(names)
    return found.assigned[stmt]

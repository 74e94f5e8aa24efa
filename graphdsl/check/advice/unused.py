"""Values that are computed and named, and never used.

At top level every name is read at the end, from Python and by `--fetch`: there only a value counts that another one
replaces before anything reads it. Names that begin with `_` say that this is meant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from graphdsl.check.advice.subject import Subject, warning
from graphdsl.check.liveness import analysed
from graphdsl.check.reads import dim_names, own_targets, statements
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def unused_values(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    yield from _unused(s, s.module.body, s.outline.variables, s.outline.pinned)
    for node in (*s.outline.functions.values(), *s.outline.rules.values()):
        yield from _unused(s, node.body.body, frozenset(), frozenset())


def _unused(s: Subject, body: list[ast.Stmt], at_end: frozenset[str], untraced: frozenset[str]) -> Iterator[Diagnostic]:
    places = _places(body)
    for stmt in analysed(body, s.outline, at_end).unread:
        (name,) = own_targets(stmt)
        if name.id.startswith("_") or name.id in untraced or any(dim_names(stmt.type)):
            continue
        if isinstance(stmt.targets[0], ast.Index):
            message = f"nothing reads `{name.id}` after its element is set"
            hint = f"a value never changes, this makes a new one: `return {name.id}`"
            yield warning("W0201", message, stmt.targets[0].span, hint)
            continue
        message = f"this value of `{name.id}` is never used"
        later = bisect_right(places[name.id], name.span.start, key=_start)
        if later == len(places[name.id]):
            hint = f"use it, or leave it out; `_{name.id}` says that it is meant"
            yield warning("W0201", message, name.span, hint)
        else:
            label = Label(places[name.id][later], f"`{name.id}` is set again, and was not read")
            yield warning("W0201", message, name.span, "leave it out", label)


def _places(body: list[ast.Stmt]) -> dict[str, list[Span]]:
    """Where each name is set, in order."""
    places: dict[str, list[Span]] = defaultdict(list)
    for stmt in statements(body):
        for name in own_targets(stmt):
            places[name.id].append(name.span)
    return places


def _start(span: Span) -> int:
    return span.start

"""Probes as they are asked for: `h`, `h:stats`, `h if i % 100 == 0`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import normalize

from graphdsl.api.program import Program, UnknownName
from graphdsl.check import Probe
from graphdsl.check.names import builtin
from graphdsl.check.problems import nearest
from graphdsl.check.reads import own_targets, reads
from graphdsl.source.diagnostic import ProgramError, WrongRequest
from graphdsl.source.span import Source, Span
from graphdsl.syntax import ast
from graphdsl.syntax.parser import parse_expression
from graphdsl.syntax.walk import walk

_FORM = re.compile(r"\s*([^\W\d][\w₀-₉]*)\s*(:\s*stats\b)?\s*((?<!\w)if\b.*)?", re.DOTALL)


class NoProbe(ValueError):
    """A text that asks for no probe."""


def probes_of(program: Program, texts: Iterable[str]) -> tuple[Probe, ...]:
    """The probes that texts ask for. Raises `NoProbe`, `UnknownName`, and `WrongRequest` for what is no expression."""
    known = frozenset(_names(program))
    return tuple(_probe(program, text, known) for text in texts)


def _probe(program: Program, text: str, known: frozenset[str]) -> Probe:
    match = _FORM.fullmatch(text)
    if match is None:
        raise NoProbe(f"`{text}` is no probe: NAME, NAME:stats, or NAME if CONDITION")
    source = Source("<probe>", text, program.source.folder)
    name = normalize("NFC", match[1])
    if name not in known:
        raise UnknownName(_unknown(name, known))
    cond = None
    if match[3] is not None:
        try:
            cond = parse_expression(source, match.start(3) + len("if"), len(text))
        except ProgramError as error:
            raise WrongRequest(*error.diagnostics) from None
        _check_names(program, cond, known)
    return Probe(name, Span(source, *match.span(1)), cond, match[2] is not None)


def _check_names(program: Program, cond: ast.Expr, known: frozenset[str]) -> None:
    functions = {s.name.id for s in program.module.body if isinstance(s, ast.FnDef)}
    for read in reads(cond):
        name = read.node.id
        if name not in known and name not in functions and builtin(name) is None:
            raise UnknownName(_unknown(name, known))


def _unknown(name: str, known: frozenset[str]) -> str:
    close = nearest(name, sorted(known), 0.5)
    return f"the program sets no `{name}`" + (f"; did you mean `{close}`?" if close else "")


def _names(program: Program) -> Iterator[str]:
    """Every name that the program's own file sets, the params of functions and of their rules included."""
    for node in walk(program.module.body):
        found: Iterable[ast.Name] = ()
        match node:
            case ast.Declare() | ast.Update() | ast.Assign() | ast.ForStmt():
                found = own_targets(node)
            case ast.FnDef(params=params):
                found = [p.name for p in params]
            case ast.VjpDef(params=params, results=results):
                found = (*params, *results)
            case ast.Lambda(params=params):
                found = params
        yield from (n.id for n in found if n.span.source is program.source)

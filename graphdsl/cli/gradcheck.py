"""What `graphdsl grad --check` shows: a table on a terminal, lines in a pipe, events with `--json`; then how many agree."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphdsl.cli import status
from graphdsl.cli.output import Output
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphdsl.api.gradcheck import Report, Row

    Symbol = Callable[[Sequence[str]], str]  # how a derivative by these names is written


def show(report: Report, of: str, symbol: Symbol, output: Output) -> int:
    """Show what was found; the exit status."""
    if output.as_json:
        _events(report, of, output)
    else:
        if sys.stdout.isatty():
            _table(report, symbol, output)
        else:
            _lines(report, symbol, output)
        for text in _notes(report):
            output.sentence(text)
        _verdict(report, output)
    return status.DIFFERS if report.count("differs") else status.DONE


def _name(row: Row, symbol: Symbol) -> str:
    """Which derivative it is: `∂y/∂w[0, 1]`, `∂²y/∂w² along`."""
    element = "" if row.element is None else f"[{', '.join(map(str, row.element))}]"
    return symbol(row.wrt) + element + " along a line" * row.along


def _table(report: Report, symbol: Symbol, output: Output) -> None:
    rows = [["", "at", "derivative", "differences", "error", ""]]
    for row in report.rows:
        numbers = (row.derivative, row.verdict.value)
        error = "" if row.verdict.error is None else f"{row.verdict.error:.1g}"
        shown = ["" if n is None else f"{n:.7g}" for n in numbers]
        rows.append([_name(row, symbol), row.point, *shown, error, row.verdict.word])
    output.table(rows)
    reasons: dict[str, list[str]] = {}
    for row in report.rows:
        if row.verdict.why is not None:
            reasons.setdefault(row.verdict.why, []).append(f"{_name(row, symbol)} {row.point}")
    for why, names in reasons.items():
        shown = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
        output.sentence(f"{', '.join(shown)}: {why}", 2)


def _lines(report: Report, symbol: Symbol, output: Output) -> None:
    from graphdsl.runtime.format import number

    for row in report.rows:
        verdict = row.verdict
        value = "" if row.derivative is None else f" = {number(row.derivative, row.dtype)}"
        by = "" if verdict.value is None else f"; differences give {verdict.value:.9g}"
        error = "" if verdict.value is None or verdict.error is None else f", error {verdict.error:.1g}"
        why = "" if verdict.why is None else f": {verdict.why}"
        output.line(f"{_name(row, symbol)}{value} {row.point}: {verdict.word}{why}{by}{error}")


def _notes(report: Report) -> Iterator[str]:
    for sample in report.samples:
        yield f"{sample.wrt}: {sample.checked} of {sample.elements} elements, and all of them along a line"
    if report.second is not None:
        yield f"no second derivatives: {report.second}"


def _verdict(report: Report, output: Output) -> None:
    agree, differ, open_ = (report.count(word) for word in ("agrees", "differs", "cannot judge"))
    parts = [f"{counted(differ, 'derivative')} {'differs' if differ == 1 else 'differ'}"] if differ else []
    parts += [f"{agree} {'agrees' if agree == 1 else 'agree'}"] if agree or not differ else []
    parts += [f"{open_} cannot be judged"] if open_ else []
    output.line(output.stdout_paint(", ".join(parts), "error" if differ else "good"))


def _events(report: Report, of: str, output: Output) -> None:
    from graphdsl.render.json import Raw
    from graphdsl.runtime.format import json_value

    for row in report.rows:
        derivative = None if row.derivative is None else Raw(json_value(row.derivative, row.dtype))
        output.event(
            "check",
            of=of,
            wrt=row.wrt[0] if len(row.wrt) == 1 else row.wrt,
            at=row.point,
            element=row.element,
            along=row.along,
            derivative=derivative,
            differences=row.verdict.value,
            error=row.verdict.error,
            verdict=row.verdict.word,
            why=row.verdict.why,
        )
    for sample in report.samples:
        output.event("sample", wrt=sample.wrt, checked=sample.checked, elements=sample.elements)
    if report.second is not None:
        output.event("no_second_derivatives", why=report.second)
    output.event(
        "verdict",
        agree=report.count("agrees"),
        differ=report.count("differs"),
        unjudged=report.count("cannot judge"),
    )

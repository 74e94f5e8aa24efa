"""Runs a program in this process and gives what it says as JSON lines, the same as the command line's."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdsl.api.program import Prepared, Program
from graphdsl.render import json as lines
from graphdsl.runtime.events import Shown, Summary
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.files import read_source
from graphdsl.source.span import Source


@dataclass
class Lines:
    """A sink that keeps JSON lines."""

    said: list[str] = field(default_factory=list)

    def values(self, line: int, items: Sequence[Shown]) -> None:
        self.said.append(lines.printed(line, items))

    def text(self, line: int, text: str) -> None:
        self.said.append(lines.printed_text(line, text))

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        self.said.append(lines.probed(line, items))

    def flush(self) -> None:
        pass


def said(
    source: Source,
    mode: str,
    feeds: dict[str, Any] | None = None,
    sets: dict[str, Any] | None = None,
    cache: bool = True,
) -> list[str]:
    """Warnings, prints, and the errors that ended the run, in this order, as JSON lines."""
    sink = Lines()
    try:
        program = Program(source)
        given = program.given(feeds or {}, sets or {})
        prepared = Prepared(program, mode, given, program.check(given.values), use_cache=cache)
        sink.said += [lines.problem(d) for d in prepared.warnings]
        prepared.run(sink)
    except ProgramError as error:
        sink.said += [lines.problem(d) for d in error.diagnostics]
    return sink.said


def events(said: Sequence[str]) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in said]


def digest(paths: Sequence[str], mode: str) -> dict[str, list[str]]:
    """What each of these programs says."""
    return {path: said(read_source(path), mode) for path in paths}


if __name__ == "__main__":
    print(json.dumps(digest(sys.argv[2:], sys.argv[1])))

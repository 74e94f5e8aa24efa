"""Where a command's words go: the program's output to stdout, what is said about it to stderr; text or JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from graphdsl.cli.streams import width
from graphdsl.source.diagnostic import Diagnostic

if TYPE_CHECKING:
    from graphdsl.render.paint import Paint
    from graphdsl.runtime.events import Shown, Summary


class Output:
    """The two streams of one command. `color` is auto, always or never."""

    def __init__(self, as_json: bool, color: str) -> None:
        self.as_json = as_json
        self.color = color

    def paint(self, stream: TextIO) -> Paint:
        """The colours for a stream."""
        from graphdsl.render.paint import Paint

        if self.color == "auto":
            plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
            return Paint(stream.isatty() and not plain)
        return Paint(self.color == "always")

    def stdout_paint(self, text: str, style: str) -> str:
        """A text in colour, if stdout has it."""
        return self.paint(sys.stdout)(text, style)

    def diagnostics(self, found: Iterable[Diagnostic]) -> None:
        """Errors and warnings, in order."""
        sys.stdout.flush()
        for diagnostic in found:
            if self.as_json:
                from graphdsl.render import json

                sys.stderr.write(json.problem(diagnostic) + "\n")
            else:
                from graphdsl.render.diagnostics import render

                sys.stderr.write(render(diagnostic, width(sys.stderr), self.paint(sys.stderr)) + "\n\n")
        sys.stderr.flush()

    def event(self, event: str, **fields: Any) -> None:
        """An event on stdout, with --json."""
        from graphdsl.render import json

        sys.stdout.write(json.object_text(event=event, **fields) + "\n")

    def aside(self, event: str, **fields: Any) -> None:
        """An event on stderr, with --json: what is no output of the program."""
        from graphdsl.render import json

        sys.stdout.flush()
        sys.stderr.write(json.object_text(event=event, **fields) + "\n")

    def line(self, text: str = "") -> None:
        """A line on stdout."""
        sys.stdout.write(text + "\n")

    def sentence(self, text: str, indent: int = 0, head: str = "", style: str | None = None) -> None:
        """Text on stdout after a head, which may have a colour; wrapped to a terminal, where lines after the first are
        indented."""
        from graphdsl.render.columns import columns, wrapped

        body = wrapped(text, width(sys.stdout), columns(head), indent)
        self.line((head if style is None else self.stdout_paint(head, style)) + body)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """A table on stdout, which fits a terminal."""
        from graphdsl.render.table import table

        for line in table(rows, width(sys.stdout)):
            self.line(line)

    def note(self, text: str) -> None:
        """A line on stderr, without --json; wrapped to a terminal."""
        if not self.as_json:
            from graphdsl.render.columns import wrapped

            sys.stdout.flush()
            sys.stderr.write(wrapped(text, width(sys.stderr)) + "\n")

    def building(self) -> None:
        """The kernel library is about to be built: somebody who looks on is told what takes so long."""
        if sys.stderr.isatty():
            self.note("note: building the kernel library for this machine, which is done once and takes some seconds")

    def again(self) -> None:
        """A run begins again, with less memory."""
        self.note(
            "note: what derivatives need of the loops does not fit into memory; "
            "the run begins again, and computes it anew where it is needed"
        )

    def sink(self) -> TextSink | JsonSink:
        """What takes the prints of a running program."""
        return JsonSink() if self.as_json else TextSink(self)


class TextSink:
    """Prints as text: `y = 15.0`, one line an item; what a probe shows begins with the line: `line 3: y = 15.0`."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.write = sys.stdout.write

    def values(self, line: int, items: Sequence[Shown]) -> None:
        from graphdsl.runtime.format import text

        for item in items:
            self.write(f"{item.name} = {text(item.value, item.dtype)}\n")

    def text(self, line: int, text: str) -> None:
        self.write(text + "\n")

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        from graphdsl.runtime.format import probed

        for item in items:
            self.write(f"{self.output.stdout_paint(f'line {line}:', 'faint')} {probed(item)}\n")

    def flush(self) -> None:
        sys.stdout.flush()


class JsonSink:
    """Prints as JSON lines."""

    def __init__(self) -> None:
        from graphdsl.render import json

        self.json = json

    def values(self, line: int, items: Sequence[Shown]) -> None:
        sys.stdout.write(self.json.printed(line, items) + "\n")

    def text(self, line: int, text: str) -> None:
        sys.stdout.write(self.json.printed_text(line, text) + "\n")

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        sys.stdout.write(self.json.probed(line, items) + "\n")

    def flush(self) -> None:
        sys.stdout.flush()

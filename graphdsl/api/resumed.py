"""Sinks for a run that begins again: what was said before is not said twice."""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.runtime.events import Shown, Sink, Summary


class Heard:
    """Counts what goes to another sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.count = 0
        self.flush = sink.flush

    def values(self, line: int, items: Sequence[Shown]) -> None:
        self.count += 1
        self.sink.values(line, items)

    def text(self, line: int, text: str) -> None:
        self.count += 1
        self.sink.text(line, text)

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        self.count += 1
        self.sink.probe(line, items)


class Resumed:
    """Hands on to another sink all but the first `heard` events: a run says the same each time."""

    def __init__(self, sink: Sink, heard: int) -> None:
        self.sink = sink
        self.heard = heard
        self.flush = sink.flush

    def _new(self) -> bool:
        self.heard -= 1
        return self.heard < 0

    def values(self, line: int, items: Sequence[Shown]) -> None:
        if self._new():
            self.sink.values(line, items)

    def text(self, line: int, text: str) -> None:
        if self._new():
            self.sink.text(line, text)

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        if self._new():
            self.sink.probe(line, items)

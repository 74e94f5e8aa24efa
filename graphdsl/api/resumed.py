"""What a run says that may begin again: what was said before is not said twice."""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.runtime.events import Shown, Sink, Summary


class Heard:
    """Hands on to another sink all but the first events, of which `before` were heard already: a run says the same each time.
    `count` is how many there were."""

    def __init__(self, sink: Sink, before: int = 0) -> None:
        self.sink = sink
        self.before = before
        self.count = 0
        self.flush = sink.flush

    def _new(self) -> bool:
        self.count += 1
        return self.count > self.before

    def values(self, line: int, items: Sequence[Shown]) -> None:
        if self._new():
            self.sink.values(line, items)

    def text(self, line: int, text: str) -> None:
        if self._new():
            self.sink.text(line, text)

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        if self._new():
            self.sink.probe(line, items)

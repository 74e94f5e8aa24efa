"""Program texts and places in them.

A `Source` is one text with a name; a `Span` is a range of it. Every AST node, core instruction
and diagnostic carries a span. Offsets count code points; lines and columns count from 1.
"""

from __future__ import annotations

from bisect import bisect_right

from graphdsl.source.record import dataclass, field


@dataclass(frozen=True, eq=False)
class Source:
    """A program text: `name` is what messages call it, `folder` where its files are looked up."""

    name: str
    text: str
    folder: str = "."
    starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        object.__setattr__(self, "starts", tuple(starts))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of an offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a line (from 1), without its end."""
        start = self.starts[line - 1]
        end = self.starts[line] - 1 if line < len(self.starts) else len(self.text)
        return self.text[start:end].removesuffix("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open range `[start, end)` of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.place(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.place(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The range from the start of this span to the end of `other`."""
        return Span(self.source, self.start, other.end)

"""A table as plain text: columns aligned, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdsl.render.diagnostics import columns


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; the first column stands to the left, the others to the right."""
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first = row[0] + " " * (widths[0] - columns(row[0]))
        rest = (" " * (w - columns(cell)) + cell for w, cell in zip(widths[1:], row[1:], strict=True))
        yield "  ".join([first, *rest]).rstrip()

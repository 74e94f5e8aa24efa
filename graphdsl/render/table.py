"""A table as plain text: columns aligned, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdsl.render.columns import columns

_GAP = 2


def table(rows: Sequence[Sequence[str]], width: int | None = None) -> Iterator[str]:
    """The lines of a table; the first column stands to the left, the others to the right.

    What is wider than `width` goes on below, in a second table with the same first column.
    """
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, part in enumerate(_parts(widths, width)):
        if number:
            yield ""
        for row in rows:
            first = row[0] + " " * (widths[0] - columns(row[0]))
            rest = (" " * (widths[i] - columns(row[i])) + row[i] for i in part)
            yield (" " * _GAP).join([first, *rest]).rstrip()


def _parts(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """The columns after the first, in groups of which each fits beside it."""
    parts: list[list[int]] = [[]]
    taken = widths[0]
    for i, wide in enumerate(widths[1:], 1):
        if width is not None and parts[-1] and taken + _GAP + wide > width:
            parts.append([])
            taken = widths[0]
        parts[-1].append(i)
        taken += _GAP + wide
    return parts

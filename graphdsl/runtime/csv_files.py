"""Columns of .csv files (grammars/README.md, "Files"): integers are i64, other numbers f64, an empty cell is nan."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any, TextIO

import numpy as np

from graphdsl.runtime import file_faults
from graphdsl.runtime.limits import Limits
from graphdsl.source.diagnostic import Fault

_LONGEST_LINE = 2**24
_ROWS_BETWEEN_CHECKS = 4096
_BYTES_OF_CELL = 16  # while it is not known whether a column holds ints or floats
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def read_columns(path: str, name: str, entry: Any, limits: Limits) -> np.ndarray[Any, Any]:
    """One column, or (for a list of names) a matrix of several; `name` is what messages call the file."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _read(csv.reader(_lines(file, name), strict=True, skipinitialspace=True), name, entry, limits)
    except UnicodeDecodeError:
        raise Fault(file_faults.DAMAGED, name, ".csv", "it is not UTF-8") from None
    except csv.Error as error:
        raise Fault(file_faults.DAMAGED, name, ".csv", str(error)) from None


def _lines(file: TextIO, name: str) -> Iterator[str]:
    """The lines of a file, none of them read whole that is too long to be one."""
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise Fault(file_faults.DAMAGED, name, ".csv", f"a line has more than {_LONGEST_LINE:,} characters")
        yield line


def _read(lines: Any, name: str, entry: Any, limits: Limits) -> np.ndarray[Any, Any]:
    header = [cell.strip() for cell in next(lines, [])]
    if entry is None:
        raise Fault(file_faults.NAME_ENTRY, name, "column", listed(header))
    wanted = [entry] if isinstance(entry, str) else list(entry)
    columns = [_Column(name, column, _place(header, column, name)) for column in wanted]
    count = 0
    for row in lines:
        if not row:  # a blank line
            continue
        if len(row) != len(header):
            raise Fault(file_faults.ROW, name, lines.line_num, len(row), len(header))
        for column in columns:
            column.take(row, lines.line_num)
        count += 1
        if count % _ROWS_BETWEEN_CHECKS == 0:
            limits.check(f"`{name}`", (count, len(columns)), _BYTES_OF_CELL)
    made = [column.array() for column in columns]
    return made[0] if isinstance(entry, str) else np.stack(made, axis=1)


def _place(header: Sequence[str], column: str, name: str) -> int:
    found = [i for i, cell in enumerate(header) if cell == column]
    if len(found) != 1:
        what = "single column" if found else "column"
        raise Fault(file_faults.NO_ENTRY, name, what, column, listed(header))
    return found[0]


class _Column:
    """The numbers of a column: as floats, and as ints as long as all are."""

    def __init__(self, file: str, name: str, place: int) -> None:
        self.file = file
        self.name = name
        self.place = place
        self.floats = array("d")
        self.ints: array[int] | None = array("q")

    def take(self, row: Sequence[str], line: int) -> None:
        """The next cell."""
        cell = row[self.place].strip()
        if cell and _NUMBER.fullmatch(cell) is None:
            raise Fault(file_faults.CELL, self.file, line, shortened(cell), self.name)
        self.floats.append(float(cell) if cell else nan)
        if self.ints is not None:
            try:
                self.ints.append(int(cell))
            except (OverflowError, ValueError):  # no int, or too long for i64
                self.ints = None

    def array(self) -> np.ndarray[Any, Any]:
        """All of them."""
        return np.array(self.floats if self.ints is None else self.ints)


def listed(names: Sequence[str]) -> str:
    """Names for a message, not all of very many."""
    shown = [f"`{shortened(n)}`" for n in names[:12]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    return ", ".join(shown) or "none"


def shortened(text: str) -> str:
    """A text from a file for a message, not all of a very long one."""
    return text if len(text) <= 40 else text[:39] + "…"

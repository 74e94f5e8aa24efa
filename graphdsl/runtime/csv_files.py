"""Columns of .csv files (grammars/README.md, "Files"): integers are i64, other numbers f64, an empty cell is nan."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphdsl.runtime import file_faults
from graphdsl.source.diagnostic import Fault

_INT = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def read_columns(path: str, name: str, entry: Any) -> np.ndarray[Any, Any]:
    """One column, or (for a list of names) a matrix of several; `name` is what messages call the file."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _read(csv.reader(file, strict=True, skipinitialspace=True), name, entry)
    except UnicodeDecodeError:
        raise Fault(file_faults.DAMAGED, name, ".csv", "it is not UTF-8") from None
    except csv.Error as error:
        raise Fault(file_faults.DAMAGED, name, ".csv", str(error)) from None


def _read(lines: Any, name: str, entry: Any) -> np.ndarray[Any, Any]:
    header = [cell.strip() for cell in next(lines, [])]
    if entry is None:
        raise Fault(file_faults.NAME_ENTRY, name, "column", listed(header))
    wanted = [entry] if isinstance(entry, str) else list(entry)
    places = [_place(header, column, name) for column in wanted]
    columns: list[list[str]] = [[] for _ in wanted]
    numbers: list[int] = []
    for line, row in _rows(lines):
        if len(row) != len(header):
            raise Fault(file_faults.ROW, name, line, len(row), len(header))
        numbers.append(line)
        for cells, place in zip(columns, places, strict=True):
            cells.append(row[place].strip())
    made = [_column(cells, numbers, name, column) for cells, column in zip(columns, wanted, strict=True)]
    return made[0] if isinstance(entry, str) else np.stack(made, axis=1)


def _rows(lines: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with the number of the line on which each ends."""
    for row in lines:
        if row:
            yield lines.line_num, row


def _place(header: Sequence[str], column: str, name: str) -> int:
    found = [i for i, cell in enumerate(header) if cell == column]
    if len(found) != 1:
        what = "single column" if found else "column"
        raise Fault(file_faults.NO_ENTRY, name, what, column, listed(header))
    return found[0]


def _column(cells: Sequence[str], lines: Sequence[int], name: str, column: str) -> np.ndarray[Any, Any]:
    if all(map(_INT.fullmatch, cells)):
        try:
            return np.array([int(cell) for cell in cells], np.int64)
        except (OverflowError, ValueError):
            pass  # too long for i64
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        if cell and _NUMBER.fullmatch(cell) is None:
            raise Fault(file_faults.CELL, name, lines[i], cell if len(cell) <= 40 else cell[:39] + "…", column)
        numbers[i] = float(cell) if cell else np.nan
    return numbers


def listed(names: Sequence[str]) -> str:
    """Names for a message, not all of very many."""
    shown = [f"`{n}`" for n in names[:12]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    return ", ".join(shown) or "none"

"""Program texts from files and from bytes."""

from __future__ import annotations

import os

from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.span import Source, Span

MOST_BYTES = 4 << 20  # of a program; checking a line of it may take a thousand times its size


def read_source(path: str) -> Source:
    """The program in a file.

    Raises `OSError` where it cannot be read, `ProgramError` where it is no text or too large.
    """
    with open(path, "rb") as file:
        return source_of(path, file.read(MOST_BYTES + 1), os.path.dirname(path) or ".")


def source_of(name: str, data: bytes, folder: str = ".") -> Source:
    """The program that these bytes are: UTF-8, with or without byte order mark. Raises `ProgramError`."""
    if len(data) > MOST_BYTES:
        message = f"the program is larger than {MOST_BYTES >> 20} MB"
        hint = 'data belongs in a file of its own: `x = load("x.npy")`'
        raise ProgramError(Diagnostic("E0127", message, Span(Source(name, "", folder), 0, 0), hint))
    try:
        return Source(name, data.decode("utf-8-sig"), folder)
    except UnicodeDecodeError as error:
        text = data.decode("utf-8-sig", "replace")
        start = len(data[: error.start].decode("utf-8-sig"))
        source = Source(name, text, folder)
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        hint = "it looks like UTF-16: save it as UTF-8" if utf16 else "save it as UTF-8"
        message = f"this is not UTF-8 text: it holds the byte 0x{data[error.start]:02x}"
        raise ProgramError(Diagnostic("E0101", message, Span(source, start, start + 1), hint)) from None

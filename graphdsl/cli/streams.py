"""The standard streams as a command line uses them: always there, UTF-8, and with one answer to a write that fails.

Nothing else asks whether a stream is open, full or a closed pipe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TextIO, cast


class ClosedPipe(Exception):
    """Who read the output has gone (`| head`)."""


class NotWritten(Exception):
    """The output cannot be written: the disk is full, or its like."""


def open_streams() -> None:
    """To be called before anything is written."""
    # A file opened later must not take the number of a stream that is closed (`>&-`).
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = _ready(sys.stdout, _stop)
    sys.stderr = _ready(sys.stderr, _no_matter)


def drop_output() -> None:
    """What stdout still holds goes nowhere: the next flush would fail again."""
    _to_nowhere(sys.stdout)


def width(stream: TextIO) -> int | None:
    """The columns of the terminal that a stream is; None where it is none."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS", "")) or None
    except ValueError:
        with suppress(OSError):
            return os.get_terminal_size(stream.fileno()).columns or None
        return None


def _ready(stream: TextIO | None, failed: Callable[[TextIO, OSError], None]) -> TextIO:
    found = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if hasattr(found, "reconfigure"):
        found.reconfigure(encoding="utf-8", errors="backslashreplace")
    return cast(TextIO, _Stream(found, failed))


class _Stream:
    """A stream of text; a write that fails is `failed`'s."""

    def __init__(self, stream: TextIO, failed: Callable[[TextIO, OSError], None]) -> None:
        self._stream = stream
        self._failed = failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._failed(self._stream, error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(self._stream, error)


def _stop(stream: TextIO, error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise ClosedPipe from None
    raise NotWritten(error.strerror or str(error)) from None


def _no_matter(stream: TextIO, error: OSError) -> None:
    """Where messages cannot be written, there is nobody to tell; the exit status still says how it went."""
    _to_nowhere(stream)


def _to_nowhere(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

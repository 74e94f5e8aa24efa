"""Small words of messages: numbers with their nouns, and texts filled in."""

from __future__ import annotations

import re

_PLURALS = {"axis": "axes", "index": "indices"}
_PLACE = re.compile(r"\{(\d)(?::([a-z]+))?\}")


def counted(n: object, noun: str) -> str:
    """`1 argument`, `2 arguments`, `n rows` (the number may be a name)."""
    return f"{n} {noun}" if n == 1 else f"{n} {_PLURALS.get(noun, noun + 's')}"


def filled(text: str, values: tuple[object, ...]) -> str:
    """The text with values in the places `{0}`, `{1}` …; `{0:row}` is a number of rows."""
    return _PLACE.sub(lambda m: counted(values[int(m[1])], m[2]) if m[2] else str(values[int(m[1])]), text)

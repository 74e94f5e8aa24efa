"""How many columns of a terminal a text takes, and texts wrapped to a number of columns."""

from __future__ import annotations

import re
import unicodedata

TAB = 4
# What is read as one: `a = b`, f64[2, 3]; but not so much that it would stand out of a line.
_WORD = re.compile(r"(?:`[^`]{1,40}`|\[[^\[\]]{1,30}\]|[^ ])+")


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii() and "\t" not in text:
        return len(text)
    return sum(column(char) for char in text)


def column(char: str) -> int:
    """How many columns one character takes."""
    if char == "\t":
        return TAB
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me") else 1


def wrapped(text: str, width: int | None, first: int = 0, indent: int | None = None) -> str:
    """The text, of as many lines as its own and the width ask for (None: any width will do); its first line begins at
    column `first`, the others at column `indent` (where not said: the same).

    It is broken at blanks; a word longer than a line stays whole, so that it can be copied.
    """
    later = first if indent is None else indent
    lines: list[str] = []
    for part in text.split("\n"):
        lines += [part] if width is None else _broken(part, width - (later if lines else first), width - later)
    return ("\n" + " " * later).join(lines)


def _broken(text: str, room: int, later: int) -> list[str]:
    """Lines of which the first takes at most `room` columns, and the others `later`."""
    if columns(text) <= room:
        return [text]
    first, *others = _WORD.findall(text)
    lines = [first]
    for word in others:
        longer = f"{lines[-1]} {word}"
        if columns(longer) <= (room if len(lines) == 1 else later):
            lines[-1] = longer
        else:
            lines.append(word)
    return lines

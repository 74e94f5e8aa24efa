"""Makes a program smaller as long as it still fails in the same way: fewer lines, then simpler expressions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

_OPEN = "([{"
_CLOSE = ")]}"


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 120.0) -> str:
    """The smallest program found, by taking the first candidate that still fails, until none does or time is up."""
    lines = text.splitlines()
    start = 0
    end = time.monotonic() + seconds
    while True:
        for number, smaller in enumerate(candidates(lines)):
            if time.monotonic() > end:
                return indented(lines)
            # Where the last success was, the next one is likely: what failed before it is tried again at the end.
            if number >= start and fails("\n".join(smaller) + "\n"):
                lines, start = smaller, number
                break
        else:
            if start == 0:
                return indented(lines)
            start = 0


def indented(lines: list[str]) -> str:
    """The text with each line as deep as the blocks around it."""
    depth, text = 0, ""
    for line in map(str.strip, lines):
        text += "    " * (depth - line.startswith("}")) + line + "\n"
        depth += line.count("{") - line.count("}")
    return text


def candidates(lines: list[str]) -> Iterator[list[str]]:
    """Smaller programs, the much smaller ones first."""
    for size in (16, 8, 4, 2, 1):
        for at in range(0, len(lines), size):
            yield lines[:at] + lines[at + size :]
    for at, line in enumerate(lines):
        if line.endswith("{"):
            end = closing(lines, at)
            yield lines[:at] + lines[end + 1 :]
            yield lines[:at] + lines[at + 1 : end] + lines[end + 1 :]
        for shorter in simpler(line):
            yield [*lines[:at], shorter, *lines[at + 1 :]]


def closing(lines: list[str], at: int) -> int:
    """The line that ends the block which begins at a line."""
    depth = 0
    for number in range(at, len(lines)):
        depth += lines[number].count("{") - lines[number].count("}")
        if depth <= 0:
            return number
    return len(lines) - 1


def simpler(line: str) -> Iterator[str]:
    """The line with one statement less, a bracket replaced by a part of it, or a number by 1."""
    for head, tail in re.findall(r"^(.*?\{ )(.*)$", line):
        parts = tail.split("; ")
        for at in range(len(parts) - 1):
            yield head + "; ".join(parts[:at] + parts[at + 1 :])
    for begin, end in brackets(line):
        inner = line[begin + 1 : end]
        name = re.search(r"[\w.]*$", line[:begin])
        start = name.start() if name and line[begin] == "(" else begin
        for part in ("1.0", *pieces(inner)):
            if part != line[start : end + 1]:
                yield line[:start] + part + line[end + 1 :]
        if line[begin] == "[" and line[:begin].endswith((")", "]")):
            yield line[:begin] + line[end + 1 :]
    for found in re.finditer(r"(?<= )[-+*/%@]+ ([\w.]+)", line):
        yield line[: found.start()].rstrip() + line[found.end() :]
    for found in re.finditer(r"(?<![\w.])-?\d+\.\d+(?![\w.])", line):
        if found[0] != "1.0":
            yield line[: found.start()] + "1.0" + line[found.end() :]


def brackets(line: str) -> list[tuple[int, int]]:
    """The pairs of brackets, the outer ones first."""
    found, open_at = [], []
    for at, char in enumerate(line):
        if char in _OPEN:
            open_at.append(at)
        elif char in _CLOSE and open_at:
            found.append((open_at.pop(), at))
    return sorted(pair for pair in found if line[pair[0]] != "{")


def pieces(inner: str) -> list[str]:
    """What stands between the commas and the operators of the outermost level."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(inner + ","):
        depth += (char in _OPEN) - (char in _CLOSE)
        spaced = inner[at - 1 : at] == " " and inner[at + 1 : at + 2] in (" ", "/", "=", ">")
        if depth == 0 and (char == "," or (char in "+-*/%@<>" and spaced)):
            parts.append(inner[begin:at].strip(" /=>"))
            begin = at + 1
    return [part for part in parts if part]

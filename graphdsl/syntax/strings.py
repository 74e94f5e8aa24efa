"""What stands between the quotes of a string: text with escapes, and gaps `{expression:spec}`."""

from __future__ import annotations

from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.span import Source, Span
from graphdsl.syntax import ast

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def string_parts(source: Source, start: int, end: int) -> tuple[str | ast.Gap, ...]:
    """The texts and gaps of the range between two quotes."""
    text = source.text
    parts: list[str | ast.Gap] = []
    chars: list[str] = []
    at = start
    while at < end:
        char = text[at]
        if char == "\\":
            found, at = _escape(source, at, end)
            chars.append(found)
        elif char in "{}" and text.startswith(char, at + 1, end):
            chars.append(char)
            at += 2
        elif char == "{":
            if chars:
                parts.append("".join(chars))
                chars = []
            gap = _gap(source, at, end)
            parts.append(gap)
            at = gap.span.end
        elif char == "}":
            raise _error(source, "E0126", "this `}` ends no gap", at, at + 1, "a brace in a text is written `}}`")
        else:
            chars.append(char)
            at += 1
    if chars or not parts:
        parts.append("".join(chars))
    return tuple(parts)


def _escape(source: Source, at: int, end: int) -> tuple[str, int]:
    """The character that the escape at `at` stands for, and where it ends."""
    text = source.text
    kind = text[at + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], at + 2
    if kind == "u":
        digits = text[at + 2 : min(at + 6, end)]
        if len(digits) == 4 and all(d in "0123456789abcdefABCDEF" for d in digits):
            if not 0xD800 <= int(digits, 16) < 0xE000:
                return chr(int(digits, 16)), at + 6
            raise _error(source, "E0125", "half of a character", at, at + 6, "put the character itself in the string")
        hint = "four hexadecimal digits follow `\\u`, as in `\\u00e9`"
        raise _error(source, "E0125", "this escape is not complete", at, at + 2 + len(digits), hint)
    hint = 'the escapes are `\\n` `\\t` `\\"` `\\\\` `\\uXXXX`; a backslash is written `\\\\`'
    raise _error(source, "E0125", f"there is no escape `\\{kind}`", at, at + 2, hint)


def _gap(source: Source, at: int, end: int) -> ast.Gap:
    """The gap that starts with the `{` at `at`. A `}` stands in no expression, so the first one ends it."""
    from graphdsl.syntax.parser import parse_expression

    close = source.text.find("}", at, end)
    if close < 0:
        hint = "a gap ends with `}`; a brace in a text is written `{{`"
        raise _error(source, "E0126", "this gap is never closed", at, at + 1, hint)
    colon = _spec(source.text, at + 1, close)
    if not source.text[at + 1 : colon].strip():
        raise _error(source, "E0126", "this gap is empty", at, close + 1, "a brace in a text is written `{{`")
    if "{" in source.text[at + 1 : close]:
        brace = source.text.index("{", at + 1)
        raise _error(source, "E0126", "a gap holds no other gap", brace, brace + 1, "compute it before, and name it")
    expr = parse_expression(source, at + 1, colon)
    return ast.Gap(Span(source, at, close + 1), expr, source.text[colon + 1 : close] if colon < close else "")


def _spec(text: str, start: int, end: int) -> int:
    """Where the `:` before a spec stands: the first outside brackets; `end` where there is none."""
    depth = 0
    for at in range(start, end):
        char = text[at]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ":" and depth == 0:
            return at
    return end


def _error(source: Source, code: str, message: str, start: int, end: int, hint: str | None) -> ProgramError:
    return ProgramError(Diagnostic(code, message, Span(source, start, end), hint))

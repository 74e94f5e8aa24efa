"""From text to tokens: names, numbers, strings, operators, and where a newline ends a statement.

The reserved words, operators and patterns are those of the grammar (`tables.json`). The lexer is lazy: it
has read just as far as the parser, so that the first problem in the text is the one reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError
from graphdsl.source.span import Source, Span
from graphdsl.syntax.limits import MAX_BLOCKS, MAX_LOOPS

NEWLINE = "_NL"
END = "$END"
CLOSERS = {"(": ")", "[": "]", "{": "}"}

# After these a newline does not count (a `-` that is unary is told apart where it stands).
_BINARY = {"+", "-", "*", "/", "//", "%", "@", "**", "|", "&", "==", "!=", "<", "<=", ">", ">=", "..", "AND", "OR"}
_GOES_ON = _BINARY | {"=", ":=", "+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "->", ","}
# After these a `-` is binary.
_OPERAND_ENDS = {
    "NAME", "INT", "FLOAT", "STRING", ")", "]", "TRUE", "FALSE", "NONE", "INF", "NAN", "PI", "STEP",
    "AS", "DEFAULT", "VJP", "PROP",
}  # fmt: skip


class Token:
    """One token: its kind (an operator's own text, a reserved word in capitals) and its range."""

    __slots__ = ("end", "kind", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end


class Vocabulary:
    """The words, operators and patterns of a grammar, compiled."""

    def __init__(self, words: dict[str, str], patterns: dict[str, str]) -> None:
        self.words = {word: kind for word, kind in words.items() if word.isalpha()}
        operators = sorted((w for w in words if not w.isalpha()), key=len, reverse=True)
        alternatives = [("NAME", patterns["NAME"]), ("NEWLINE", r"\r?\n"), ("FLOAT", patterns["FLOAT"])]
        alternatives += [("INT", patterns["INT"]), ("STRING", patterns["STRING"])]
        alternatives += [("OPERATOR", "|".join(map(re.escape, operators)))]
        groups = "|".join(f"(?P<{name}>{pattern})" for name, pattern in alternatives)
        self.token = re.compile(rf"[ \t]*(?:{groups})")
        self.blank = re.compile(r"[ \t]*(#[^\n]*)?")


class Lexer:
    """The tokens of a range of a source.

    `brackets` holds what is open, `current` is the last token handed out, `previous` the one before.
    """

    def __init__(self, vocabulary: Vocabulary, source: Source, start: int = 0, end: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.source = source
        self.at = start
        self.end = len(source.text) if end is None else end
        self.brackets: list[Token] = []
        self.blocks: list[bool] = []  # for each open block, whether it is a loop's
        self.head: Token | None = None  # the first token of the statement
        self.previous = self.current = Token(NEWLINE, start, start)
        self.comments: list[Span] = []

    def tokens(self) -> Iterator[Token]:
        """The tokens from `at` on, newlines that end statements among them, and END last."""
        waiting: Token | None = None  # a newline that counts unless `else` follows
        kind = self.current.kind  # of the last token handed out
        unary = False  # whether it was a unary `-`
        for token in self.raw():
            if token.kind == "NEWLINE":
                inside = self.brackets and self.brackets[-1].kind != "{"
                if not inside and kind != NEWLINE and not (kind in _GOES_ON and not unary):
                    waiting = waiting or token
                continue
            if waiting is not None and token.kind != "ELSE":
                yield self._pass(Token(NEWLINE, waiting.start, waiting.end))
                kind = NEWLINE
            waiting = None
            if token.kind == ";" and not (self.brackets and self.brackets[-1].kind != "{"):
                if kind == NEWLINE:
                    continue
                token.kind = NEWLINE
            unary = token.kind == "-" and kind not in _OPERAND_ENDS
            yield self._pass(token)
            kind = token.kind
        if waiting is not None:
            yield self._pass(Token(NEWLINE, waiting.start, waiting.end))
        if self.brackets:
            raise ProgramError(unclosed(self.source, self.brackets[-1]))
        yield self._pass(Token(END, self.end, self.end))

    def _pass(self, token: Token) -> Token:
        """Keeps account of brackets, blocks and statement heads."""
        kind = token.kind
        last = self.current.kind
        if last in (NEWLINE, "{", "ELSE"):
            self.head = token
        self.previous, self.current = self.current, token
        if kind in CLOSERS:
            self.brackets.append(token)
            if kind == "{":
                self._open_block(token)
        elif kind in (")", "]", "}"):
            self._close(token)
        return token

    def _open_block(self, token: Token) -> None:
        loop = self.head is not None and self.head.kind in ("WHILE", "FOR")
        self.blocks.append(loop)
        if len(self.blocks) > MAX_BLOCKS:
            raise self.error(
                "E0122", f"blocks nest more than {MAX_BLOCKS} deep", token, "move the inner ones into a `fn`"
            )
        if loop and sum(self.blocks) > MAX_LOOPS:
            assert self.head is not None
            raise self.error(
                "E0122", f"loops nest more than {MAX_LOOPS} deep", self.head, "move the inner ones into a `fn`"
            )
        self.head = None

    def _close(self, token: Token) -> None:
        if self.brackets and CLOSERS[self.brackets[-1].kind] == token.kind:
            if self.brackets.pop().kind == "{":
                self.blocks.pop()
            return
        if not self.brackets:
            what = "ends no block" if token.kind == "}" else "closes nothing"
            raise self.error("E0112", f"`{token.kind}` {what}: there is no `{_opener(token.kind)}` for it", token)
        raise ProgramError(unclosed(self.source, self.brackets[-1], token))

    def raw(self) -> Iterator[Token]:
        """The tokens from `at` on without regard to what encloses them: each newline is a NEWLINE."""
        text, end, words = self.source.text, self.end, self.vocabulary.words
        match, blank = self.vocabulary.token.match, self.vocabulary.blank.match
        if self.at == 0 and text.startswith("\ufeff"):
            self.at = 1
        while True:
            found = match(text, self.at, end)
            if found is None:
                skipped = blank(text, self.at, end)
                assert skipped is not None
                self.at = skipped.end()
                if skipped[1] is not None:
                    self.comments.append(Span(self.source, skipped.start(1), skipped.end(1)))
                elif self.at >= end:
                    return
                else:
                    yield self._unusual(self.at)
                continue
            kind: Any = found.lastgroup
            start, at = found.span(kind)
            self.at = at
            if kind == "OPERATOR":
                kind = text[start:at]
            elif kind == "NAME":
                if at < end and not text[at].isascii():
                    self.at = self._name_end(at)
                else:
                    kind = words.get(text[start:at], "NAME")
            elif kind in ("INT", "FLOAT"):
                self._check_number(start, at)
            yield Token(kind, start, self.at)

    def _name_end(self, at: int) -> int:
        """Where a name ends that reaches to `at` and may go on with what is not ASCII."""
        text = self.source.text
        while at < self.end and continues_name(text[at]):
            at += 1
        return at

    def _unusual(self, at: int) -> Token:
        """A name that starts with a letter beyond ASCII; anything else that starts no token is an error."""
        char = self.source.text[at]
        if char.isidentifier():
            self.at = self._name_end(at + 1)
            return Token("NAME", at, self.at)
        if char == '"':
            raise self._bad_string(at)
        message, hint = unexpected_character(char)
        raise self.error("E0102", message, Token("", at, at + 1), hint)

    def _bad_string(self, at: int) -> ProgramError:
        end = self.source.text.find("\n", at, self.end)
        token = Token("", at, len(self.source.text[: end if end >= 0 else self.end].rstrip("\r\n")))
        hint = 'a string ends with `"` on the line it starts on; `\\n` in it is a newline, `\\"` a quote'
        return self.error("E0105", "this string is never closed", token, hint)

    def _check_number(self, start: int, at: int) -> None:
        """A number touches no letter, digit or `_` after it."""
        text = self.source.text
        digits = text[start:at]
        leading = (
            len(digits) > 1 and digits[0] == "0" and digits.replace("_", "").isdigit() and digits.strip("0_") != ""
        )
        dotted = text[at : at + 1] == "." and text[at + 1 : at + 2].isdigit() and at + 1 < self.end
        if not leading and not dotted and not (at < self.end and continues_name(text[at])):
            return
        end = self._name_end(at + 1 if dotted else at)
        whole = text[start:end]
        token = Token("", start, end)
        if leading:
            hint = f"write `{whole.lstrip('0_')}`; `0x` begins a hexadecimal number, `0b` a binary one"
            raise self.error("E0103", f"`{whole}` is not a number: it starts with 0", token, hint)
        raise self.error("E0103", f"`{_cut(whole)}` is not a number", token, _number_hint(whole))

    def error(self, code: str, message: str, place: Token, hint: str | None = None) -> ProgramError:
        """An error at a token."""
        return ProgramError(Diagnostic(code, message, Span(self.source, place.start, place.end), hint))


def continues_name(char: str) -> bool:
    """Whether a character may stand in a name after its first."""
    return ("a" + char).isidentifier() or "\u2080" <= char <= "\u2089"


def unclosed(source: Source, opener: Token, found: Token | None = None) -> Diagnostic:
    """A bracket that is never closed, reported where it was opened; `found` stands where it should have been."""
    closer = CLOSERS[opener.kind]
    labels: tuple[Label, ...] = ()
    if found is not None:
        labels = (Label(Span(source, found.start, found.end), f"`{closer}` was expected before this"),)
    hint = f"add `{closer}`" if opener.kind != "{" else "add `}` at the end of the block"
    return Diagnostic(
        "E0111", f"this bracket `{opener.kind}` is never closed", Span(source, opener.start, opener.end), hint, labels
    )


def unexpected_character(char: str) -> tuple[str, str | None]:
    """Message and hint for a character that starts no token."""
    shown = f"`{char}`" if char.isprintable() and not char.isspace() else "this character"
    message = f"{shown} (U+{ord(char):04X}) has no meaning here"
    if char.isspace() or char in "\u200b\ufeff\u2060":
        return message, "it looks like a blank and is none: replace it by a plain one"
    if not char.isprintable():
        return message, "remove it"
    return message, _LOOKALIKES.get(char)


_LOOKALIKES = {
    "'": 'strings stand in double quotes: `"…"`',
    "“": 'strings stand in straight quotes: `"…"`',
    "”": 'strings stand in straight quotes: `"…"`',
    "!": "negation is `not`, and `~` for tensors",
    "?": "a conditional value is `a if c else b`",
    "^": "a power is `**`",
    "−": "a minus is `-`",
    "×": "a product is `*`",
    "·": "a product is `*`",
    "÷": "a quotient is `/`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "（": "write `(`",
    "）": "write `)`",
    "，": "write `,`",
    "：": "write `:`",
    "；": "write `;`",
    "\\": "a line goes on inside brackets, or after an operator or a comma",
}


def _number_hint(text: str) -> str | None:
    if text[:2] in ("0o", "0O"):
        return "octal numbers are not written; `0x` begins a hexadecimal number, `0b` a binary one"
    if text in ("0x", "0X", "0b", "0B"):
        return f"digits follow `{text}`, as in `{text}1`"
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return "a hexadecimal number has the digits 0 to 9 and a to f, a binary one 0 and 1"
    if "__" in text or text.endswith("_"):
        return "a `_` stands between two digits"
    head = re.match(r"[0-9._]+", text)
    if head and text[len(head[0]) :].isidentifier():
        return f"write `{head[0]} * {text[len(head[0]) :]}` for a product; a name does not start with a digit"
    return None


def _opener(closer: str) -> str:
    return next(opener for opener, c in CLOSERS.items() if c == closer)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"

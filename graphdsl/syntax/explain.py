"""What to say of a token that cannot stand where it is: the likely mistake, its place and a hint."""

from __future__ import annotations

from graphdsl.source.diagnostic import Diagnostic
from graphdsl.source.span import Span
from graphdsl.syntax.lalr import Tables, Unexpected
from graphdsl.syntax.lexer import END, NEWLINE, Lexer, Token, unclosed


def explain(machine: Tables, lexer: Lexer, unexpected: Unexpected) -> Diagnostic:
    """The diagnostic for the first token that does not fit."""
    token = unexpected.token
    return Diagnostic("E0110", f"{describe(lexer, token)} cannot stand here", Span(lexer.source, token.start, token.end))


def describe(lexer: Lexer, token: Token) -> str:
    """A token, as a message calls it."""
    if token.kind == END:
        return "the end of the text"
    if token.kind == NEWLINE:
        return "the end of the line"
    return f"`{lexer.source.text[token.start : token.end]}`"


__all__ = ["describe", "explain", "unclosed"]

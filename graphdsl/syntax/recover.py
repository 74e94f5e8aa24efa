"""Going on after a problem: the statement that holds it is skipped, with the blocks it opens."""

from __future__ import annotations

from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.syntax.lalr import Machine
from graphdsl.syntax.lexer import Lexer, Token


def skip_statement(machine: Machine, lexer: Lexer, problem: Diagnostic) -> bool:
    """Sets machine and lexer behind the statement in which `problem` was found; false where that makes no sense."""
    begin, blocks = machine.drop_statement(len(lexer.blocks) - (lexer.current.kind == "{"))
    reached = max(problem.span.end, *(label.span.end for label in problem.labels), 0)
    lexer.current = Token("}", problem.span.start, problem.span.start)  # a newline ends what was dropped
    del lexer.brackets[blocks:]
    del lexer.blocks[blocks:]
    if problem.code == "E0111":
        # the rest of the text was taken to be inside the bracket: go on at the line that could not be
        if not problem.labels or problem.span.source.text[problem.span.start] == "{":
            return False
        line = problem.labels[0].span.line
        lexer.at = max(problem.span.source.starts[line - 1] - 1, problem.span.end)
        return problem.labels[0].span.line > problem.span.line
    if problem.code == "E0112":
        lexer.at = problem.span.end
        return True
    lexer.at = begin if begin >= 0 else problem.span.start
    return _skip(lexer, reached)


def _skip(lexer: Lexer, reached: int) -> bool:
    """Moves the lexer to the first newline, `;` or end of the enclosing block behind `reached`, outside brackets."""
    depth, ended = 0, -1
    while True:
        try:
            for token in lexer.raw():
                if ended >= 0 and token.kind not in ("NEWLINE", "{"):
                    lexer.at = ended
                    return True
                if token.kind in ("(", "[", "{"):
                    depth += 1
                    ended = -1
                elif depth == 0 and token.start >= reached and token.kind in ("NEWLINE", ";", "}"):
                    ended = token.start if ended < 0 else ended  # unless a block follows, on a line of its own
                elif token.kind in (")", "]", "}"):
                    depth = max(depth - 1, 0)
            lexer.at = lexer.end if ended < 0 else ended
            return ended >= 0
        except ProgramError as error:
            # part of a line that makes no tokens: its end is the next place to look at
            end = lexer.source.text.find("\n", error.diagnostics[0].span.end, lexer.end)
            if end < 0:
                return False
            lexer.at = end

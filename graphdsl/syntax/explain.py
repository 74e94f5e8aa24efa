"""What to say of a token that cannot stand where it is: the likely mistake, its place and a hint.

The rules are asked in order, the first that knows the mistake speaks. Each gets a `Scene`.
"""

from __future__ import annotations

from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax.lalr import Tables, Unexpected
from graphdsl.syntax.lexer import CLOSERS, END, NEWLINE, Lexer, Token, unclosed

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_FOREIGN = {
    "elif": "write `else if`",
    "def": "a function is defined by `fn`",
    "function": "a function is defined by `fn`",
    "func": "a function is defined by `fn`",
    "lambda": "a function is written `x -> …`",
    "let": "a name is set by `x = …`, without a word before it",
    "var": "a name is set by `x = …`, without a word before it",
    "import": "a module is read by `use`",
    "from": "a module is read by `use`, and its names as `nn.softmax`",
    "elseif": "write `else if`",
    "pass": "an empty block is `{ }`",
}


@dataclass
class Scene:
    """A token that does not fit, and what stands around it."""

    machine: Tables
    lexer: Lexer
    token: Token
    states: list[int]

    def accepts(self, kind: str) -> bool:
        return self.machine.accepts(self.states, kind)

    @property
    def before(self) -> Token:
        return self.lexer.previous

    @property
    def head(self) -> str:
        """The kind of the statement's first token."""
        return self.lexer.head.kind if self.lexer.head is not None else ""

    @property
    def opener(self) -> Token | None:
        """The bracket (no brace) around the token."""
        around = [b for b in self.lexer.brackets if b is not self.token]
        return around[-1] if around and around[-1].kind != "{" else None

    @property
    def same_line(self) -> bool:
        return "\n" not in self.lexer.source.text[self.before.end : self.token.start]

    @property
    def word(self) -> bool:
        """Whether the token is a reserved word."""
        return self.token.kind in self.machine.vocabulary.words.values()

    @property
    def word_before(self) -> bool:
        return self.before.kind in self.machine.vocabulary.words.values()

    def text(self, token: Token) -> str:
        """A token, as a message calls it."""
        if token.kind == END:
            return "the end of the text" if self.token.end == len(self.lexer.source.text) else "the end of the gap"
        if token.kind == NEWLINE and self.lexer.source.text[token.start : token.end] != ";":
            return "the end of the line"
        shown = self.lexer.source.text[token.start : token.end]
        return f"`{shown if len(shown) <= 40 else shown[:37] + '…'}`"

    def problem(self, code: str, message: str, hint: str | None = None, token: Token | None = None) -> Diagnostic:
        place = token or self.token
        start, end = place.start, place.end
        if place.kind in (END, NEWLINE):
            start = end = self.before.end  # shown behind what was last read
        return Diagnostic(code, message, Span(self.lexer.source, start, end), hint)


def explain(machine: Tables, lexer: Lexer, unexpected: Unexpected) -> Diagnostic:
    """The diagnostic for the first token that does not fit."""
    scene = Scene(machine, lexer, unexpected.token, unexpected.states)
    rules = (_unclosed, _equals, _sign, _comparison, _arrow, _else, _block, _reserved, _foreign, _separator, _missing)
    return next(found for rule in rules if (found := rule(scene)) is not None)


def _unclosed(scene: Scene) -> Diagnostic | None:
    """A bracket that the user forgot to close: reported where it was opened."""
    opener = scene.opener
    if opener is None or scene.token.kind == END:
        return None
    if scene.token.kind not in (*scene.machine.only_in_statements, "{") and (
        (scene.same_line and scene.token.kind != "=") or _is_closed(scene, opener)
    ):
        return None
    return unclosed(scene.lexer.source, opener, scene.token)


def _is_closed(scene: Scene, opener: Token) -> bool:
    """Whether a bracket is closed further on, before what can only be another statement."""
    depth = 0
    rest = Lexer(scene.machine.vocabulary, scene.lexer.source, scene.token.start, scene.lexer.end)
    try:
        for token in rest.raw():
            if token.kind in scene.machine.only_in_statements or token.kind in ("{", "}"):
                return False
            if token.kind in CLOSERS:
                depth += 1
            elif token.kind in (")", "]"):
                if depth == 0:
                    return token.kind == CLOSERS[opener.kind]
                depth -= 1
    except ProgramError:
        return False
    return False


def _equals(scene: Scene) -> Diagnostic | None:
    """`=` where no assignment is."""
    if scene.token.kind != "=" or (scene.accepts("STRING") and not scene.word_before):
        return None
    if scene.word_before and scene.before is scene.lexer.head:
        return _reserved_word(scene, scene.before)
    if scene.head in ("IF", "WHILE", "ASSERT"):
        return scene.problem("E0114", "`=` assigns, and cannot stand in a condition", "to compare, write `==`")
    if scene.head in ("NAME", "STEP", "AS", "DEFAULT", "VJP", "PROP") and scene.opener is None:
        hint = "write one statement for each, or `==` to compare"
        return scene.problem("E0114", "assignments cannot be chained", hint)
    return scene.problem("E0114", "`=` cannot stand in an expression", "to compare, write `==`")


def _sign(scene: Scene) -> Diagnostic | None:
    if scene.token.kind == "+" and scene.accepts("-"):
        return scene.problem("E0116", "there is no unary plus", "leave the `+` away")
    if scene.token.kind == "-" and scene.before.kind in ("+", "-") and scene.accepts("("):
        return scene.problem("E0116", "`-` cannot stand here", "put the negative number in brackets")
    return None


def _comparison(scene: Scene) -> Diagnostic | None:
    if scene.token.kind in COMPARISONS and not scene.accepts("NAME"):
        hint = "join two comparisons by `and`: `a < b and b < c`"
        return scene.problem("E0117", "comparisons cannot be chained", hint)
    if scene.token.kind == "NOT" and scene.accepts("-"):
        return scene.problem("E0110", "`not` binds looser than what stands before it", "put `not …` in brackets")
    return None


def _arrow(scene: Scene) -> Diagnostic | None:
    if scene.token.kind != "->":
        return None
    if scene.head == "FN":
        hint = "the result's type stands behind the parameters: `fn f(x) -> f64 = …`"
        return scene.problem("E0123", "`->` cannot stand here", hint)
    hint = "put the function in brackets: `(x -> …)`; before `->` stand names: `(x, y) -> …`"
    return scene.problem("E0123", "a function `x -> …` cannot be an operand or a condition", hint)


def _else(scene: Scene) -> Diagnostic | None:
    """`else` without `if`, and `a if c` without `else`."""
    if scene.token.kind == "ELSE":
        hint = "`else` follows the `}` of an `if`, or stands in `a if c else b`"
        return scene.problem("E0110", "this `else` belongs to no `if`", hint)
    if scene.accepts("ELSE") and scene.before.kind != "}" and scene.token.kind != "}":
        hint = "a conditional value is `a if c else b`"
        return scene.problem("E0110", f"`else` is expected before {scene.text(scene.token)}", hint)
    return None


def _block(scene: Scene) -> Diagnostic | None:
    """A block is missing, or `:` stands in place of one."""
    if not scene.accepts("{") or scene.head not in ("IF", "WHILE", "FOR", "FN", "ELSE", "CHECKPOINT", "VJP", "PROP"):
        return None
    if scene.token.kind == ":":
        return scene.problem("E0110", "`:` starts no block", "a block stands in braces: `{ … }`")
    hint = "a block stands in braces, and begins on the same line: `{ … }`"
    return scene.problem("E0110", f"a block is expected before {scene.text(scene.token)}", hint)


def _reserved(scene: Scene) -> Diagnostic | None:
    """A reserved word where a name belongs."""
    if not scene.word or not scene.same_line or not scene.accepts("NAME"):
        return None
    if scene.token.kind not in ("AND", "OR", "IF") or not scene.accepts("STRING"):
        return _reserved_word(scene, scene.token)
    return None


def _reserved_word(scene: Scene, token: Token) -> Diagnostic:
    message = f"{scene.text(token)} is a reserved word, and cannot be a name"
    return scene.problem("E0115", message, "choose another name", token)


def _separator(scene: Scene) -> Diagnostic | None:
    """Two statements, items or arguments with nothing between them."""
    token, before = scene.token, scene.before
    if token.kind in (END, NEWLINE) or not _starts_something(scene):
        return None
    if scene.opener is not None or (scene.head in ("PRINT", "SAVE") and before.kind != "}" and not scene.word):
        if scene.accepts(",") and not scene.accepts("NAME"):
            return scene.problem("E0113", f"a `,` is missing before {scene.text(token)}")
        return None
    if not scene.accepts(NEWLINE):
        return None
    if before.kind == "}":
        hint = "`}` ends a block, not a statement: start a new line, or write `;`"
    else:
        hint = "each statement has a line of its own, or is separated by `;`"
    return scene.problem("E0113", f"a new line is missing before {scene.text(token)}", hint)


def _foreign(scene: Scene) -> Diagnostic | None:
    """A word of another language."""
    for token in (scene.token, scene.before):
        if (hint := _FOREIGN.get(scene.text(token).strip("`"))) is not None and not scene.accepts("NAME"):
            return scene.problem("E0110", f"{scene.text(token)} is no word of this language", hint, token)
    return None


def _starts_something(scene: Scene) -> bool:
    """Whether a value or a statement could start with the token."""
    values = ("NAME", "INT", "FLOAT", "STRING", "(", "[", "{")
    return scene.token.kind in values or scene.word


def _missing(scene: Scene) -> Diagnostic:
    """What was expected instead; the last resort."""
    token, before = scene.token, scene.before
    found = scene.text(token)
    hint = {"&&": "write `and`", "||": "write `or`"}.get(before.kind + token.kind)
    if scene.accepts("STRING"):
        if before.kind == "," and scene.opener is None:
            return scene.problem(
                "E0110", f"a value is missing after `,`, before {found}", "a list does not end in a comma"
            )
        if before.kind in (NEWLINE, "{") or before is token:
            return scene.problem("E0110", f"no statement starts with {found}", hint)
        if before.kind == "[" and token.kind == "]":
            return scene.problem("E0110", "this index is empty", "all of an axis is `x[:]`")
        if not scene.same_line or token.kind in (END, NEWLINE):
            return scene.problem("E0110", f"a value is missing after {scene.text(before)}", hint, before)
        return scene.problem("E0110", f"a value is missing between {scene.text(before)} and {found}", hint)
    if scene.accepts("NAME"):
        hint = hint or ("a type is a dtype, as in `f64[n, 3]`" if before.kind == ":" else None)
        what = "a type" if before.kind == ":" else "a name"
        return scene.problem("E0110", f"{what} is expected after {scene.text(before)}, not {found}", hint)
    if before.kind == ")" and scene.accepts("->"):
        hint = "write `() -> …` for a function without parameters; there is no empty tuple"
        return scene.problem("E0110", f"`->` is expected before {found}", hint)
    if scene.accepts(END) and scene.lexer.end < len(scene.lexer.source.text):
        return scene.problem("E0110", f"{found} cannot stand here", "a gap holds one expression")
    if hint is None:
        expected = [f"`{t.lower()}`" for t in ("=", ")", "]", "}", ",", ":", "IN", ";", "{") if scene.accepts(t)]
        hint = f"expected {' or '.join(expected)}" if expected else None
    label: tuple[Label, ...] = ()
    if scene.opener is not None:
        opener = scene.opener
        label = (Label(Span(scene.lexer.source, opener.start, opener.end), "inside this bracket"),)
    problem = scene.problem("E0110", f"{found} cannot stand here", hint)
    return Diagnostic(problem.code, problem.message, problem.span, problem.hint, label)

"""The callbacks of the LALR machine: expressions and types of the tree from their parts.

Each method is named as the rule of grammars/gdl.lark that it serves; `start` and `end` are the offsets of the
whole. Statements stand in `build_statements.py`. What the grammar leaves too wide is narrowed here.
"""

from __future__ import annotations

import math
import unicodedata

from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError
from graphdsl.source.record import dataclass
from graphdsl.source.span import Source, Span
from graphdsl.syntax import ast
from graphdsl.syntax.lexer import Token
from graphdsl.syntax.strings import string_parts

DTYPES = ("f64", "f32", "i64", "i32", "bool")
INT_MAX = 2**63 - 1
_NAMED_NUMBERS = {"INF": math.inf, "NAN": math.nan, "PI": math.pi}


@dataclass(eq=False, slots=True)
class Paren:
    """An expression in brackets, until it is known whether these are a lambda's."""

    expr: ast.Expr


class ExpressionBuilder:
    """Makes expressions. `largest` holds literals 9223372036854775808 that no minus has claimed yet, `stranded` those
    that none can."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.largest: dict[int, ast.Number] = {}
        self.stranded: list[ast.Number] = []

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def error(self, code: str, message: str, span: Span, hint: str | None = None, *labels: Label) -> ProgramError:
        """A syntax error, to be raised."""
        return ProgramError(Diagnostic(code, message, span, hint, labels))

    def expression(self, start: int, end: int, expr: ast.Expr) -> ast.Expr:
        return expr

    def unclaimed(self) -> list[Diagnostic]:
        """An error for each 9223372036854775808 that is not the operand of a minus."""
        numbers = [*self.stranded, *self.largest.values()]
        return [self._too_large(number.span).diagnostics[0] for number in numbers]

    # ---- atoms ------------------------------------------------------------------------------

    def name(self, start: int, end: int, token: Token) -> ast.Name:
        text = self.text[start:end]
        return ast.Name(self.span(start, end), text if text.isascii() else unicodedata.normalize("NFC", text))

    def number(self, start: int, end: int, token: Token) -> ast.Number:
        span = self.span(start, end)
        match token.kind:
            case "INT":
                number = ast.Number(span, self._int(span))
                if number.value > INT_MAX:
                    self.largest[id(number)] = number
                return number
            case "FLOAT":
                return ast.Number(span, float(self.text[start:end]))
            case named:
                return ast.Number(span, _NAMED_NUMBERS[named])

    def _int(self, span: Span) -> int:
        """An integer literal's value, up to one more than the largest i64."""
        text = span.text.replace("_", "")
        base = {"0x": 16, "0b": 2}.get(text[:2].lower(), 10)
        digits = text[2:] if base != 10 else text
        if len(digits.lstrip("0")) > 64 or (value := int(digits, base)) > INT_MAX + 1:
            raise self._too_large(span)
        return value

    def _too_large(self, span: Span) -> ProgramError:
        hint = f"the largest i64 is {INT_MAX}; with a dot, as in `1e20`, a number is a float"
        return self.error("E0104", "this integer does not fit i64", span, hint)

    def bool_(self, start: int, end: int, token: Token) -> ast.Bool:
        return ast.Bool(self.span(start, end), token.kind == "TRUE")

    def none_(self, start: int, end: int, token: Token) -> ast.NoneLit:
        return ast.NoneLit(self.span(start, end))

    def string(self, start: int, end: int, token: Token) -> ast.String:
        return ast.String(self.span(start, end), string_parts(self.source, start + 1, end - 1))

    def paren(self, start: int, end: int, expr: ast.Expr) -> Paren:
        return Paren(expr)

    def unwrap(self, start: int, end: int, paren: Paren) -> ast.Expr:
        """An expression in brackets: its span takes them in."""
        if (number := self.largest.pop(id(paren.expr), None)) is not None:
            self.stranded.append(number)
        paren.expr.span = self.span(start, end)
        return paren.expr

    def tuple_(self, start: int, end: int, *items: ast.Expr) -> ast.TupleLit:
        return ast.TupleLit(self.span(start, end), items)

    def list_(self, start: int, end: int, *items: ast.Expr | None) -> ast.ListLit:
        return ast.ListLit(self.span(start, end), tuple(i for i in items if i is not None))

    # ---- operators --------------------------------------------------------------------------

    def compare(self, start: int, end: int, token: Token) -> Token:
        return token

    def binary(self, start: int, end: int, left: ast.Expr, op: Token, right: ast.Expr) -> ast.Binary:
        where = self.span(op.start, op.end)
        return ast.Binary(self.span(start, end), self.text[op.start : op.end], left, right, where)

    def unary(self, start: int, end: int, op: Token, operand: ast.Expr) -> ast.Unary | ast.Number:
        span = self.span(start, end)
        if op.kind == "-":
            if self.largest.pop(id(operand), None) is not None:
                return ast.Number(span, -INT_MAX - 1)
            return ast.Unary(span, "-", operand)
        return ast.Unary(span, "~" if op.kind == "~" else "not", operand)

    def chained(
        self, start: int, end: int, a: ast.Expr, first: Token, b: ast.Expr, second: Token, c: ast.Expr
    ) -> ast.Expr:
        """`a < b < c` is no expression; the hint says what to write."""
        one, two = self.text[first.start : first.end], self.text[second.start : second.end]
        x, y, z = a.span.text, b.span.text, c.span.text
        hint = f"join two comparisons by `and`: `{x} {one} {y} and {y} {two} {z}`"
        if len(hint) > 120 or "\n" in hint:
            hint = f"join two comparisons by `and`: `a {one} b and b {two} c`"
        raise self.error("E0117", "comparisons cannot be chained", self.span(start, end), hint)

    def conditional(self, start: int, end: int, then: ast.Expr, cond: ast.Expr, orelse: ast.Expr) -> ast.Conditional:
        return ast.Conditional(self.span(start, end), cond, then, orelse)

    def range_(
        self, start: int, end: int, first: ast.Expr, stop: ast.Expr, word: Token | None, step: ast.Expr | None
    ) -> ast.Range:
        return ast.Range(self.span(start, end), first, stop, step)

    def lambda_(self, start: int, end: int, *parts: ast.Expr | Paren) -> ast.Lambda:
        *head, body = parts
        assert not isinstance(body, Paren)
        match head:
            case []:
                names: tuple[ast.Expr, ...] = ()
            case [Paren(expr)]:
                names = (expr,)
            case [ast.TupleLit(items=items)]:
                names = items
            case [expr]:
                assert not isinstance(expr, Paren)
                names = (expr,)
            case _:
                raise AssertionError(head)
        params = tuple(self._lambda_param(n) for n in names)
        self.distinct(params)
        return ast.Lambda(self.span(start, end), params, body)

    def _lambda_param(self, node: ast.Expr) -> ast.Name:
        if isinstance(node, ast.Name) and not node.span.text.startswith("("):
            return node
        raise self.error("E0123", "what stands before `->` is not a name", node.span, "write `(x, y) -> …`")

    def distinct(self, names: tuple[ast.Name, ...]) -> None:
        """An error where one name stands twice among parameters."""
        seen: dict[str, ast.Name] = {}
        for name in names:
            if (first := seen.setdefault(name.id, name)) is not name:
                label = Label(first.span, "the first one")
                raise self.error("E0120", f"`{name.id}` is a parameter twice", name.span, None, label)

    # ---- calls, indices, attributes ---------------------------------------------------------

    def named(self, start: int, end: int, name: ast.Name, value: ast.Expr) -> ast.Arg:
        return ast.Arg(self.span(start, end), name, value)

    def positional(self, start: int, end: int, value: ast.Expr) -> ast.Arg:
        return ast.Arg(self.span(start, end), None, value)

    def args(self, start: int, end: int, *args: ast.Arg | None) -> tuple[ast.Arg, ...]:
        given = tuple(a for a in args if a is not None)
        seen: dict[str, ast.Arg] = {}
        for arg in given:
            if arg.name is None and seen:
                first = next(iter(seen.values()))
                hint = "positional arguments come first"
                label = Label(first.span, "a named one")
                raise self.error("E0120", "a positional argument follows a named one", arg.span, hint, label)
            if arg.name is not None and (first := seen.setdefault(arg.name.id, arg)) is not arg:
                label = Label(first.span, "the first one")
                raise self.error("E0120", f"the argument `{arg.name.id}` is given twice", arg.span, None, label)
        return given

    def call(self, start: int, end: int, func: ast.Expr, args: tuple[ast.Arg, ...]) -> ast.CallExpr:
        if isinstance(func, ast.Number | ast.String | ast.Bool | ast.ListLit | ast.NoneLit | ast.Range):
            hint = f"write `{func.span.text} * (…)` for a product" if isinstance(func, ast.Number) else None
            raise self.error("E0110", "this is not a function, and cannot be called", func.span, hint)
        return ast.CallExpr(self.span(start, end), func, args)

    def slice_(
        self, start: int, end: int, first: ast.Expr | None, stop: ast.Expr | None, step: ast.Expr | None
    ) -> ast.Slice:
        return ast.Slice(self.span(start, end), first, stop, step)

    def ellipsis(self, start: int, end: int) -> ast.Ellipsis_:
        return ast.Ellipsis_(self.span(start, end))

    def items(
        self, start: int, end: int, *items: ast.Expr | ast.Slice | ast.Ellipsis_
    ) -> tuple[ast.Expr | ast.Slice | ast.Ellipsis_, ...]:
        return items

    def index(
        self, start: int, end: int, value: ast.Expr, items: tuple[ast.Expr | ast.Slice | ast.Ellipsis_, ...]
    ) -> ast.Index:
        return ast.Index(self.span(start, end), value, items)

    def attribute(self, start: int, end: int, value: ast.Expr, name: ast.Name) -> ast.Attribute:
        return ast.Attribute(self.span(start, end), value, name)

    # ---- types ------------------------------------------------------------------------------

    def type_(self, start: int, end: int, name: Token, dims: tuple[int | ast.Name | None, ...] | None) -> ast.TypeExpr:
        word = self.text[name.start : name.end]
        if word not in DTYPES:
            from difflib import get_close_matches

            near = get_close_matches(word, [*DTYPES, *_OTHER_TYPES], 1, 0.6)
            guess = _OTHER_TYPES.get(near[0], near[0]) if near else None
            hint = f"did you mean `{guess}`?" if guess else f"the dtypes are {' '.join(DTYPES)}"
            raise self.error("E0121", f"`{word}` is not a dtype", self.span(name.start, name.end), hint)
        return ast.TypeExpr(self.span(start, end), word, dims or ())

    def dims(self, start: int, end: int, *dims: int | ast.Name) -> tuple[int | ast.Name | None, ...]:
        return tuple(None if isinstance(d, ast.Name) and d.id == "_" else d for d in dims)

    def dim_int(self, start: int, end: int, token: Token) -> int:
        span = self.span(start, end)
        value = self._int(span)
        if value > INT_MAX:
            raise self._too_large(span)
        return value

    def tuple_type(self, start: int, end: int, *items: ast.TypeExpr) -> ast.TupleType:
        return ast.TupleType(self.span(start, end), items)


_OTHER_TYPES = {
    "float": "f64", "float64": "f64", "double": "f64", "float32": "f32", "int": "i64", "int64": "i64",
    "int32": "i32", "boolean": "bool",
}  # fmt: skip

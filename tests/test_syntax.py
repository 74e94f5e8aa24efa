"""The parser: what a text means as a tree, where its parts stand, and that neither depth nor noise harms it."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
from dataclasses import fields

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.files import MOST_BYTES, source_of
from graphdsl.source.span import Source
from graphdsl.syntax import ast
from graphdsl.syntax.parser import parse
from graphdsl.syntax.tables import GRAMMAR, TABLES, generate
from graphdsl.syntax.walk import walk


def tree(text: str) -> list[ast.Stmt]:
    return parse(Source("test.gdl", text)).body


def shown(node: object) -> str:
    """A small tree as text: operators in prefix form, everything else by its class."""
    match node:
        case ast.Number(value=value) | ast.Bool(value=value):
            return repr(value)
        case ast.Name(id=name):
            return name
        case ast.Binary(op=op, left=left, right=right):
            return f"({op} {shown(left)} {shown(right)})"
        case ast.Unary(op=op, operand=operand):
            return f"({op} {shown(operand)})"
        case ast.Node():
            parts = [getattr(node, f.name) for f in fields(node) if f.name not in ("span", "op_span")]
            return f"{type(node).__name__}({', '.join(shown(p) for p in parts)})"
        case list() | tuple():
            return f"[{', '.join(shown(p) for p in node)}]"
        case _:
            return repr(node)


def value(text: str) -> str:
    """The tree of an expression."""
    (statement,) = tree(f"x = {text}")
    assert isinstance(statement, ast.Assign)
    return shown(statement.value)


def problem(text: str) -> tuple[str, str, str]:
    """Code, underlined text and words of the first problem."""
    with pytest.raises(ProgramError) as caught:
        tree(text)
    found = caught.value.diagnostics[0]
    return found.code, found.span.text, f"{found.message} {found.hint or ''}"


def test_tables_are_those_of_the_grammar() -> None:
    assert TABLES.read_text("utf-8") == generate(GRAMMAR.read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("-2 ** 2", "(- (** 2 2))"),
        ("2 ** -1 ** 2", "(** 2 (- (** 1 2)))"),
        ("2 ** 3 ** 2", "(** 2 (** 3 2))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a + b * c @ d", "(+ a (@ (* b c) d))"),
        ("6 & 3 | 8", "(| (& 6 3) 8)"),
        ("not a == b or c and d", "(or (not (== a b)) (and c d))"),
        ("a & b == c", "(== (& a b) c)"),
        ("-x.T[0](1)", "(- CallExpr(Index(Attribute(x, T), [0]), [Arg(None, 1)]))"),
        ("~-x", "(~ (- x))"),
        ("0..n + 1 step -2", "Range(0, (+ n 1), (- 2))"),
        ("a or b..c", "Range((or a b), c, None)"),
        ("a if b else c if d else e", "Conditional(b, a, Conditional(d, c, e))"),
        ("x -> y -> x, z", "TupleLit([Lambda([x], Lambda([y], x)), z])"),
        ("a if b else x -> 1", "Conditional(b, a, Lambda([x], 1))"),
        ("() -> (x, y) -> x", "Lambda([], Lambda([x, y], x))"),
        ("((a),)", "TupleLit([a])"),
        ("(a, b,)", "TupleLit([a, b])"),
        ("[]", "ListLit([])"),
        ("x[none, ..., 1:, ::2, a:b:c,]", "Index(x, [NoneLit(), Ellipsis_(), Slice(1, None, None), "
         "Slice(None, None, 2), Slice(a, b, c)])"),
        ("f(a, axis=0,)", "CallExpr(f, [Arg(None, a), Arg(axis, 0)])"),
        ("step + as * default", "(+ step (* as default))"),
        ("0..step step step", "Range(0, step, step)"),
    ],
)  # fmt: skip
def test_precedence(text: str, meaning: str) -> None:
    assert value(text) == meaning


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42), ("1_000", 1000), ("0xfF", 255), ("0b101", 5), ("1.5", 1.5), (".5", 0.5), ("2.", 2.0),
        ("1e-3", 1e-3), ("1_0.5_0E+1", 105.0), ("inf", float("inf")), ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)), ("0", 0), ("00", 0),
    ],
)  # fmt: skip
def test_numbers(text: str, number: float) -> None:
    assert value(text) == repr(number)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("0..5", "Range(0, 5, None)"), ("1...5", None),
        ("0.5..1.5", "Range(0.5, 1.5, None)"), ("2 .. 3", "Range(2, 3, None)"),
        ("12abc", None), ("1_", None), ("1__0", None), ("0x", None), ("0o17", None), ("007", None), ("1.2.3", None),
        ("9223372036854775808", None), ("-(9223372036854775808)", None), ("-9223372036854775808 ** 2", None),
        ("1" * 5000, None), ("2x", None), ("1e5x", None), ("1損", None),
    ],
)  # fmt: skip
def test_where_numbers_end(text: str, meaning: str | None) -> None:
    if meaning is None:
        code, under, _ = problem(f"x = {text}")
        assert code in ("E0103", "E0104", "E0110")
        assert under.strip("-()") in text
    else:
        assert value(text) == meaning


def test_names_are_compared_under_nfc() -> None:
    first, second, third = (ast_name(f"{name} = 1") for name in ("é", "e\u0301", "θ₁"))
    assert first == second == "é"
    assert third == "θ₁"
    assert ast_name("ﬁ = 1") == "ﬁ"  # NFKC would make it `fi`


def ast_name(text: str) -> str:
    match tree(text):
        case [ast.Assign(targets=(ast.Name(id=name),))]:
            return name
    raise AssertionError(text)


def test_strings() -> None:
    match tree(r'print "a\n\"\\\u00e9{{x}} {y + 1:.3f}{z[1:2]}"'):
        case [ast.PrintStmt(items=(ast.String(parts=(text, ast.Gap() as one, ast.Gap() as two)),))]:
            assert text == 'a\n"\\é{x} '
            assert (one.expr.span.text, one.spec, one.span.text) == ("y + 1", ".3f", "{y + 1:.3f}")
            assert (two.expr.span.text, two.spec) == ("z[1:2]", "")
        case other:
            raise AssertionError(shown(other))
    assert value('""') == "String([''])"
    assert value('"中文"') == "String(['中文'])"


@pytest.mark.parametrize(
    "text",
    [
        "x = (1 +\n     2)", "x = 1 +\n\n  # why\n  2", "x = [1,\n 2,\n]", "x =\n 1", "x +=\n 1", "w :=\n 1",
        "x = a and\n b", "x = 0..\n5", "print a,\n b", "x = a if c\n else b", "fn f(x) ->\n f64 = x", "x = y ->\n 1",
        "if a { }\n\n# or\nelse { }", "x = 1;",
        "\ufeffx = 1", "x = 1\r\ny = 2\r\n", "if a {\n\n}", "if a { x = 1; y = 2 }",
        ";;x = 1;;", "x = a <\n b",
    ],
)  # fmt: skip
def test_newlines_that_do_not_count(text: str) -> None:
    assert len(tree(text)) == (2 if "\r" in text else 1)


@pytest.mark.parametrize("text", ["x = -\n1", "x = not\na", "if a\n{ }", "x\n= 1", "x = f\n(1)", "if a { };\nelse { }"])
def test_newlines_that_end_a_statement(text: str) -> None:
    problem(text)


def test_statements() -> None:
    text = """
    use nn
    use "lib/mine.gdl" as mine
    default f32
    param W: f32[64, n] = 0.1
    input t: i64[_]
    const g = 9.81
    a, b = b, a
    x[i][j] @= 2
    w := w - 1
    for a, b in zip(X, Y) { break }
    fn f(x: f64[n, 3], b = 0.0) -> (f64, i64[n]) { return x, b }
    prop fn commutes(a: f64[n]) = all(a == a)
    vjp f(x; y, gy) = gy
    assert a, "no {a}"
    save "out.npz", w, b
    seed 42
    checkpoint { h = 1 }
    vjp(y, x, u)
    """
    kinds = [type(s).__name__ for s in tree(text)]
    expected = (
        "Use Use Default Declare Declare Declare Assign Assign Update ForStmt FnDef FnDef VjpDef AssertStmt SaveStmt "
        "SeedStmt Checkpoint ExprStmt"
    )
    assert " ".join(kinds) == expected


def test_spans_are_exact() -> None:
    text = "y = (w + x) * (w + 1)\nif a { b = f(1, k=2) } else if c { x[0] += 1 }"
    spans = {type(node).__name__: [] for node in walk(tree(text))}
    for node in walk(tree(text)):
        spans[type(node).__name__].append(node.span.text)
    assert spans["Binary"] == ["(w + x) * (w + 1)", "(w + x)", "(w + 1)"]
    assert spans["Assign"] == ["y = (w + x) * (w + 1)", "b = f(1, k=2)", "x[0] += 1"]
    assert spans["Arg"] == ["1", "k=2"]
    assert spans["IfStmt"] == [text.split("\n")[1], "if c { x[0] += 1 }"]
    assert spans["BlockNode"][0] == "{ b = f(1, k=2) }"


def test_comments_are_kept() -> None:
    module = parse(Source("test.gdl", "# one\nx = 1 # two\n"))
    assert [c.text for c in module.comments] == ["# one", "# two"]


DEEP = 20_000


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * DEEP + "1" + ")" * DEEP,
        "x = " + "[" * DEEP + "1" + "]" * DEEP,
        "x = " + "-" * DEEP + "1",
        "x = " + "not " * DEEP + "a",
        "x = " + "2 ** " * DEEP + "1",
        "x = " + "1 + " * DEEP + "1",
        "x = " + "1 if a else " * DEEP + "2",
        "x = " + "f(" * DEEP + "1" + ")" * DEEP,
        "x = " + "y -> " * DEEP + "1",
        "x = y" + "[0]" * DEEP,
        "if a { }" + " else if a { }" * DEEP,
    ],
)
def test_depth_is_no_matter(text: str) -> None:
    assert sum(1 for _ in walk(tree(text))) > 1


def test_limits_of_nesting() -> None:
    tree("if a { " * 256 + "}" * 256)
    assert problem("if a { " * 257 + "}" * 257)[0] == "E0122"
    tree("while a { " * 32 + "}" * 32)
    assert problem("while a { " * 33 + "}" * 33)[:2] == ("E0122", "while")
    tree("if a { }" + " else if a { }" * 300)


@pytest.mark.parametrize(
    ("text", "code", "under", "words"),
    [
        ("b = (a + 2 * 3\nc = 4", "E0111", "(", "never closed"),
        ("x = foo(y[1)", "E0111", "[", "never closed"),
        ("if a {\nx = 1", "E0111", "{", "never closed"),
        ("f(a\nb)", "E0113", "b", "`,` is missing"),
        ("x = 3)", "E0112", ")", "closes nothing"),
        ("print 1 < a < 3", "E0117", "1 < a < 3", "1 < a and a < 3"),
        ("print a == b == c == d", "E0117", "==", "and"),
        ("x = +3", "E0116", "+", "no unary plus"),
        ("if a = b { }", "E0114", "=", "`==`"),
        ("a = b = 3", "E0114", "=", "chained"),
        ("for in in xs { }", "E0115", "in", "reserved word"),
        ("param if = 3", "E0115", "if", "reserved word"),
        ("pi = 3", "E0115", "pi", "reserved word"),
        ('x = "abc\ny = 1', "E0105", '"abc', "never closed"),
        (r'x = "a\qb"', "E0125", r"\q", "no escape"),
        (r'x = "\ud800"', "E0125", r"\ud800", "half"),
        ('x = "a{b"', "E0126", "{", "never closed"),
        ('x = "a}"', "E0126", "}", "ends no gap"),
        ('x = "{}"', "E0126", "{}", "empty"),
        ('x = "{a b}"', "E0110", "b", "one expression"),
        ("if c {} b = 3", "E0113", "b", "ends a block, not a statement"),
        ("a = 1 b = 2", "E0113", "b", "new line is missing"),
        ("print x y", "E0113", "y", "`,` is missing"),
        ("x + 1", "E0119", "x + 1", "must be a call"),
        ("f(x) = 3", "E0118", "f(x)", "`fn f"),
        ("(a) = 3", "E0118", "(a)", "brackets"),
        ("w, v += 1", "E0118", "w, v", "one target"),
        ("w, v := 1", "E0118", "w, v", "one param"),
        ("x[0]: f64 = 1", "E0118", "x[0]", "only a name takes a type"),
        ("f(a=1, 2)", "E0120", "2", "positional"),
        ("f(a=1, a=2)", "E0120", "a=2", "given twice"),
        ("fn f(x, x) = 3", "E0120", "x", "twice"),
        ("fn f(x = 1, y) = 3", "E0120", "y", "no default"),
        ("vjp f(x; y) = 3", "E0120", "y", "cotangent"),
        ("x: foo = 3", "E0121", "foo", "not a dtype"),
        ("x: float32 = 3", "E0121", "float32", "`f32`"),
        ("x = 1 + x -> x", "E0123", "->", "operand"),
        ("if x -> y { }", "E0123", "->", "condition"),
        ("(x, 1) -> x\n", "E0123", "1", "not a name"),
        ("input x", "E0124", "input x", "neither a type nor a default"),
        ("param w", "E0124", "param w", "first value"),
        ('use "lib/a.gdl"', "E0124", 'use "lib/a.gdl"', "as a"),
        ("default f16", "E0121", "f16", "f32 or f64"),
        ("x = 'a'", "E0102", "'", "double quotes"),
        ("x = 2^3", "E0102", "^", "`**`"),
        ("elif x { }", "E0110", "elif", "`else if`"),
        ("else { }", "E0110", "else", "no `if`"),
        ("x = a if b\n", "E0110", "", "`else` is expected"),
        ("if a: x = 1", "E0110", ":", "braces"),
        ("print a,", "E0110", "", "comma"),
        ("x = 1 +", "E0110", "+", "value is missing"),
        ("x[] = 3", "E0110", "]", "empty"),
        ("x = a == not b", "E0110", "not", "brackets"),
        ("x = 2(3)", "E0110", "2", "product"),
        ("x: f64[n + 1] = 3", "E0110", "+", "`]`"),
    ],
)  # fmt: skip
def test_problems(text: str, code: str, under: str, words: str) -> None:
    found = problem(text)
    assert found[:2] == (code, under)
    assert words in found[2]


def test_every_problem_is_found() -> None:
    text = 'x = = 2\ny = 3 4\nif a = b {\nq = 1\n}\nz = )\nw = "abc\nv = 1 1\nu = (a\nprint c\nt = 1 +'
    with pytest.raises(ProgramError) as caught:
        tree(text)
    assert [d.span.line for d in caught.value.diagnostics] == [1, 2, 3, 6, 7, 8, 9, 11]


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ProgramError) as caught:
        source_of("a.gdl", "x = 1\ny = é".encode("latin-1"))
    found = caught.value.diagnostics[0]
    assert (found.code, found.span.line, found.span.column) == ("E0101", 2, 5)


def test_a_megabyte_of_noise_is_an_error() -> None:
    for noise in (
        random.Random(1).randbytes(1_000_000).decode("latin-1"),
        "(" * 1_000_000,
        '"' * 1_000_000,
        "{" * 1_000_000,
    ):
        with pytest.raises(ProgramError):
            tree(noise)


SOUP = (
    "param input const print if else while for in fn return use not and or true none inf step vjp prop x y f64 1 2.5 "
    '.. ... ( ) [ ] { } , : ; = := += -> + - ** * / // % @ == < | & ~ . "a" "{x}" \n \n # é ₁ " { \\'
)
WORDS = SOUP.split(" ")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@example("x = (\n}")
@example("} } x = )")
@example('x = "\\')
def test_any_text_has_a_tree_or_an_error_in_it(text: str) -> None:
    try:
        nodes = list(walk(tree(text)))
    except ProgramError as error:
        for found in error.diagnostics:
            assert 0 <= found.span.start <= found.span.end <= len(text)
            assert found.code.startswith("E01")
    else:
        for node in nodes:
            assert 0 <= node.span.start <= node.span.end <= len(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_characters_do(text: str) -> None:
    with contextlib.suppress(ProgramError):
        tree(text)


def test_a_program_that_is_too_large_is_not_read() -> None:
    assert source_of("a.gdl", b" " * MOST_BYTES).text
    with pytest.raises(ProgramError) as caught:
        source_of("a.gdl", b'print "' + b"a" * MOST_BYTES)
    assert [d.code for d in caught.value.diagnostics] == ["E0127"]


def test_a_long_string_takes_memory_for_itself_alone() -> None:
    text = 'print "' + "a\\n" * 200_000 + '"'
    tracemalloc.start()
    parse(Source("a.gdl", text))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(text)

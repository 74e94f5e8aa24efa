"""What `graphdsl check` advises: what each kind finds beside the programs of `tests/diagnostics`, and what it must not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphdsl import api
from graphdsl.source.diagnostic import ProgramError

ROOT = Path(__file__).parents[1]
PROGRAMS = [p for folder in ("samples", "tests/programs", "graphdsl/modules") for p in (ROOT / folder).glob("*.gdl")]

# Programs of which a warning is true: they are about what it warns of.
MEANT = {("fault_in_a_call", "W0201"), ("functions_never_called", "W0201"), ("never_set", "W0202")}


def advised(text: str) -> list[tuple[str, str]]:
    """The codes of the advice, each with the text that is underlined."""
    return [(w.code, w.span.text) for w in api.loads(text).warnings() if w.code.startswith("W02")]


def hints(text: str) -> list[str | None]:
    return [w.hint for w in api.loads(text).warnings()]


# ---- all kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_right_programs_are_not_warned_of(path: Path) -> None:
    try:
        found = api.load(str(path)).warnings()
    except ProgramError:
        return  # an error is all that is said of it
    assert {(path.stem, w.code) for w in found if w.code.startswith("W02")} <= MEANT


def test_codes_tell_who_warns() -> None:
    """W02 stands only where it is advised."""
    folder = ROOT / "graphdsl/check/advice"
    for path in (ROOT / "graphdsl").rglob("*.py"):
        codes = set(re.findall(r'"W0(\d)\d\d"', path.read_text("utf-8")))
        assert codes <= ({"2"} if folder in path.parents else {"1"})


def test_a_run_does_not_advise() -> None:
    program = api.loads(
        "fn f(x) { y = x\n return x }\nparam w = 1.5\nprint f(w), grad(f(w) * 0.0 + 1.0, w), log(1 + w)"
    )
    given = program.program.given({}, {})
    assert [w.code for w in program.program.prepare("eager", given).warnings] == []
    assert [w.code for w in program.warnings()] == ["W0201", "W0205"]


def test_what_is_wrong_inside_a_module_is_said_of_its_text() -> None:
    assert advised("use nn\nx = [1.0, 2.0]\nprint nn.log_softmax(x), nn.mse(x, x)") == []


# ---- values never used --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fn f(x) { y = x * 2; return x }\nprint f(1)", ["y"]),
        ("fn f(x) { y = 0; if x > 0 { y = 1 } else { y = 2 }\n return y }\nprint f(1)", ["y"]),
        ("fn f(x) { x += 1 }\nf(1)", ["x"]),
        ("fn f(x) { x[0] = 1 }\nf([1, 2])", ["x[0]"]),
        ("fn f(x) { for v in x { y = v }\n return x }\nprint f([1])", ["y"]),
        ("fn f(x) { y = x; return x }", ["y"]),
        ("fn f(x) { return x }\nvjp f(x; y, gy) { z = x * gy\n return gy }\nprint f(1.0)", ["z"]),
        ("fn f(x) { g = v -> v * x; return x }\nprint f(1)", ["g"]),
        ("a = 1\na = 2\nprint a", ["a"]),
        ("a = 1\nif a > 0 { b = 1 }\nb = 2", ["b"]),
        ("x = [1.0, 2.0]\nx[0] = 5.0\nx = [3.0]", ["x[0]"]),
    ],
)
def test_values_that_nothing_reads(text: str, names: list[str]) -> None:
    assert advised(text) == [("W0201", name) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\nb = a * 2",  # an output of the program
        "a = 1\nfor i in 0..3 { a = i }\nprint a",  # kept where there is no trip
        "a = 1\nwhile a < 10 { b = a; a = b * 2 }",
        "for i in 0..3 { last = i * 2 }",
        "a = 1\nfn f() = a\nprint f()\na = 2",  # read by a call
        "a = 1\nfn f(i) = a * i\nprint map(f, 0..3)\na = 2",
        "a = 1\nf = i -> a * i\na = 2\nprint f(3), a",  # captured
        "x = 1.0\ny = x * x\nx = 3.0\nprint grad(y * y, y), x",
        "param w = 1.0\nw := w * 2.0\nw := w * 3.0",  # a step
        "_a = 1\n_a = 2",
        "fn f(x) { _unused = x * 2; return x }\nprint f(1)",
        "fn f(x) { a, b = x, x * 2; return a }\nprint f(1)",  # a part of a tuple
        "fn f(x) { for i in 0..3 { print x } }\nf(1)",  # a loop's variable
        "fn f(x) { y: f64[n] = x; return n }\nprint f([1.0])",  # names a size
        "fn f(x) { x[0] = 1; return x }\nprint f([1, 2])",
        "fn f(x) { y = x\n if x > 1 { return y }\n return x }\nprint f(1)",
        "fn f(n) { k = 0\n while true { k += 1\n if k > n { break } }\n return n }\nprint f(3)",
        "fn f(x, y) = x\nprint f(1, 2)",  # parameters are the caller's matter
        'fn f(x) { y = x * 2\n assert x > 0, "it is {y}"\n return x }\nprint f(1)',
        'fn f(x) { y = x * 2\n save "out.npz", y }\nif false { f(1) }',
        "fn f(x) { k = 2; g = v -> v * k; return g(x) }\nprint f(1)",
    ],
)
def test_values_that_something_reads(text: str) -> None:
    assert advised(text) == []


# ---- loops that never end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "i = 0\nj = 0\nwhile i < 10 { j += 1 }",
        "i = 0\nn = 10\nwhile i < n { for i2 in 0..3 { print i2 } }",
        "while true { for i in 0..3 { if i > 1 { break } } }",
        "while true { }",
        "x = [1.0]\nwhile all(x > 0.0) { y = x * 2.0 }",
        "fn f(n) { while n > 0 { print n }\n return n }\nprint f(1)",
        "i = 0\nfn more(n) = n < 3\nwhile more(i) { j = i + 1 }",
        "i = 0\nwhile i < 10 { if i > 20 { continue }\n j = i }",
        "go = true\nwhile go and 1 < 2 { print 1 }",
        "x = [1.0, 2.0]\ni = 0\nj = 0\nwhile i < 2 { print x[j]; j += 1 }",
    ],
)
def test_loops_that_never_end(text: str) -> None:
    assert [code for code, _ in advised(text)] == ["W0202"]


@pytest.mark.parametrize(
    "text",
    [
        "i = 0\nwhile i < 10 { i += 1 }",
        "i = 0\nwhile i < 10 { if i == 5 { i = 20 } }",
        "i = 0\nwhile true { i += 1\n if i > 3 { break } }",
        "fn f(n) { while true { n += 1\n if n > 3 { return n } } }\nprint f(1)",
        "i = 0\nwhile true { i += 1\n assert i < 5 }",
        "fn test(i) { assert i < 5 }\ni = 0\nwhile true { i += 1\n test(i) }",
        "while uniform() < 0.9 { print 1 }",
        "fn heads() = uniform() < 0.5\nwhile heads() { print 1 }",
        "while false { print 1 }",
        "param w = 4.0\nwhile w > 1.0 { w := w * 0.5 }",
        "x = [4.0]\nwhile x[0] > 1.0 { x[0] = x[0] * 0.5 }",
        "i = 0\nfn more() = i < 3\nwhile more() { i += 1 }",
        "print while_loop(a -> a < 3, a -> a + 1, 0)",
        "for i in 0..10 { if i > 3 { break } }",
        "i = 0\nwhile not (i > 3) { i += 1 }",
    ],
)
def test_loops_that_end(text: str) -> None:
    assert advised(text) == []


# ---- params that no gradient reaches ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("param w = 1.0\nparam b = 2.0\nprint grad(w * w, w), b", ["b"]),
        ("param w = 1.0\nparam b = 2.0\nprint vjp(w * w, w, b)", ["b"]),
        ("param w = 1.0\nparam rate = 0.1\nfor i in 0..3 { w := w - rate * grad(w * w, w) }", ["rate"]),
        ("fn loss(a, b) = a * a\nparam w = 1.0\nparam b = 2.0\nloss1 = loss(w, b)\nprint grad(loss1, w)", []),
    ],
)
def test_params_that_no_gradient_reaches(text: str, names: list[str]) -> None:
    assert advised(text) == [("W0203", name) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        "param w = 1.0\nprint w * 2",  # no derivative is taken
        "param w = 1.0\nparam b = 2.0\nprint grad((w + b) ** 2, w)",
        "param w = 1.0\nparam b = 2.0\nprint grad(w * w, w), grad(w * 2, b)",  # W0101 says it
        "param w = 1.0\nparam n = 3\nprint grad(w * n, w)",
        "param w = 1.0\nparam steps = 3\nfor i in 0..steps { w := w - grad(w * w, w) }",  # an int
        "param w = 1.0\nparam v = 0.0\nv := 0.9 * v + grad(w * w, w)\nw := w - v",  # state
        "param b = 2.0\nfn f(x) = x * b\nparam w = 1.0\nprint grad(f(w), w)",
        "param b = 2.0\nparam w = 1.0\ng = x -> x * b\ny = g(w)\nprint grad(y, w)",
        "param b = 2.0\nparam w = 1.0\ns = b\nfor i in 0..3 { s = s * w }\nprint grad(s, w)",
        "param b = 2.0\nparam w = 1.0\nif b > 1.0 { y = w * b } else { y = w }\nprint grad(y, w)",
        "param rate = 0.1\nw = 1.0\nfor i in 0..3 { w = w - rate * grad(w * w, w) }\nprint grad(w, rate)",
        "param w = 1.0\nparam b = 2.0\nprint hvp(w * w * b, w, 1.0), jacobian([w, b], w)",
    ],
)
def test_params_that_a_gradient_reaches(text: str) -> None:
    assert advised(text) == []


# ---- int divisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = 2.5\nprint x * (1 // 2)", "(1 // 2)"),
        ("x = 2.5\nprint x ** (1 // 2)", "(1 // 2)"),
        ("x = 2.5\nhalf = 7 // 2\ny = x - half", "7 // 2"),
        ("y: f64 = 3 // 2", "3 // 2"),
        ("input n = 5\nprint 2.5 / (1 // n)", "(1 // n)"),
        ("x = [1.0, 2.0]\nprint 100.0 * (sum(x > 1.0) // size(x))", "(sum(x > 1.0) // size(x))"),
        ("fn f(x, n) = x * (1 // n)\nprint f(2.5, 3)", "(1 // n)"),
    ],
)
def test_int_divisions_that_look_meant_as_float(text: str, place: str) -> None:
    assert advised(text) == [("W0204", place)]


@pytest.mark.parametrize(
    "text",
    [
        "print 1 // 2",
        "x = 2.5\nprint x * (4 // 2), x * (1 / 2), x * (1.0 // 2)",
        "x = 2.5\ninput n = 5\nprint x * (n // 2), sum(0..n) // 2 * x",  # may be meant
        "const n = 5\nx = [1.0, 2.0]\nprint sum(x) / (n // 2)",
        "x = [1.0, 2.0, 3.0]\nmiddle = 3 // 2\nprint x[middle], x * middle",  # an index too
        "x = [1.0, 2.0, 3.0]\nfor i in 0..(7 // 2) { print x * i }",
        "x = 2.5\nprint x * (5 % 2)",
        "x = [1.0, 2.0]\nprint x * (sum(x > 1.0) // 2)",
    ],
)
def test_int_divisions_that_may_be_meant(text: str) -> None:
    assert advised(text) == []


# ---- unstable formulas --------------------------------------------------------------------------------

GIVEN = "input x: f64[n] = [0.5, 0.25]\ninput X: f64[n, m] = [[1.0], [2.0]]\n"


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("log(softmax(x))", "`log_softmax(x)`"),
        ("log(softmax(X, axis=0))", "`log_softmax(X, axis=0)`"),
        ("softmax(x).log()", "`log_softmax(x)`"),
        ("log(1 + x)", "`log1p(x)`"),
        ("log(x + 1.0)", "`log1p(x)`"),
        ("log(1 - x)", "`log1p(-x)`"),
        ("log(1 - x * 2)", "`log1p(-(x * 2))`"),
        ("log(1 + exp(x))", "`softplus(x)`"),
        ("exp(x) - 1", "`expm1(x)`"),
        ("1 - exp(-x)", "`-expm1(-x)`"),
        ("exp(f32(x)) - 1", "`expm1(f32(x))`"),
        ("log(sum(exp(x)))", "`logsumexp(x)`"),
        ("log(sum(exp(X), axis=1, keepdims=true))", "`logsumexp(X, axis=1, keepdims=true)`"),
        ("log(exp(x).sum())", "`logsumexp(x)`"),
        ("log(sum(exp(x * 2 - X[:, 0] * 3.5 + 0.125)))", "`logsumexp(…)`"),
    ],
)
def test_formulas_that_lose_digits(text: str, better: str) -> None:
    assert advised(f"{GIVEN}print {text}") == [("W0205", text)]
    assert (hints(f"{GIVEN}print {text}")[0] or "").startswith(better)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("p = softmax(x)\nprint p, sum(log(p))", "log(p)"),
        ("fn soft(v) = exp(v) / sum(exp(v))\nprint log(soft(x))", "log(soft(x))"),
        ("print log(nn.softmax(x))", "log(nn.softmax(x))"),
        ("fn f(v) = log(v + 1)\nprint f(x), f(X)", "log(v + 1)"),
        ("e = exp(x)\nfor i in 0..3 { x = e - 1 }", "e - 1"),
        ("t = sum(exp(x))\nif t > 0.0 { print log(t) }", "log(t)"),
    ],
)
def test_formulas_through_names_and_calls(text: str, place: str) -> None:
    assert advised(f"use nn\n{GIVEN}{text}") == [("W0205", place)]


@pytest.mark.parametrize(
    "text",
    [
        "log(x), log(2 + x), log(x - 1), log(1 * x), exp(x) - 2, exp(x) + 1, log(sum(x)), sum(log(exp(x)))",
        "log1p(x), expm1(x), logsumexp(x), log_softmax(x), softplus(x), logaddexp(x, x), elu(x), sinh(x), gelu(x)",
        "cross_entropy(X, [0, 0]), binary_cross_entropy(x, x), cross_entropy(X, X)",
        "log(1 + size(x)), log(1.0 + size(x)), log(1 + 2.5), log(f64(1 + size(x))), exp(1.0) - 1",  # exact
        "max(x) + log(sum(exp(x - max(x))))",  # safe by hand
        "log(softmax(x) + 1e-9)",
        "log(x / sum(x))",
        "log(exp(x) / sum(exp(2 * x)))",
    ],
)
def test_formulas_that_are_right(text: str) -> None:
    assert advised(f"{GIVEN}print {text}") == []


def test_an_input_is_not_its_default() -> None:
    assert advised("input p: f64[n] = softmax([1.0, 2.0])\nprint log(p)") == []
    assert advised("input e = exp(0.5)\nprint e - 1") == []


# ---- vectors beside columns ---------------------------------------------------------------------------

PAIR = "input y: f64[n]\ninput c: f64[n, 1]\ninput X: f64[n, 3]\nparam w = zeros(3, 1)\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("print y - c", "y - c"),
        ("print mean((X @ w - y) ** 2)", "(X @ w - y)"),
        ("h = relu(X @ w + 0.5)\nprint h - y", "h - y"),
        ("print mse_loss(X @ w, y)", "mse_loss(X @ w, y)"),
        ("print mean(c == y)", "c == y"),
        ("fn loss(a, b) = mean((a - b) ** 2)\nprint loss(c, y)", "(a - b)"),
        ("s = y * 2\nfor i in 0..2 { s = s + 1 }\nprint s - c", "s - c"),
        ("print [1.0, 2.0] - [[1.0], [2.0]]", "[1.0, 2.0] - [[1.0], [2.0]]"),
    ],
)
def test_vectors_beside_columns(text: str, place: str) -> None:
    assert advised(PAIR + text) == [("W0206", place)]


@pytest.mark.parametrize(
    "text",
    [
        "print y - y, c - c, X - c, y - sum(c), c - 1.0",
        "print y - y[:, none], y - expand_dims(y, 1), y - reshape(y, [n, 1]), y[none, :] - c",
        "d = y[:, none] * 2.0\nprint abs(y - d), y == y[:, none]",
        "print y - sum(X, axis=1, keepdims=true)",
        "print y * c, y + c",  # an outer product, an outer sum
        "print [1.0, 2.0, 3.0] - [[1.0], [2.0]]",  # a table
        "print [1.0] - [[1.0]]",
        "print flatten(c) - y, squeeze(c, axis=1) - y, c[:, 0] - y",
        "fn pairs(a, b) = a - b\nprint pairs(y, y[:, none])",
        "print one_hot([0, 1], 2)",
    ],
)
def test_vectors_and_columns_that_are_meant(text: str) -> None:
    assert advised(PAIR + text) == []

"""What lies between targets and what is differentiated: errors of order, warnings of zeros, marks for eager mode."""

from __future__ import annotations

import tracemalloc

import pytest

from graphdsl.core.ir import Leaf, Value
from graphdsl.core.structure import results, walk
from graphdsl.eager.program import Compiled
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import ProgramError
from tests.graphs import checked

UNFIXED = {
    "a loop": "param x = 2.0\nd = x ** 5\nfor i in 0..3 { d = grad(d, x) }",
    "a while": "param x = 2.0\nd = x ** 5\nwhile d > 1.0 { d = grad(d, x) }",
    "by way of another name": "param x = 2.0\nd = x ** 5\nfor i in 0..3 { e = d * 2; d = grad(e, x) }",
    "by way of another derivative": (
        "param x = 2.0\nd = x ** 5\nfor i in 0..3 { e = grad(d * x, x); d = grad(e * x, x) }"
    ),
    "by way of a function": "fn f(a) = a * 2\nparam x = 2.0\nd = x ** 5\nfor i in 0..3 { d = grad(f(d), x) }",
    "in a branch": "param x = 2.0\nd = x ** 5\nfor i in 0..3 { if i > 0 { d = grad(d, x) } }",
    "of the target's own history": "x = 2.0\nd = x * x\nfor i in 0..3 { s = x * d; d = grad(s, x) }",
}

FIXED = {
    "Newton": "x = 2.0\nfx = x * x - 2\nfor i in 0..5 { x = x - fx / grad(fx, x); fx = x * x - 2 }",
    "training by `:=`": "param w = 1.0\nfor i in 0..3 { l = (w - 3) ** 2; w := w - 0.1 * grad(l, w) }",
    "training by `=`": "w = 1.0\nfor i in 0..3 { l = (w - 3) ** 2; w = w - 0.1 * grad(l, w) }",
    "training of two": (
        "w = 1.0\nb = 0.5\nfor i in 0..3 { l = (w * b - 3) ** 2; g, h = grad(l, w, b); w = w - 0.1 * g; b = b - 0.1 * h }"
    ),
    "Newton in two variables": (
        "x = 1.0\ny = 2.0\nf = x * y\nfor i in 0..3 { a, b = grad(f, x, y); x = x - 0.1 * a; y = y - 0.1 * b; f = x * y }"
    ),
    "momentum": "param w = 1.0\nm = 0.0\nfor i in 0..3 { l = (w - 3) ** 2; m = 0.9 * m + grad(l, w); w := w - 0.1 * m }",
    "through state": "param w = 0.5\nh = 1.0\nfor t in 0..3 { h = h * w + 1.0; d = grad(h, w) }",
    "a sum of derivatives": "param w = 0.5\ns = 0.0\nfor i in 0..3 { s = s + grad(w * w * i, w) }\nprint grad(s, w)",
    "cut": "param w = 0.5\ns = 0.0\nfor i in 0..3 { s = grad(w * w * stop_gradient(s + 1.0), w) }",
    "a learning rate": (
        "param lr = 0.1\nw = 0.0\nfor s in 0..3 { l = (w - 3.0) ** 2; w = w - lr * grad(l, w) }\nprint grad(w, lr)"
    ),
    "a function that differentiates": (
        "fn d(f, x) = grad(f(x), x)\nparam x = 2.0\nv = x\nfor i in 0..3 { v = d(a -> a * a, v) }\nprint grad(v, x)"
    ),
}


@pytest.mark.parametrize("name", UNFIXED)
def test_an_order_that_the_text_does_not_fix_is_an_error(name: str) -> None:
    with pytest.raises(ProgramError) as caught:
        checked(UNFIXED[name])
    assert {d.code for d in caught.value.diagnostics} == {"E0401"}
    assert all(d.span.text.startswith("grad(") for d in caught.value.diagnostics)


@pytest.mark.parametrize("name", FIXED)
def test_no_false_alarm(name: str) -> None:
    assert not checked(FIXED[name]).warnings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("param w = 1.5\ny = round(w) * 2\nprint grad(y, w)", "`w` reaches `y` only through `round` at line 2"),
        ("param w = 1.5\ny = 2.0\nprint grad(y, w)", "`y` does not depend on `w`"),
        ("param w = 1.5\nloss = w * w\nw := w - 1\nprint grad(loss, w)", "`:=` made `w` a fresh leaf after `loss` was"),
        ("param w = 1.5\na = w * 2\nb = w * 2\nprint grad(a * a, b)", "does not depend on `b`"),
        ("fn r(x) = round(x)\nparam w = 1.5\ny = r(w)\nprint grad(y, w)", "only through `round` at line 1"),
    ],
)
def test_the_warning_says_why_a_derivative_is_zero(text: str, words: str) -> None:
    (warning,) = checked(text).warnings
    assert warning.severity == "warning"
    assert words in warning.message


def test_y_from_outside_a_function_is_an_error() -> None:
    with pytest.raises(ProgramError) as caught:
        checked("fn g(y, w) = grad(y, w)\nparam w = 2.0\nprint g(w * w, w)")
    (found,) = caught.value.diagnostics
    assert found.code == "E0402"
    assert found.hint is not None
    assert "pass a function" in found.hint


def _value(text: str, name: str) -> Value:
    return next(v for i in walk(checked(text).program.main.body) for v in results(i) if v.name == name)


def test_only_what_lies_between_is_tracked() -> None:
    text = "param w = 2.0\nx = 3.0\na = w * x\nb = x * x\nc = w * b\nprint b, c, grad(a * a, w)"
    assert _value(text, "a").tracked
    assert not _value(text, "b").tracked
    assert not _value(text, "c").tracked


def test_a_fresh_leaf_is_marked() -> None:
    text = "param w = 1.0\nfor i in 0..3 { l = (w - 3) ** 2; w := w - 0.1 * grad(l, w) }"
    leaves = [i for i in walk(checked(text).program.main.body) if isinstance(i, Leaf)]
    assert all(i.out.leaf for i in leaves)


@pytest.mark.parametrize("step", ["w := w - 0.01 * m", "w = w - 0.01 * m"])
def test_training_keeps_no_history(step: str) -> None:
    start = "param w = 1.0" if ":=" in step else "w = 1.0"
    text = f"{start}\nm = 0.0\nfor i in 0..N {{ l = (w - 3.0) ** 2; m = 0.9 * m + grad(l, w); {step} }}\nprint w"

    def peak(trips: int) -> int:
        compiled = Compiled(checked(text.replace("N", str(trips))).program)
        tracemalloc.start()
        compiled.run(Runtime())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)  # what is made once, when a rule is first used
    assert peak(3000) < peak(300) + 50_000

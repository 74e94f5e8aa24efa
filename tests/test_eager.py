"""Eager mode: programs and what they print, where they fail, what is changed in place, how long histories live."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from graphdsl.check import Request, check
from graphdsl.eager.program import Compiled
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.files import source_of
from graphdsl.syntax.parser import parse
from tests.test_tape import live_nodes


def made(text: str, *fetch: str, **fed: Any) -> Compiled:
    module = parse(source_of("test.gdl", text.encode()))
    return Compiled(check(module, Request(fed=frozenset(fed), wanted=frozenset(fetch))).program, fetch)


def printed(text: str, **fed: Any) -> list[Any]:
    """What a program prints: numbers, nested lists, and texts."""
    sink = Recorded()
    made(text, **fed).run(Runtime(sink=sink, feeds=fed))
    return shown(sink)


def shown(sink: Recorded) -> list[Any]:
    found: list[Any] = []
    for _, items in sink.events:
        if isinstance(items, str):
            found.append(items)
        else:
            found.extend(i.value.tolist() if isinstance(i.value, np.ndarray) else i.value for i in items)
    return found


def failing(text: str, **fed: Any) -> tuple[list[Any], Diagnostic]:
    """What is printed before the error, and the error."""
    sink = Recorded()
    compiled = made(text, **fed)
    with pytest.raises(ProgramError) as caught:
        compiled.run(Runtime(sink=sink, feeds=fed))
    return shown(sink), caught.value.diagnostics[0]


# ---- values -----------------------------------------------------------------------------------


def test_the_articles_graph() -> None:
    assert printed("param w = 2.0; input x = 3.0; y = (w + x) * (w + 1); print y, grad(y, w)") == [15.0, 8.0]


def test_prints_are_one_event_for_texts_and_one_for_runs_of_values() -> None:
    sink = Recorded()
    made('a = 1; b = 2.5\nprint a, b, "a is {a}, b {b:.2f}", a').run(Runtime(sink=sink))
    assert [(line, items if isinstance(items, str) else [i.name for i in items]) for line, items in sink.events] == [
        (2, ["a", "b"]),
        (2, "a is 1, b 2.50"),
        (2, ["a"]),
    ]


def test_ints_wrap() -> None:
    assert printed("a = 9223372036854775807; print a + 1, -(-a - 1), a * 3") == [-(2**63), -(2**63), 2**63 - 3]
    assert printed("a = i32(2147483647); print a + i32(1), a * a") == [-(2**31), 1]


def test_f32_is_rounded_after_each_op() -> None:
    values = printed("x = f32(0.1); print x + f32(0.2), x * x < f32(0.01)")
    assert values == [np.float32(0.1) + np.float32(0.2), np.float32(0.1) * np.float32(0.1) < np.float32(0.01)]
    assert isinstance(values[0], np.float32)
    assert isinstance(values[1], bool)


def test_fetched_values_are_given_and_others_not_computed() -> None:
    compiled = made("x = 2.0; y = x * 3; z = y * 7\nif x > 5 { late = 1.0 }", "y", "late")
    assert compiled.run(Runtime()).exports == {"y": 6.0}
    assert "7" not in "".join(compiled.module.text)


def test_what_is_not_needed_but_can_fail_is_computed() -> None:
    before, error = failing("x = [1.0, 2.0]; i = 5; print i; unused = x[i]; print x")
    assert before == [5]
    assert "index 5" in error.message


def test_runs_are_independent() -> None:
    compiled = made("seed 3; x = uniform(2); x[0] = 7.0; print x, normal()")
    first, second = Recorded(), Recorded()
    compiled.run(Runtime(sink=first))
    compiled.run(Runtime(sink=second))
    assert shown(first) == shown(second)


# ---- control flow -----------------------------------------------------------------------------


def test_carried_values_change_places() -> None:
    assert printed("a = 1; b = 2; c = 3\nfor i in 0..4 { a, b, c = c, a, b }\nprint a, b, c") == [3, 1, 2]
    assert printed("a = 0; b = 1\nwhile b < 50 { a, b = b, a + b }\nprint a, b") == [34, 55]


def test_a_value_that_was_carried_is_read_after_its_successor_is_made() -> None:
    text = """
        x = 1.0; last = 0.0
        for i in 0..3 {
            old = x
            x = x * 2
            last = old + x
        }
        print x, last
    """
    assert printed(text) == [8.0, 12.0]


def test_branches_inside_loops_keep_what_they_do_not_set() -> None:
    text = """
        a = 0; b = 10
        for i in 0..6 {
            if i % 2 == 0 { a += i } else if i == 3 { b -= 1 } else { a, b = b, a }
        }
        print a, b
    """
    a, b = 0, 10
    for i in range(6):
        if i % 2 == 0:
            a += i
        elif i == 3:
            b -= 1
        else:
            a, b = b, a
    assert printed(text) == [a, b]


def test_loops_without_trips_and_with_breaks() -> None:
    assert printed("x = 1\nfor i in 0..0 { x = 2 }\nwhile x > 5 { x = 3 }\nprint x") == [1]
    text = "s = 0\nfor i in 0..10 { if i == 2 { continue }; if i == 5 { break }; s += i }\nprint s, i"
    assert printed(text) == [8, 5]


def test_nesting_beyond_what_python_allows() -> None:
    depth = 30
    loops = (
        "".join("for i" + str(k) + " in 0..1 {\n" for k in range(depth)) + "n += 1\nx[0] = x[0] * w\n" + "}\n" * depth
    )
    assert printed(f"param w = 3.0\nn = 0\nx = [2.0]\n{loops}print n, x, grad(x[0], w)") == [1, [6.0], 2.0]
    branches = "".join(f"if n < {100 + k} {{\n" for k in range(200)) + "n += 5\n" + "}\n" * 200
    assert printed(f"n = 1\n{branches}print n") == [6]


def test_a_chain_of_thousands_of_branches() -> None:
    chain = "".join(f"else if n == {k} {{ r = {k} * w }}\n" for k in range(1000))
    text = f"param w = 2.0\nn = 900\nif n < 0 {{ r = w }}\n{chain}else {{ r = 0.0 }}\nprint r, grad(r, w)"
    assert printed(text) == [1800.0, 900.0]


def test_a_long_program_is_compiled() -> None:
    text = "param w = 1.0\nx = w\n" + "x = x * 1.0001\n" * 1000 + "print grad(x, w)"
    assert printed(text) == pytest.approx([1.0001**1000])


def test_calls_as_deep_as_the_checker_allows() -> None:
    depth = 300
    chain = "\n".join(f"fn f{k}(x) = f{k + 1}(x) * 1.0" for k in range(depth))
    text = f"{chain}\nfn f{depth}(x) = x * x\nparam w = 3.0\nprint f0(w), grad(f0(w), w)"
    assert printed(text) == [9.0, 6.0]


# ---- derivatives ------------------------------------------------------------------------------


def test_derivatives_of_every_order() -> None:
    text = """
        param x = 2.0
        y = x ** 5
        a = grad(y, x); b = grad(a, x); c = grad(b, x)
        print a, b, c
    """
    assert printed(text) == [80.0, 160.0, 240.0]


def test_a_gradient_through_loop_and_branch() -> None:
    text = """
        param w = 1.5
        x = w
        for i in 0..4 { if i % 2 == 0 { x = x * w } else { x = x + w } }
        print x, grad(x, w)
    """

    def f(w: float) -> float:
        return ((w * w + w) * w) + w

    assert printed(text) == pytest.approx([f(1.5), 3 * 1.5**2 + 2 * 1.5 + 1])


def test_operands_are_saved_before_the_result_takes_their_name() -> None:
    assert printed("param x = 3.0\ny = x\nfor i in 0..2 { y = y * y }\nprint grad(y, x)") == [108.0]
    text = "param a = [2.0, 8.0]\ns = a\nfor i in 0..6 { s = 0.5 * (s + a / s) }\nprint grad(sum(s), a)"
    assert printed(text)[0] == pytest.approx([0.35355, 0.17678], rel=1e-2)


def test_sums_of_cotangents_are_kept_apart_where_values_join() -> None:
    # `h` is passed on by the loop and used after it as well: the loop's sum is added as a whole
    text = """
        param w = 1.0
        a = w * 1
        x = 0.0
        for i in 0..3 { x = x + a * (1e16 if i == 0 else (1.0 if i == 1 else -1e16)) }
        print grad(x + a * 0.5, a)
    """
    assert printed(text) == [((0.5 + -1e16) + 1.0) + 1e16]


def test_targets_that_nothing_leads_to() -> None:
    assert printed("param w = [1.0, 2.0]; param b = f32(3.0)\ny = sum(w)\nprint grad(y, b), grad(y * 0.0, w)") == [
        0.0,
        [0.0, 0.0],
    ]


def test_functions_start_histories_of_their_own() -> None:
    text = "param w = 3.0\nfn f(p) { q = p * p; return grad(q, p), q }\na, b = f(w)\nprint a, grad(a, w), grad(b, w)"
    assert printed(text) == [6.0, 2.0, 6.0]


# ---- in place ---------------------------------------------------------------------------------


def test_updating_a_tensor_changes_no_other() -> None:
    text = """
        x = [1.0, 2.0, 3.0]
        y = x
        row = x[0:2]
        x[0] = 9.0
        z = x
        x[1] += 1.0
        print x, y, row, z
    """
    assert printed(text) == [[9.0, 3.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0], [9.0, 2.0, 3.0]]


def test_updating_what_the_tape_holds() -> None:
    text = """
        param w = [1.0, 2.0]
        x = w * 3
        y = sum(x * x)
        for i in 0..2 { x[i] = 0.0 }
        print x, grad(y, w)
    """
    assert printed(text) == [[0.0, 0.0], [18.0, 36.0]]


def test_updating_in_functions_and_from_feeds() -> None:
    text = "input x: f64[2]\nfn f(a) { a[0] = 5.0; return a }\ny = f(x); x[1] = 7.0\nprint x, y"
    fed = np.array([1.0, 2.0])
    assert printed(text, x=fed) == [[1.0, 7.0], [5.0, 2.0]]
    assert fed.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "body",
    [
        "x[i] = 1.0",
        "if i % 2 == 0 { x[i] = 1.0 } else { x[i] += 2.0 }",
        "if i > 0 { x[i] = x[i - 1] }",
        "for j in 0..1 { x[i] = w }",
    ],
)
def test_updates_in_loops_copy_nothing(body: str) -> None:
    compiled = made(f"param w = 2.0\nx = zeros(3000)\nfor i in 0..3000 {{ {body} }}\nprint sum(x)")
    copies = 0

    class Counted(np.ndarray):
        def copy(self, *args: Any) -> Any:
            nonlocal copies
            copies += 1
            return super().copy(*args)

    zeros = next(n for n, k in compiled.module.globals.items() if getattr(k, "keywords", {}).get("sizes") == (3000,))
    compiled.module.globals[zeros] = lambda: np.zeros(3000).view(Counted).copy()
    compiled.run(Runtime())
    assert copies <= 2


# ---- faults -----------------------------------------------------------------------------------


def test_a_fault_names_its_line_and_the_way_there() -> None:
    text = """x = [1.0, 2.0]
fn inner(i) = x[i]
fn outer(i) {
    for k in 0..3 { y = inner(i + k) }
    return y
}
print "before"
print outer(0)"""
    before, error = failing(text)
    assert before == ["before"]
    assert (error.code, error.span.line, error.span.text) == ("E0703", 2, "x[i]")
    assert [(label.span.line, label.text) for label in error.trail] == [
        (8, "in this call of `outer`"),
        (4, "in trip 3 of this loop"),
        (4, "in this call of `inner`"),
    ]


def test_faults_in_regions_of_their_own_function() -> None:
    depth = 20
    text = "n = 0\n" + "for i in 0..2 {\n" * depth + "n = 1 // n\n" + "}\n" * depth
    _, error = failing(text)
    assert (error.code, error.span.line) == ("E0704", depth + 2)


def test_asserts_show_their_message() -> None:
    _, error = failing('for i in 0..5 {\nassert i < 3, "i is {i}"\n}')
    assert error.span.line == 2
    assert "i is 3" in error.message


def test_inputs_must_be_fed() -> None:
    _, error = failing("print 1\ninput x: f64")
    assert error.span.line == 2


def test_an_interruption_lets_what_was_printed_out() -> None:
    class Interrupting(Recorded):
        flushed = False

        def text(self, line: int, text: str) -> None:
            super().text(line, text)
            if len(self.events) == 3:
                raise KeyboardInterrupt

        def flush(self) -> None:
            self.flushed = True

    sink = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        made('while true { print "x" }').run(Runtime(sink=sink))
    assert sink.flushed


# ---- memory -----------------------------------------------------------------------------------


def test_training_keeps_no_history() -> None:
    text = """
        param w = [1.0, 2.0]; param b = 0.0
        m = zeros(2)
        x = [[1.0, 2.0], [3.0, 4.0]]
        for step in 0..8 {
            loss = sum((x @ w + b) ** 2)
            gw, gb = grad(loss, w, b)
            m = 0.9 * m + gw
            w := w - 0.001 * m
            b := b - 0.001 * gb
            print "step"
        }
    """
    counts: list[int] = []

    class Counting(Recorded):
        def text(self, line: int, text: str) -> None:
            counts.append(live_nodes())

    made(text).run(Runtime(sink=Counting()))
    assert len(set(counts)) == 1
    assert counts[0] <= 20


def test_a_chain_of_a_hundred_thousand_ops_is_differentiated_and_freed() -> None:
    before = live_nodes()
    text = "param w = 1.0\nx = [w, w]\nfor i in 0..100000 { x = x * 0.99999 }\nprint grad(sum(x), w)"
    assert printed(text) == pytest.approx([2 * 0.99999**100000])
    assert live_nodes() <= before


def test_the_collector_of_garbage_is_as_before() -> None:
    import gc

    threshold = gc.get_threshold()
    printed("print 1")
    assert gc.get_threshold() == threshold
    assert sys.getrecursionlimit() < 100_000

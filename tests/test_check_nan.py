"""`--check-nan`: a run stops at the op, or the derivative rule, that first makes a NaN or inf: alike in both modes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl import api
from graphdsl.api.program import Program
from graphdsl.cli import status
from graphdsl.core.verify import verify_funcs, verify_program
from graphdsl.graph.build import build
from graphdsl.graph.passes import optimise
from graphdsl.render import json as lines
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.files import read_source
from graphdsl.source.span import Source
from tests.running import Lines

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("c*.gdl"))


def said(source: Source, mode: str, check_nan: bool = True) -> list[str]:
    """What a program prints, and the error that ends it."""
    sink = Lines()
    try:
        program = Program(source)
        given = program.given({}, {})
        program.prepare(mode, given, program.check(given.values, check_nan=check_nan)).run(sink)
    except ProgramError as error:
        sink.said += [lines.problem(d) for d in error.diagnostics]
    return sink.said


def stopped(code: str) -> tuple[int, str, Diagnostic]:
    """Where a program stops: the line and the message, and all there is to say; the same in both modes."""
    found = []
    for mode in MODES:
        with pytest.raises(ProgramError) as caught:
            api.loads(code).run(mode=mode, check_nan=True)
        (diagnostic,) = caught.value.diagnostics
        found.append(diagnostic)
    assert lines.problem(found[0]) == lines.problem(found[1])
    return found[0].span.line, found[0].message, found[0]


def made_from(diagnostic: Diagnostic) -> str:
    """What stands beside the underlined place."""
    return diagnostic.labels[0].text


def finishes(code: str) -> None:
    """A program in which nothing is made a NaN or inf."""
    eager, graph = (said(Source("a.gdl", code), mode) for mode in MODES)
    assert eager == graph == said(Source("a.gdl", code), "eager", check_nan=False)
    assert not any('"error"' in line for line in eager)


# ---- forwards -----------------------------------------------------------------------------------------


def test_the_op_that_made_it_with_its_operands() -> None:
    line, message, found = stopped("x = 0.0\ny = 1.0\nz = y / x\nprint z * 2.0")
    assert (line, message, made_from(found)) == (3, "`/` made inf", "y = 1.0; x = 0.0")


def test_the_first_element_of_a_tensor() -> None:
    line, message, found = stopped("a = [[1.0, 2.0], [3.0, 0.0]]\nb = [2.0, 0.0]\nprint b, a / b")
    assert (line, message, made_from(found)) == (3, "`/` made inf at [0, 1]", "a[0, 1] = 2.0; b[1] = 0.0")


def test_of_what_is_not_made_element_by_element_whole_operands() -> None:
    _, message, found = stopped("a = full([2, 2], 1e200)\nprint a @ a")
    assert (message, made_from(found)) == ("`@` made inf at [0, 0]", f"a = f64[2, 2] {[[1e200] * 2] * 2}")
    _, message, found = stopped("x = full(100, 1e308)\nprint sum(x)")
    assert made_from(found) == "x: f64[100], min 1e+308, max 1e+308, mean inf, nans 0"


def test_in_a_trip_of_a_loop_and_in_a_call() -> None:
    code = "fn f(a) {\n  return log(a)\n}\nx = 2.0\nfor i in 0..5 {\n  x = x - 1.0\n  print f(x)\n}"
    line, message, found = stopped(code)
    assert (line, message, made_from(found)) == (2, "`log` made -inf", "a = 0.0")
    assert [(way.text, way.span.line) for way in found.trail] == [
        ("in trip 2 of this loop", 5),
        ("in this call of `f`", 7),
    ]


def test_in_a_while_loop_with_its_trip() -> None:
    line, message, found = stopped("x = 16.0\nwhile x > 0.0 {\n  x = x * x\n}")
    assert (line, message, made_from(found)) == (3, "`*` made inf", f"x = {2.0**512}")
    assert [way.text for way in found.trail] == ["in trip 8 of this loop"]


def test_f32() -> None:
    _, message, found = stopped("default f32\nx = f32(1e20)\nprint x * x")
    assert (message, made_from(found)) == ("`*` made inf", "x = 1e+20")
    _, message, _ = stopped("x = 1e300\nprint f32(x)")
    assert message == "`cast` made inf"


def test_infinities_make_a_nan() -> None:
    line, message, found = stopped("x = [1.0, inf]\ny = x + 1.0\nprint y - x")
    assert (line, message, made_from(found)) == (3, "`-` made nan at [1]", "y[1] = inf; x[1] = inf")


def test_what_nothing_reads_is_looked_at() -> None:
    assert stopped("x = 0.0\ny = 1.0 / x\nprint 1")[:2] == (2, "`/` made inf")


def test_literals_and_what_comes_from_outside_make_nothing(tmp_path: Path) -> None:
    finishes("x = [nan, 1.0, inf]\nprint x, log(x), sum(x), x * 2.0, exp(-inf), max(x)")
    finishes("s = [0.5, -inf, 1.0]\nprint softmax(s)")
    np.save(tmp_path / "x.npy", np.array([np.nan, np.inf]))
    source = Source("a.gdl", 'x = load("x.npy")\nprint x + 1.0', str(tmp_path))
    assert said(source, "eager") == said(source, "graph") == said(source, "eager", check_nan=False)
    for mode in MODES:
        loaded = api.loads("input x: f64[2]\ny = x * 2.0")
        assert np.isnan(loaded.run(mode=mode, feeds={"x": [np.nan, 1.0]}, check_nan=True)["y"][0])


def test_what_was_printed_before_is_out(graphdsl: Any) -> None:
    for mode in MODES:
        found = graphdsl("run", "-e", "print 1; x = 0.0; print log(x); print 2", "--mode", mode, "--check-nan")
        assert (found.out, found.code) == ("1 = 1\n", status.WRONG_PROGRAM)
        assert "error[E0740]: `log` made -inf" in found.err


# ---- backwards ----------------------------------------------------------------------------------------


def test_a_rule_with_its_cotangent_and_the_line_of_the_op() -> None:
    line, message, found = stopped("param w = 0.0\na = sqrt(w)\ny = a * 2.0\nprint grad(y, w)")
    assert (line, message) == (2, "the derivative of `sqrt` made inf")
    assert made_from(found) == "cotangent g = 2.0; result y = 0.0"
    assert found.hint == "the rule of `sqrt`: scale(g, 0.5 / y)"
    assert [(label.text, label.span.line) for label in found.labels[1:]] == [("in this derivative", 4)]


def test_the_element_of_a_gradient() -> None:
    line, message, found = stopped("param w = [4.0, 0.0]\ny = sum(3.0 * sqrt(w))\nprint y, grad(y, w)")
    assert (line, message) == (2, "the derivative of `sqrt` made inf at [1]")
    assert made_from(found) == "cotangent g[1] = 3.0; result y[1] = 0.0"


def test_back_through_a_loop_and_calls() -> None:
    loop = "param w = 1.0\nx = w\nfor i in 0..3 {\n  x = sqrt(x - 1.0)\n  x = x + 1.0\n}\nprint x, grad(x, w)"
    assert stopped(loop)[:2] == (4, "the derivative of `sqrt` made inf")
    f = "fn f(x: f64, n: i64) -> f64 {\n  if n == 0 { return x }\n  return sqrt(f(x, n - 1))\n}\n"
    calls = f + "param w = 0.0\nprint grad(f(w, 3), w)"
    assert stopped(calls)[:2] == (3, "the derivative of `sqrt` made inf")


def test_in_a_second_derivative() -> None:
    code = "param w = 0.0\ny = w ** 1.5\ng = grad(y, w)\nprint g\nprint grad(g, w)"
    line, message, found = stopped(code)
    assert (line, message) == (2, "the derivative of `**` made inf")
    assert made_from(found) == "cotangent g = 1.5; operand a = 0.0; operand b = 0.5"
    assert found.labels[1].span.line == 5


def test_forward_mode_is_made_of_such_rules() -> None:
    assert stopped("param w = 0.0\ny = sqrt(w)\nprint jvp(y, w, 1.0)")[0] == 2


def test_in_a_rule_that_the_program_states() -> None:
    code = "fn f(x) = x * 2.0\nvjp f(x; y, g) = g / x\nparam w = 0.0\ny = f(w) + 1.0\nprint y, grad(y, w)"
    line, message, found = stopped(code)
    assert (line, message, made_from(found)) == (2, "`/` made inf", "g = 1.0; x = 0.0")
    assert [way.text for way in found.trail] == ["in this call of `vjp f`"]


def test_in_a_checkpoint() -> None:
    code = "param w = 0.0\nx = w\ncheckpoint {\n  a = sqrt(x)\n  b = a * 3.0\n}\nprint grad(b, w)"
    line, message, found = stopped(code)
    assert (line, message, found.labels[1].span.line) == (4, "the derivative of `sqrt` made inf", 7)


def test_what_reaches_no_gradient_is_no_error() -> None:
    finishes("param w = [0.0, 4.0]\ny = sum(where(w > 1.0, sqrt(w), w))\nprint y, grad(y, w)")
    finishes("param w = [0.0, 4.0]\ny = sum(sqrt(w) * where(w > 1.0, 1.0, 0.0))\nprint grad(y, w)")
    finishes("param w = 2.0\nx = 0.0\nfor i in 0..3 { x = x + sqrt(x) * w + 1.0 }\nprint x, grad(x, w)")
    finishes("param w = 2.0\nx = 0.0\nif w < 1.0 { x = w }\ny = sqrt(x)\nprint grad(y, w)")


def test_a_nan_that_was_fed_reaches_a_gradient_without_an_error() -> None:
    finishes("x = [nan, 1.0]\nparam w = 2.0\ny = sum(x * w)\nprint grad(y, w)")


def test_grad(graphdsl: Any) -> None:
    for mode in MODES:
        found = graphdsl("grad", "-e", "param w = 0.0; y = sqrt(w)", "--mode", mode, "--check-nan", "--json")
        (event,) = found.events()
        assert found.code == status.WRONG_PROGRAM
        assert (event["event"], event["code"], event["column"]) == ("error", "E0741", 20)
        assert [label["text"] for label in event["labels"]] == ["cotangent g = 1.0; result y = 0.0"]
        with pytest.raises(ProgramError):
            api.loads("param w = 0.0; y = sqrt(w)").grad(mode=mode, check_nan=True)


def test_fetch_looks_at_what_it_computes(graphdsl: Any) -> None:
    for mode in MODES:
        found = graphdsl("run", "-e", "x = 0.0; y = log(x); z = 2.0", "--fetch", "y", "--mode", mode, "--check-nan")
        assert (found.code, found.out) == (status.WRONG_PROGRAM, "")


# ---- nothing else changes -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_watching_changes_nothing(path: Path) -> None:
    """Up to where it stops, and no bit of what a program says."""
    source = read_source(str(path))
    eager, graph = (said(source, mode) for mode in MODES)
    plain = said(source, "eager", check_nan=False)
    assert eager == graph
    stops = bool(eager) and '"code":"E074' in eager[-1]
    assert eager[: -1 if stops else None] == plain[: len(eager) - 1 if stops else None]


def test_programs_that_are_watched_are_legal() -> None:
    code = "param w = 0.5\nx = w\nfor i in 0..3 { x = sqrt(x * w) }\nprint grad(grad(x, w), w)"
    checked = Program(Source("a.gdl", code)).check(check_nan=True)
    verify_program(checked.program)
    made = build(checked.program)
    verify_funcs(made.main)
    optimise(made, after=lambda name, graph: verify_funcs(graph.main) and None)


@pytest.mark.parametrize("mode", MODES)
def test_it_takes_little_time_and_no_memory(mode: str) -> None:
    code = "x = 0.5\ns = 0.0\nfor i in 0..200000 {\n  x = 3.7 * x * (1.0 - x)\n  s += sqrt(x)\n}"
    program = Program(Source("a.gdl", code))
    prepared = program.prepare(mode, program.given({}, {}), program.check(check_nan=True))
    begin = time.process_time()
    prepared.run(Lines())
    assert time.process_time() - begin < 5.0
    assert prepared.peak_bytes() < 100_000

"""`grad --why-nan`: the way of a NaN or inf to a gradient that is not finite: alike in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphdsl import api
from graphdsl.api import why
from graphdsl.api.program import Program, Result
from graphdsl.cli import status
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.modes import MODES
from graphdsl.runtime.nan_trace import Step
from graphdsl.source.span import Source

Way = list[tuple[int, str]]


def steps_in(
    mode: str, code: str, feeds: dict[str, Any] | None = None, wrt: tuple[str, ...] = ()
) -> tuple[Result, dict[str, list[Step] | None]]:
    """The gradients of a program in a mode, and their ways."""
    program = Program(Source("a.gdl", code))
    given = program.given(feeds or {}, {})
    prepared = program.prepare(mode, given, program.check(given.values, (), None, wrt, why_nan=True))
    result = prepared.run(Recorded())
    return result, why.ways(prepared, result)


def ways(code: str, feeds: dict[str, Any] | None = None, wrt: tuple[str, ...] = ()) -> dict[str, Way | None]:
    """For each gradient the lines and words of its way; the same in both modes, and no bit of a gradient changes."""
    found = []
    for mode in MODES:
        result, steps = steps_in(mode, code, feeds, wrt)
        plain = api.loads(code).grad(wrt=wrt, mode=mode, feeds=feeds)
        for name, gradient in result.gradients.items():
            assert np.array_equal(gradient.value, plain[name], equal_nan=True)
        found.append(
            {
                name: way and [(s.span.line, f"{s.text}{' back' * s.backward}") for s in way]
                for name, way in steps.items()
            }
        )
    assert found[0] == found[1]
    return found[0]


def test_it_arises_in_the_derivative() -> None:
    found = ways("param w = 0.0\nparam b = 1.0\na = sqrt(w)\ny = a * 2.0 + b")
    assert found == {
        "w": [(3, "the derivative of `sqrt` made inf: cotangent g = 2.0; result y = 0.0 back")],
        "b": None,
    }


def test_it_arises_forwards_and_comes_back() -> None:
    way = ways("param w = 2.0\nparam v = 0.0\na = log(v)\nb = 3.0 * a\nc = exp(w)\ny = b * c", wrt=("w",))["w"]
    assert way == [
        (3, "`log` made -inf: v = 0.0"),
        (4, "`*` gave -inf: left = 3.0; a = -inf"),
        (6, "the derivative of `*` gave -inf: cotangent g = 1.0; operand a = -inf back"),
        (5, "the derivative of `exp` gave -inf: cotangent g = -inf; result y = 7.38905609893065 back"),
    ]


def test_elements_and_what_only_moves_them() -> None:
    way = ways("param w = [4.0, 0.0]\nr = sqrt(w)\ns = r[1]\ny = s * 5.0")["w"]
    assert way == [(2, "the derivative of `sqrt` made inf at [1]: cotangent g[1] = 5.0; result y[1] = 0.0 back")]
    way = ways("param w = 2.0\nx = [1.0, 0.0]\nl = log(x)\ny = w * l[1]")["w"]
    assert [line for line, _ in way or ()] == [3, 4, 4]


def test_through_branches_loops_and_calls() -> None:
    code = "fn f(a) = log(a)\nparam w = 1.0\nx = 0.0\nh = f(x)\nif h < 0.0 { h = h * 2.0 }\n"
    code += "for i in 0..3 { h = h + 1.0 }\ny = h * w"
    way = ways(code)["w"]
    assert way is not None
    assert [(line, words.partition(":")[0]) for line, words in way] == [
        (1, "`log` made -inf"),
        (5, "`*` gave -inf"),
        (6, "`+` gave -inf"),
        (7, "the derivative of `*` gave -inf"),
    ]


def test_contributions_may_be_infinite_and_their_sum_a_nan() -> None:
    way = ways("param w = 0.0\ny = sqrt(w) - log(w)")["w"]
    assert way is not None
    assert way[-1][1].endswith("result y = 0.0; the sum before had an inf back")


def test_a_long_loop_is_one_way() -> None:
    code = "param w = 0.0\nx = w\nfor i in 0..500 { x = sqrt(x - 0.1) + 1.0 - 0.9 }\ny = x * w"
    for mode in MODES:
        _, steps = steps_in(mode, code)
        way = steps["w"] or []
        assert (way[0].text, way[0].times) == ("`sqrt` made nan: operand = -0.1", 500)
        assert len(way) < 6


def test_of_a_nan_and_of_infinities_at_other_places() -> None:
    """The mask's -inf comes to nothing; the NaN beside it is what is explained."""
    code = "param w = [1.0, -1.0]\nl = log(w)\nm = where([false, true], l, -inf)\ny = sum(softmax(m))"
    way = ways(code)["w"]
    assert way is not None
    assert way[0] == (2, "`log` made nan at [1]: w[1] = -1.0")


def test_what_came_from_outside_is_named() -> None:
    found = ways("input x: f64[2]\nparam w = 2.0\ny = sum(x * w)", {"x": [1.0, np.nan]})["w"]
    assert found is not None
    assert found[0] == (1, "nan came from outside as `x`")
    found = ways("param w = 2.0\ny = w * inf")["w"]
    assert found is not None
    assert found[0] == (2, "inf is written here")


def test_of_rules_that_the_program_states_and_checkpoints() -> None:
    code = "fn f(x) = x * 2.0\nvjp f(x; y, g) = g / x\nparam w = 0.0\ny = f(w) * 3.0"
    assert ways(code)["w"] == [(2, "`/` made inf: g = 3.0; x = 0.0")]
    code = "param w = 0.0\nx = w\ncheckpoint {\n  a = sqrt(x)\n  b = a * 3.0\n}\ny = b"
    assert [line for line, _ in ways(code)["w"] or ()] == [4]


def test_after_training_steps() -> None:
    code = "param w = 2.0\nfor i in 0..3 {\n  loss = log(w - f64(i))\n  w := w + 0.0 * grad(loss, w)\n}"
    assert [line for line, _ in ways(code)["w"] or ()] == [3, 3]


def test_in_a_derivative_of_a_derivative_there_is_no_way() -> None:
    assert ways("param w = 0.0\ng = grad(w ** 1.5, w)\ny = g * 2.0")["w"] == []


@pytest.mark.parametrize("mode", MODES)
def test_what_is_said(graphdsl: Any, mode: str) -> None:
    code = "param w = 0.0; param b = 2.0\ny = sqrt(w) * b"
    found = graphdsl("grad", "-e", code, "--mode", mode, "--why-nan")
    assert found.code == status.DONE
    assert found.out.splitlines() == [
        "y = 0.0",
        "∂y/∂w = inf",
        "∂y/∂b = 0.0",
        "how it comes to ∂y/∂w:",
        "  line 2, backwards:  the derivative of `sqrt` made inf: cotangent g = 2.0; result y = 0.0",
        "∂y/∂b is finite: no NaN or inf reaches it",
    ]
    events = graphdsl("grad", "-e", code, "--mode", mode, "--why-nan", "--json").events()
    first, second = (event for event in events if event["event"] == "why")
    assert (first["wrt"], first["finite"], first["path"][0]["line"]) == ("w", False, 2)
    assert (second["wrt"], second["finite"], second["path"]) == ("b", True, None)


def test_options_that_do_not_go_together(graphdsl: Any) -> None:
    for other in (["--check-nan"], ["--order", "2"], ["--all"], ["--check"], ["--paths"]):
        found = graphdsl("grad", "-e", "param w = 1.0; y = w", "--why-nan", *other)
        assert found.code == status.WRONG_USAGE
        assert "--why-nan" in found.err

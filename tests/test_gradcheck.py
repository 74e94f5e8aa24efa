"""`graphdsl grad --check`: derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, floor, inf, log, nan, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.api.differences import judge, precision
from graphdsl.cli import status
from graphdsl.ops.types import F32, F64, DType
from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE
from tests.test_terminal import on_a_terminal

# ---- the verdict on one derivative --------------------------------------------------------------------

big = np.float32(1e6)
thousand = np.float32(1e3)


def relu(x: float) -> float:
    return max(x, 0.0 * x)


CASES: list[tuple[str, Callable[[Any], Any], float, float, DType, str]] = [
    ("smooth", lambda x: x**3, 2.0, 12.0, F64, "agrees"),
    ("smooth, slightly wrong", lambda x: x**3, 2.0, 12.001, F64, "differs"),
    ("an optimum", lambda x: (x - 1) ** 2, 1.0, 0.0, F64, "agrees"),
    ("an optimum, wrong", lambda x: (x - 1) ** 2, 1.0, 0.1, F64, "differs"),
    ("at a kink", relu, 0.0, 0.0, F64, "cannot judge"),
    ("at a kink, the mean of both sides", abs, 0.0, 0.0, F64, "agrees"),
    ("at a kink, outside both sides", relu, 0.0, 5.0, F64, "differs"),
    ("beside a kink", lambda x: relu(x - 1 + 1e-3), 1.0, 1.0, F64, "agrees"),
    ("at a jump", lambda x: floor(x) * x, 2.0, 2.0, F64, "cannot judge"),
    ("between jumps", lambda x: round(x) * x, 2.3, 2.0, F64, "agrees"),
    ("hidden by f32", lambda x: (big + x) - big, 1e-3, 2.0, F32, "cannot judge"),
    ("coarse f32", lambda x: thousand + x, 1.0, 1.0, F32, "agrees"),
    ("coarse f32, wrong", lambda x: thousand + x, 1.0, 1.1, F32, "differs"),
    ("f32", np.sin, 1.0, cos(1.0), F32, "agrees"),
    ("f32, wrong", np.sin, 1.0, 1.02 * cos(1.0), F32, "differs"),
    ("too small", lambda x: 1.0 + 1e-18 * x, 1.0, 1e-18, F64, "cannot judge"),
    ("of a small value", lambda x: 1.0 + x, 1e-17, 1.0, F64, "agrees"),
    ("of a small value, wrong", lambda x: 1.0 + x, 1e-17, 2.0, F64, "differs"),
    ("constant", lambda x: 3.0, 1.0, 1.0, F64, "differs"),
    ("constant, zero", lambda x: 3.0, 1.0, 0.0, F64, "agrees"),
    ("at an end", sqrt, 0.0, inf, F64, "cannot judge"),
    ("near an end", sqrt, 1e-12, 0.5e6, F64, "agrees"),
    ("near a pole", log, 1e-3, 1e3, F64, "agrees"),
    ("nan", lambda x: x * x, 3.0, nan, F64, "differs"),
    ("of nan", lambda x: nan, 3.0, 1.0, F64, "cannot judge"),
    ("fast", lambda x: sin(1e6 * x), 1.0, 1e6 * cos(1e6), F64, "agrees"),
    ("steep", lambda x: exp(100 * x), 1.0, 100 * exp(100), F64, "agrees"),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_derivative_is_judged(case: Any) -> None:
    _, f, x, derivative, dtype, word = case
    number = np.float32 if dtype is F32 else float

    def along(step: float) -> float:
        try:
            return float(f(number(number(x) + number(step))))
        except ValueError:
            return nan

    found = judge(derivative, along, along(0.0), abs(x), precision(dtype))
    assert found.word == word, found


# ---- programs -----------------------------------------------------------------------------------------

WRONG = "fn f(x) = x ** 3\nvjp f(x; y, gy) = 2.0 * gy * x ** 2\nparam w = 2.0\ny = f(w)"


def checked(graphdsl: Any, code: str, *args: str) -> tuple[int, list[dict[str, Any]]]:
    said = graphdsl("grad", "-e", code, "--check", "--json", *args)
    return said.code, said.events()


def words(events: list[dict[str, Any]]) -> dict[Any, set[str]]:
    """What was said of the derivatives by each name, or by two."""
    found: dict[Any, set[str]] = {}
    for event in events:
        if event["event"] == "check":
            wrt = event["wrt"]
            found.setdefault(wrt if isinstance(wrt, str) else tuple(wrt), set()).add(event["verdict"])
    return found


@pytest.mark.parametrize("mode", MODES)
def test_what_is_right_agrees(graphdsl: Any, mode: str) -> None:
    said = graphdsl("grad", ARTICLE, "--wrt", "w", "--check", "--mode", mode)
    assert (said.code, said.out.split("\n")) == (
        0,
        [
            "y = 15.0",
            "∂y/∂w = 8.0 here: agrees; differences give 8, error 0",
            "∂y/∂w = 8.323606797749978 displaced: agrees; differences give 8.3236068, error 2e-13",
            "∂²y/∂w² = 2.0 here: agrees; differences give 2, error 0",
            "3 agree",
            "",
        ],
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_rule_is_found(graphdsl: Any, mode: str) -> None:
    code, events = checked(graphdsl, WRONG, "--mode", mode)
    assert code == status.DIFFERS
    first = events[0]
    assert (first["of"], first["wrt"], first["at"], first["element"]) == ("y", "w", "here", None)
    assert (first["derivative"], first["differences"], first["error"]) == (8.0, 12.0, 4.0)
    assert [e["verdict"] for e in events if e["event"] == "check"] == ["differs", "differs", "agrees"]
    assert events[-1] == {"event": "verdict", "agree": 1, "differ": 2, "unjudged": 0}


@pytest.mark.parametrize("mode", MODES)
def test_a_rule_that_is_wrong_only_in_its_own_derivative(graphdsl: Any, mode: str) -> None:
    code = WRONG.replace("2.0 * gy * x ** 2", "3.0 * gy * stop_gradient(x ** 2)").replace("f(w)", "f(w) + w")
    status_, events = checked(graphdsl, code, "--mode", mode)
    assert status_ == status.DIFFERS
    assert words(events) == {"w": {"agrees"}, ("w", "w"): {"differs"}}


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_rule_is_found_after_training(graphdsl: Any, mode: str) -> None:
    code = """
fn f(x) = x ** 4
vjp f(x; y, gy) = {} * gy * x ** 3
param w = [1.0, 2.0]
param b = 0.5
for i in 0..5 {{
  loss = sum(f(w)) + b * b
  gw, gb = grad(loss, w, b)
  w := w - 0.01 * gw
  b := b - 0.01 * gb
}}
"""
    assert checked(graphdsl, code.format("4.0"), "--mode", mode)[0] == 0
    code_, events = checked(graphdsl, code.format("4.1"), "--mode", mode)
    assert code_ == status.DIFFERS
    assert words(events)["w"] == {"differs"}
    assert words(events)["b"] == {"agrees"}


@pytest.mark.parametrize("mode", MODES)
def test_intermediate_names_are_displaced_where_they_are_set(graphdsl: Any, mode: str) -> None:
    code = """
input x: f64[n] = [1.0, 2.0]
a, h = x * 2, x * x
for row in x { h = h * row }
if h[0] > 0 { h += 1.0 }
k: f64[n] = exp(0.1 * h)
y = sum(k * h) + a[0]
"""
    code_, events = checked(graphdsl, code, "--wrt", "x,h,k,a,row", "--mode", mode)
    assert code_ == 0
    assert set(words(events)) >= {"x", "h", "k", "a", "row", ("h", "k")}
    assert {word for found in words(events).values() for word in found} == {"agrees"}


@pytest.mark.parametrize("mode", MODES)
def test_what_differences_do_not_see_is_not_judged(graphdsl: Any, mode: str) -> None:
    code, events = checked(graphdsl, "x = 3.0\nv = x\ny = x * v", "--wrt", "v", "--mode", mode)
    assert (code, words(events)) == (0, {"v": {"cannot judge"}})
    assert "`v * 1` would be a value of its own" in events[0]["why"]
    code, events = checked(graphdsl, "param w = 2.0\ny = w * stop_gradient(w)", "--mode", mode)
    assert (code, words(events)["w"]) == (0, {"cannot judge"})
    assert "`stop_gradient` at line 2" in events[0]["why"]
    training = "param w = 2.0\ninput x = 1.5\nfor i in 0..3 { loss = (w * x) ** 2; w := w - 0.1 * grad(loss, w) }"
    code, events = checked(graphdsl, training, "--wrt", "x", "--mode", mode)
    assert (code, words(events)["x"]) == (0, {"cannot judge"})
    assert "changes `w` too" in events[0]["why"]


@pytest.mark.parametrize("mode", MODES)
def test_a_large_tensor_is_sampled(graphdsl: Any, mode: str) -> None:
    wrong = "fn f(x) = sum(x * x)\nvjp f(x; y, gy) = 2.0 * gy * (x if x[0] < 0 else roll(x, 1))\n"
    code = f"{wrong}param w: f32[400] = f32(linspace(1.0, 2.0, 400))\ny = f(w)"
    code_, events = checked(graphdsl, code, "--mode", mode)
    assert code_ == status.DIFFERS
    assert {"event": "sample", "wrt": "w", "checked": 12, "elements": 400} in events
    along = [e for e in events if e["event"] == "check" and e["along"] and e["wrt"] == "w"]
    assert [e["verdict"] for e in along] == ["differs", "differs"]


def test_the_same_random_numbers_and_files(graphdsl: Any, tmp_path: Path) -> None:
    """Each run draws the same numbers and finds the same files; only the first one saves."""
    file = tmp_path / "a.gdl"
    file.write_text('param w = normal(3)\nx = normal(3)\ny = sum(w * w * x)\nsave "out.npz", w\nprint y')
    said = graphdsl("grad", str(file), "--check")
    assert (said.code, said.out.splitlines()[-1]) == (0, "7 agree")
    drawn = graphdsl("run", str(file)).out
    assert drawn == said.out.splitlines()[0] + "\n"
    assert np.load(tmp_path / "out.npz")["w"].shape == (3,)


def test_a_program_that_fails_beside_it(graphdsl: Any) -> None:
    code = "param w = 1.0\nassert w == 1.0\ny = w * w"
    code_, events = checked(graphdsl, code)
    assert (code_, words(events)["w"]) == (0, {"cannot judge"})
    assert graphdsl("grad", "-e", "y = 1.0", "--check").code == 0
    assert graphdsl("grad", ARTICLE, "--check", "--order", "2").code == status.WRONG_USAGE


def test_on_a_terminal() -> None:
    code, lines = on_a_terminal(80, "grad", "-e", "param w = [1.0, 0.0]\ny = sum(relu(w) ** 2) + relu(w[1])", "--check")
    assert code == 0
    assert [line for line in lines if len(line) > 80] == []
    assert lines[1].split() == ["at", "derivative", "differences", "error"]
    assert any("there is a kink" in line for line in lines)

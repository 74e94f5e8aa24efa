"""`--time-limit`: programs that take too long end with an error that names the statement, in both modes."""

from __future__ import annotations

from typing import Any

import pytest

from graphdsl import ProgramError, api
from graphdsl.cli import status
from graphdsl.runtime.modes import MODES

FUNCTION = """
fn endless(x) {
  k = 0
  while k >= 0 { k = k + 1 - 1 }
  return x
}
for i in 0..3 {
  print i
  y = endless(2.0)
}
"""
RECURSION = "fn f(n: i64, k: i64) -> i64 = 0 if n == 0 else f(n - 1, k) + f(n - 1, k)\nprint f(60, 1)"
BACKWARD = """
param w = 1.0
s = w
for i in 0..100_000 { s = s * w }
while true { d = grad(s, w) }
"""
ENDLESS = [
    (FUNCTION, 3),
    (RECURSION, 1),
    (BACKWARD, (3, 4)),
    ("for i in 0..1_000_000_000_000 {}; print i", 1),
    ("x = ones(300, 300)\nfor i in 0..1_000_000_000 {\n x = x @ x\n}\nprint x", (2, 3)),
    ("k = 0\nwhile true {\n  if k > 2 { k = k - 1 } else { k = k + 1 }\n}", (2, 3)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("code", "line"), ENDLESS)
def test_a_program_that_takes_too_long(graphdsl: Any, mode: str, code: str, line: int | tuple[int, int]) -> None:
    said = graphdsl("run", "-e", code.lstrip("\n"), "--mode", mode, "--time-limit", "0.2", "--json")
    *prints, error = said.events()
    first, last = (line, line) if isinstance(line, int) else line
    assert (said.code, error["code"]) == (status.WRONG_PROGRAM, "E0733")
    assert error["message"] == "the run reached its limit of 0.2 seconds here"
    assert first <= error["line"] <= last
    assert len(prints) == (code is FUNCTION)


@pytest.mark.parametrize("mode", MODES)
def test_the_way_there_is_told(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", FUNCTION, "--mode", mode, "--time-limit", "0.2")
    assert "in trip 1 of this loop" in said.err
    assert "in this call of `endless`" in said.err


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_takes_less(graphdsl: Any, mode: str) -> None:
    code = "param w = 1.0\ns = w\nfor i in 0..1000 { s = s * 1.001 }\nprint s, grad(s, w)"
    plain = graphdsl("run", "-e", code, "--mode", mode)
    assert graphdsl("run", "-e", code, "--mode", mode, "--time-limit", "60").out == plain.out
    assert plain.code == status.DONE


@pytest.mark.parametrize("mode", MODES)
def test_from_python_and_each_run_anew(mode: str) -> None:
    loaded = api.loads("input n = 10\ni = 0\nwhile i < n { i += 1 }")
    assert loaded.run(mode=mode, time_limit=10)["i"] == 10
    with pytest.raises(ProgramError, match=r"limit of 0\.1 seconds"):
        loaded.run(mode=mode, feeds={"n": 10**15}, time_limit=0.1)
    assert loaded.run(mode=mode, time_limit=10)["i"] == 10


def test_compare_does_not_call_a_limit_a_difference(graphdsl: Any) -> None:
    said = graphdsl("compare", "-e", "while true {}", "--time-limit", "0.1", "--json")
    (error,) = said.events()
    assert (said.code, error["code"]) == (status.WRONG_PROGRAM, "E0733")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_what_is_no_time(graphdsl: Any, text: str) -> None:
    said = graphdsl("run", "-e", "print 1", "--time-limit", text)
    assert (said.code, said.out) == (status.WRONG_USAGE, "")

"""`--memory-limit`: programs that take too much end with an error that names the statement, in both modes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphdsl.cli import status
from graphdsl.cli.main import run
from graphdsl.runtime.limits import size_of

GROWS = """
param w = 1.0
s = ones(1000) * w
i = 0
while i < 2000 {
  s = s * s + exp(s)
  s = s / 4.0
  i += 1
}
print grad(sum(s), w)
"""


@pytest.fixture
def graphdsl(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> tuple[int, list[dict[str, Any]]]:
        code = run([*args, "--json"])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in (out + err).splitlines()]

    return call


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(
    ("code", "limit", "line"),
    [
        ("x = zeros(1000, 1000)\nprint sum(x)", "1MB", 1),
        ("n = 1000\nx = ones(n)\ny = x[:, none] * x\nprint sum(y)", "1MB", 3),
        ("a = ones(100_000)\nb = a * 2.0\nc = b * a\nprint c[0], b[0], a[0]\nd = a\nprint d @ b", "500kB", 1),
        (GROWS, "1MB", 6),
    ],
)
def test_a_program_that_takes_too_much(graphdsl: Any, mode: str, code: str, limit: str, line: int) -> None:
    code, events = graphdsl("run", "-e", code, "--mode", mode, "--memory-limit", limit)
    (error,) = (event for event in events if event["event"] == "error")
    assert code == status.WRONG_PROGRAM
    assert error["code"] in ("E0730", "E0734")  # one tensor alone, or all values together
    assert abs(error["line"] - line) <= 1
    assert "--memory-limit" in error["hint"]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_program_that_takes_less(graphdsl: Any, mode: str) -> None:
    plain = graphdsl("run", "-e", GROWS, "--mode", mode)
    assert plain == graphdsl("run", "-e", GROWS, "--mode", mode, "--memory-limit", "200MB")


def test_the_tape_of_numbers_counts(graphdsl: Any) -> None:
    code = "param w = 1.0\ns = w\nwhile s < 2.0 { s = s * 1.0001 }\nprint grad(s, w)"
    code = f"{code}\nprint grad(grad(s, w), w)"  # which may not be computed in segments
    result, (error,) = graphdsl("run", "-e", code, "--memory-limit", "100kB")
    assert (result, error["code"]) == (status.WRONG_PROGRAM, "E0734")


def test_compare_does_not_call_a_limit_a_difference(graphdsl: Any) -> None:
    code = "x = ones(1000)\ny = x[:, none] * x\nprint sum(y)"
    for limit in ("1MB", "8020kB"):
        result, events = graphdsl("compare", "-e", code, "--memory-limit", limit, "--repeat", "1")
        kinds = [event["event"] for event in events]
        assert (result, kinds) in [
            (status.WRONG_PROGRAM, ["error"]),
            (status.DONE, ["timing", "timing", "ratio", "agreement"]),
        ]


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("5B", 5), ("1.5kB", 1500), ("2 MB", 2 * 10**6), ("2gib", 2**31), ("1T", 10**12), ("1KiB", 1024)],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "x", "-3", "5XB", "1e9", "GB", "iB", "1.2.3"])
def test_what_is_no_size(graphdsl: Any, text: str) -> None:
    result, (error,) = graphdsl("run", "-e", "print 1", "--memory-limit", text)
    assert (result, error["code"]) == (status.WRONG_USAGE, "usage")
    assert "as in `500MB`" in error["message"]

"""`graphdsl grad --paths`: the chain rule written out."""

from __future__ import annotations

from math import isclose
from typing import Any

import pytest

from graphdsl.cli import status
from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE
from tests.test_terminal import on_a_terminal


def paths(graphdsl: Any, code: str, *args: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The paths by one name, and the derivative."""
    *found, gradient = graphdsl("grad", "-e", code, "--paths", "--json", *args).events()
    assert gradient["event"] == "grad"
    return found, gradient


def names(path: dict[str, Any]) -> list[str]:
    return [step["name"] for step in path["steps"]]


@pytest.mark.parametrize("mode", MODES)
def test_the_example(graphdsl: Any, mode: str) -> None:
    said = graphdsl("grad", ARTICLE, "--wrt", "w", "--paths", "--mode", mode)
    assert said.out.splitlines() == [
        "y = (w + x) * (w + 1)          path 1   y → (w + x) → w     3.0 × 1.0 = 3.0",
        "                               path 2   y → (w + 1) → w     5.0 × 1.0 = 5.0",
        "                               ∂y/∂w    sum of 2 paths                = 8.0",
    ]


def test_events(graphdsl: Any) -> None:
    path, gradient = graphdsl("grad", ARTICLE, "--wrt", "x", "--paths", "--json").events()
    steps = [{"name": "y", "line": 5}, {"name": "(w + x)", "line": 5}, {"name": "x", "line": None}]
    assert path == {
        "event": "path",
        "of": "y",
        "wrt": "x",
        "path": 1,
        "steps": steps,
        "factors": [3.0, 1.0],
        "product": 3.0,
    }
    assert (gradient["value"], gradient["paths"], gradient["shown"], gradient["rest"]) == (3.0, 1, 1, 0.0)


PROGRAMS = [
    ("param w = 2.0\ny = w * w", 2),
    ("param w = 2.0\nh = w\nk = h\ny = k ** 3 + exp(h)", 2),
    ("param w = 2.0\ny = w\nfor i in 0..3 { y = y * w + w }", 7),
    ("param w = 4.0\nfor i in 0..3 { loss = w * w\n w := w - 0.1 * grad(loss, w) }", 2),
    ("param w = 2.0\nfn f(x) = x * x\nvjp f(x; y, g) = 2 * g * x\ny = f(w) + f(f(w))", 2),
    ("param w = 3.0\nfn g(a, b) { return a / b, a * b }\n"
     "vjp g(a, b; y, z, gy, gz) = (gy / b + gz * b, gz * a - gy * a / b / b)\np, q = g(w, w)\ny = p * q + q", 3),
    ("param w = 3.0\nfn f(n: i64, x: f64) -> f64 { if n == 0 { return x }; return x * f(n - 1, x) }\ny = f(3, w)", 4),
    ("param w = 3.0\ncheckpoint { z = w * w }\nd = grad(z, w)\ny = z * d", None),
    ("param w = 3.0\ny = w * w + jvp(w * w * w, w, 1.0)", None),
    ("default f32\nparam w = 3.0\nz = w / 3\ny = (z if w > 0 else w) * z + f64(w)", 3),
    ("param w = 0.0\ny = where(w > 0, w * sqrt(w), 0.0) + w", 3),
    ("param w = 2.0\ny = hypot(w, 4.0) + atan2(w, 1.0) + softplus(w) + maximum(w, 2.0)", 4),
]  # fmt: skip


@pytest.mark.parametrize(("code", "count"), PROGRAMS)
def test_the_sum_over_the_paths_is_the_derivative(graphdsl: Any, code: str, count: int | None) -> None:
    found, gradient = paths(graphdsl, code)
    assert gradient["paths"] == gradient["shown"] == len(found)
    assert count is None or len(found) == count
    assert isclose(sum(path["product"] for path in found), gradient["value"], rel_tol=1e-6)
    (plain,) = graphdsl("grad", "-e", code, "--json").events()
    assert gradient["value"] == plain["value"]


def test_values_are_called_as_in_the_text(graphdsl: Any) -> None:
    """By name, or by their text; what an op is made of, by its ops."""
    found, _ = paths(graphdsl, "param w = 2.0\nh = w * 3\nprint exp(h) * norm(h)")
    assert names(found[0]) == ["exp(h) * norm(h)", "exp(h)", "h", "w"]
    assert names(found[1])[:3] == ["exp(h) * norm(h)", "norm(h)", "sqrt"]
    said = graphdsl("grad", "-e", "param w = 2.0\ny = w", "--of", "w", "--paths").out
    assert said.splitlines()[0].split() == ["w", "path", "1", "w", "=", "1.0"]
    assert "sum of 0 paths = 0.0" in " ".join(
        graphdsl("grad", "-e", "x = 1.5\ny = round(x)", "--wrt", "x", "--paths").out.split()
    )


def test_many_paths_are_counted(graphdsl: Any) -> None:
    """Of 2 ** 100 some are shown, and what the others add up to."""
    code = "param w = 1.0\ny = w\nfor i in 0..100 { y = y + y }"
    found, gradient = paths(graphdsl, code)
    assert (gradient["paths"], len(found), gradient["value"]) == (2**100, 20, 2.0**100)
    assert [path["product"] for path in found] == [1.0] * 20
    assert gradient["rest"] == 2.0**100 - 20
    said = graphdsl("grad", "-e", code, "--paths").out
    assert f"{2**100 - 20:,} more, not shown" in said
    assert "(92 more)" in said
    assert max(map(len, said.splitlines())) < 250


def test_tensors_are_named(graphdsl: Any) -> None:
    said = graphdsl("grad", "-e", "param w = 2.0\nv = w * [1.0, 2.0]\ny = sum(v)", "--paths")
    assert (said.code, said.out) == (status.WRONG_USAGE, "")
    assert "the paths to `w` are not written out: `v` is f64[2], and only paths of scalars are" in said.err
    assert "<code>:2:5" in said.err
    said = graphdsl("grad", "-e", "param w = [2.0]\ny = sum(w)", "--paths")
    assert "`w` is f64[1]" in said.err
    assert graphdsl("grad", ARTICLE, "--paths", "--check").code == status.WRONG_USAGE
    assert graphdsl("grad", "-e", "print 1.0", "--paths").err.startswith("note: the program has no param")


@pytest.mark.parametrize("columns", [60, 80])
def test_on_a_terminal(columns: int) -> None:
    long = "param w = 2.0\nloss = log(1 + (w - 1) ** 2) / 3 * exp(tanh(w)) + sqrt(w) / 7"
    code, lines = on_a_terminal(columns, "grad", "-e", long, "--paths")
    assert code == 0
    assert [line for line in lines if len(line) > columns] == []
    assert any("sum of 3 paths" in line for line in lines)

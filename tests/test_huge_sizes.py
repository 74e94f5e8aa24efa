"""Sizes so large that their product is no i64: the same fault, or the same empty tensor, in both modes."""

from __future__ import annotations

import json

import pytest

from graphdsl.cli.main import run
from graphdsl.runtime.modes import MODES
from graphdsl.source.span import Source
from tests.running import said

SIZES = "a tensor of these sizes is too large"
MEMORY = "a tensor would take 9223372 TB or more"
N, M = "input n = 1000000000000; ", "input m = 9223372036854775807; "


def events(code: str) -> list[dict[str, object]]:
    """What a program says in both modes alike."""
    eager, graph = (said(Source("<code>", code), mode) for mode in MODES)
    assert eager == graph
    return [json.loads(line) for line in eager]


@pytest.mark.parametrize(
    "code",
    [
        N + "x = ones(n, 0, n)",
        N + "x = zeros(n, n)",
        N + "print sum(ones(n, n))",
        N + "x = full([n, 0, n], 2)",
        N + "x = uniform(n, 0, n)",
        N + "x = normal(0, n, n)",
        N + "x = randint(0, 3, n, 0, n)",
        N + "x = reshape(zeros(0), n, 0, n)",
        N + "x = reshape(zeros(0), n, n, -1)",
        "input n = 4294967296; x = reshape(zeros(0), n, n)",
        N + "x = broadcast_to(zeros(0), n, n, 0)",
        N + "for i in 0..2 { x = zeros(n, 0, n) }",
        "x = zeros(1000000000000, 0, 1000000000000)",
        "x = uniform(2000000000000000000)",
        "input x = 1e300; print sum(arange(0.0, x))",
        M + "x = arange(-m, m)",
        M + "x = arange(m, -m, -1)",
        M + "x = -m..m",
        M + "x = m..-m step -1",
        M + "fn f(n) { x = 0..n; return 1 }; print f(m)",
        M + "fn f(n) { x = 1..n step 2; for i in x { return i }; return 1 }; print f(m)",
        M + "print zeros(3)[0..m]",
        M + "print eye(m, 0).shape",
        M + "print linspace(0.0, 1.0, m)",
        M + "print permutation(m)",
        "print -9223372036854775808..9223372036854775807",
        "x = 0..9223372036854775807; print x.size",
        "x = 0..9223372036854775807; for i in x {}",
        "print arange(0.0, inf)",
        "print arange(0.0, 1e300)",
        "print arange(0, 1, 1e-320)",
        "input e = inf; print arange(0.0, -e, -1)",
        N + "fn f(n) { x = zeros(n, 0, n); return 1 }; print f(n)",
        N + "x = zeros(n, 0); fn f(k) { x = zeros(k, 0, k) * 2 + 1; return sum(x) }; print f(x.shape[0])",
        N + "x = zeros(n, 0); print sum(ones(x.shape[0], 100000000))",
        N + "x = zeros(n, 0); print reshape(x, 0, x.shape[0], x.shape[0]).shape",
        N + "print sum(broadcast_to(1.0, n, n))",
        N + "param w = zeros(n, 0); print jacobian(w * 2, w).shape",
    ],
)
def test_sizes_given_that_nobody_can_count(code: str) -> None:
    (fault,) = events(code)
    assert (fault["code"], fault["message"]) == ("E0716", SIZES)


@pytest.mark.parametrize(
    "code",
    [
        N + "x = zeros(n, 1, 0) + zeros(1, n, 0)",
        N + "print sum(zeros(n, 1, 0) + zeros(1, n, 0))",
        N + "x = zeros(n, 0); print sum(x[:, none] + x[none])",
        N + "x = zeros(n, 0) @ zeros(0, n)",
        N + "x = zeros(n, 1, 0); y = zeros(1, n, 0); print sum(where(x > y, x, y))",
        N + "x = zeros(n, 0); print sum(x @ x.T)",
        "x = zeros(1000000000000, 1, 0); y = zeros(1, 1000000000000, 0); print sum(x + y)",
        'input n = 5000000000; x = zeros(n, 0); print einsum("ij,kj,lj->ikl", x, x, x)',
        "input n = 461168601842738790; x = zeros(n, 0) > 1; while true { x = concat([x, x]) }",
    ],
)
def test_results_that_nobody_can_count(code: str) -> None:
    *_, fault = events(code)
    assert fault["code"] == "E0730"
    assert MEMORY in str(fault["message"])


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (N + "print ones(n, 0).shape", [10**12, 0]),
        (N + "x = zeros(n, 0); print reshape(x, 0, n).shape", [0, 10**12]),
        (N + "param w = zeros(n, 0); print grad(sum(w * w), w).shape", [10**12, 0]),
        ("print arange(0.0, 1e-320, 1e300)", [0.0]),
        ("print arange(0.0, 1.0, -1e300)", []),
        (N + "x = zeros(n, 0); print sum(x * x, axis=0)", []),
        (N + "x = zeros(n, 0); print stack([x, x]).shape", [2, 10**12, 0]),
        (N + "x = zeros(n, 0); print concat([x, x]).shape", [2 * 10**12, 0]),
        (M + "print (0..3)[:m]", [0, 1, 2]),
        (M + "print (0..3)[-m::m]", [0]),
        (M + "print (0..3)[m:-m:-m]", [2]),
        (M + "print (0..3)[::-m - 1]", [2]),
        (M + "print arange(-m, m, m)", [-(2**63 - 1), 0]),
        (M + "print arange(m, -m - 1, -m)", [2**63 - 1, 0, -(2**63 - 1)]),
        ("input k: i32 = i32(2000000000); print arange(-k, k, k)", [-2 * 10**9, 0]),
    ],
)
def test_huge_sizes_of_small_tensors(code: str, value: list[int]) -> None:
    (printed,) = events(code)
    assert printed["items"][0]["value"] == value  # type: ignore[index]


@pytest.mark.parametrize(
    "code",
    [
        "print arange(0.0, nan)",
        "print arange(0.0, 1.0, nan)",
        "print arange(nan, 1.0)",
        "print arange(0.0, 1.0, inf)",
        "print arange(-inf, 1.0)",
        "input e = nan; x = arange(0.0, e)",
        "input e = inf; fn f(e) { x = arange(e, e); return 1 }; print f(e)",
    ],
)
def test_ranges_of_numbers_that_nobody_can_count(code: str) -> None:
    (fault,) = events(code)
    assert fault["code"] == "E0717"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("for i in 0..9223372036854775807 { if i > 3 { break } }; print i", 4),
        ("for i in -9223372036854775808..9223372036854775807 { if i > 7 - m { break } }; print i", 8 - (2**63 - 1)),
        ("for i in 0..m { if i > 3 { break } }; print i", 4),
        ("for i in 1..m step 2 { if i > 3 { break } }; print i", 5),
        ("for i in -m - 1..m step m { }; print i", 2**63 - 2),
        ("for i, j in zip(0..m, 0..m) { if i > 3 { break } }; print i + j", 8),
        ("for i, j in enumerate(0..m) { if i > 3 { break } }; print i + j", 8),
    ],
)
def test_loops_over_ranges_make_no_tensor(code: str, value: int) -> None:
    (printed,) = events(M + code)
    assert printed["items"][0]["value"] == value  # type: ignore[index]


@pytest.mark.parametrize("mode", MODES)
def test_long_empty_tensors_are_printed_in_short(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--mode", mode, "-e", N + "print zeros(n, 0), zeros(0, n), zeros(2, 0)"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "zeros(n, 0) = f64[1000000000000, 0] [[], [], [], ..., [], [], []]",
        "zeros(0, n) = f64[0, 1000000000000] []",
        "zeros(2, 0) = f64[2, 0] [[], []]",
    ]

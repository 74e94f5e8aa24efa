"""An error of a run names the calls and the trips of loops that led there: the same ones in both modes."""

from __future__ import annotations

from typing import Any

import pytest

from graphdsl.cli.main import run
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import MOST_TRAIL
from graphdsl.source.span import Source
from tests.running import events, said

# A program, the code of its error, and its trail: lines and texts, "3 loop" for "in trip 3 of this loop".
FAILS: dict[str, tuple[str, str, list[str]]] = {
    "for": ("x = [1.0, 2.0]\nfor i in 0..5 { print x[i] }", "E0703", ["2: 3 loop"]),
    "for over a range that begins elsewhere": ("x = [1.0, 2.0]\nfor i in 1..5 { print x[i] }", "E0703", ["2: 2 loop"]),
    "for over rows": ("n = 3\nfor r in [2, 1, 0] {\nn = n // r\n}", "E0704", ["2: 3 loop"]),
    "for with two sources": (
        "n = 3\nfor i, r in enumerate([2, 0]) {\nn = n // r + i\n}",
        "E0704",
        ["2: 2 loop"],
    ),
    "index that an inner loop begins with": (
        "x = [1.0, 2.0]\nfor i in 0..4 {\nj = i\nwhile j < 7 { j += 2 }\nprint x[j - 7]\nx = x[:1]\n}",
        "E0703",
        ["2: 3 loop"],
    ),
    "while": ("x = [1.0, 2.0]\ni = 0\nwhile i < 9 {\ni += 1\nprint x[i]\n}", "E0703", ["3: 2 loop"]),
    "condition of a while": ("x = [1.0, 2.0]\ni = 0\nwhile x[i] > 0.0 { i += 1 }", "E0703", ["3: 3 loop"]),
    "condition of a while, first": ("x = [1.0]\ni = 1\nwhile x[i] > 0.0 { i += 1 }", "E0703", ["3: 1 loop"]),
    "condition of several parts": (
        "x = [1.0, 2.0]\ni = 0\nwhile i < 9 and sum(x) > 0.0 and x[i] > 0.0 { i += 1 }",
        "E0703",
        ["3: 3 loop"],
    ),
    "while that cannot fail, in one that does": (
        "n = 4\nk = 0\nwhile true {\nk = 0\nwhile k < 5 { k += 1 }\nn -= 1\nk = k // n\n}",
        "E0704",
        ["3: 4 loop"],
    ),
    "break": (
        "x = [1.0, 2.0]\nfor i in 0..9 {\nif i == 7 { break }\nprint x[i]\n}",
        "E0703",
        ["2: 3 loop"],
    ),
    "break of an inner loop": (
        "x = [1.0, 2.0]\nfor i in 0..9 {\nfor j in 0..9 {\nif j == 2 { break }\nprint x[i + j]\n}\n}",
        "E0703",
        ["2: 2 loop", "3: 2 loop"],
    ),
    "continue": (
        "x = [1.0, 2.0]\nfor i in 0..9 {\nif i < 5 { continue }\nprint x[i]\n}",
        "E0703",
        ["2: 6 loop"],
    ),
    "return": (
        "fn f(x: f64[n]) -> f64 {\nfor i in 0..9 {\nif x[i] > 2.0 { return x[i] }\n}\nreturn 0.0\n}\nprint f([1.0, 2.0])",
        "E0703",
        ["7: call of `f`", "2: 3 loop"],
    ),
    "after a loop": ("x = [1.0]\nfor i in 0..3 { x = x * 2.0 }\nk = 3\nprint x[k]", "E0703", []),
    "after a loop in a loop": (
        "n = 2\nfor i in 0..5 {\nfor j in 0..3 { print j }\nn -= 1\nprint 1 // n\n}",
        "E0704",
        ["2: 2 loop"],
    ),
    "nested": (
        "x = [1.0, 2.0]\nfor i in 0..3 {\nk = 0\nwhile k < 2 {\nk += 1\nfor j in 0..2 { print x[i + j] }\n}\n}",
        "E0703",
        ["2: 2 loop", "4: 1 loop", "6: 2 loop"],
    ),
    "branch in a loop": (
        "n = 2\nfor i in 0..5 {\nif i > 2 { if n == 2 { print n // (3 - i) } } else { print i }\n}",
        "E0704",
        ["2: 4 loop"],
    ),
    "loop in a branch": (
        "n = 2\nif n > 1 {\nfor i in 0..5 { print n // (3 - i) }\n} else { print n }",
        "E0704",
        ["3: 4 loop"],
    ),
    "loop in a function called in a loop": (
        "fn f(n: i64) -> i64 {\ns = 0\nfor i in 0..n { s += 6 // (2 - i) }\nreturn s\n}\n"
        "fn g(n: i64) -> i64 {\nk = 0\nwhile k < n {\nk += 1\nprint f(k)\n}\nreturn k\n}\n"
        "for j in 0..3 { print g(j * 2) }",
        "E0704",
        ["14: 3 loop", "14: call of `g`", "8: 3 loop", "10: call of `f`", "3: 3 loop"],
    ),
    "recursion": (
        "fn f(n: i64) -> i64 {\ns = 0\nfor i in 0..3 { if i == n { s += f(n - 1) } }\nreturn s // n\n}\nprint f(2)",
        "E0704",
        ["6: call of `f`", "3: 3 loop", "3: call of `f`", "3: 2 loop", "3: call of `f`"],
    ),
    "map": (
        "x = [1, 0]\nfn f(v) = 6 // v\nprint map(f, x)",
        "E0704",
        ["3: 2 map", "3: call of `f`"],
    ),
    "map of what has no name": (
        "x = [1, 0]\nprint map(v -> 6 // v, x)",
        "E0704",
        ["2: 2 map", "2: call of this function"],
    ),
    "fold": (
        "fn f(c, v) = c // v\nprint fold(f, 8, [1, 2, 0])",
        "E0704",
        ["2: 3 fold", "2: call of `f`"],
    ),
    "scan": (
        "fn f(c, v) = (c // v, c)\nfor i in 0..2 { print scan(f, 8, [1, 2, 1 - i]) }",
        "E0704",
        ["2: 2 loop", "2: 3 scan", "2: call of `f`"],
    ),
    "while_loop": (
        "x = [1.0, 2.0]\nfn more(i) = x[i] > 0.0\nprint while_loop(more, i -> i + 1, 0)",
        "E0703",
        ["3: 3 while_loop", "3: call of `more`"],
    ),
    "body of a while_loop": (
        "fn f(i) = 5 // i - 1\nprint while_loop(i -> i > -1, f, 2)",
        "E0704",
        ["2: 4 while_loop", "2: call of `f`"],
    ),
    "cond": (
        "fn f(v) = 6 // v\nfn g(v) = v\nfor i in 0..3 { print cond(i == 2, f, g, 2 - i) }",
        "E0704",
        ["3: 3 loop", "3: call of `f`"],
    ),
    "map in a map": (
        "fn f(v) = fold((c, u) -> c // u, 8, v)\nprint map(f, [[1, 2], [3, 0]])",
        "E0704",
        ["2: 2 map", "2: call of `f`", "1: 2 fold", "1: call of this function"],
    ),
    "assert": ('for i in 0..5 { assert i < 3, "i is {i}" }', "E0701", ["1: 4 loop"]),
    "never set": ("for i in 0..5 {\nif i > 8 { y = 1 }\nif i == 3 { print y }\n}", "E0720", ["1: 4 loop"]),
    "host op": (
        'for i in 0..3 { print i\nif i == 1 { save "no/such/folder/a.npz", i } }',
        "E0611",
        ["1: 2 loop"],
    ),
    "memory": (
        "n = 1000\nfor i in 0..9 {\nx = zeros(n)\nx[i] = 1.0\nprint sum(x)\nn *= 100_000_000\n}",
        "E0730",
        ["2: 2 loop"],
    ),
    "fused": (
        "x = ones(3)\nn = 5\nwhile n > 0 {\nn -= 1\nprint sum(exp(x) * ones(n)[1:])\n}",
        "E0702",
        ["3: 2 loop"],
    ),
    "too deep": (
        "fn f(n: i64) -> i64 {\nreturn f(n + 1)\n}\nfor i in 0..3 { if i == 1 { print f(0) } }",
        "E0731",
        ["2: call of `f`"] * MOST_TRAIL,
    ),
    "too deep by loops": (
        "fn f(n: i64) -> i64 {\nfor i in 0..2 { n += f(n) }\nreturn n\n}\nprint f(0)",
        "E0731",
        ["2: call of `f`", "2: 1 loop"] * (MOST_TRAIL // 2),
    ),
    "derivative in a loop": (
        "param w = 1.0\nfor i in 0..3 {\ny = w\nfor j in 0..4 { y = sin(y) * w }\nprint 1 // (2 - i), grad(y, w)\n}",
        "E0704",
        ["2: 3 loop"],
    ),
    "loop that a derivative goes back through": (
        "fn f(w: f64[n], k: i64) -> f64 {\ny = 1.0\nfor j in 0..4 { y = sin(y) * w[j * k] }\nreturn y\n}\n"
        "param w = ones(4)\nfor i in 0..3 {\ny = f(w, i)\nprint grad(y, w)\n}",
        "E0703",
        ["7: 3 loop", "8: call of `f`", "3: 3 loop"],
    ),
    "jacobian of too much": (
        "fn f(x: f64[n], k: i64) -> f64[n] {\ny = x\nfor i in 0..k { y = sin(y) * x }\nreturn y\n}\n"
        "for j in 0..3 {\nx = ones(2 + j * 9_000_000)\ny = f(x, 1)\nprint sum(jacobian(y, x))\n}",
        "E0730",
        ["6: 2 loop"],
    ),
}


def _trail(error: dict[str, Any]) -> list[str]:
    """As in the table above."""
    found = []
    for entry in error.get("trail", []):
        text = entry["text"].removeprefix("in trip ").removeprefix("in this ").replace(" of this ", " ", 1)
        text = entry["text"].removeprefix("in this ") if "call" in text else text.replace("`", "")
        found.append(f"{entry['line']}: {text}")
    return found


@pytest.mark.parametrize("name", FAILS)
def test_the_way_to_an_error(name: str) -> None:
    text, code, trail = FAILS[name]
    eager, graph = (said(Source("x.gdl", text), mode) for mode in MODES)
    assert eager == graph
    error = events(eager)[-1]
    assert (error["code"], _trail(error)) == (code, trail)


@pytest.mark.parametrize("mode", MODES)
def test_loops_too_deep_for_one_function(mode: str) -> None:
    depth = 20
    text = "n = 0\n" + "for i in 0..2 {\n" * depth + "n += 1\nm = 1 // (5 - n)\n" + "}\n" * depth
    error = events(said(Source("x.gdl", text), mode))[-1]
    assert (error["code"], error["line"]) == ("E0704", depth + 3)
    trips = [int(entry["text"].split()[2]) for entry in error["trail"]]
    assert [entry["line"] for entry in error["trail"]] == list(range(2, depth + 2))
    assert trips == [1] * (depth - 3) + [2, 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_run_leaves_nothing_to_the_next(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = "input n: i64\nx = [1.0, 2.0]\nfor i in 0..n { print x[i + n] }"
    for n in ("1", "2", "2"):
        run(["run", "-e", code, "--mode", mode, "--feed", f"n={n}"])
    err = capsys.readouterr().err
    assert err.count("in trip 1 of this loop") == 2


@pytest.mark.parametrize("mode", MODES)
def test_the_limit_of_memory(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "n = 10_000\nwhile true {\nn *= 10\nx = ones(n)\nfor i in 0..3 { print sum(x[:, none] * x[:2]) + x[i] }\n}"
    run(["run", "-e", text, "--mode", mode, "--memory-limit", "5MB"])
    assert "= note: in trip 2 of this loop, at <code>:2\n" in capsys.readouterr().err + "\n"

"""What `check`, `grad`, `compare`, `ir` and `ops` show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.cli import status
from graphdsl.ops.table import OPS
from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE, process


def test_check_shows_every_problem(graphdsl: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gdl"
    bad.write_text("print a\nprint b\n")
    said = graphdsl("check", ARTICLE, str(bad))
    assert said.code == status.WRONG_PROGRAM
    assert said.err.count("error[E0201]") == 2
    assert said.err.rstrip().endswith("1 of 2 right")
    events = graphdsl("check", ARTICLE, str(bad), "--json").events()
    assert [e["errors"] for e in events if e["event"] == "checked"] == [0, 2]
    assert graphdsl("check", ARTICLE).code == 0


def test_check_takes_a_program_from_anywhere(graphdsl: Any) -> None:
    (checked,) = graphdsl("check", "-e", "print 1", "--json").events()
    assert (checked["file"], checked["errors"]) == ("<code>", 0)
    for args in (["check", "-"], ["check"]):
        said = process(*args, input="print y")
        assert said.returncode == status.WRONG_PROGRAM
        assert "--> <stdin>:1:7" in said.stderr


def test_colour(graphdsl: Any) -> None:
    assert "\x1b[" in graphdsl("run", "-e", "print a", "--color", "always").err
    assert "\x1b[" not in graphdsl("run", "-e", "print a", "--color", "auto").err


@pytest.mark.parametrize("mode", MODES)
def test_grad(graphdsl: Any, mode: str) -> None:
    assert graphdsl("grad", ARTICLE, "--wrt", "w", "--mode", mode).out == "y = 15.0\n∂y/∂w = 8.0\n"
    said = graphdsl("grad", ARTICLE, "--of", "y", "--wrt", "x,w", "--mode", mode, "--json")
    of = {"name": "y", "dtype": "f64", "shape": [], "value": 15.0}
    assert said.events() == [
        {"event": "grad", "of": of, "wrt": "x", "dtype": "f64", "shape": [], "value": 3.0},
        {"event": "grad", "of": of, "wrt": "w", "dtype": "f64", "shape": [], "value": 8.0},
    ]


@pytest.mark.parametrize("mode", MODES)
def test_grad_after_training(graphdsl: Any, mode: str) -> None:
    """The gradient of the last `loss`, at the `w` that it was computed from."""
    code = "param w = 4.0\nfor i in 0..2 {\n  loss = w * w\n  w := w - 0.25 * grad(loss, w)\n}"
    assert graphdsl("grad", "-e", code, "--mode", mode).out == "loss = 4.0\n∂loss/∂w = 4.0\n"


@pytest.mark.parametrize("mode", MODES)
def test_grad_where_no_derivative_is_taken_in_the_loop(graphdsl: Any, mode: str) -> None:
    code = "param w = 2.0\nfor i in 0..2 {\n  loss = w ** 3\n  w := w - 0.25\n}"
    assert graphdsl("grad", "-e", code, "--mode", mode).out == "loss = 5.359375\n∂loss/∂w = 9.1875\n"


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(graphdsl: Any, mode: str) -> None:
    code = "param w = [1.0, 2.0]\nparam b: f32 = 3.0\nparam n = 1\ny = sum(w ** 3) * b"
    said = graphdsl("grad", "-e", code, "--order", "2", "--mode", mode)
    assert said.out.split("\n") == [
        "y = 27.0",
        "∂²y/∂w² = f64[2, 2] [[18.0, 0.0], [0.0, 36.0]]",
        "∂²y/∂w∂b = f32[2] [3.0, 12.0]",
        "∂²y/∂b² = 0.0",
        "",
    ]
    code = "param w = 2.0\nprint w ** 3 + w"
    assert "∂²(w ** 3 + w)/∂w² = 12.0\n" in graphdsl("grad", "-e", code, "--order", "2", "--mode", mode).out
    said = graphdsl("grad", ARTICLE, "--wrt", "w,x", "--order", "2", "--mode", mode, "--json").events()
    of = {"name": "y", "dtype": "f64", "shape": [], "value": 15.0}
    assert said == [
        {"event": "hessian", "of": of, "wrt": wrt, "dtype": "f64", "shape": [], "value": value}
        for wrt, value in ((["w", "w"], 2.0), (["w", "x"], 1.0), (["x", "x"], 0.0))
    ]
    assert graphdsl("grad", ARTICLE, "--order", "3").code == status.WRONG_USAGE


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_by_a_param_that_changes(graphdsl: Any, mode: str) -> None:
    """By the leaf on which the value last depended, also where the first derivative depends only on an earlier one."""
    code = "param w = 2.0\nold = w\nw := 5.0\ny = w * old * old"
    said = graphdsl("grad", "-e", code, "--wrt", "w,old", "--order", "2", "--mode", mode)
    assert said.out == "y = 20.0\n∂²y/∂w² = 0.0\n∂²y/∂w∂old = 4.0\n∂²y/∂old² = 10.0\n"
    code = "param w = 2.0\nfor i in 0..2 {\n  v = w\n  loss = v ** 3\n  w := w - 0.25\n}"
    said = graphdsl("grad", "-e", code, "--wrt", "v", "--order", "2", "--mode", mode)
    assert said.out == "loss = 5.359375\n∂²loss/∂v² = 10.5\n"
    said = graphdsl("grad", "-e", code, "--order", "2", "--mode", mode)
    assert (said.code, said.out) == (status.WRONG_USAGE, "")
    assert "no second derivative by `w`, to which a loop or a branch gives new values" in said.err


NODES = """
param w = [1.0, 2.0]
const c = 3.0
x = 2.0
h = w * x
h = h + 1
v = h
if h[0] > 100 { z = sum(h) }
for i in 0..2 {
  t = sum(h) * c
  r = [h, h]
  r = sum(r)
  h = h * t
}
fn f(a) = a * 2
p, q = f(h), (h, 1.0)
loss = sum(p) + q[1]
"""


@pytest.mark.parametrize("mode", MODES)
def test_the_gradients_of_all_named_values(graphdsl: Any, mode: str) -> None:
    """Each value that a name is given outside loops and branches; of these, the last one; what is not set is left out."""
    said = graphdsl("grad", "-e", NODES, "--all", "--mode", mode)
    assert said.err == ""
    assert said.out.replace("\n        ", " ").split("\n") == [
        "loss = 221185.0",
        "line 2: w = f64[2] [1.0, 2.0] ∂loss/∂w = f64[2] [221184.0, 221184.0]",
        "line 4: x = 2.0, ∂loss/∂x = 331776.0",
        "line 5: h = f64[2] [2.0, 4.0] ∂loss/∂h = f64[2] [110592.0, 110592.0]",
        "line 6: h = f64[2] [3.0, 5.0] ∂loss/∂h = f64[2] [110592.0, 110592.0]",
        "line 10: t = 576.0, ∂loss/∂t = 384.0",
        "line 12: r = 384.0, ∂loss/∂r = 0.0",
        "line 13: h = f64[2] [41472.0, 69120.0]  ∂loss/∂h = f64[2] [2.0, 2.0]",
        "line 16: p = f64[2] [82944.0, 138240.0]  ∂loss/∂p = f64[2] [1.0, 1.0]",
        "line 16: q = 1.0, ∂loss/∂q = 1.0",
        "line 17: loss = 221185.0, ∂loss/∂loss = 1.0",
        "",
    ]


@pytest.mark.parametrize("mode", MODES)
def test_all_named_values_and_a_param_that_a_loop_changes(graphdsl: Any, mode: str) -> None:
    code = "param w = 4.0\nfor i in 0..2 {\n  loss = w * w\n  w := w - 0.25 * grad(loss, w)\n}"
    said = graphdsl("grad", "-e", code, "--all", "--mode", mode)
    assert said.out == "loss = 4.0\nline 1: ∂loss/∂w = 4.0\nline 3: loss = 4.0, ∂loss/∂loss = 1.0\n"
    first, _ = graphdsl("grad", "-e", code, "--all", "--mode", mode, "--json").events()
    assert (first["wrt"], first["line"], first["value"], first["node"]) == ("w", 1, 4.0, None)
    twice = "param w = 2.0\ny = w * w\nfor i in 0..2 { w := y; r = [w]; if i > 0 { y = y * w } }"
    assert "∂y/∂w = 4.0" in graphdsl("grad", "-e", twice, "--all", "--mode", mode).out
    assert graphdsl("grad", ARTICLE, "--all", "--wrt", "w").code == status.WRONG_USAGE


@pytest.mark.parametrize("mode", MODES)
def test_all_named_values_where_one_has_no_single_type_in_a_loop(graphdsl: Any, mode: str) -> None:
    """What could not be kept to the end of the program is left out."""
    code = "x = 2.0\ny = x\nfor i in 0..2 {\n  if i > 0 { h = [y] } else { h = y * 2 }\n  y = y * x\n}"
    assert graphdsl("run", "-e", code, "--mode", mode).code == 0
    said = graphdsl("grad", "-e", code, "--all", "--mode", mode)
    assert said.out == "y = 8.0\nline 1: x = 2.0, ∂y/∂x = 12.0\nline 5: y = 8.0, ∂y/∂y = 1.0\n"


def test_compare(graphdsl: Any) -> None:
    said = graphdsl("compare", ARTICLE, "--wrt", "w", "--repeat", "3", "--json")
    eager, graph, ratio, agreement = said.events()
    assert said.code == 0
    keys = ["event", "mode", "build_s", "compile_s", "first_s", "steady_s", "best_s", "iqr_s", "runs"]
    for timing, mode in ((eager, "eager"), (graph, "graph")):
        assert list(timing) == [*keys, "peak_bytes", "ops", "cached_s", "check_s", "feed_s"]
        assert (timing["event"], timing["mode"], timing["runs"]) == ("timing", mode, 3)
    assert list(ratio) == ["event", "median", "low", "high", "pays_back"]
    assert agreement == {"event": "agreement", "identical": True, "values": 3, "gradients": 1, "prints": 2}
    text = graphdsl("compare", ARTICLE, "--repeat", "3").out
    assert text.rstrip().endswith("identical: 3 values, 2 printed lines")


def test_compare_feeds_what_is_not_part_of_a_run(graphdsl: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.arange(4.0), w=np.ones(4, np.float32))
    file = tmp_path / "a.gdl"
    file.write_text('input x: f64[n] = load("d.npz", "x")\nparam w = load("d.npz", "w")\nprint sum(x * w), n')
    assert graphdsl("compare", str(file), "--repeat", "2").out.rstrip().endswith("2 printed lines")


HALVED = """
fn f(x: f64) -> f64 {
  if x < 0.5 { return x }
  return 2.0 * x * f(x / 2.0)
}
x = 4.0
print f(x)
"""


@pytest.mark.parametrize(
    ("code", "eager", "graph"),
    [
        ("a = 0.0\nfor i in 0..10 { a = a + f64(i) }\nprint a", 20, 20),  # a conversion and a sum a trip
        ("a = 0.0\nwhile a < 5.0 { a += 1.0 }\nprint a", 11, 11),  # six comparisons, five sums
        (HALVED, 17, 17),  # four times a comparison, a quotient and two products, and one comparison more
        ("input x = [1.0, 2.0]\nprint exp(x) * x + 1.0", 3, 1),  # fused
        ("param w = [1.0, 2.0]\nprint grad(sum(w * w * w), w)", 10, 1),
    ],
)
def test_compare_counts_ops(graphdsl: Any, code: str, eager: int, graph: int) -> None:
    first, second, *_ = graphdsl("compare", "-e", code, "--repeat", "1", "--json").events()
    assert (first["ops"], second["ops"]) == (eager, graph)


def test_compare_says_which_mode_is_faster(graphdsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphdsl.api import measure

    times = {"eager": 1.0, "graph": 4.0}
    monkeypatch.setattr(measure, "_timed", lambda prepared: times[type(prepared.engine).__name__.lower()])
    assert (
        "graph is 4 times slower than eager (4 to 4, 1 run each), and never"
        in graphdsl("compare", ARTICLE, "--repeat", "1").out
    )
    times["graph"] = 0.25
    assert (
        "graph is 4 times faster than eager (4 to 4, 2 runs each), and has"
        in graphdsl("compare", ARTICLE, "--repeat", "2").out
    )


def test_compare_leaves_the_files_that_one_run_leaves(graphdsl: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "n.npy", np.float64(1.0))
    file = tmp_path / "a.gdl"
    file.write_text('input first = load("n.npy")\nsave "n.npy", first + 1.0\nprint load("n.npy"), first')
    said = graphdsl("compare", str(file), "--repeat", "2")
    assert (said.code, float(np.load(tmp_path / "n.npy"))) == (0, 2.0)
    assert sorted(os.listdir(tmp_path)) == ["a.gdl", "n.npy"]
    file.write_text('save "nowhere/n.npy", 1.0')
    said = graphdsl("compare", str(file))
    assert (said.code, "identical: the error at line 1" in said.out) == (status.WRONG_PROGRAM, True)


WARNED = "param w = 2.0\nloss = w * w\nw := 1.0\nprint grad(loss, w)"


@pytest.mark.parametrize("command", [["run"], ["grad"], ["compare", "--repeat", "1"], ["ir"], ["check"]])
def test_every_command_shows_warnings(graphdsl: Any, command: list[str]) -> None:
    said = graphdsl(*command, "-e", WARNED)
    assert (said.code, said.err.count("warning[W0101]")) == (0, 1)


def test_compare_of_a_failing_program(graphdsl: Any) -> None:
    said = graphdsl("compare", "-e", "print 1\ni = 7\nprint [1, 2][i]")
    assert said.code == status.WRONG_PROGRAM
    assert "identical: 1 printed line, the error at line 3" in said.out
    assert "error[E0703]" in said.err


def test_compare_shows_the_first_difference(graphdsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphdsl.api.engines import Graph

    run_graph = Graph.run

    def off_by_an_ulp(self: Any, runtime: Any) -> Any:
        found = run_graph(self, runtime)
        found.exports["y"] = np.array([1.0, np.nextafter(2.0, 3.0)])
        return found

    monkeypatch.setattr(Graph, "run", off_by_an_ulp)
    said = graphdsl("compare", "-e", "y = [1.0, 2.0]")
    assert said.code == status.DIFFERS
    assert said.out.splitlines() == [
        "the modes differ: `y` at [1] (1 of 2 elements differ)",
        "  eager  2.0",
        "  graph  2.0000000000000004",
        "  1 ulp apart",
    ]


def test_ir(graphdsl: Any) -> None:
    text = graphdsl("ir", ARTICLE).out
    assert all(f"── {name} " in text for name in ("core", "graph", "fold", "dead"))
    assert "mul(" in graphdsl("ir", ARTICLE, "--pass", "core").out
    folded = ("ir", "-e", "print 2 * 3", "--pass", "dead")
    assert "mul(" not in graphdsl(*folded).out
    assert "mul(" in graphdsl(*folded, "--without", "fold").out
    assert "define" in graphdsl("ir", ARTICLE, "--llvm").out
    assert graphdsl("ir", ARTICLE, "--asm").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pass", "nothing"], "There is no pass `nothing`. They are core, graph, fold"),
        (["--pass", "fus"], "Did you mean `fuse`?"),
        (["--without", "core"], "There is no pass `core`"),
        (["--without", "fuse", "--pass", "fuse"], "`fuse` is left out"),
        (["--pass", "core", "--llvm"], "--pass and --llvm show different things"),
        (["--pass", "core", "--asm"], "--pass and --asm"),
        (["--llvm", "--asm"], "--llvm and --asm"),
    ],
)
def test_ir_of_a_wrong_command_line(graphdsl: Any, options: list[str], words: str) -> None:
    said = graphdsl("ir", ARTICLE, *options)
    assert (said.code, said.out) == (status.WRONG_USAGE, "")
    assert words in said.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("+", "a + b\n"),
        ("-", "a - b\n"),
        ("-", "-x\n"),
        ("@", "to a          g @ transpose(b, perm=(1, 0))"),
        ("not", "~x, not x"),
        ("and", "`b` is evaluated only where `a` holds"),
        ("f32", "f32(x)"),
        ("grad", "grad(y, w, …)\n    The derivative of a scalar"),
        ("while_loop", "while_loop(cond, body, init…)"),
        ("softmax", "derivative    that of the ops that it is made of"),
        ("argmax", "derivative    none"),
        ("count_nonzero", "derivative    none"),
        ("sum", "to x          broadcast_like(g, x, axes=(0, 1))"),
        ("where", "to a          where(condition, g, 0.0)"),
        ("concat", "derivative    each operand gets its part of `g`"),
    ],
)
def test_what_can_be_asked_of_ops(graphdsl: Any, name: str, words: str) -> None:
    said = graphdsl("ops", name)
    assert said.code == 0
    assert words in said.out
    assert graphdsl("ops", name, "--json").events()[0]["doc"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sqr", "Did you mean `sqrt`"),
        ("§", "`graphdsl ops` lists them"),
        ("for", "a word of the language"),
        ("zip", "stands only in a `for`"),
        ("cholesky", "is not here yet"),
    ],
)
def test_what_ops_does_not_know(graphdsl: Any, name: str, words: str) -> None:
    said = graphdsl("ops", name)
    assert (said.code, said.out) == (status.WRONG_USAGE, "")
    assert words in said.err


def test_each_op_and_built_in_is_explained(graphdsl: Any) -> None:
    from graphdsl.check.names import FORMS
    from graphdsl.check.operators import OPERATORS

    for name in (*OPS, *FORMS, *OPERATORS):
        said = graphdsl("ops", name)
        assert (said.code, len(said.out.splitlines()) > 1, "{" in said.out) == (0, True, False)


def test_ops(graphdsl: Any) -> None:
    assert "sqrt(x)" in graphdsl("ops").out
    said = graphdsl("ops", "sqrt").out
    assert "Square root" in said
    assert "scale(g, 0.5 / y)" in said
    assert len(graphdsl("ops", "--json").events()) > 30

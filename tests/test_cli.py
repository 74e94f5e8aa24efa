"""The command line: what is printed where, exit statuses, and that nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.cli import status
from graphdsl.cli.main import run
from graphdsl.ops.table import OPS

ROOT = Path(__file__).parents[1]
ARTICLE = str(ROOT / "samples" / "article.gdl")
MODES = ("eager", "graph")


class Said:
    """What a command line said, and its exit status."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out + self.err).splitlines()]


@pytest.fixture
def graphdsl(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> Said:
        code = run(list(args))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)

    return call


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphdsl", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False, **options)


# ---- run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_run_prints_what_the_program_prints(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", ARTICLE, "--mode", mode)
    assert (said.code, said.out, said.err) == (0, "y = 15.0\ngrad(y, w) = 8.0\n", "")


@pytest.mark.parametrize("mode", MODES)
def test_events(graphdsl: Any, mode: str) -> None:
    code = 'x = [f32(0.1), nan]\nprint 1, x, "text {2 + 3}", true, (inf, -0.0)'
    said = graphdsl("run", "-e", code, "--json", "--mode", mode)
    assert said.out.splitlines() == [
        '{"event":"print","line":2,"items":[{"name":"1","dtype":"i64","shape":[],"value":1},'
        '{"name":"x","dtype":"f32","shape":[2],"value":[0.1, "NaN"]}]}',
        '{"event":"print","line":2,"text":"text 5"}',
        '{"event":"print","line":2,"items":[{"name":"true","dtype":"bool","shape":[],"value":true},'
        '{"name":"(inf, -0.0)[0]","dtype":"f64","shape":[],"value":"Infinity"},'
        '{"name":"(inf, -0.0)[1]","dtype":"f64","shape":[],"value":-0.0}]}',
    ]


@pytest.mark.parametrize("mode", MODES)
def test_what_was_printed_before_a_failure_is_out(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", "print 1\ni = 5\nprint [1, 2][i]", "--json", "--mode", mode)
    assert said.code == status.WRONG_PROGRAM
    printed, error = said.events()
    assert printed["items"][0]["value"] == 1
    place = {"file": "<code>", "line": 3, "column": 7, "end_line": 3, "end_column": 16}
    assert {k: error[k] for k in ("event", "code", *place)} == {"event": "error", "code": "E0703", **place}


def test_feeds_and_first_values(graphdsl: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.0, 2.0]))
    code = "input x: f64[n]\ninput k = 2\nparam w = 1.0\nprint x * w * k"
    assert graphdsl("run", "-e", code, "--feed", "x=[1, 2]", "--set", "w=3").out == "x * w * k = f64[2] [6.0, 12.0]\n"
    assert graphdsl("run", "-e", code, "--feed", f"x=@{tmp_path}/x.npy", "--feed", "k=1").code == 0
    assert graphdsl("run", "-e", code).code == status.WRONG_PROGRAM
    assert graphdsl("run", "-e", code, "--feed", "x=3").code == status.WRONG_PROGRAM


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--feed", "y=3"], "no input `y`; its inputs are `x`"),
        (["--feed", "w=3"], "use --set"),
        (["--set", "x=3"], "use --feed"),
        (["--feed", "x"], "`x` is not NAME=VALUE, as in `--feed x=3`"),
        (["--feed", "=3"], "NAME=VALUE"),
        (["--feed", "x="], "NAME=VALUE"),
        (["--set", "w"], "as in `--set x=3`"),
        (["--set", "v=1"], "no param `v`; its params are `w`"),
        (["--seed", "abc"], "'abc' is not a valid integer"),
        (["--seed", "1.5"], "not a valid integer"),
        (["--seed", "99999999999999999999"], "does not fit 64 bits"),
        (["--mode", "Graph"], "is not one of 'eager', 'graph'"),
        (["--feed", "x=1", "--feed", "x=2"], "twice"),
        (["--fetch", "nothing"], "`nothing`"),
    ],
)
def test_feeds_of_a_wrong_command_line(graphdsl: Any, options: list[str], words: str) -> None:
    said = graphdsl("run", "-e", "input x = 1.0\nparam w = 1.0\nprint x * w", *options)
    assert said.code == status.WRONG_USAGE
    assert words in said.err


WITH_INPUTS = "input x: f64[n] = [1.0, 2.0]\ninput k: i32 = 2\nparam w = 1.0\ny = sum(x) * w * k\nprint y"


@pytest.mark.parametrize(
    ("option", "code", "exit"),
    [
        ("--feed x=@nope.npy", "E0601", status.WRONG_USAGE),
        ("--feed x=@nope.txt", "E0610", status.WRONG_USAGE),
        ("--feed x=abc", "E0621", status.WRONG_USAGE),
        ("--feed x=[1,2", "E0621", status.WRONG_USAGE),
        ("--feed k=99999999999999999999", "E0621", status.WRONG_USAGE),
        ("--set w=@nope.npz:w", "E0601", status.WRONG_USAGE),
        ("--set w=abc", "E0621", status.WRONG_USAGE),
        ("--load nope.npz", "usage", status.WRONG_USAGE),
        ("--feed k=2.5", "E0622", status.WRONG_PROGRAM),
        ("--feed x=3", "E0623", status.WRONG_PROGRAM),
        ("--feed k=3000000000", "E0626", status.WRONG_PROGRAM),
        ("--set w=[1,2]", "E0623", status.WRONG_PROGRAM),
    ],
)
@pytest.mark.parametrize("command", ["run", "run --mode graph", "compare"])
def test_what_cannot_be_read_and_what_does_not_fit(
    graphdsl: Any, command: str, option: str, code: str, exit: int
) -> None:
    said = graphdsl(*command.split(), "-e", WITH_INPUTS, *option.split(), "--json")
    (error,) = (event for event in said.events() if event["event"] == "error")
    assert (said.code, error["code"]) == (exit, code)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--wrt q", "It binds `k`, `n`, `w`, `x`, `y`"),
        ("--wrt ,", "names are expected"),
        ("--wrt k", "`k` is i32, and has no derivative\n  --> <code>:2:7"),
        ("--wrt n", "`n` is i64, and has no derivative"),
        ("--of x", "only a float scalar has a gradient\n  --> <code>:1:7"),
        ("--of k", "only a float scalar"),
        ("--of y,w", "one name is expected, not 2"),
        ("--of z", "no `z`"),
    ],
)
def test_derivatives_that_cannot_be(graphdsl: Any, option: str, words: str) -> None:
    for command in ("grad", "grad --mode graph", "compare"):
        said = graphdsl(*command.split(), "-e", WITH_INPUTS, *option.split())
        assert (said.code, said.out) == (status.WRONG_USAGE, "")
        assert words in said.err


def test_grad_goes_by_the_params_that_are_floats(graphdsl: Any) -> None:
    assert graphdsl("grad", "-e", "param n = 3\nparam w = 2.0\ny = w * n").out == "y = 6.0\n∂y/∂w = 3.0\n"
    said = graphdsl("grad", "-e", "x = 2.0\ny = x * x")
    assert (said.code, said.out) == (0, "y = 4.0\n")
    assert "`--wrt x`" in said.err
    said = graphdsl("grad", "-e", "print 1\n")
    assert said.code == status.WRONG_PROGRAM
    assert "--> <code>:1:1" in said.err


def test_seed(graphdsl: Any) -> None:
    one, other, again = (graphdsl("run", "-e", "print uniform(3)", "--seed", s).out for s in ("1", "2", "1"))
    assert one == again != other


@pytest.mark.parametrize("mode", MODES)
def test_fetch(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", "y = 2\nprint 1\nz = y * 0.5", "--fetch", "z,y", "--mode", mode)
    assert said.out == "z = 1.0\ny = 2\n"


def test_programs_from_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "a.gdl"
    file.write_text("\ufeffprint 1\r\n", "utf-8")
    assert process("run", str(file)).stdout == "1 = 1\n"
    assert process("run", "-", input="print 2").stdout == "2 = 2\n"
    assert process("run", input="print 3").stdout == "3 = 3\n"
    assert process("run", str(file), "-e", "print 1").returncode == status.WRONG_USAGE
    missing = process("run", "nowhere.gdl")
    assert (missing.returncode, "Cannot read `nowhere.gdl`" in missing.stderr) == (status.WRONG_USAGE, True)


# ---- whatever comes in ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe\x00", bytes(range(256)) * 100, b"x = " + b"(" * 10_000, b"\x00", b"print 1 +", b'print "',
        b"x = " + b"-" * 10_000 + b"1\n", b"if true { " * 300,
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", MODES)
def test_bad_bytes(tmp_path: Path, graphdsl: Any, data: bytes, mode: str) -> None:
    file = tmp_path / "bad.gdl"
    file.write_bytes(data)
    said = graphdsl("run", str(file), "--mode", mode, "--json")
    assert said.code in (status.DONE, status.WRONG_PROGRAM)
    assert all("line" in event for event in said.events())


MANY = "run -e 'for i in 0..100000 { print i }'"
COMMANDS = [
    MANY, f"{MANY} --mode graph", f"grad {ARTICLE}", f"compare {ARTICLE} --repeat 1", f"ir {ARTICLE}", "ops",
    f"check {ARTICLE} --json", "--help", "grad --help", "--version",
]  # fmt: skip


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run by bash with the status of the first command of a pipe; `graphdsl` is this one."""
    line = f'graphdsl() {{ "{sys.executable}" -m graphdsl "$@"; }}; {command}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)


@pytest.mark.skipif(os.name == "nt", reason="a shell")
def test_a_closed_pipe_ends_quietly() -> None:
    done = shell(f"graphdsl {MANY} | head -1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "i = 0\n", "")


@pytest.mark.skipif(os.name == "nt", reason="a shell")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_that_nobody_reads(command: str) -> None:
    done = shell(f"graphdsl {command} | true")
    assert (done.returncode, "Traceback" in done.stderr, "E0" in done.stderr) == (0, False, False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written(command: str) -> None:
    done = shell(f"graphdsl {command} > /dev/full")
    assert done.returncode == status.WRONG_PROGRAM
    said = [line for line in done.stderr.splitlines() if "E0614" in line]
    assert len(said) == 1
    assert "cannot write the output: No space left on device" in said[0]
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell")
@pytest.mark.parametrize("command", COMMANDS)
def test_streams_that_are_closed(command: str) -> None:
    done = shell(f"graphdsl {command} >&-")
    assert (done.returncode, "Traceback" in done.stderr, "itself" in done.stderr) == (0, False, False)
    assert shell(f"graphdsl {command} >&- 2>&- <&-").returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_the_status_tells_what_messages_cannot(where: str) -> None:
    assert shell(f"graphdsl run -e 'print a' {where}").returncode == status.WRONG_PROGRAM
    assert shell(f"graphdsl run --unknown {where}").returncode == status.WRONG_USAGE


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "endless",
    [
        "a = 0\nwhile true { a += 1 }",
        "fn f(n: i64) -> i64 { if n == 0 { return 0 }; return f(n - 1) + f(n - 1) }\nprint f(60)",
    ],
    ids=["loop", "calls"],
)
def test_interruption(mode: str, endless: str) -> None:
    command = [sys.executable, "-m", "graphdsl", "run", "--mode", mode, "-e", f"print 1\n{endless}"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "1 = 1\n"
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err.strip()) == (status.INTERRUPTED, "interrupted")


def test_a_fault_of_graphdsl_says_so(graphdsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("something\nbroke")

    monkeypatch.setattr("graphdsl.api.program.Program.prepare", broken)
    said = graphdsl("run", "-e", "print 1")
    assert said.code == status.FAULT
    assert "graphdsl itself failed" in said.err
    assert "RuntimeError: something broke" in said.err
    assert "report" in said.err
    (event,) = graphdsl("run", "-e", "print 1", "--json").events()
    assert event["code"] == "internal"


def test_wrong_command_lines(graphdsl: Any) -> None:
    for args in (
        [],
        ["unknown"],
        ["run", "--unknown"],
        ["run", "--mode", "fast", "-e", "print 1"],
        ["check", ARTICLE, "-e", "x"],
    ):
        said = graphdsl(*args)
        assert said.code == status.WRONG_USAGE
    assert "Did you mean `compare`?" in graphdsl("compar").err
    assert f"graphdsl run {ARTICLE}" in graphdsl(ARTICLE).err
    (event,) = graphdsl("run", "--unknown", "--json").events()
    assert event["event"] == "error"


def test_every_command_shows_an_example(graphdsl: Any) -> None:
    for name in ("run", "grad", "compare", "check", "ir", "ops"):
        said = graphdsl(name, "--help")
        assert said.code == 0
        assert f"Example:  graphdsl {name}" in said.out
        assert name in graphdsl("--help").out


# ---- check, grad, compare, ir, ops ----------------------------------------------------------------------


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


# ---- from Python ----------------------------------------------------------------------------------------


def test_python_api_says_what_is_wrong() -> None:
    import graphdsl as package

    program = package.loads("param w = 2.0\ninput wx = 3.0\ny = w * wx")
    for mode in ("Eager", "bogus", ""):
        for call in (program.run, program.grad, program.compile):
            with pytest.raises(ValueError, match=r"there is no mode '.*': it is 'eager' or 'graph'"):
                call(mode=mode)
    assert program.grad(of="y", wrt="wx") == {"wx": 2.0}
    with pytest.raises(package.ProgramError, match="the program binds no `x`"):
        program.grad(of="y", wrt="x")
    with pytest.raises(package.UnknownName, match="`w` is a param, not an input"):
        program.run(feeds={"w": 1.0})
    with pytest.raises(package.UnknownName, match="`wx` is an input, not a param"):
        program.run(params={"wx": 1.0})


def test_python_api() -> None:
    import graphdsl as package

    program = package.load(ARTICLE)
    for mode in MODES:
        assert program.run(mode=mode)["y"] == 15.0
        assert program.run(mode=mode, feeds={"x": 1.0})["y"] == 9.0
        assert program.grad(wrt=["w"], of="y", mode=mode) == {"w": 8.0}
    compiled = package.loads("input x: f64[n]\nparam w = 2.0\ny = sum(x * w)").compile()
    assert compiled(x=np.arange(3.0))["y"] == 6.0
    assert compiled(x=[1.0, 2.0], w=1.0)["y"] == 3.0


@pytest.mark.parametrize("mode", MODES)
def test_a_weak_value_too_large_for_f32_is_infinite_and_nothing_warns(mode: str) -> None:
    done = process("run", "--mode", mode, "--fetch", "x", "-e", "default f32\nx = 1e300")
    assert (done.stdout, done.stderr) == ("x = inf\n", "")


# ---- params in files, threads ---------------------------------------------------------------------------

PARAMS = "param w = [1.0, 2.0]\nparam b = 3\nparam c: f32 = 0.5\nw := w * 2.0\nprint w, b, c\n"


@pytest.mark.parametrize("mode", MODES)
def test_params_go_to_a_file_and_come_from_one(graphdsl: Any, mode: str, tmp_path: Path) -> None:
    file = str(tmp_path / "m.npz")
    assert graphdsl("run", "-e", PARAMS, "--mode", mode, "--save", file, "--threads", "1").code == 0
    again = graphdsl("run", "-e", PARAMS, "--mode", mode, "--load", file, "--set", "b=7", "--threads", "2")
    assert again.out == "w = f64[2] [4.0, 8.0]\nb = 7\nc = 0.5\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--save", "m.txt"), "must end in .npz"),
        (("--save", "m.npz", "--fetch", "w"), "not together with --fetch"),
        (("--load", "nothing-here.npz"), "cannot read `nothing-here.npz`"),
        (("--load", __file__), "not a sound .npz file"),
        (("--threads", "0"), "--threads"),
    ],
)
def test_files_and_threads_that_cannot_be(graphdsl: Any, args: tuple[str, ...], words: str) -> None:
    found = graphdsl("run", "-e", PARAMS, *args)
    assert found.code == status.WRONG_USAGE
    assert words in found.err


def test_a_param_that_the_file_lacks_is_named(graphdsl: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "m.npz")
    assert graphdsl("run", "-e", "param w = 1.0", "--save", file).code == 0
    found = graphdsl("run", "-e", "param w = 1.0; param q = 2.0", "--load", file)
    assert found.code == status.WRONG_USAGE
    assert "has no `q`" in found.err


def test_a_save_that_fails_leaves_no_file(graphdsl: Any, tmp_path: Path) -> None:
    found = graphdsl("run", "-e", PARAMS, "--save", str(tmp_path / "gone" / "m.npz"))
    assert found.code != 0
    assert "cannot write" in found.err
    assert list(tmp_path.iterdir()) == []

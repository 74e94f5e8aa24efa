"""The command line of `run`, and what all commands take: feeds, first values, files, threads; wrong ones are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.cli import status
from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE, process


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


def test_without_a_command_it_says_what_there_is(graphdsl: Any) -> None:
    said = graphdsl()
    assert (said.code, said.err) == (0, "")
    assert "Commands:\n  run " in said.out


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
    args = ("run", "-e", PARAMS, "--save", str(tmp_path / "gone" / "m.npz"))
    found = graphdsl(*args)
    assert found.code == status.WRONG_PROGRAM
    assert found.err.startswith("error[E0611]: cannot write")
    (event,) = (event for event in graphdsl(*args, "--json").events() if event["event"] == "error")
    assert (event["code"], event["hint"]) == ("E0611", "nothing was changed")
    assert list(tmp_path.iterdir()) == []

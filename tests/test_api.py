"""Programs from Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE, process


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


@pytest.mark.parametrize("mode", MODES)
def test_numpy_warns_of_nothing(mode: str) -> None:
    import graphdsl as package

    text = "param w = [1e308, 10.0, -inf]\nx = cumprod(w)\nd = grad(sum(x * x), w)\ny = cumsum(w * w)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert package.loads(text).run(mode=mode)["y"][0] == np.inf

"""Modules: names kept apart, what may stand in one, and what is said of one that cannot be used."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

from graphdsl.api import load, loads
from graphdsl.check.modules import STANDARD, standard
from graphdsl.render.diagnostics import render
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.files import read_source
from tests.running import said


def files(folder: Path, **texts: str) -> str:
    """Files of these names and texts; the path of `main`."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.gdl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder / "main.gdl")


def prints(path: str) -> list[str]:
    """What both modes say; they say the same."""
    eager, graph = (said(read_source(path), mode, cache=False) for mode in MODES)
    assert eager == graph
    return eager


def problem(path: str) -> str:
    with pytest.raises(ProgramError) as error:
        load(path).warnings()
    return "\n\n".join(map(render, error.value.diagnostics))


def printed(path: str) -> str:
    return "\n".join(re.sub(r".*'value': |}.*", "", line) for line in prints(path))


def test_names_of_files_are_kept_apart(tmp_path: Path) -> None:
    path = files(
        tmp_path,
        main="""
            use "lib/mine.gdl" as m
            k = 100.0
            fn sum(x) = 77.0
            fn helper(x) = 1000.0
            assert m.f([1.0, 2.0]) == 12.0
            assert m.k == 2.0
            assert sum(1.0) == 77.0
            assert m.own(3.0) == 9.0
            assert map(m.own, [1.0])[0] == 3.0
            assert m.applied(a -> a * k, 2.0) == 200.0
        """,
        lib__mine="""
            const k = 2.0
            fn f(x) = helper(x) * k
            fn helper(x) = sum(x) + x.sum()
            fn own(x) { k = 3.0; return k * x }
            fn applied(h, x) = h(x)
        """,
    )
    assert prints(path) == []


def test_a_module_is_found_from_the_file_that_uses_it_and_read_once(tmp_path: Path) -> None:
    path = files(
        tmp_path,
        main="""
            use "lib/one.gdl" as one
            use "lib/deep/two.gdl" as b
            assert one.f(1.0) == 3.0 and b.f(1.0) == 2.0 and one.g(1.0) == 7.0
        """,
        lib__one="""
            use "deep/two.gdl" as two
            use "one/two.gdl" as other
            fn f(x) = two.f(x) + 1.0
            fn g(x) = other.f(x)
        """,
        lib__deep__two="const c = 2.0; fn f(x) = c * x",
        lib__one__two="const c = 7.0; fn f(x) = c * x",
    )
    assert prints(path) == []


def test_default_concerns_its_own_file(tmp_path: Path) -> None:
    path = files(
        tmp_path,
        main="""
            use "m.gdl" as m
            x: f64[2] = ones(2)
            y: f32[2] = m.made()
            z: f32[1] = m.given()
            w: f32 = m.c
        """,
        m="default f32\nconst c: f32 = sum(ones(2))\nfn made() = ones(2)\nfn given(a = ones(1)) = a",
    )
    assert prints(path) == []


def test_derivatives_and_rules_of_modules(tmp_path: Path) -> None:
    path = files(
        tmp_path,
        main="""
            use "m.gdl" as m
            param w = 3.0
            assert grad(m.half(w), w) == 10.0
            assert grad(m.square(w), w) == 6.0
            fn loss(x) = m.square(x) * m.c
            assert grad(loss(w), w) == 30.0
        """,
        m="const c = 5.0\nfn half(x) = x / 2\nvjp half(x; y, g) = g * 2.0 * c\nfn square(x) = x * x",
    )
    assert prints(path) == []


def test_a_fault_is_shown_in_its_file(tmp_path: Path) -> None:
    path = files(tmp_path, main='use "m.gdl" as m\nx = m.at([1.0], 3)', m="\nfn at(v, i) = v[i]")
    with pytest.raises(ProgramError) as error:
        load(path).run()
    text = render(error.value.diagnostics[0])
    assert "m.gdl:2:15" in text
    assert "in this call of `m.at`, at" in text


def test_a_variable_wins_before_a_dot(tmp_path: Path) -> None:
    path = files(
        tmp_path, main="use nn\nnn = [1.0, 2.0]\nassert nn.sum() == 3.0\nfn f(nn) = nn.sum()\nassert f(nn) == 3.0"
    )
    assert prints(path) == []


@pytest.mark.parametrize(
    ("main", "module", "words"),
    [
        ('use "none.gdl" as m', "", ["E0227", "cannot be read", "folder of the file"]),
        ('use "." as m', "", ["E0227", "cannot be read"]),
        ("use nothing", "", ["E0227", "there are `nn`"]),
        ("use optin", "", ["did you mean `optim`?"]),
        ('use "main.gdl" as m', "", ["E0227", "main.gdl → main.gdl"]),
        ('use "m.gdl" as m', 'use "main.gdl" as n', ["uses itself: main.gdl → m.gdl → main.gdl"]),
        ('use "m.gdl" as m\nprint m.off(1)', "fn of(x) = x", ["E0229", "did you mean `m.of`?"]),
        ('use "m.gdl" as m\nprint m', "", ["E0201", "is a module"]),
        ('x = 1\nuse "m.gdl" as m', "", ["E0228", "before all statements", "this comes before"]),
        ('use "m.gdl" as m\nuse nn as m', "", ["E0228", "another module"]),
        ('use "m.gdl" as m', "x = 1\nprint x\nparam w = 2.0", ["m.gdl:1:1", "m.gdl:2:1", "m.gdl:3:1", "E0228"]),
        ('use "m.gdl" as m', "const c = uniform()", ["E0228", "draws nothing"]),
        ('use "m.gdl" as m', "fn f() { print 1; return 2 }\nconst c = f()", ["E0228", "prints"]),
        ('use "m.gdl" as m\nx = 1\nprint m.f()', "fn f() = x", ["m.gdl:1:10", "there is no `x`"]),
        ('use "m.gdl" as m', "fn f( = x", ["m.gdl:1:5", "E0111"]),
        ('use "m.gdl" as m\nuse nn\nprint m.f()', "fn f() = nn.softmax([1.0])", ["m.gdl:1:10", "there is no `nn`"]),
        ('use "m.gdl" as m\nm.c = 3', "const c = 1", ["E01"]),
        ('if true { use "m.gdl" as m }', "", ["E0228", "top level only"]),
        ('use "m\\u0000.gdl" as m', "", ["E0227", "U+0000"]),
        ('use "/dev/null" as m', "", ["E0227", "not a plain file" if os.name == "posix" else "no such"]),
    ],
)
def test_what_is_said(tmp_path: Path, main: str, module: str, words: list[str]) -> None:
    text = problem(files(tmp_path, main=main, m=module))
    for word in words:
        assert word in text


@pytest.mark.parametrize("name", standard())
def test_the_modules_of_the_language_are_right_in_themselves(name: str) -> None:
    """As a user's file, of which all is checked, also what nobody calls."""
    assert load(f"{STANDARD}/{name}.gdl").warnings() == ()


def test_distributions_against_scipy() -> None:
    values = {name: float(value) for name, value in zip(_GDL, _results(list(_GDL.values())), strict=True)}
    for name, wanted in _SCIPY.items():
        assert values[name] == pytest.approx(wanted, rel=1e-13, abs=1e-15), name


_GDL = {
    "normal": "normal_logpdf(0.3, 1.0, 2.0)",
    "density": "normal_pdf(0.3, 1.0, 2.0)",
    "cdf": "normal_cdf(-7.0, 1.0, 2.0)",
    "exponential": "exponential_logpdf(0.3, 2.0)",
    "laplace": "laplace_logpdf(0.3, 1.0, 2.0)",
    "student": "student_logpdf(0.3, 4.5)",
    "gamma": "gamma_logpdf(0.3, 2.5, 2.0)",
    "beta": "beta_logpdf(0.3, 2.5, 4.0)",
    "uniform": "uniform_logpdf(0.3, -1.0, 2.0)",
    "bernoulli": "bernoulli_logpmf(0, 0.2)",
    "poisson": "poisson_logpmf(4, 2.5)",
    "binomial": "binomial_logpmf(4, 9, 0.2)",
    "skewness": "skewness([1.0, 2.0, 4.0, 8.0])",
    "kurtosis": "kurtosis([1.0, 2.0, 4.0, 8.0])",
    "entropy": "entropy([0.2, 0.8, 0.0])",
    "divergence": "kl_divergence([0.2, 0.8], [0.5, 0.5])",
}
_SCIPY = {
    "normal": scipy.stats.norm.logpdf(0.3, 1, 2),
    "density": scipy.stats.norm.pdf(0.3, 1, 2),
    "cdf": scipy.stats.norm.cdf(-7, 1, 2),
    "exponential": scipy.stats.expon.logpdf(0.3, scale=0.5),
    "laplace": scipy.stats.laplace.logpdf(0.3, 1, 2),
    "student": scipy.stats.t.logpdf(0.3, 4.5),
    "gamma": scipy.stats.gamma.logpdf(0.3, 2.5, scale=0.5),
    "beta": scipy.stats.beta.logpdf(0.3, 2.5, 4),
    "uniform": scipy.stats.uniform.logpdf(0.3, -1, 3),
    "bernoulli": scipy.stats.bernoulli.logpmf(0, 0.2),
    "poisson": scipy.stats.poisson.logpmf(4, 2.5),
    "binomial": scipy.stats.binom.logpmf(4, 9, 0.2),
    "skewness": scipy.stats.skew([1.0, 2.0, 4.0, 8.0]),
    "kurtosis": scipy.stats.kurtosis([1.0, 2.0, 4.0, 8.0]),
    "entropy": scipy.stats.entropy([0.2, 0.8, 0.0]),
    "divergence": scipy.stats.entropy([0.2, 0.8], [0.5, 0.5]),
}


def _results(calls: list[str]) -> list[Any]:
    lines = [f"v{i} = stats.{call}" for i, call in enumerate(calls)]
    values = loads("\n".join(["use stats", *lines])).run().values
    return [values[f"v{i}"].value for i in range(len(calls))]

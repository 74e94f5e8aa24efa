"""Each diagnostic as a person sees it: `tests/diagnostics/NAME.gdl` is wrong, `NAME.txt` is what is said about it.

`python -m tests.test_diagnostics` writes the texts anew; read the difference before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphdsl import api
from graphdsl.render.columns import columns
from graphdsl.render.diagnostics import render
from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError
from graphdsl.source.span import Source, Span

FOLDER = Path(__file__).parent / "diagnostics"
PACKAGE = Path(__file__).parents[1] / "graphdsl"
PROGRAMS = sorted(FOLDER.glob("*.gdl"))


# These say something of the machine, of an option, of what does not exist yet, or need a program of a thousand lines or more.
ELSEWHERE = {
    "E0127",
    "E0214",
    "E0230",
    "E0231",
    "W0103",
    "E0312",
    "E0407",
    "E0412",
    "E0614",
    "E0730",
    "E0731",
    "E0732",
    "E0733",
    "E0734",
}
# The parser says it first.
ELSEWHERE |= {"E0107", "E0207", "E0221"}


def said(path: Path) -> str:
    """What the command line says about a program as it is checked and run, without the folder.

    `#: --feed x=3` in its first line feeds it; `#: --check-nan` looks for NaNs."""
    found: list[Diagnostic] = []
    try:
        program = api.load(str(path))
        options = re.match(r"#: (.*)", path.read_text("utf-8", "replace"))
        given = options[1] if options else ""
        feeds = dict(f.split("=") for f in re.findall(r"--feed (\S+)", given))
        found += program.warnings()
        program.run(feeds=feeds, check_nan="--check-nan" in given)
    except ProgramError as error:
        found += error.diagnostics
    return "\n\n".join(map(render, found)).replace(f"{FOLDER}/", "") + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_said(path: Path) -> None:
    assert said(path) == path.with_suffix(".txt").read_text("utf-8")


def test_every_code_is_shown() -> None:
    codes = {code for path in PACKAGE.rglob("*.py") for code in re.findall(r'"([EW]\d{4})"', path.read_text("utf-8"))}
    shown = {code for path in FOLDER.glob("*.txt") for code in re.findall(r"\[([EW]\d{4})\]", path.read_text("utf-8"))}
    assert codes - shown - ELSEWHERE == set()


def test_underlines_stand_under_wide_characters_and_tabs() -> None:
    text = "\t损失 = 数据 + x"
    source = Source("a.gdl", text)
    at = text.index("x")
    lines = render(Diagnostic("E0201", "no", Span(source, at, at + 1))).split("\n")
    shown, under = (line.split("|", 1)[1] for line in lines[-2:])
    assert columns(shown[: shown.index("x")]) == columns(under[: under.index("^")])


@pytest.mark.parametrize("at", [0, 300, 599])
def test_long_lines_are_cut_around_the_place(at: int) -> None:
    source = Source("a.gdl", "a" * at + "X" + "b" * (599 - at))
    lines = render(Diagnostic("E0201", "no", Span(source, at, at + 1)), 60).split("\n")
    assert max(map(columns, lines)) <= 60
    assert lines[-2][lines[-1].index("^")] == "X"


def test_a_long_way_is_cut_in_its_middle() -> None:
    source = Source("a.gdl", "x\n" * 100)
    trail = tuple(Label(Span(source, 2 * i, 2 * i + 1), f"in call {i}") for i in range(100))
    text = render(Diagnostic("E0701", "no", Span(source, 0, 1), trail=trail))
    assert "in call 3," in text
    assert "… 92 more …" in text
    assert "in call 96," in text


if __name__ == "__main__":
    for program in PROGRAMS:
        program.with_suffix(".txt").write_text(said(program), "utf-8")

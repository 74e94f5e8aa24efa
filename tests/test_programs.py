"""Every program of `tests/programs` and `samples` does what is written beside its code, in both modes alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphdsl.native.program import build
from graphdsl.runtime.modes import MODES
from graphdsl.source.files import read_source
from tests import expectations
from tests.running import digest, events, said

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted([*(ROOT / "tests" / "programs").glob("*.gdl"), *(ROOT / "samples").glob("*.gdl")])


def given(arguments: list[str]) -> dict[str, dict[str, str]]:
    """`--feed x=3 --set w=2` as the two dictionaries."""
    found: dict[str, dict[str, str]] = {"feeds": {}, "sets": {}}
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):
        name, _, text = value.partition("=")
        found[{"--feed": "feeds", "--set": "sets"}[option]][name] = text
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_says_what_is_written_beside_it(path: Path) -> None:
    expected = expectations.read(path)
    assert expected.prints or expected.errors, "a program without expectations tests nothing"
    runs = {mode: said(read_source(str(path)), mode, **given(expected.arguments)) for mode in MODES}
    assert runs["eager"] == runs["graph"]
    assert not expectations.differences(expected, events(runs["eager"]))


@pytest.mark.parametrize("mode", MODES)
def test_narrower_vectors_change_no_bit(mode: str) -> None:
    paths = [str(p) for p in PROGRAMS]
    done = subprocess.run(
        [sys.executable, "-m", "tests.running", mode, *paths],
        env={**os.environ, "GRAPHDSL_CPU": "sse2"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == digest(paths, mode)


@pytest.mark.parametrize("name", ["loops", "third_order_through_arguments", "recursion"])
def test_functions_too_long_to_be_optimised_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(p for p in PROGRAMS if p.stem == name)
    expected = said(read_source(str(path)), "graph", cache=False)
    monkeypatch.setattr(build, "_LONG", 5)
    assert said(read_source(str(path)), "graph", cache=False) == expected

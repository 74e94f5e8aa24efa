"""The generator of random programs: a few of them in both modes, and that it writes what it is meant to write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from graphdsl.api.program import Program
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source
from tests.fuzz.case import case
from tests.fuzz.compare import compare
from tests.fuzz.constructs import CONSTRUCTS, constructs
from tests.fuzz.generator import program
from tests.fuzz.shrink import shrink

PROGRAMS = 500


def test_a_seed_is_a_program() -> None:
    assert [program(seed) for seed in range(20)] == [program(seed) for seed in range(20)]


def test_each_construct_is_written_often() -> None:
    seen = Counter(name for seed in range(PROGRAMS) for name in constructs(program(seed)))
    assert {name: seen[name] for name in CONSTRUCTS if seen[name] < PROGRAMS / 50} == {}


def test_few_programs_are_refused(tmp_path: Path) -> None:
    refused = 0
    for seed in range(200):
        given = case(program(seed))
        for name, text in given.files.items():
            (tmp_path / name).write_text(text)
        try:
            Program(Source("random.gdl", given.text, str(tmp_path))).check((*given.feeds, *given.sets))
        except ProgramError:
            refused += 1
    assert refused < 20


def test_a_case_has_files_and_arguments() -> None:
    text = "#: --feed x=3 --probe 'y if y > 1' --fetch y\ninput x: f64\ny = x\n#file m.gdl\nconst k = 1\n#file d.csv\na,b\n"
    given = case(text)
    assert given.text.endswith("y = x\n")
    assert given.files == {"m.gdl": "const k = 1\n", "d.csv": "a,b\n"}
    assert (given.feeds, given.probes, given.fetch) == ({"x": "3"}, ("y if y > 1",), ("y",))


@pytest.mark.parametrize("seed", range(2007, 2019))
def test_both_modes_say_the_same(seed: int) -> None:
    found = compare(program(seed))
    assert not found.fault, f"{program(seed)}\n{found}"


def test_a_program_is_made_smaller() -> None:
    text = "a = 1.5\nif a > 1.0 {\n    b = (a + sin(a))\n    while b > 2.0 {\n        print exp(b)\n    }\n}\nprint a\n"
    assert shrink(text, lambda smaller: "exp(" in smaller) == "print exp(b)\n"
    whole = shrink(text, lambda smaller: "sin(" in smaller and smaller.count("if") == smaller.count("}") == 1)
    assert whole == "if a > 1.0 {\n    b = sin(a)\n}\n"

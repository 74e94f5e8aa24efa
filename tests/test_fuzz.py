"""The generator of random programs: a few of them in both modes, and that it writes what it is meant to write."""

from __future__ import annotations

import pytest

from graphdsl.check.program import Request, check
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source
from graphdsl.syntax.parser import parse
from tests.fuzz.compare import compare
from tests.fuzz.generator import program
from tests.fuzz.shrink import shrink

WANTED = (
    "concat([x", "axis=1", "[::2]", "while ", "break", "continue", "return ", "fn D", "hvp(", "jvp(", "vjp(", "hessian(",
    "jacobian(", "stop_gradient(", "einsum(", "conv1d(", "conv2d(", "max_pool2d(", "avg_pool2d(", "fold(", "scan(",
    "while_loop(", "cond(", "scatter_add(", " := ", "fn rec", "seed 3", "default f32", "enumerate(",
)  # fmt: skip


def test_a_seed_is_a_program() -> None:
    assert [program(seed) for seed in range(20)] == [program(seed) for seed in range(20)]


def test_all_that_is_wanted_is_written() -> None:
    texts = "".join(program(seed) for seed in range(300))
    assert [wanted for wanted in WANTED if wanted not in texts] == []


def test_few_programs_are_refused() -> None:
    refused = 0
    for seed in range(200):
        try:
            check(parse(Source("random.gdl", program(seed))), Request())
        except ProgramError:
            refused += 1
    assert refused < 20


@pytest.mark.parametrize("seed", range(2007, 2019))
def test_both_modes_say_the_same(seed: int) -> None:
    found = compare(program(seed))
    assert not found.fault, f"{program(seed)}\n{found}"


def test_a_program_is_made_smaller() -> None:
    text = "a = 1.5\nif a > 1.0 {\n    b = (a + sin(a))\n    while b > 2.0 {\n        print exp(b)\n    }\n}\nprint a\n"
    assert shrink(text, lambda smaller: "exp(" in smaller) == "print exp(b)\n"
    whole = shrink(text, lambda smaller: "sin(" in smaller and smaller.count("if") == smaller.count("}") == 1)
    assert whole == "if a > 1.0 {\n    b = sin(a)\n}\n"

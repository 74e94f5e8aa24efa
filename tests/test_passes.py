"""Passes: each keeps every bit and every effect, and does what it is for."""

from __future__ import annotations

from typing import Any

import pytest

from graphdsl.core.ir import Apply, For, If, While
from graphdsl.core.verify import verify_funcs
from graphdsl.graph.ir import Push, Read
from graphdsl.graph.passes import PASSES, optimise
from graphdsl.graph.rename import blocks_of, graph_body
from tests.graphs import bits, graph, printed
from tests.interpreter import Failed, Interpreter
from tests.test_reverse import HIGHER, PROGRAMS, TARGETS

BEFORE_FUSION = [name for name in PASSES if name != "fuse"]


def instrs(made: Any, kind: Any) -> list[Any]:
    return [i for block in blocks_of(made.main) for i in graph_body(block) if isinstance(i, kind)]


def ops(made: Any) -> list[str]:
    return [i.op.name for i in instrs(made, Apply)]


def after(text: str, *passes: str) -> Any:
    made = graph(text)
    for name in passes:
        PASSES[name](made.main)
        verify_funcs(made.main)
    return made


@pytest.mark.parametrize("text", [t for t, _ in [*PROGRAMS.values(), *TARGETS.values(), *HIGHER.values()]])
def test_every_pass_keeps_every_bit(text: str) -> None:
    made = graph(text)
    expected = list(map(bits, printed(made)))
    for name in BEFORE_FUSION:
        PASSES[name](made.main)
        verify_funcs(made.main)
        assert list(map(bits, printed(made))) == expected, name


@pytest.mark.parametrize("left_out", PASSES)
def test_each_pass_can_be_left_out(left_out: str) -> None:
    text, _ = PROGRAMS["a branch in a loop in a loop"]
    made = graph(text)
    expected = list(map(bits, printed(made)))
    seen: list[str] = []
    optimise(made, (left_out,), lambda name, _: seen.append(name))
    verify_funcs(made.main)
    assert seen == [name for name in PASSES if name != left_out]
    assert list(map(bits, printed(made))) == expected


# ---- what they must not do --------------------------------------------------------------------


def test_what_can_fail_is_never_dropped() -> None:
    made = after("a = 1\nb = 0\nprint 1\nunused = a // b\nprint 2", *BEFORE_FUSION)
    interpreter = Interpreter()
    with pytest.raises(Failed):
        interpreter.run(made.main)
    assert len(interpreter.printed) == 1


def test_what_can_fail_is_not_moved_out_of_its_branch() -> None:
    made = after("a = 1\nb = 0\nif b > 0 { c = a // b; print c } else { c = a // 1 }\nprint c", *BEFORE_FUSION)
    assert printed(made) == [1]


def test_draws_are_neither_merged_nor_dropped() -> None:
    made = after("a = uniform(2)\nb = uniform(2)\nc = uniform(2)\nprint a, c", *BEFORE_FUSION)
    assert ops(made).count("uniform") == 3


def test_adding_zero_stays() -> None:
    made = after("x = -0.0\nfor i in 0..2 { x = x + 0.0 }\nprint x", *BEFORE_FUSION)
    assert str(printed(made)[0]) == "0.0"
    assert "add" in ops(made)


def test_a_loop_that_may_never_end_stays() -> None:
    assert instrs(after("i = 0\nwhile i < 3 { i += 1 }", *BEFORE_FUSION), While)


# ---- what they are for ------------------------------------------------------------------------


def test_exact_identities_go() -> None:
    made = after("param w = [[1.0, 2.0]]\nprint sum((w * 1).T.T)", "simplify", "dead")
    assert not {"mul", "transpose"} & set(ops(made))


def test_a_known_branch_is_taken() -> None:
    made = after("param w = 2.0\nif 1 < 2 { y = w } else { y = 3.0 }\nprint y", "fold", "simplify")
    assert not instrs(made, If)
    assert printed(made) == [2.0]


def test_literals_are_folded_by_the_kernels_themselves() -> None:
    made = after("print exp(1.5) * 2.0 + sin(0.3)", "fold", "dead")
    assert not ops(made)
    assert list(map(bits, printed(made))) == list(map(bits, printed(graph("print exp(1.5) * 2.0 + sin(0.3)"))))


def test_a_fault_is_not_folded_away() -> None:
    made = after("print 1 // 0", *BEFORE_FUSION)
    with pytest.raises(Failed):
        printed(made)


def test_equal_computations_are_merged() -> None:
    made = after("param w = 2.0\na = sin(w) * w\nb = sin(w) * w\nprint a + b", "common", "dead")
    assert ops(made).count("sin") == 1
    assert ops(made).count("mul") == 1


def test_a_derivative_that_is_not_used_goes_with_what_it_saved() -> None:
    made = after("param w = 2.0\ny = w\nfor i in 0..3 { y = y * w }\nunused = grad(y, w)\nprint y", "dead")
    assert not instrs(made, Push | Read)
    assert len(instrs(made, For)) == 1


def test_only_what_is_read_is_saved() -> None:
    made = after("param w = 2.0\ny = w\nfor i in 0..3 { y = y * w }\na = grad(y, w)\nprint a, grad(a, w)", "dead")
    read = {(i.record, f) for i in instrs(made, Read) for f in i.fields}
    assert all((p.record, k) in read for p in instrs(made, Push) for k in range(len(p.values)))


def test_carried_values_that_nothing_needs_go() -> None:
    made = after("a = 0\nb = 0\nfor i in 0..3 { a += 1; b += 2 }\nprint b", "dead")
    assert len(instrs(made, For)[0].outs) == 1

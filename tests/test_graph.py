"""The form of the core and of graphs: printing, verifying, copying, and what the graph of a program holds."""

from __future__ import annotations

import pytest

from graphdsl.core.clone import clone_block, free_values
from graphdsl.core.ir import Block, Const, Derive, Func, If, Value, While
from graphdsl.core.printer import show_func, show_program
from graphdsl.core.structure import walk
from graphdsl.core.verify import Illegal, verify_func, verify_program
from graphdsl.graph.build import build
from graphdsl.graph.ir import NewTape, Push, Result
from graphdsl.graph.rename import blocks_of, graph_body
from graphdsl.ops.types import BOOL, F64, Type
from tests.graphs import checked, graph, printed

LOOP = "param w = 2.0\ny = w\nfor i in 0..3 { if y < 5.0 { y = y * w } else { y = y + w } }\nprint y"


def test_the_printer_shows_names_types_and_lines() -> None:
    shown = show_program(checked(LOOP).program)
    assert "y: f64 = for" in shown
    assert "mul(" in shown
    assert "# 3" in shown
    assert shown.count("{") == shown.count("}")


def test_a_deeply_nested_program_is_printed_checked_and_copied() -> None:
    chain = " else ".join(f"if i == {k} {{ y = {k}.0 }}" for k in range(1500))
    main = checked(f"i = 3\ny = 0.0\n{chain}\nprint y").program.main
    copy = Func("copy", clone_block(main.body, {}), main.span)
    verify_func(copy)
    assert show_func(copy).count("\n") == show_func(main).count("\n")


def test_a_copy_shares_no_value_and_no_block() -> None:
    main = checked(LOOP).program.main
    copy = clone_block(main.body, {})
    assert not free_values(copy)
    assert not {id(i) for i in walk(copy)} & {id(i) for i in walk(main.body)}


def _span() -> object:
    return checked("x = 1").program.main.span


def test_the_verifier_finds_a_value_that_is_not_visible() -> None:
    main = checked(LOOP).program.main
    main.body.yields = [next(i.out for i in walk(main.body) if isinstance(i, Const) and i not in main.body.body)]
    with pytest.raises(Illegal, match="not visible"):
        verify_func(main)


def test_the_verifier_finds_a_join_of_unlike_types() -> None:
    program = checked(LOOP).program
    branch = next(i for i in walk(program.main.body) if isinstance(i, If))
    branch.outs = tuple(Value(Type(BOOL)) for _ in branch.outs)
    with pytest.raises(Illegal, match=r"does not fit|not visible"):
        verify_program(program)


def test_the_verifier_finds_a_missing_yield() -> None:
    main = checked("i = 0\nwhile i < 3 { i += 1 }\nprint i").program.main
    next(i for i in walk(main.body) if isinstance(i, While)).body.yields.pop()
    with pytest.raises(Illegal, match="values meet"):
        verify_func(main)


def test_the_verifier_finds_a_tape_that_is_used_as_a_value() -> None:
    main = graph("param w = 2.0\ny = w\nfor i in 0..3 { y = y * w }\nprint grad(y, w)").main
    push = next(i for i in walk(main.body) if isinstance(i, Push))
    verify_func(main)
    push.values = (*push.values, push.tape)
    with pytest.raises(Illegal, match="used as a value"):
        verify_func(main)


def test_building_leaves_the_program_as_it_was() -> None:
    program = checked(LOOP + "\nprint grad(y, w)").program
    before = show_program(program)
    build(program)
    assert show_program(program) == before


def test_a_graph_has_no_derivatives_left() -> None:
    made = graph(LOOP + "\na = grad(y, w)\nprint grad(a, w)")
    kinds = {type(i) for block in blocks_of(made.main) for i in graph_body(block)}
    assert not kinds & {Derive, Result}
    assert {NewTape, Push} <= kinds


def test_a_graph_gives_the_names_that_are_wanted() -> None:
    text = "param w = 2.0\ny = w * w\nif w > 3.0 { z = 1.0 }\nprint y"
    made = build(checked(text, wanted=("y", "z")).program, ("z", "y"))
    assert made.outputs == ("z", "z?", "y")
    assert [v.type.dtype for v in made.main.body.yields] == [F64, BOOL, F64]


def test_a_derivative_within_one_trip_saves_nothing_across_trips() -> None:
    """The tape of a training step is made in the step, or not at all."""
    made = graph(
        "param w = 0.5\nfor s in 0..3 {\n h = w\n for i in 0..2 { h = h * w }\n w := w - 0.1 * grad(h, w)\n}\nprint w"
    )
    outer = [i for i in graph_body(made.main.body) if isinstance(i, NewTape)]
    inner = [
        i for b in blocks_of(made.main) if b is not made.main.body for i in graph_body(b) if isinstance(i, NewTape)
    ]
    assert not outer
    assert len(inner) == 1
    assert printed(made)


def test_a_call_that_no_derivative_comes_through_saves_nothing() -> None:
    made = graph("fn f(x) = x * x\nparam w = 2.0\na = f(w)\ny = f(a)\nprint grad(y * y, y)")
    assert not any(isinstance(i, NewTape | Push) for b in blocks_of(made.main) for i in graph_body(b))


def test_an_empty_block_is_a_block() -> None:
    verify_func(Func("nothing", Block(), _span()))  # type: ignore[arg-type]

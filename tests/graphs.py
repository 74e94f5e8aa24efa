"""Programs as graphs, for tests: built, verified, and run by the slow interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphdsl.check.context import Request
from graphdsl.check.program import Checked, check
from graphdsl.core.verify import verify_funcs, verify_program
from graphdsl.graph.build import Graph, build
from graphdsl.runtime.state import Runtime
from graphdsl.source.span import Source
from graphdsl.syntax.parser import parse
from tests.interpreter import Interpreter


def checked(text: str, wanted: Iterable[str] = ()) -> Checked:
    """A program, checked, and its core verified; `wanted` names are kept to its end."""
    found = check(parse(Source("test.gdl", text)), Request(wanted=frozenset(wanted)))
    verify_program(found.program)
    return found


def graph(text: str) -> Graph:
    """The graph of a program before any pass."""
    made = build(checked(text).program)
    verify_funcs(made.main)
    return made


def printed(made: Graph) -> list[Any]:
    """The values that a graph prints, as the interpreter finds them."""
    interpreter = Interpreter(Runtime())
    interpreter.run(made.main)
    return [event[-1] for event in interpreter.printed]


def values(text: str) -> list[Any]:
    """What a program prints, computed by its graph."""
    return printed(graph(text))


def bits(value: Any) -> Any:
    """A value in a form in which equality is that of all bits (there is one NaN)."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.dtype.str, array.shape, array.tobytes()


def eager_values(text: str) -> list[Any]:
    """What a program prints in eager mode."""
    from graphdsl.eager.program import Compiled

    runtime = Runtime()
    Compiled(checked(text).program).run(runtime)
    shown = [items for _, items in runtime.sink.events]  # type: ignore[attr-defined]
    return [v for items in shown for v in ([items] if isinstance(items, str) else [s.value for s in items])]


def agree(text: str) -> list[Any]:
    """The values that a program prints, equal to the bit between its graph and eager mode."""
    from_graph = values(text)
    assert list(map(bits, from_graph)) == list(map(bits, eager_values(text)))
    return from_graph

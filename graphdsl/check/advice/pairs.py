"""A vector beside a column: `[n] - [n, 1]` is a matrix of all pairs, where the differences of n pairs were wanted.

Who makes a column of a vector (`x[:, none]`, `reshape`, `keepdims`, …) wants all pairs. What is left are columns that a
product gives or that came so from outside. Sums and products of a column and a row are common; differences, tests for
equality and losses are where it is an accident.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.advice.subject import Subject, warning
from graphdsl.core.dependence import backwards
from graphdsl.core.ir import Apply, Value
from graphdsl.ops.op import Contract, Draw, Effect, Elementwise
from graphdsl.ops.types import Type
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.syntax import ast

_FILLED = frozenset(["zeros", "ones", "full", "zeros_like", "ones_like", "full_like"])


def accidental_pairs(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    found = [(d, column) for d in s.applied("sub", "eq", "ne") if (column := _column(d)) is not None]
    shaped = _shaped(s) if found else set()
    for difference, column in found:
        if column not in shaped:
            a, b = difference.args
            message = f"{a.type} beside {b.type} gives {difference.outs[0].type}: each element meets every other"
            hint = "`flatten` makes the column a vector; where all pairs are meant, `x[none, :]` makes the vector a row"
            yield warning("W0206", message, difference.span, hint, *_labels(s, difference))


def _column(difference: Apply) -> Value | None:
    """The operand that is a column of as many elements as the other, a vector, has."""
    a, b = difference.args
    for vector, column in ((a, b), (b, a)):
        if _is_column_of(vector.type, column.type):
            return column
    return None


def _is_column_of(vector: Type, column: Type) -> bool:
    return vector.rank == 1 and column.rank == 2 and column.shape[1] == 1 and column.shape[0] == vector.shape[0] != 1


def _shaped(s: Subject) -> set[Value]:
    """The matrices that the program made of something else, and what is computed from these element by element."""
    matrices = [v for v in s.links.defs if v.type.rank == 2]
    moved = {v for v in matrices if isinstance(i := s.links.defs[v].instr, Apply) and not _is_elementwise(i)}
    within = {v: [u for u in s.onwards.get(v, ()) if u.type.rank == 2 and u not in moved] for v in matrices}
    return backwards(within, [v for v in moved if not _is_given(s.links.defs[v].instr)])


def _is_elementwise(made: Apply) -> bool:
    return isinstance(made.op.compute, Elementwise)


def _is_given(made: Apply) -> bool:
    """Whether an op gives a value of the shape that it is told, or that follows from shapes."""
    loaded = made.op.effect is Effect.READ
    return loaded or made.op.name in _FILLED or isinstance(made.op.compute, Contract | Draw)


def _labels(s: Subject, difference: Apply) -> Iterator[Label]:
    """Where the two are written."""
    node = s.nodes.get(difference.span)
    match node:
        case ast.Binary(left=left, right=right):
            places = [left.span, right.span]
        case ast.CallExpr(args=(ast.Arg(name=None) as x, ast.Arg(name=None) as target, *_)):
            places = [x.value.span, target.value.span]
        case _:
            return
    for place, value in zip(places, difference.args, strict=True):
        yield Label(place, str(value.type))

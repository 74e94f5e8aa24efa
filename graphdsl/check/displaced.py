"""Programs in which what a name holds can be displaced from outside, as `graphdsl grad --check` runs them.

For that check, each statement that sets such a name is followed by

    $count += 1
    if $count == $at { $held = w; w = w + ($by + $along * $direction) }

where `$at`, `$by`, `$along` and `$direction` are inputs. So the name is displaced where it is set for the `$at`-th time of the
run, in loops and branches too; and a derivative by `$by` is one by the value that was set there. A param becomes an input, and
`w := e` the assignment `w = stop_gradient(e)`: a leaf would cut the derivative off from `$by`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from graphdsl.check.reads import inner_blocks, own_targets, statements
from graphdsl.ops.types import I64, Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast


@dataclass(frozen=True)
class Hidden:
    """The names that belong to a displaced one."""

    name: str

    @property
    def count(self) -> str:
        """How often it was set so far."""
        return f"$count {self.name}"

    @property
    def at(self) -> str:
        """The time at which it is displaced (0: never)."""
        return f"$at {self.name}"

    @property
    def held(self) -> str:
        """What it held before it was displaced."""
        return f"$held {self.name}"

    @property
    def by(self) -> str:
        """By how much it is displaced, element by element."""
        return f"$by {self.name}"

    @property
    def along(self) -> str:
        """By how much it is displaced along `direction`."""
        return f"$along {self.name}"

    @property
    def direction(self) -> str:
        """A tensor like it."""
        return f"$direction {self.name}"


@contextmanager
def displaced(module: ast.Module, types: Mapping[str, Type]) -> Iterator[None]:
    """While this lasts, the program is one in which these names, of these types, can be displaced."""
    if not types:
        yield
        return
    bodies = [module.body, *(block.body for stmt in statements(module.body) for block in inner_blocks(stmt))]
    before = [list(body) for body in bodies]
    for body in bodies:
        body[:] = [new for stmt in body for new in _written_out(stmt, types)]
    for stmt in [s for stmts in before for s in stmts if isinstance(s, ast.ForStmt)]:
        stmt.body.body[:0] = _displacing(own_targets(stmt), types)
    first = sum(isinstance(stmt, ast.Default | ast.Use) for stmt in module.body)
    module.body[first:first] = _inputs(Span(module.source, 0, 0), types)
    try:
        yield
    finally:
        for body, stmts in zip(bodies, before, strict=True):
            body[:] = stmts


def _written_out(stmt: ast.Stmt, types: Mapping[str, Type]) -> list[ast.Stmt]:
    """A statement, and what follows it. A param that is displaced is an input, and what it is set to has no history."""
    match stmt:
        case ast.ForStmt():
            return [stmt]
        case ast.Declare(kind="param", name=name) if name.id in types:
            now: ast.Stmt = ast.Declare(stmt.span, "input", name, stmt.type, stmt.value)
        case ast.Update(span=span, name=name, value=value) if name.id in types:
            cut = ast.CallExpr(span, ast.Name(span, "stop_gradient"), (ast.Arg(value.span, None, value),))
            now = ast.Assign(span, (name,), _annotation(span, types[name.id]), None, cut)
        case _:
            now = stmt
    return [now, *_displacing(own_targets(now), types)]


def _displacing(names: list[ast.Name], types: Mapping[str, Type]) -> list[ast.Stmt]:
    """The statements after these names were set."""
    made: list[ast.Stmt] = []
    for name in {n.id: n for n in names if n.id in types}.values():
        span, hidden = name.span, Hidden(name.id)

        def named(text: str, span: Span = span) -> ast.Name:
            return ast.Name(span, text)

        def result(op: str, left: ast.Expr, right: ast.Expr, span: Span = span) -> ast.Expr:
            return ast.Binary(span, op, left, right, span)

        def assign(text: str, value: ast.Expr, op: str | None = None, span: Span = span) -> ast.Stmt:
            return ast.Assign(span, (ast.Name(span, text),), None, op, value)

        step = result("*", named(hidden.along), named(hidden.direction))
        moved = result("+", named(name.id), result("+", named(hidden.by), step))
        moving = [assign(hidden.held, named(name.id)), assign(name.id, moved)]
        reached = result("==", named(hidden.count), named(hidden.at))
        made += [
            assign(hidden.count, ast.Number(span, 1), "+"),
            ast.IfStmt(span, reached, ast.BlockNode(span, moving), None),
        ]
    return made


def _inputs(span: Span, types: Mapping[str, Type]) -> Iterator[ast.Stmt]:
    """What is given to the run, and the counts."""
    for name, type in types.items():
        hidden = Hidden(name)
        scalar = type.with_shape(())
        wanted = ((hidden.at, Type(I64)), (hidden.by, type), (hidden.along, scalar), (hidden.direction, type))
        for text, given in wanted:
            yield ast.Declare(span, "input", ast.Name(span, text), _annotation(span, given), None)
        yield ast.Assign(span, (ast.Name(span, hidden.count),), None, None, ast.Number(span, 0))


def _annotation(span: Span, type: Type) -> ast.TypeExpr:
    return ast.TypeExpr(span, type.dtype.value, tuple(d if isinstance(d, int) else None for d in type.shape))

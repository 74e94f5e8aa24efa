"""What a `for` runs over: a range, a tensor's rows, `zip(…)` or `enumerate(…)`, evaluated once."""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check import faults, names
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.expect import as_tensor
from graphdsl.check.ranges import RangeParts, element, range_of
from graphdsl.check.values import POISON, Binding, Tensor, Tuple
from graphdsl.core.ir import Block, Fail, If, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.type_rules import same_dim
from graphdsl.ops.types import Dim
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Source:
    """How many trips there are (`length` where it is known), and what each is given."""

    count: Value
    length: Dim | None
    item: Callable[[Frame, Value], Binding]


def source_of(f: Frame, node: ast.Expr) -> Steps[Source]:
    """Evaluate what a loop runs over."""
    if isinstance(node, ast.Range):
        parts: RangeParts | None = yield range_of(f, node)
        return _nothing(f, node.span) if parts is None else _range(f, node.span, parts)
    if (form := _form(f, node)) is not None and isinstance(node, ast.CallExpr):
        source: Source = yield _zip(f, node) if form == "zip" else _enumerate(f, node)
        return source
    binding: Binding = yield expression(f, node)
    x = as_tensor(f, binding, node.span, "what a loop runs over")
    if x is None:
        return _nothing(f, node.span)
    if not x.type.rank:
        hint = f"a range counts: `0..{node.span.text}`" if x.type.dtype.is_int and len(node.span.text) < 20 else None
        f.error("E0217", f"a loop runs over a tensor of rank 1 or more, not {x.type}", node.span, hint)
        return _nothing(f, node.span)
    return _rows(f, node.span, x)


def _form(f: Frame, node: ast.Expr) -> str | None:
    """Whether this is a call of `zip` or `enumerate`, and not of a function of that name."""
    match node:
        case ast.CallExpr(func=ast.Name(id="zip" | "enumerate" as name)):
            own = name in f.shared.outline.functions or names.variable(f, name) is not None
            return None if own else name
    return None


def _nothing(f: Frame, span: Span) -> Source:
    """After an error: the body is still checked."""
    return Source(f.whole(0, span), None, lambda f, trip: POISON)


def _range(f: Frame, span: Span, parts: RangeParts) -> Source:
    length: Dim | None = parts.known if parts.known is not None else f.shared.sizes.get(parts.count)
    return Source(parts.count, length, lambda f, trip: Tensor(element(f, span, parts, trip)))


def _rows(f: Frame, span: Span, x: Value) -> Source:
    def row(f: Frame, trip: Value) -> Binding:
        return f.apply("index", span, (x, trip), (span,), spec=(("at",),))

    return Source(f.size(x, 0, span), x.type.shape[0], row)


def _zip(f: Frame, node: ast.CallExpr) -> Steps[Source]:
    if not node.args or any(a.name is not None for a in node.args):
        f.error("E0209", "`zip` takes the tensors that it runs over", node.span)
        return _nothing(f, node.span)
    sources: list[Source] = []
    for arg in node.args:
        source: Source = yield source_of(f, arg.value)
        sources.append(source)
    joined = side_by_side(f, sources, [a.value.span for a in node.args])
    return _nothing(f, node.span) if joined is None else joined


def side_by_side(f: Frame, sources: list[Source], spans: list[Span]) -> Source | None:
    """Several at once, which must be of one length; None where they are known not to be, which is reported."""
    first = sources[0]
    for source, span in zip(sources[1:], spans[1:], strict=True):
        if not _same_length(f, first, source, span):
            return None
    return Source(first.count, first.length, lambda f, trip: Tuple(tuple(s.item(f, trip) for s in sources)))


def rows_of(f: Frame, given: list[tuple[Binding, Span]], span: Span, as_arguments: bool) -> Source | None:
    """The rows of tensors, for `map` (each row an argument) and `scan`; a tuple of tensors gives tuples of rows."""
    sources: list[Source] = []
    for binding, place in given:
        inner = [(b, place) for b in binding.items] if isinstance(binding, Tuple) else []
        source = rows_of(f, inner, place, True) if inner else _tensor_rows(f, binding, place)
        if source is None:
            return None
        sources.append(source)
    if len(sources) == 1 and not as_arguments:
        return sources[0]
    return side_by_side(f, sources, [place for _, place in given])


def _tensor_rows(f: Frame, binding: Binding, span: Span) -> Source | None:
    x = as_tensor(f, binding, span, "what is run over")
    if x is None:
        return None
    if not x.type.rank:
        f.error("E0217", f"what is run over must be a tensor of rank 1 or more, not {x.type}", span)
        return None
    return _rows(f, span, x)


def _same_length(f: Frame, a: Source, b: Source, span: Span) -> bool:
    """Test that two lengths agree: now where they are known, else as the program runs."""
    if a.length is not None and b.length is not None and same_dim(a.length, b.length):
        return True
    if isinstance(a.length, int) and isinstance(b.length, int):
        f.error("E0322", f"different lengths: {a.length} and {b.length}", span)
        return False
    counts = tuple(f.value("maximum", span, s.count, f.whole(0, span)) for s in (a, b))
    failing = Block([], [Fail(span, faults.ZIP_LENGTHS, counts)])
    f.block.body.append(If(span, f.value("ne", span, *counts), failing, Block(), ()))
    return True


def _enumerate(f: Frame, node: ast.CallExpr) -> Steps[Source]:
    if len(node.args) != 1 or node.args[0].name is not None:
        f.error("E0209", "`enumerate` takes the one thing that it runs over", node.span)
        return _nothing(f, node.span)
    source: Source = yield source_of(f, node.args[0].value)
    return Source(source.count, source.length, lambda f, trip: Tuple((Tensor(trip), source.item(f, trip))))

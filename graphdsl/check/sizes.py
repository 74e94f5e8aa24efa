"""Sizes as arguments, `zeros(n, 3)` or `zeros([n, 3])`: those that are known, and the values of the others."""

from __future__ import annotations

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.expect import as_tensor, int_scalar_of
from graphdsl.check.values import Binding, Tensor, Tuple
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import I64, Size
from graphdsl.source.span import Span
from graphdsl.syntax import ast


class SizeArgs:
    """Sizes for the attr `name`: an int or a `Size` each where it is known, else None; the values of those that are no ints."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[int | Size | None] = []
        self.operands: list[Value] = []
        self.spans: list[Span] = []
        self.good = True


def size_argument(f: Frame, nodes: list[ast.Expr], sizes: SizeArgs) -> Steps[None]:
    """Evaluate sizes, given one by one or as one list."""
    if len(nodes) == 1 and isinstance(nodes[0], ast.ListLit | ast.TupleLit):
        nodes = list(nodes[0].items)
    for node in nodes:
        binding: Binding = yield expression(f, node)
        if isinstance(binding, Tensor) and len(nodes) == 1 and binding.type.rank == 1 and binding.type.dtype.is_int:
            _components(f, binding, node.span, sizes)
        elif isinstance(binding, Tuple) and len(nodes) == 1:
            for item in binding.items:
                _one(f, item, node, sizes)
        else:
            _one(f, binding, node, sizes)


def _components(f: Frame, binding: Tensor, span: Span, sizes: SizeArgs) -> None:
    """The elements of a tensor of sizes."""
    (length,) = binding.type.shape
    if not isinstance(length, int):
        f.error("E0320", "the number of dims must be known when the program is checked", span)
        sizes.good = False
        return
    if (x := f.shared.shapes.get(binding.value)) is not None:
        for axis, dim in enumerate(x.type.shape):
            if isinstance(dim, int):
                sizes.entries.append(dim)
            else:
                add_size(f, f.size(x, axis, span), span, sizes)
        return
    static = binding.static if isinstance(binding.static, tuple) else (None,) * length
    for i in range(length):
        known = static[i]
        if isinstance(known, int) and not isinstance(known, bool):
            sizes.entries.append(known)
        else:
            part = as_tensor(f, f.apply("index", span, (binding.value,), spec=(("int", i),)), span)
            if part is not None:
                add_size(f, f.at(span).convert(part, I64), span, sizes)


def _one(f: Frame, binding: Binding, node: ast.Expr, sizes: SizeArgs) -> None:
    if isinstance(binding, Tensor) and type(binding.static) is int:
        sizes.entries.append(binding.static)
        return
    value = int_scalar_of(f, binding, node, "a size")
    if value is None:
        sizes.good = False
    else:
        add_size(f, value, node.span, sizes)


def add_size(f: Frame, value: Value, span: Span, sizes: SizeArgs) -> None:
    """A size that is known only as the program runs."""
    sizes.entries.append(f.shared.sizes.get(value))
    sizes.operands.append(value)
    sizes.spans.append(span)


def remembered(f: Frame, op: str, x: Value, result: Binding, axis: int | None = None) -> Binding:
    """What `x.shape` and `x.size` gave, so that what is made with it has sizes that are known to be those of `x`."""
    if isinstance(result, Tensor):
        if op == "shape":
            f.shared.shapes[result.value] = x
        elif x.type.rank == 1 or axis is not None:
            dim = x.type.shape[axis or 0]
            if isinstance(dim, Size):
                f.shared.sizes.setdefault(result.value, dim)
    return result


def claim_sizes(f: Frame, made: Value, sizes: SizeArgs) -> None:
    """What was made with one value as a size has one `Size` there, wherever that value was used."""
    if len(sizes.entries) != made.type.rank:
        return
    values = iter(sizes.operands)
    shape = list(made.type.shape)
    for axis, entry in enumerate(sizes.entries):
        if isinstance(entry, int):
            continue
        value, dim = next(values), shape[axis]
        if entry is None and isinstance(dim, Size):
            shape[axis] = f.shared.claimed.setdefault(value, dim)
            if value.name and not dim.name:
                dim.why = f"`{value.name}` at line {sizes.spans[sizes.operands.index(value)].line}"
    made.type = made.type.with_shape(tuple(shape))

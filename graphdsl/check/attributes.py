"""Attributes: `x.T`, `x.shape`, `x.ndim`, `x.size`. Any other stands before a call."""

from __future__ import annotations

from graphdsl.check import names
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor
from graphdsl.check.problems import nearest
from graphdsl.check.sizes import remembered
from graphdsl.check.values import POISON, Binding, Tensor
from graphdsl.core.steps import Steps
from graphdsl.syntax import ast

ATTRIBUTES = ("T", "shape", "ndim", "size")


@handles(ast.Attribute)
def attribute(f: Frame, node: ast.Attribute) -> Steps[Binding]:
    base: Binding = yield expression(f, node.value)
    x = as_tensor(f, base, node.value.span, "what has an attribute")
    name = node.name.id
    if name not in ATTRIBUTES:
        if names.function(f, name) is not None:
            hint = f"call it: `.{name}()`"
        else:
            close = nearest(name, ATTRIBUTES)
            hint = f"did you mean `.{close}`?" if close else "tensors have `.T`, `.shape`, `.ndim` and `.size`"
        return f.error("E0208", f"there is no attribute `{name}`", node.name.span, hint)
    if x is None:
        return POISON
    match name:
        case "T":
            return f.apply("transpose", node.span, (x,), (node.value.span,), axes=None)
        case "shape":
            return remembered(f, "shape", x, f.apply("shape", node.span, (x,)))
        case "ndim":
            return Tensor(f.whole(x.type.rank, node.span), x.type.rank)
    return remembered(f, "size", x, f.apply("size", node.span, (x,)))

"""What entries are put together from: bodies that are written elsewhere, and rules that many entries have."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphdsl.ops import type_rules
from graphdsl.ops.op import Elementwise, Op, Param

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

Body = Callable[..., "S"]
Slope = Callable[["Emit", "Value", "Value"], "Value"]

X = (Param("x"),)
XY = (Param("x"), Param("y"))


def math_body(name: str) -> Body:
    """The body of a function of `graphdsl.ops.math`, which is imported when it is first compiled."""

    def body(code: Code, *xs: S) -> S:
        written: Body = getattr(import_module("graphdsl.ops.math"), name)
        return written(code, *xs)

    return body


def op1(name: str) -> Body:
    """The body that is one operation of `Code`."""
    return lambda code, x: code.op1(name, x)


def op2(name: str) -> Body:
    """The body that is one operation of `Code` on two operands."""
    return lambda code, x, y: code.op2(name, x, y)


def function(
    name: str, doc: str, slope: Slope | None, *, body: Body | None = None, bound: float = 1.0, **rest: Any
) -> Op:
    """A float function of one argument. `slope(e, y, x)` is its derivative at `x`, where its value is `y`.

    Without `body` it is the function of that name in `graphdsl.ops.math`.
    """
    vjp = None if slope is None else (lambda e, g, y, x: e.scale(g, slope(e, y, x)),)
    compute = Elementwise(body or math_body(name), numpy=rest.pop("numpy", None), python=rest.pop("python", None))
    known = {"params": X, "group": "elementwise", "reference": f"numpy.{name}", "typing": type_rules.floating}
    return Op(name=name, doc=doc, compute=compute, vjp=vjp, bound=bound, **{**known, **rest})

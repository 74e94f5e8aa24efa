"""`jacobian`, `hvp` and `hessian`, written in `grad` and `vjp`: a loop over rows, each the derivative of one element."""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check import names
from graphdsl.check.arguments import match_arguments
from graphdsl.check.calls import Args, evaluate_all
from graphdsl.check.context import Frame
from graphdsl.check.derivatives import derivative_type, differentiated, directed, one_target
from graphdsl.check.dispatch import expression
from graphdsl.check.expect import as_tensor
from graphdsl.check.types import seed_for
from graphdsl.check.values import POISON, Binding, Tensor
from graphdsl.core.ir import Block, Derive, For, Target, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import I64, Dim, Size, Type
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def jacobian_form(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`jacobian(y, x)`: All derivatives of a tensor, shaped `y.shape + x.shape`; its rows are `vjp(y, x, e_i)`."""
    found: tuple[Value, Value] | None = yield _pair(f, node, args, "jacobian", ("y", "x"))
    return POISON if found is None else Tensor(jacobian(f, node.span, *found))


def hessian_form(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`hessian(y, x)`: The second derivatives of a scalar; its rows are `hvp(y, x, e_i)`."""
    found: tuple[Value, Value] | None = yield _pair(f, node, args, "hessian", ("y", "x"))
    if found is None or not _is_scalar(f, args[0].value, found[0], "hessian"):
        return POISON
    y, x = found
    return Tensor(jacobian(f, node.span, gradient(f, node.span, y, x), x))


def hvp_form(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`hvp(y, x, v)`: The product of the second derivatives of a scalar with `v`: `vjp(grad(y, x), x, v)`."""
    found: tuple[Value, Value] | None = yield _pair(f, node, args, "hvp", ("y", "x", "v"))
    direction = next((a.value for i, a in enumerate(args) if (a.name.id == "v" if a.name else i == 2)), None)
    if found is None or direction is None or not _is_scalar(f, args[0].value, found[0], "hvp"):
        return POISON
    y, x = found
    binding: Binding = yield expression(f, direction)
    v = as_tensor(f, binding, direction.span, "`v` of `hvp`")
    seed = None if v is None else seed_for(f, v, x, derivative_type(f, y, x).dtype, direction.span, "`v`")
    if seed is None:
        return POISON
    return Tensor(directed(f, node.span, gradient(f, node.span, y, x), x, seed))


def _pair(
    f: Frame, node: ast.CallExpr, args: Args, what: str, params: tuple[str, ...]
) -> Steps[tuple[Value, Value] | None]:
    """What is differentiated, and the one name by which."""
    found = match_arguments(f, f"`{what}`", node.span, args, params)
    if found is None:
        yield evaluate_all(f, args)
        return None
    y: Value | None = yield differentiated(f, found["y"][0].value, what)
    x = one_target(f, found["x"][0].value, what)
    return None if y is None or x is None else (y, x)


def _is_scalar(f: Frame, node: ast.Expr, y: Value, what: str) -> bool:
    if y.type.rank:
        f.error("E0403", f"`{what}` differentiates a scalar, and this is {y.type}", node.span, "differentiate `sum(y)`")
    return not y.type.rank


def gradient(f: Frame, span: Span, y: Value, x: Value, target: Target | None = None) -> Value:
    """`grad(y, x)`; where a target is given, by that in place of `x`, whose type it has."""
    f.shared.derives = True
    out = Value(derivative_type(f, y, x))
    f.block.body.append(Derive(span, "grad", y, (target or x,), None, (out,)))
    return out


def jacobian(f: Frame, span: Span, y: Value, x: Value, target: Target | None = None) -> Value:
    """A row for each element of `y`. `target` as of `gradient`."""
    if not y.type.rank:
        one = f.at(span).const(1.0, y.type.dtype, y.type.weak)
        return directed(f, span, y, x, one, target=target)
    count = f.value("size", span, y, axis=None)
    length: Dim = f.shared.sizes.setdefault(count, Size())
    if all(isinstance(d, int) for d in y.type.shape):
        literal = f.at(span).literal(count)
        length = literal if isinstance(literal, int) else length
    row = derivative_type(f, y, x)
    dtype = f.setting.default_float if row.weak else row.dtype

    def make(trip: Value) -> Value:
        unit = _zeros(f, span, Type(y.type.dtype, (length,)), [count])
        one = f.at(span).const(1.0, y.type.dtype)
        flat = f.value("update", span, unit, one, trip, spec=(("at",),))
        return directed(f, span, y, x, _shaped(f, span, flat, [y]), target=target)

    flat = _rows(
        f, span, count, _zeros(f, span, Type(dtype, (length, *x.type.shape)), [count, *_sizes(f, span, x)]), make
    )
    return _shaped(f, span, flat, [y, x])


def _rows(f: Frame, span: Span, count: Value, room: Value, make: Callable[[Value], Value]) -> Value:
    """A loop that puts `make(i)` in place `i` of `room`."""
    trip, held, out = Value(Type(I64)), Value(room.type), Value(room.type)
    body = Block(params=[trip, held])
    outside = f.open(body)
    row = make(trip)
    body.yields.append(f.value("update", span, held, row, trip, spec=(("at",),)))
    f.open(outside)
    f.block.body.append(For(span, count, (room,), body, (out,), called=None))
    return out


def _sizes(f: Frame, span: Span, x: Value) -> list[Value]:
    return [f.size(x, axis, span) for axis in range(x.type.rank)]


def _zeros(f: Frame, span: Span, type: Type, sizes: list[Value]) -> Value:
    operands = [v for v, d in zip(sizes, type.shape, strict=True) if not isinstance(d, int)]
    return f.value("zeros", span, *operands, sizes=type.shape, dtype=type.dtype)


def _shaped(f: Frame, span: Span, flat: Value, like: list[Value]) -> Value:
    """The same elements, with the sizes of these values one after another."""
    dims = [d for v in like for d in v.type.shape]
    sizes = [s for v in like for s in _sizes(f, span, v)]
    operands = [v for v, d in zip(sizes, dims, strict=True) if not isinstance(d, int)]
    return f.value("reshape", span, flat, *operands, sizes=tuple(dims))


names.FORMS.update({"jacobian": jacobian_form, "hessian": hessian_form, "hvp": hvp_form})

"""`grad` and `vjp`, and `jvp`, which is written in them."""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check import names
from graphdsl.check.arguments import match_arguments
from graphdsl.check.calls import Args, evaluate_all
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.expect import as_tensor
from graphdsl.check.printing import source_text
from graphdsl.check.types import seed_for
from graphdsl.check.values import POISON, Binding, Tensor, Tuple, has_poison, kind_name, leaves, rebuild
from graphdsl.core.ir import Derive, Target, Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Type
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def grad(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`grad(y, w, …)`: The derivative of a scalar by a name; by several, a tuple of them."""
    if len(args) < 2 or any(a.name is not None for a in args):
        f.error("E0209", "`grad` takes what is differentiated, then the names to differentiate by", node.span)
        yield evaluate_all(f, args)
        return POISON
    y: Value | None = yield differentiated(f, args[0].value, "grad")
    targets = [target(f, a.value, "grad") for a in args[1:]]
    if y is None or None in targets:
        return POISON
    if y.type.rank:
        hint = "`vjp(y, x, u)` weights its elements, `jacobian(y, x)` has a row for each; or differentiate `sum(y)`"
        message = f"`grad` differentiates a scalar, and this is {y.type}"
        return f.error("E0403", message, args[0].value.span, hint)
    found: list[Binding] = [t for t in targets if t is not None]
    return derive(f, node.span, y, found)


def differentiated(f: Frame, node: ast.Expr, what: str) -> Steps[Value | None]:
    """The first argument: a float tensor."""
    binding: Binding = yield expression(f, node)
    y = as_tensor(f, binding, node.span, f"what `{what}` differentiates")
    if y is None:
        return None
    if y.type.dtype.is_float:
        f.shared.asked.setdefault(y, []).append((node.span, source_text(node.span)))
        return y
    f.error("E0404", f"what is differentiated must be a float, and is {y.type}", node.span, "make it one: `f64(…)`")
    return None


def target(f: Frame, node: ast.Expr, what: str) -> Binding | None:
    """A bare name that holds floats: what it holds."""
    if not isinstance(node, ast.Name):
        hint = "give it a name first: `u = …`, then differentiate what is computed from `u`"
        f.error("E0405", f"`{what}` differentiates with respect to a name", node.span, hint)
        return None
    kind = f.shared.kinds.get(node.id) if f.outer is None or node.id not in f.own else None
    if kind == "const":
        f.error("E0405", f"`{node.id}` is a const, and has no derivative", node.span, "make it a `param` or an `input`")
        return None
    if kind == "dim" or node.id in f.dims:
        f.error("E0405", f"`{node.id}` is the size of a dim, and has no derivative", node.span)
        return None
    binding = names.read(f, node)
    if has_poison(binding):
        return None
    if not isinstance(binding, Tensor | Tuple):
        f.error("E0405", f"`{node.id}` is {kind_name(binding)}, and has no derivative", node.span)
        return None
    for value in leaves(binding):
        if not value.type.dtype.is_float:
            what = f"is {value.type}, and" if isinstance(binding, Tensor) else f"holds {value.type}, which"
            f.error("E0405", f"`{node.id}` {what} has no derivative", node.span, "make it a float: `f64(…)`")
            return None
    if not all(isinstance(part, Tensor) for part in _parts(binding)):
        f.error("E0405", f"`{node.id}` holds more than tensors, and has no derivative", node.span)
        return None
    for value in leaves(binding):
        f.shared.asked.setdefault(value, []).append((node.span, node.id))
    return binding


def _parts(binding: Binding) -> Iterator[Binding]:
    if isinstance(binding, Tuple):
        for item in binding.items:
            yield from _parts(item)
    else:
        yield binding


def derive(f: Frame, span: Span, y: Value, targets: list[Binding]) -> Binding:
    """One `Derive` for all targets; a name that holds a tuple gives a tuple."""
    f.shared.derives = True
    values = [v for t in targets for v in leaves(t)]
    outs = {i: Value(derivative_type(f, y, v)) for i, v in enumerate(values)}
    f.block.body.append(Derive(span, "grad", y, tuple(values), None, tuple(outs.values())))
    f.shared.derived.update(outs.values())
    given = iter(outs.values())
    results = [rebuild(t, lambda _: next(given)) for t in targets]
    return results[0] if len(results) == 1 else Tuple(tuple(results))


def derivative_type(f: Frame, y: Value, value: Value) -> Type:
    """Shaped like the target, of its dtype; weak only if both are."""
    type = value.type
    if not type.weak:
        return type
    if y.type.weak:
        return type
    return Type(f.setting.default_float, type.shape)


# ---- vjp, jvp -----------------------------------------------------------------------------------------


def vjp(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`vjp(y, x, u)`: The derivative of `sum(y * u)` by `x`; `u` is shaped like `y`, the result like `x`."""
    result: Binding = yield _directed(f, node, args, "vjp", "u")
    return result


def jvp(f: Frame, node: ast.CallExpr, args: Args) -> Steps[Binding]:
    """`jvp(y, x, v)`: How `y` moves as `x` moves by `v`; `v` is shaped like `x`, the result like `y`."""
    result: Binding = yield _directed(f, node, args, "jvp", "v")
    return result


def _directed(f: Frame, node: ast.CallExpr, args: Args, kind: str, seed_name: str) -> Steps[Binding]:
    found = match_arguments(f, f"`{kind}`", node.span, args, ("y", "x", seed_name))
    if found is None:
        yield evaluate_all(f, args)
        return POISON
    y_node, x_node, seed_node = (found[n][0].value for n in ("y", "x", seed_name))
    y: Value | None = yield differentiated(f, y_node, kind)
    x = one_target(f, x_node, kind)
    seed: Binding = yield expression(f, seed_node)
    value = as_tensor(f, seed, seed_node.span, f"`{seed_name}` of `{kind}`")
    if y is None or x is None or value is None:
        return POISON
    like, dtype = (y, y.type.dtype) if kind == "vjp" else (x, derivative_type(f, y, x).dtype)
    fitted = seed_for(f, value, like, dtype, seed_node.span, f"`{seed_name}`")
    if fitted is None:
        return POISON
    walk = directed if kind == "vjp" else forwards
    return Tensor(walk(f, node.span, y, x, fitted))


def one_target(f: Frame, node: ast.Expr, what: str) -> Value | None:
    """A name that holds one float tensor."""
    binding = target(f, node, what)
    if isinstance(binding, Tuple):
        f.error("E0405", f"`{what}` differentiates with respect to one tensor, not a tuple", node.span)
    return binding.value if isinstance(binding, Tensor) else None


def directed(
    f: Frame, span: Span, y: Value, x: Value, seed: Value, type: Type | None = None, target: Target | None = None
) -> Value:
    """`vjp(y, x, seed)`, of the type given or as the rule is; `target`: by that in place of `x`, whose type it has."""
    f.shared.derives = True
    out = Value(type or derivative_type(f, y, x))
    f.block.body.append(Derive(span, "vjp", y, (target or x,), seed, (out,)))
    f.shared.derived.add(out)
    return out


def forwards(f: Frame, span: Span, y: Value, x: Value, tangent: Value) -> Value:
    """`jvp(y, x, tangent)`: `vjp(y, x, u)` is linear in `u`, and this is its derivative by `u`, transposed once more.

    So it goes wherever a `vjp` goes, and has its rules (J. Townsend, "A new trick for calculating Jacobian vector
    products", 2017). The walk back from the first result reads the values of the forward ops, and computes none again.
    """
    u = f.at(span).nothing_like(y)
    back = directed(f, span, y, x, u)
    f.shared.forwards.add(back)
    return directed(f, span, back, u, tangent, derivative_type(f, x, y))


names.FORMS.update({"grad": grad, "vjp": vjp, "jvp": jvp})

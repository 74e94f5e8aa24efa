"""Statements about derivatives: of what is set, with respect to anything that is set, of any order, in any place."""

from __future__ import annotations

from tests.fuzz.writer import MOST_WRITTEN, Form, Kind, Scope, Writer


def scalar(w: Writer, scope: Scope, target: str) -> tuple[list[str], str]:
    """A scalar to differentiate: one that is set, or a new one that depends on the target; with the lines it takes."""
    scalars = [n for n in scope.floats() if not scope.names[n].shape and n not in scope.outside]
    if scalars and w.chance(50):
        return [], w.recent(scalars)
    y = w.fresh("y")
    dtype = scope.names[target].dtype
    line = f"{y} = sum({target} * {w.expression(scope, Kind(dtype), 2)})"
    scope.names[y] = Kind(dtype)
    return [line], y


def gradient(w: Writer, scope: Scope) -> list[str] | None:
    targets = scope.floats()
    if not targets:
        return None
    target = w.pick(targets)
    lines, y = scalar(w, scope, target)
    result = w.fresh("g")
    if w.chance(15):
        lines.append(f"{result}, {result}b = grad({y}, {target}, {w.pick(targets)})")
    else:
        lines.append(f"{result} = grad({y}, {target})")
    scope.names[result] = scope.names[target]
    if w.chance(40):
        lines += higher(w, scope, result)
    elif w.chance(50):
        lines.append(f"print {result}")
    return lines


def higher(w: Writer, scope: Scope, result: str) -> list[str]:
    """The derivative of a derivative, and sometimes its derivative."""
    lines = []
    for _ in range(w.number(1, 2)):
        total = w.fresh("y")
        target = w.pick(scope.floats())
        weight = w.expression(scope, Kind(scope.names[result].dtype), 1)
        lines.append(f"{total} = sum({result} * {w.pick((result, weight))})")
        result = w.fresh("g")
        lines.append(f"{result} = grad({total}, {target})")
        scope.names |= {total: Kind(scope.names[target].dtype), result: scope.names[target]}
    return [*lines, f"print {result}"]


def product(w: Writer, scope: Scope) -> list[str] | None:
    """`jvp` and `vjp` of anything."""
    names = scope.floats()
    if not names:
        return None
    x = w.pick(names)
    same = [n for n in names if scope.names[n].dtype == scope.names[x].dtype and n not in scope.outside]
    if not same:
        return None
    y = w.recent(same)
    of, along = ("jvp", x) if w.chance(50) and not w.ruled else ("vjp", y)
    result = w.fresh("d")
    line = f"{result} = {of}({y}, {x}, {w.expression(scope, scope.names[along], 2)})"
    scope.names[result] = scope.names[y if of == "jvp" else x]
    return [line, *([f"print {result}"] if w.chance(50) else [])]


def second(w: Writer, scope: Scope) -> list[str] | None:
    """`hvp`, `hessian` and `jacobian`, which are only printed."""
    names = [n for n in scope.floats() if scope.names[n].size <= MOST_WRITTEN]
    if not names:
        return None
    x = w.pick(names)
    inside = [n for n in names if n not in scope.outside]
    if inside and w.chance(40):
        return [f"print jacobian({w.recent(inside)}, {x})"]
    lines, y = scalar(w, scope, x)
    if w.chance(50):
        return [*lines, f"print hessian({y}, {x})"]
    result = w.fresh("h")
    lines.append(f"{result} = hvp({y}, {x}, {w.expression(scope, scope.names[x], 2)})")
    scope.names[result] = scope.names[x]
    return [*lines, f"print {result}"]


FORMS = {"gradients": (Form(gradient, 4),), "products": (Form(product, 3),), "second": (Form(second),)}

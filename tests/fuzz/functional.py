"""The functional forms as statements: several carries, tuples as carries, several tensors, and derivatives of what they
give.
"""

from __future__ import annotations

from tests.fuzz.writer import Form, Kind, Scope, Writer

S, V, M = Kind("f64"), Kind("f64", (3,)), Kind("f64", (2, 3))


def value(w: Writer, scope: Scope, kind: Kind, **read: Kind) -> str:
    """An expression of a kind over what is set and what a lambda reads."""
    return w.expression(scope.having(read), kind, 2)


def while_loop(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    a, b = w.pick((S, V)), w.pick((S, V))
    given = {"a": a, "b": b}
    more = f" and {value(w, scope, Kind('bool'), **given)}" if w.chance(50) else ""
    step = f"(k + 1, {value(w, scope, a, **given)}, {value(w, scope, b, **given)})"
    first = f"{value(w, scope, a)}, {value(w, scope, b)}"
    text = f"while_loop((k, a, b) -> k < {w.number(0, 4)}{more}, (k, a, b) -> {step}, 0, {first})"
    return text, (Kind("i64"), a, b)


def scan(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    xs = w.pick((V, M))
    a, e = w.pick((S, V)), Kind("f64", xs.shape[1:])
    y = w.pick((S, V))
    text = f"scan((a, e) -> ({value(w, scope, a, a=a, e=e)}, {value(w, scope, y, a=a, e=e)})"
    return f"{text}, {value(w, scope, a)}, {value(w, scope, xs)})", (a, Kind("f64", (xs.shape[0], *y.shape)))


def scan_of_pairs(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    """The carry is a tuple, which its lambda takes apart by an index."""
    xs, a, b = w.pick((V, M)), w.pick((S, V)), w.pick((S, V))
    read = {"c[0]": a, "c[1]": b, "e": Kind("f64", xs.shape[1:])}
    carry = f"({value(w, scope, a, **read)}, {value(w, scope, b, **read)})"
    first = f"({value(w, scope, a)}, {value(w, scope, b)})"
    text = f"fold((c, e) -> {carry}, {first}, {value(w, scope, xs)})"
    return text, (a, b)


def fold(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    xs, a = w.pick((V, M, Kind("f64", (0,)))), w.pick((S, V, M))
    e = Kind("f64", xs.shape[1:])
    return f"fold((a, e) -> {value(w, scope, a, a=a, e=e)}, {value(w, scope, a)}, {value(w, scope, xs)})", (a,)


def map_(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    """Over one tensor, or over two whose elements differ in rank."""
    e, h, y, z = S, w.pick((S, Kind("f64", (2,)))), w.pick((S, V)), w.pick((S, V))
    xs, ys = value(w, scope, V), value(w, scope, Kind("f64", (3, *h.shape)))
    kinds = tuple(Kind("f64", (3, *k.shape)) for k in (y, z))
    match w.number(0, 2):
        case 0:
            return f"map(e -> {value(w, scope, y, e=e)}, {xs})", kinds[:1]
        case 1:
            return f"map((e, h) -> {value(w, scope, y, e=e, h=h)}, {xs}, {ys})", kinds[:1]
    return f"map((e, h) -> ({value(w, scope, y, e=e, h=h)}, {value(w, scope, z, h=h)}), {xs}, {ys})", kinds


def cond(w: Writer, scope: Scope) -> tuple[str, tuple[Kind, ...]]:
    a, y, z = w.pick((S, V)), w.pick((S, V)), w.pick((S, V))
    test = value(w, scope, Kind("bool"))
    sides = [f"a -> ({value(w, scope, y, a=a)}, {value(w, scope, z, a=a)})" for _ in range(2)]
    return f"cond({test}, {', '.join(sides)}, {value(w, scope, a)})", (y, z)


WAYS = (while_loop, while_loop, scan, scan_of_pairs, fold, map_, map_, cond)


def form(w: Writer, scope: Scope) -> list[str] | None:
    """Names for what a form gives, often with a gradient of it."""
    if scope.trips > 16:
        return None
    text, kinds = w.pick(WAYS)(w, scope)
    names = [w.fresh("v") for _ in kinds]
    lines = [f"{', '.join(names)} = {text}"]
    scope.names |= dict(zip(names, kinds, strict=True))
    targets = [n for n in scope.floats() if n not in names and scope.names[n].dtype == "f64"]
    if targets and w.chance(60):
        target, g = w.pick(targets), w.fresh("g")
        lines.append(f"{g} = grad(sum({names[-1]} * {names[-1]}), {target})")
        scope.names[g] = scope.names[target]
        if w.chance(40):
            lines.append(f"print grad(sum({g} * {g}), {w.pick(targets)})")
    return [*lines, f"print {', '.join(names)}"]


FORMS = (Form(form, 3),)

"""Functions with defaults, named arguments, several results, named dims and derivative rules; lambdas that are kept."""

from __future__ import annotations

from tests.fuzz.statements import rule
from tests.fuzz.writer import Form, Function, Kind, Scope, Writer

CALLERS = (
    "fn {name}(f, x, y) = f(x, y) + f(y, x)",
    "fn {name}(f, x, y) { for i in 0..2 { x = f(x, y) }; return x }",
    "fn {name}(f, x, y) { if sum(x) > sum(y) { return f(x, y) }; return f(y, x) * 0.5 }",
    "fn {name}(f, x, y) = grad(sum(f(x, y)), x)",
    "fn {name}(f, x, y) { z = f(x, y); return vjp(z * x, x, y) }",
    "fn {name}(f, x, y) { g = (a, b) -> f(b, a) * b; return g(x, y) }",
)
"""Functions of functions of two arguments of the same kind as all else."""

DIMS = (
    (("n",), ("n",), "f64[n]", "{=} * n"),
    (("n",), ("n",), "f64", "sum({=}) / n"),
    (("n",), ("m",), "f64[n]", "{=} + sum(q) * m"),
    (("n",), ("_",), "(f64[n], f64)", "{=}, sum(q) + n"),
    (("n", "m"), ("m",), "f64[n]", "p @ q + n"),
    (("n", "m"), ("n",), "f64[m]", "q @ p - m"),
    (("n", "m"), ("n", "m"), "f64[n, m]", "({=}) * m - q / n"),
)
"""The dims of two params `p` and `q`, what is given, and a value, whose gap has the kind of `p`."""

SIZES = {"n": 3, "m": 2, "_": 4}


def declare(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """Some of these; `outer` are names of the top level that they may read."""
    lines = []
    for _ in range(w.number(1, 3)):
        w.refill()
        lines += w.pick((several, defaults, dims))(w, outer)
    return lines


def several(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """A function with two results, perhaps on several paths, perhaps with a rule."""
    params = tuple(Kind("f64", w.pick(((), (), (3,)))) for _ in range(w.number(1, 2)))
    results = tuple(Kind("f64", w.pick(((), (3,)))) for _ in range(2))
    name = w.fresh("two")
    own = {f"p{i}": k for i, k in enumerate(params)}
    scope = Scope(own | outer, depth=1, fixed=set(outer), outside=frozenset(own | outer))
    body = w.block(scope, w.number(0, 2))
    if w.chance(40):
        body.append(f"    if {w.expression(scope, Kind('bool'), 1)} {{ return {tuple_(w, scope, results)} }}")
    lines = [f"fn {name}({', '.join(own)}) {{", *body, f"    return {tuple_(w, scope, results)}", "}"]
    if w.ruled:
        known = dict(zip(("r0", "r1", "g0", "g1"), (*results, *results), strict=True))
        lines += rule(w, name, own, known, outer)
    for part, result in enumerate(results):
        w.functions.append(Function(name, params, result, f"[{part}]", named=tuple(own)))
    return lines


def tuple_(w: Writer, scope: Scope, kinds: tuple[Kind, ...]) -> str:
    return ", ".join(w.expression(scope, k, 2) for k in kinds)


def defaults(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """A function whose last arguments have defaults, of the top level or of the arguments before them."""
    params = tuple(Kind("f64", w.pick(((), (3,)))) for _ in range(w.number(2, 3)))
    count = w.number(1, len(params) - 1)
    name, result = w.fresh("def"), Kind("f64", w.pick(((), (3,))))
    written, own = [], {}
    for i, kind in enumerate(params):
        default = f" = {w.expression(Scope(dict(outer)), kind, 1)}" if i >= len(params) - count else ""
        own[f"p{i}"] = kind
        written.append(f"p{i}{default}")
    value = w.expression(Scope(own | outer), result, 3)
    w.functions.append(Function(name, params, result, defaults=count, named=tuple(own)))
    lines = [f"fn {name}({', '.join(written)}) = {value}"]
    if w.ruled:
        lines += rule(w, name, own, {"y": result, "g": result}, outer)
    return lines


def dims(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """A function whose declared dims are names, which its body reads."""
    first, second, result, value = w.pick(DIMS)
    kinds = tuple(Kind("f64", tuple(SIZES[d] for d in of)) for of in (first, second))
    name = w.fresh("dim")
    own = dict(zip("pq", kinds, strict=True))
    text = w.fill(value, Scope(own | outer), kinds[0], 2)
    given = tuple(Kind("f64", tuple(SIZES[d] for d in part)) for part in results(result))
    for part, kind in enumerate(given):
        w.functions.append(Function(name, kinds, kind, f"[{part}]" if len(given) > 1 else ""))
    head = f"fn {name}(p: f64[{', '.join(first)}], q: f64[{', '.join(second)}]) -> {result}"
    return [f"{head} {{ return {text} }}"]


def results(text: str) -> list[tuple[str, ...]]:
    """The dims of each part of a declared result."""
    parts = text.strip("()").replace("], ", "];").split(";")
    return [tuple(part[4:-1].split(", ")) if "[" in part else () for part in parts]


def kept(w: Writer, scope: Scope) -> list[str] | None:
    """A lambda in a variable: what it captured is changed, and then it is called, by what follows too."""
    params = tuple(Kind("f64", w.pick(((), (3,)))) for _ in range(w.number(1, 2)))
    result = Kind("f64", w.pick(((), (), (3,))))
    name = w.fresh("l")
    args = {w.fresh("a"): k for k in params}
    head = next(iter(args)) if len(args) == 1 else f"({', '.join(args)})"
    lines = [f"{name} = {head} -> {w.expression(scope.having(args), result, 3)}"]
    captured = [n for n in scope.free(lambda k: k == Kind("f64")) if n in lines[0]]
    if captured and w.chance(60):
        changed = w.pick(captured)
        lines.append(f"{changed} = {w.expression(scope, Kind('f64'), 1)}")
    w.functions.append(function := Function(name, params, result))
    value = w.fresh("v")
    given = ", ".join(w.expression(scope, k, 1) for k in params)
    lines.append(f"{value} = {name}({given})")
    scope.names[value] = result
    lines += w.block(scope, w.number(0, 2), "")
    w.functions.remove(function)
    return lines


def through(w: Writer, scope: Scope) -> list[str] | None:
    """A lambda of two arguments handed to a function."""
    if not w.callers:
        return None
    kind = Kind("f64", w.pick(((), (3,), (2, 3))))
    a, b, value = w.fresh("a"), w.fresh("a"), w.fresh("v")
    body = w.expression(scope.having({a: kind, b: kind}), kind, 2)
    given = ", ".join(w.expression(scope, kind, 1) for _ in range(2))
    line = f"{value} = {w.pick(w.callers)}(({a}, {b}) -> {body}, {given})"
    scope.names[value] = kind
    return [line, f"print {value}"]


def callers(w: Writer) -> list[str]:
    """Functions for `through`."""
    lines = []
    for text in CALLERS:
        if w.chance(30):
            w.callers.append(name := w.fresh("call"))
            lines.append(text.replace("{name}", name))
    return lines


FORMS = (Form(kept, 3), Form(through, 2))

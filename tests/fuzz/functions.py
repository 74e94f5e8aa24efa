"""Functions that take functions: derivatives nested through calls, to any order, of lambdas that capture what is around.

Each works on a value of any kind and gives one of the same kind, so that all of them can stand in one another.
"""

from __future__ import annotations

from tests.fuzz.writer import ANY, Kind, Scope, Writer

_ANY = Kind("f64", ANY)

OPERATORS = (
    (1, "fn {name}(f, x) = grad(sum(f(x)), x)"),
    (1, "fn {name}(f, x) = grad(sum(f(x)), x)"),
    (1, "fn {name}(f, x) = grad(sum({=}), x)"),
    (1, "fn {name}(f, x) = jvp({=}, x, {=})"),
    (1, "fn {name}(f, x) = vjp({=}, x, {=})"),
    (2, "fn {name}(f, x) { y = grad(sum({=}), x); return grad(sum(y * {=}), x) }"),
    (2, "fn {name}(f, x) { y = sum({=}); return hvp(y, x, {=}) }"),
    (0, "fn {name}(f, x) = f(f(x))"),
    (0, "fn {name}(f, x) { g = a -> f(a) * a; return g({=}) }"),
    (0, "fn {name}(f, x) { for i in 0..2 { x = x * 0.5 - f(x) }; return {=} }"),
    (0, "fn {name}(f, x) { if sum(x) > {.} { return f(x) }; x = {=}; return f(x) }"),
    (0, "fn {name}(f, x) { for i in 0..3 { x = {=}; if sum(x) > {.} { break } }; return x }"),
    (0, "fn {name}(f, x) { for i in 0..3 { if i == 1 { continue }; x = f({=}) }; return x }"),
    (1, "fn {name}(f, x) { for i in 0..2 { x = x - 0.1 * grad(sum(f(x)), x) }; return {=} }"),
    (1, "fn {name}(f, x) { y = f(x); for i in 0..2 { y = y * {=} }; return grad(sum(y), x) }"),
    (1, "fn {name}(f, x) { y = f(x); if sum(y) > {.} { return grad(sum(y), x) }; return y }"),
    (1, "fn {name}(f, x) { y, z = (f(x), {=}); return stop_gradient(y) * grad(sum(y * z), x) }"),
)
"""How often each differentiates, and its text; the gaps are of the kind of `x`, and may hold `f(x)`."""

THROUGH = (
    (1, "fn {name}(f, x) = {D}(f, {=})"),
    (1, "fn {name}(f, x) = {D}(a -> f(a) * a, x)"),
    (2, "fn {name}(f, x) = {D}(a -> {E}(f, a), x)"),
    (2, "fn {name}(f, x) = {D}(a -> {E}(b -> f(a * b), a), x)"),
    (2, "fn {name}(f, x) { y = {D}(f, x); return grad(sum(y * {=}), x) }"),
    (2, "fn {name}(f, x) { y = {D}(f, x); return jvp(y, x, {=}) }"),
    (1, "fn {name}(f, x) { for i in 0..2 { x = x - 0.1 * {D}(f, x) }; return x }"),
    (2, "fn {name}(f, x) { y = x; for i in 0..2 { y = y - 0.1 * {D}(f, y) }; return grad(sum(y), x) }"),
    (1, "fn {name}(f, x) { if sum(x) > {.} { return {D}(f, x) }; return {D}(a -> a * f(a), x) }"),
)
"""Those that call others: what they call counts on top."""

MAPS = (
    "fn {name}(x) = {=}",
    "fn {name}(x) = x * x * {.}",
    "fn {name}(x) { y = {=}; return y * {=} }",
    "fn {name}(x) { y = x; for i in 0..2 { y = {=}; x = x * y }; return x }",
    "fn {name}(x) { if sum(x) < {.} { return {=} }; return {=} }",
)

RULES = (
    "vjp {name}(x; y, g) = g * {=}",
    "vjp {name}(x; y, g) = g * {=}",
    "vjp {name}(x; y, g) = {=}",
    "vjp {name}(x; y, g) = g * {name}(x) + {.} * y",
    "vjp {name}(x; y, g) = {name}(g) * {=}",
    "vjp {name}(x; y, g) { z = {=}; return g * grad(sum(z * z), x) }",
    "vjp {name}(x; y, g) { h = g; for i in 0..2 { h = h * {=} }; return h }",
    "vjp {name}(x; y, g) { if sum(g) > {.} { return g * {=} }; return y * {.} }",
    "vjp {name}(x; y, g) { if sum(g) < {.} { assert sum(x) < {.} }; return g * {.} }",
)
"""Derivative rules for functions of a map's form: right, wrong, and not linear in the cotangent."""


def declare(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """Some functions of each table; `outer` are names of the top level that they may read."""
    lines = []
    for _ in range(w.number(1, 2)):
        name = w.fresh("m")
        lines.append(body(w, w.pick(MAPS), name, {"x": Kind("f64", ANY)} | outer))
        if w.ruled:
            lines.append(body(w, w.pick(RULES), name, {n: Kind("f64", ANY) for n in "xyg"} | outer))
        w.maps[name] = 0
    names = {"x": Kind("f64", ANY), "f(x)": Kind("f64", ANY)} | outer
    for table, most in ((OPERATORS, 3), (THROUGH, 2)):
        for _ in range(w.number(1, most)):
            order, text = w.pick([row for row in table if not (w.ruled and "jvp" in row[1])])
            if table is THROUGH:
                inner = w.pick(w.operators)
                order += max(w.operators[inner], w.operators[first := w.pick(w.operators)]) - 1
                text = text.replace("{D}", inner).replace("{E}", first)
            name = w.fresh("D")
            lines.append(body(w, text, name, names))
            w.operators[name] = order
    if w.chance(40):
        name = w.fresh("m")
        operator = w.pick([n for n, order in w.operators.items() if order < 2] or w.operators)
        lines.append(f"fn {name}(x) = {operator}({w.pick(w.maps)}, x)")
        w.maps[name] = w.operators[operator]
    return lines


def body(w: Writer, text: str, name: str, names: dict[str, Kind], kind: Kind = _ANY) -> str:
    """A text of the tables with its gaps filled by expressions of a kind; those that take any kind are not called in
    them.
    """
    maps, operators, w.maps, w.operators = w.maps, w.operators, {}, {}
    filled = w.fill(text.replace("{name}", name), Scope(names), kind, 2)
    w.maps, w.operators = maps, operators
    return filled

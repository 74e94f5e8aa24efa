"""Functions that call themselves or each other: of one size on the way, or of one that changes, with derivatives inside.

Each is called through a function that says how deep it goes, so that what may be called anywhere ends soon.
"""

from __future__ import annotations

import re

from tests.fuzz.functions import body
from tests.fuzz.writer import ANY, Function, Kind, Writer

HEAD = "fn {name}(x: {S}, n: i64) -> {S} "
BODIES = (
    "{ if n <= 0 { return {=} }; return {=} * {name}({=}, n - 1) }",
    "{ if n <= 0 { return x }; y = {name}({=}, n - 1); return y * y + {=} }",
    "{ if n <= 1 { return {=} }; return {name}({=}, n - 1) - {name}({=}, n - 2) * {.} }",
    "{ y = {=}; for i in 0..2 { if n > 0 { y = y * 0.5 + {name}(y * {.}, n - 1) } }; return y }",
    "{ if sum(x) > {.} or n <= 0 { return {=} }; print n; return {name}({=}, n - 1) + x }",
    "{ y = x; while n > 0 { n -= 2; y = {name}(y * {=}, n) }; return y + {=} }",
    "{ if n <= 0 { return {=} }; y = {name}({=}, n - 1); return y + grad(sum({=}), x) }",
    "{ if n <= 0 { return {=} }; y = {=}; return {name}(x - 0.1 * grad(sum(y), x), n - 1) }",
    "{ if n <= 0 { return x }; y = {name}(x, n - 1); return {=} - grad(sum(y * {=}), x) }",
    "{ if n <= 0 { return {=} }; y = {name}({=}, n - 1) * {=}; print grad(sum(y), x); return y }",
    "{ if n <= 0 { return x }; y = {=} * {name}(x, n - 1); if sum(jvp(y, x, {=})) > {.} { return y }; return y * {.} }",
    "{ if n <= 0 { return x }; y = {name}(x * {.}, n - 1) + {=}; g = grad(sum(y), x); "
    "for i in 0..2 { print vjp(g, x, y) }; return y * stop_gradient(sum(g)) }",
)
CALL = "fn {caller}(x: {S}) = {name}({=}, {depth})"

# Heads of their own, and how they are called. `{other}` is a second function.
GROUPS = (
    (
        "fn {name}(x: {S}, n: i64) -> {S} { if n <= 0 { return {=} }; return {other}({=}, n - 1) * {.} }",
        "fn {other}(x: {S}, n: i64) -> {S} { if n <= 0 { return {=} }; y = {name}({=}, n - 1); return y + x * {=} }",
        CALL,
    ),
    (
        "fn {name}(x: {S}, n: i64) -> {S} "
        "{ if n <= 0 { return {=} }; y = {other}({=}, n - 1) * {=}; print grad(sum(y), x); return y }",
        "fn {other}(x: {S}, n: i64) -> {S} "
        "{ if n <= 0 { return x }; y = {name}({=}, n - 1); assert sum(grad(sum(y * x), x)) < 1e9; return y + x * {=} }",
        CALL,
    ),
    (
        "fn {name}(x: {S}, n: i64) -> ({S}, {S}) "
        "{ if n <= 0 { return {=}, x }; a, b = {name}({=}, n - 1); return b, a * {=} }",
        "fn {caller}(x: {S}) { a, b = {name}(x, {depth}); return a - b * {=} }",
    ),
    (
        "fn {name}(f, x: {S}, n: i64) -> {S} { if n <= 0 { return f(x) }; return {name}(f, f(x) * {.}, n - 1) }",
        "fn {caller}(x: {S}) = {name}(a -> a * {=}, {=}, {depth})",
    ),
    (
        "fn {name}(f, x: {S}, n: i64) -> {S} "
        "{ if n <= 0 { return x }; return {name}(f, x - 0.1 * grad(sum(f(x)), x), n - 1) }",
        "fn {caller}(x: {S}) { y = {=}; return {name}(a -> a * y * {=}, {=}, {depth}) }",
    ),
    (
        "fn {name}(x: f64[_]) -> f64[_] { if x.size <= 1 { return x * {.} }; return concat([{name}(x[1:]), x[:1] * {.}]) }",
        "fn {caller}(x: {S}) = {=} * sum({name}(reshape(x, -1)))",
    ),
    (
        "fn {name}(x: f64[_]) -> f64[_] { if x.size > 5 { return x }; return {name}(concat([x, x[:2] * {.}])) * {.} }",
        "fn {caller}(x: {S}) = {=} * sum({name}(reshape(x, -1)))",
    ),
    (
        "fn {name}(x: f64[_]) -> f64 { if x.size == 0 { return {.} }; return x[0] * {name}(x[1:]) + {.} }",
        "fn {caller}(x: {S}) = {=} + {name}(reshape(x * {=}, -1))",
    ),
)


def declare(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """Some recursive functions, and those that call them, which programs may call."""
    lines = []
    for _ in range(w.number(1, 2)):
        kind = Kind("f64", w.pick(((), (), (3,))))
        words = {"name": w.fresh("rec"), "other": w.fresh("rec"), "caller": w.fresh("fun")}
        words |= {"S": f"f64{list(kind.shape) or ''}", "depth": str(w.number(0, 4))}
        for text in (HEAD + w.pick(BODIES), CALL) if w.chance(60) else w.pick(GROUPS):
            x = Kind("f64", ANY) if "x: f64[_]" in text else kind
            lines.append(body(w, named(text, words), "", {"x": x} | outer, kind))
        w.functions.append(Function(words["caller"], (kind,), kind))
    return lines


def named(text: str, words: dict[str, str]) -> str:
    """A text with these words in their gaps; the gaps for expressions stay."""
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)

"""Loops that write an element from those beside it: recurrences and sweeps over rows, forwards, backwards, in place."""

from __future__ import annotations

from tests.fuzz.functions import body
from tests.fuzz.writer import ANY, Form, Kind, Scope, Writer

LINES = {
    "for {i} in 1..{n} {": ("{x}[{i}]", "{x}[{i} - 1]"),
    "for {i} in 2..{n} {": ("{x}[{i}]", "{x}[{i} - 1]", "{x}[{i} - 2]"),
    "for {i} in 1..{n} - 1 {": ("{x}[{i}]", "{x}[{i} - 1]", "{x}[{i} + 1]"),
    "for {i} in {n} - 2..0 step -1 {": ("{x}[{i}]", "{x}[{i} + 1]", "{x}[{i} - 1]"),
    "for {i} in 0..{n} step 2 {": ("{x}[{i}]", "{x}[-{i} - 1]"),
    "for {i} in 0..{n} {": ("{x}[{i}]", "{x}[({i} + 1) % {n}]", "{x}[({i} * 3) % {n}]"),
}
"""Heads of loops over a tensor of `n` elements, with the elements that their bodies may read; the first is written."""

VALUES = ("{=}", "{=}", "0.5 * ({=} + {=})", "tanh({=})", "{=} * 0.3 + {=} * 0.6", "maximum({=}, {=} - 1.0)")
"""Of those elements."""

ROWS = ("{x}[{i} - 1, 0]", "{x}[{i} - 1, 1]", "{x}[{i}, 1]", "{x}[{i}, 0]", "{x}[{i}, -1]")
SLICES = (
    "{x}[1:-1] = 0.5 * ({x}[:-2] + {x}[2:]) * {.}",
    "{x}[1:] = {x}[:-1] * {.} + {x}[1:]",
    "{x}[:-1] += {x}[1:] * {.}",
    "{x}[::2] = {x}[1::2] - {.}",
    "{x} = {x} * {.}; {x}[0] += {x}[-1]",
)


def sweep(w: Writer, scope: Scope) -> list[str] | None:
    """A loop over the elements of a new tensor, often with a derivative of what it makes."""
    if scope.trips > 6 or scope.depth >= 3:
        return None
    n = 2 * w.number(2, 4) if scope.in_loop or w.chance(60) else w.pick((12, 20, 34))
    x, i, dtype = w.fresh("x"), w.fresh("i"), "f32" if w.chance(15) else "f64"
    kind = Kind(dtype, (n,))
    first = w.expression(scope, kind, 1) if n <= 4 else w.long(kind)
    lines = [f"{x} = {first} * {w.expression(scope, Kind(dtype), 1)}"]
    lines += matrix(w, scope, x, i, dtype) if w.chance(20) else row(w, scope, x, i, kind)
    if w.chance(25):
        i = w.fresh("i")
        lines += row(w, scope, x, i, kind)
    scope.names[x] = kind
    if w.chance(60):
        lines += slope(w, scope, x)
    return [*lines, f"print {x}"]


def row(w: Writer, scope: Scope, x: str, i: str, kind: Kind) -> list[str]:
    """One sweep over a tensor of rank 1."""
    if w.chance(20):
        line = w.pick(SLICES).replace("{x}", x)
        return [f"for {i} in 0..{w.number(1, 4)} {{", "    " + filled(w, scope, line, {}, kind.dtype), "}"]
    size = w.pick((str(kind.size), f"{x}.size", f"size({x})"))
    head = w.pick(LINES)
    target, *others = (text.replace("{x}", x).replace("{i}", i).replace("{n}", size) for text in LINES[head])
    head = head.replace("{i}", i).replace("{n}", size)
    read = dict.fromkeys([target, *others], Kind(kind.dtype))
    inside = [f"{target} {w.pick(('=', '=', '+=', '*='))} {filled(w, scope, w.pick(VALUES), read, kind.dtype)}"]
    if w.chance(20):
        inside.insert(
            0, f"if {target} > {w.literal(Kind(kind.dtype))} {{ {w.pick(('break', 'continue', inside[0]))} }}"
        )
    if w.chance(20):
        inside.append(f"{w.pick(others)} = {target} * {filled(w, scope, '{=}', read, kind.dtype)}")
    return [head, *("    " + line for line in inside), "}"]


def matrix(w: Writer, scope: Scope, x: str, i: str, dtype: str) -> list[str]:
    """A sweep over the rows of the tensor made a matrix of two columns, and back."""
    read = {text.replace("{x}", x).replace("{i}", i): Kind(dtype) for text in ROWS}
    target = f"{x}[{i}, {w.pick((0, 1, -1))}]"
    value = filled(w, scope, w.pick(VALUES), read, dtype)
    inner = [f"    {target} = {value}"]
    if w.chance(50):
        j = w.fresh("j")
        value = filled(
            w, scope, w.pick(VALUES), {f"{x}[{i} - 1, {j}]": Kind(dtype), f"{x}[{i}, 1 - {j}]": Kind(dtype)}, dtype
        )
        inner = [f"    for {j} in 0..2 {{ {x}[{i}, {j}] = {value} }}"]
    shape = f"{x} = reshape({x}, -1, 2)"
    return [shape, f"for {i} in 1..{x}.shape[0] {{", *inner, "}", f"{x} = flatten({x})"]


def filled(w: Writer, scope: Scope, template: str, read: dict[str, Kind], dtype: str) -> str:
    """A template with scalar expressions of these elements in its gaps, and now and then of what else is set."""
    others = {n: k for n, k in scope.names.items() if k == Kind(dtype)} if w.chance(40) or not read else {}
    return body(w, template, "", others | read, Kind(dtype))


def slope(w: Writer, scope: Scope, x: str) -> list[str]:
    """A derivative of what a sweep made, with respect to what went into it."""
    dtype = scope.names[x].dtype
    targets = [n for n in scope.floats() if scope.names[n].dtype == dtype and scope.names[n].shape != ANY]
    target, g = w.pick(targets), w.fresh("g")
    if w.ruled or w.chance(70):
        line = f"{g} = grad(sum({x} * {x}), {target})"
        scope.names[g] = scope.names[target]
    else:
        line = f"{g} = jvp({x}, {target}, ones_like({target}))"
        scope.names[g] = scope.names[x]
    lines = [line, f"print {g}"]
    if scope.names[g].size <= 8 and w.chance(40):
        lines.append(f"print grad(sum({g} * {g}), {w.pick(targets)})")
    return lines


FORMS = (Form(sweep, 4),)

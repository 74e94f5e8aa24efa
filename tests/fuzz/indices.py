"""Elements by int tensors, by masks, by slices whose ends are known only as the program runs: read and written."""

from __future__ import annotations

from tests.fuzz.writer import Form, Kind, Scope, Writer

READ = {
    (4,): ("{x}[{ix}]", "take({x}, {ix})", "{x}[{ix}][[1, 0, 2]]", "{x}[abs({ix}) % 4]", "({x} * {x}[3])[{ix}]"),
    (2, 3): ("{x}[[1, 0, 1], {ix}]", "{x}[{i} % 2, {ix}]", "{x}[1][{ix}]", "{x}.T[{ix}, [0, 1, 1]]", "{x}[:, {ix}][0]"),
    (3, 2): ("{x}[{ix}, [0, 1, 0]]", "{x}[{ix}][:, 1]", "{x}[{ix}, {i} % 2]", "sum({x}[{ix}], axis=1)"),
}
"""Three floats of a tensor of this shape; `ix` are three ints."""

SUMS = (
    "sum({x}[{m}])",
    "sum({x}[{m}] * {x}[{m}])",
    "sum({x}[{i} % 2:])",
    "sum({x}[{i} % 2:{j} % 4])",
    "sum({x}[::-1][{i} % 3:])",
    "sum({x}[{j} % 4:{i} % 2:-1])",
    "sum({x}[..., {i} % 2])",
    "{x}[{m}].size * {.}",
    "sum({x}[{i} % 2] * {.})",
    "sum({x}[-1 - {i} % 2])",
)
"""Of any tensor; `m` is a mask of it."""

WRITTEN = {
    (4,): (
        "[{ix}]",
        "[abs({ix})]",
        "[{ix}[1:]]",
        "[1 + {i} % 3]",
        "[{i} % 2:{j} % 4]",
        "[{i} % 2:][::2]",
        "[::-1][{ix}]",
    ),
    (2, 3): ("[{i} % 2]", "[:, {ix}]", "[[1, 0, 1], {ix}]", "[{i} % 2, {ix}]", "[{i} % 2][{j} % 3]", "[..., {i} % 2]"),
    (3, 2): ("[{ix}]", "[{ix}, {i} % 2]", "[{ix}, [0, 1, 0]]", "[{ix}][0]", "[1:, {i} % 2]", "[{i} % 2:, none, 1]"),
}
MASKS = ("{x} > {.}", "{x} < {x} * {.}", "({x} > {.}) & ({x} < {.})", "~({x} > {.})", "isfinite({x})", "{x} == {x}")


def tensor(w: Writer, scope: Scope) -> tuple[list[str], str]:
    """A tensor to read or write, one that is set or a new one, with the lines that make it."""
    found = scope.free(lambda k: k.dtype in ("f64", "f32") and k.shape in READ)
    if found and w.chance(75):
        return [], w.recent(found)
    kind = Kind(w.pick(("f64", "f64", "f32")), w.pick(READ))
    x = w.fresh("v")
    line = f"{x} = {w.expression(scope, kind, 2)}"
    scope.names[x] = kind
    return [line], x


def ints(w: Writer, scope: Scope) -> tuple[list[str], str]:
    """Three places within 2, mostly."""
    found = [n for n in scope.names if n.startswith("ix")]
    if found and w.chance(60):
        return [], w.pick(found)
    ix = w.fresh("ix")
    text = w.pick(("[0, 1, 0]", "[1, 1, 0]", "i32([0, 1, 1])", "argsort({f3}) % 2", "abs({i3}) % 2", "-1 - {i3} % 2"))
    text = w.pick((text, text, text, "{i3}")) if w.chance(50) else text
    lines = [f"{ix} = {w.fill(text, scope, Kind('i64', (3,)), 1)}"]
    scope.names[ix] = Kind("i64", (3,)) if "i32" not in text else Kind("i32", (3,))
    scope.fixed.add(ix)
    return lines, ix


def named(w: Writer, scope: Scope, text: str, x: str, ix: str) -> str:
    """A text with the names in place."""
    counters = [n for n, k in scope.names.items() if k == Kind("i64")] or ["1"]
    text = text.replace("{m}", w.pick(MASKS)).replace("{x}", x).replace("{ix}", ix)
    text = text.replace("{i}", w.recent(counters)).replace("{j}", w.recent(counters))
    return w.fill(text, scope, Kind(scope.names[x].dtype), 1)


def read(w: Writer, scope: Scope) -> list[str]:
    lines, x = tensor(w, scope)
    more, ix = ints(w, scope)
    kind = scope.names[x]
    value = w.fresh("v")
    if w.chance(50):
        line, result = w.pick(READ[kind.shape]), Kind(kind.dtype, (3,))
    else:
        line, result = w.pick(SUMS), Kind(kind.dtype)
    lines += [*more, f"{value} = {named(w, scope, line, x, ix)}"]
    scope.names[value] = result
    return lines


def write(w: Writer, scope: Scope) -> list[str]:
    lines, x = tensor(w, scope)
    more, ix = ints(w, scope)
    kind = scope.names[x]
    scalar = Kind(kind.dtype)
    sign = w.pick(("=", "=", "+=", "*=", "-="))
    if w.chance(30):
        mask = named(w, scope, "{m}", x, ix)
        lines += [*more, f"{x}[{mask}] {sign} {w.expression(scope, scalar, 2)}"]
    else:
        place = named(w, scope, w.pick(WRITTEN[kind.shape]), x, ix)
        lines += [*more, f"{x}{place} {sign} {w.expression(scope, scalar, 2)}"]
    if w.chance(20):
        lines.append(f"{x} = scatter_add({x}, {ix}, {w.expression(scope, scalar, 1)})")
    return lines


FORMS = (Form(read, 3), Form(write, 4))

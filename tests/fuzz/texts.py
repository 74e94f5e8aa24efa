"""Texts with values of every dtype in them, by every format, and messages of asserts."""

from __future__ import annotations

from tests.fuzz.writer import Form, Kind, Scope, Writer

FLOATS = (
    ":.3f",
    ":.2e",
    ":g",
    ":10.4f",
    ":<12.3g",
    ":^12.1f",
    ":+.1f",
    ":012.3f",
    ":%",
    ":.0f",
    ":,.2f",
    "",
    "",
    ":_>9.2f",
)
INTS = (":d", ":5d", ":<6d", ":+d", ":x", ":b", ":,d", ":05d", ":.2f", "", "", ":e")
PIECES = ("at ", " and ", "\\t", "{{", "}}", " = ", '\\"', "é ", "\\u03b1", "%d ", "")


def text(w: Writer, scope: Scope) -> str:
    """A string with values in it: names, expressions, elements."""
    parts = []
    for _ in range(w.number(1, 3)):
        dtype = w.pick(("f64", "f64", "f32", "i64", "bool"))
        value = w.expression(scope, Kind(dtype), w.number(0, 2))
        if '"' in value:  # of an einsum
            value = "0.5"
        spec = {"f64": FLOATS, "f32": FLOATS, "i64": INTS, "bool": ("",)}[dtype]
        parts.append(f"{w.pick(PIECES)}{{{value}{w.pick(spec)}}}")
    return f'"{"".join(parts)}{w.pick(PIECES)}"'


def said(w: Writer, scope: Scope) -> list[str]:
    others = f", {w.pick(scope.names)}" if scope.names and w.chance(30) else ""
    if w.chance(20):
        name = w.fresh("text")
        return [f"{name} = {text(w, scope)}", *w.block(scope, 1, ""), f"print {name}{others}"]
    return [f"print {text(w, scope)}{others}"]


def whole(w: Writer, scope: Scope) -> list[str] | None:
    """A value in a text without a format: of any shape."""
    if not scope.names:
        return None
    return [f'print "{{{w.pick(scope.names)}}}"']


def checked(w: Writer, scope: Scope) -> list[str]:
    """An assert that mostly holds, with a message."""
    test = w.expression(scope, Kind("bool"), 1)
    return [f"assert {w.pick(('true or ', 'true or ', 'not false or ', ''))}{test}, {text(w, scope)}"]


FORMS = (Form(said, 4), Form(whole), Form(checked))

"""What a `for` may run over: zips, enumerations, rows, ranges whose ends and steps are known only as the program runs."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.writer import Form, Kind, Scope, Writer

Over = tuple[str, dict[str, Kind]]
"""What stands behind `in`, and the names of a trip."""


def rows(w: Writer, scope: Scope) -> Over:
    kind = Kind("f64", w.pick(((3,), (2, 3), (3, 2), (0,), (4,))))
    return w.expression(scope, kind, 2), {w.fresh("r"): Kind("f64", kind.shape[1:])}


def bits(w: Writer, scope: Scope) -> Over:
    """Bools and ints are rows too."""
    kind = Kind(w.pick(("bool", "i64", "i32")), (3,))
    return w.expression(scope, kind, 1), {w.fresh("r"): Kind(kind.dtype)}


def steps(w: Writer, scope: Scope) -> Over:
    """At most 6 trips, whatever the ints are."""
    begin, end = (w.expression(scope, Kind("i64"), 1) for _ in range(2))
    ends = (
        f"{begin} % 3..{end} % 4",
        f"({begin}) % 2..6 step 1 + abs({end}) % 3",
        f"4..{end} % 3 step -1 - {begin} % 2",
        f"-{w.number(0, 2)}..{w.number(0, 3)}",
        f"0..size({w.expression(scope, Kind('f64', (3,)), 1)})",
        "5..0 step -2",
    )
    return w.pick(ends), {w.fresh("i"): Kind("i64")}


def zipped(w: Writer, scope: Scope) -> Over:
    first, second = w.pick(PAIRS)
    texts = ", ".join(w.expression(scope, k, 1) for k in (first, second))
    if first.shape[0] == 3 and w.chance(20):
        texts += ", 0..3"
        return f"zip({texts})", {w.fresh("r"): row(first), w.fresh("r"): row(second), w.fresh("i"): Kind("i64")}
    return f"zip({texts})", {w.fresh("r"): row(first), w.fresh("r"): row(second)}


def numbered(w: Writer, scope: Scope) -> Over:
    text, names = w.pick((rows, bits, steps))(w, scope)
    return f"enumerate({text})", {w.fresh("i"): Kind("i64")} | names


def row(kind: Kind) -> Kind:
    return Kind(kind.dtype, kind.shape[1:])


V = Kind("f64", (3,))
PAIRS = (
    (V, V),
    (V, Kind("f64", (3, 2))),
    (V, Kind("i64", (3,))),
    (Kind("bool", (3,)), V),
    (Kind("f32", (3,)), V),
    (Kind("f64", (2, 3)), Kind("f64", (2,))),
)
WAYS: tuple[Callable[[Writer, Scope], Over], ...] = (rows, bits, steps, steps, zipped, zipped, numbered)


def loop(w: Writer, scope: Scope) -> list[str] | None:
    """A loop over one of these, perhaps left early, whose variable is read afterwards."""
    if scope.depth >= 3 or scope.trips > 12:
        return None
    over, names = w.pick(WAYS)(w, scope)
    inner = scope.inner(6)
    inner.names |= names
    lines = []
    kept = next(reversed(names))
    if w.chance(30):  # after no trip it has what it had before
        lines.append(f"{kept} = {w.expression(scope, names[kept], 0)}")
        scope.names[kept] = names[kept]
    total = w.fresh("s")
    lines.append(f"{total} = {w.pick(('0.0', '0', 'f64(0)'))}")
    inner.fixed.add(total)
    body = [f"    {total} += {w.expression(inner, Kind('f64'), 2)}", *w.block(inner, w.number(0, 3))]
    lines += [f"for {', '.join(names)} in {over} {{", *body, "}"]
    scope.names[total] = Kind("f64")
    return lines


FORMS = (Form(loop, 3),)

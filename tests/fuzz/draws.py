"""Random numbers in every place: in loops, branches, functions, checkpoints, and seeds in the middle."""

from __future__ import annotations

from tests.fuzz.writer import Form, Kind, Scope, Writer

WAYS: tuple[tuple[str, Kind], ...] = (
    ("uniform()", Kind("f64")),
    ("normal(3)", Kind("f64", (3,))),
    ("uniform(2, 3)", Kind("f64", (2, 3))),
    ("normal([2, 3]) * {.}", Kind("f64", (2, 3))),
    ("f64(bernoulli(full(3, 0.5))) * {3}", Kind("f64", (3,))),
    ("f64(randint(0, 5, 3)) + {3}", Kind("f64", (3,))),
    ("randint(-2, 4, 3)", Kind("i64", (3,))),
    ("f64(permutation(4))", Kind("f64", (4,))),
    ("permutation(3)", Kind("i64", (3,))),
    ("({4})[permutation(4)]", Kind("f64", (4,))),
    ("dropout({3}, 0.5)", Kind("f64", (3,))),
    ("normal(0)", Kind("f64", (0,))),
    ("map(e -> e * normal() + {.}, {3})", Kind("f64", (3,))),
    ("f32(normal(3))", Kind("f32", (3,))),
)


def draw(w: Writer, scope: Scope) -> list[str]:
    text, kind = w.pick(WAYS)
    name = w.fresh("n")
    line = f"{name} = {w.fill(text, scope, Kind('f64'), 1)}"
    scope.names[name] = kind
    return [line]


def again(w: Writer, scope: Scope) -> list[str]:
    """A seed, of the text or of the program."""
    return [f"seed {w.pick(('0', '7', '-1', w.expression(scope, Kind('i64'), 1)))}"]


def replayed(w: Writer, scope: Scope) -> list[str]:
    """Draws within what is computed again, with a derivative."""
    x, y = w.fresh("v"), w.fresh("y")
    noise = w.pick(("normal(3)", "uniform(3)", "dropout(ones(3), 0.5)"))
    lines = [f"{x} = {w.expression(scope, Kind('f64', (3,)), 2)}", "checkpoint {"]
    lines += [f"    {y} = {x} * {noise}", f"    {y} = sum(sin({y}) * {noise})", "}"]
    scope.names |= {x: Kind("f64", (3,)), y: Kind("f64")}
    return [*lines, f"print grad({y}, {x}), uniform()"]


FORMS = (Form(draw, 4), Form(again), Form(replayed))

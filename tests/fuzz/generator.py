"""Random programs over what the language has: `program(seed)` is the text of one.

Each program is made of a part of the forms only, drawn first: what is rare in a mixture of everything is frequent
somewhere (A. Groce et al., Swarm Testing, ISSTA 2012).
"""

from __future__ import annotations

from tests.fuzz import derivatives, expressions, functions, growing, recursion, statements
from tests.fuzz.flow import Flow
from tests.fuzz.writer import Kind, Scope, Writer

OPTIONAL = statements.FORMS | derivatives.FORMS | {"growing": growing.FORMS}
ALWAYS = ("plain", "gradients")


def program(seed: int) -> str:
    """The text of the program with this number."""
    writer = Writer(seed, expressions.templates)
    return Flow(seed).program() if writer.chance(3) else mixed(writer)


def mixed(w: Writer) -> str:
    """A program with everything that was drawn for it."""
    default = "f32" if w.chance(8) else "f64"
    chosen = [name for name in OPTIONAL if name in ALWAYS or w.chance(35 if name == "growing" else 55)]
    w.forms = [form for name in chosen for form in OPTIONAL[name]]
    lines = ["default f32"] if default == "f32" else []
    names: dict[str, Kind] = {}
    for _ in range(w.number(1, 3)):
        name, kind = w.fresh("w"), Kind(default, w.pick(((), (), (3,), (2, 3))))
        lines.append(f"param {name}: {default}{list(kind.shape) or ''} = {w.literal(kind)}")
        names[name] = kind
    scope = Scope(names, tuple(names), fixed=set(names))
    if w.chance(20):
        lines += ["seed 3", "u0 = uniform(3)", "n0 = normal()"]
        names |= {"u0": Kind(default, (3,)), "n0": Kind(default)}
    if default == "f64":
        lines += declarations(w, {n: k for n, k in names.items() if not k.shape}, "growing" in chosen)
    w.expressions, w.statements = 45, 13
    lines += w.block(scope, w.number(2, 8), "")
    lines += [f"print {name}" for name in (*scope.names, *scope.growing)]
    return "\n".join(lines) + "\n"


def declarations(w: Writer, outer: dict[str, Kind], grows: bool) -> list[str]:
    """The functions of a program; `outer` are the names that they may read."""
    lines: list[str] = []
    if w.chance(45):
        lines += functions.declare(w, outer)
    if w.chance(20):
        lines += recursion.declare(w, outer)
    if grows:
        lines += growing.declare(w, outer)
    for _ in range(w.pick((0, 0, 1, 2))):
        lines += statements.function(w, outer)
    return lines

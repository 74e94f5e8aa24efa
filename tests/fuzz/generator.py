"""Random programs over what the language has: `program(seed)` is the text of one.

Each program is made of a part of the forms only, drawn first: what is rare in a mixture of everything is frequent
somewhere (A. Groce et al., Swarm Testing, ISSTA 2012).
"""

from __future__ import annotations

from tests.fuzz import (
    calls,
    derivatives,
    draws,
    expressions,
    functional,
    functions,
    growing,
    indices,
    inputs,
    iteration,
    large,
    modules,
    recursion,
    statements,
    stencils,
    storing,
    texts,
    watching,
)
from tests.fuzz.flow import Flow
from tests.fuzz.writer import Kind, Scope, Writer

OPTIONAL = (
    statements.FORMS
    | derivatives.FORMS
    | {
        "calls": calls.FORMS,
        "draws": draws.FORMS,
        "functional": functional.FORMS,
        "growing": growing.FORMS,
        "indices": indices.FORMS,
        "iteration": iteration.FORMS,
        "stencils": stencils.FORMS,
        "storing": storing.FORMS,
        "texts": texts.FORMS,
    }
)
ALWAYS = ("plain", "gradients")
RARER = {"growing": 35, "draws": 20, "stencils": 30, "storing": 12, "texts": 20, "indices": 30, "functional": 35}
"""In so many of a hundred programs; what is not named here, in half of them."""


def program(seed: int) -> str:
    """The text of the program with this number."""
    writer = Writer(seed, expressions.templates)
    lines = Flow(seed).program().splitlines() if writer.chance(3) else mixed(writer)
    heads = [f"#: {' '.join(writer.arguments)}"] if writer.arguments else []
    files = [f"#file {name}\n{text}" for name, text in writer.files.items()]
    return "\n".join((*heads, *lines, *files)).rstrip("\n") + "\n"


def mixed(w: Writer) -> list[str]:
    """A program with everything that was drawn for it."""
    default = "f32" if w.chance(8) else "f64"
    chosen = [name for name in OPTIONAL if name in ALWAYS or w.chance(RARER.get(name, 50))]
    w.forms = [form for name in chosen for form in OPTIONAL[name]]
    w.ruled = w.chance(25)
    lines = ["default f32"] if default == "f32" else []
    if default == "f64" and w.chance(20):
        lines += modules.declare(w)
    if w.chance(10):
        large.choose(w)
    names: dict[str, Kind] = {}
    for _ in range(w.number(1, 3)):
        name, kind = w.fresh("w"), Kind(default, w.pick(((), (), (3,), (2, 3))))
        lines.append(f"param {name}: {default}{list(kind.shape) or ''} = {w.literal(kind)}")
        names[name] = kind
    scope = Scope(names, tuple(names), fixed=set(names))
    if w.chance(25):
        more, found = inputs.declare(w, default)
        lines += more
        names |= found
        scope.fixed |= set(found)
    if w.chance(10):
        lines += ["seed 3", "u0 = uniform(3)", "n0 = normal()"]
        names |= {"u0": Kind(default, (3,)), "n0": Kind(default)}
    if default == "f64":
        scalars = {n: k for n, k in names.items() if k == Kind("f64")}
        lines += declarations(w, scalars, chosen)
    w.expressions, w.statements = 45, 13
    lines += w.block(scope, w.number(2, 8), "")
    lines += [f"print {name}" for name in (*scope.names, *scope.growing)]
    if w.chance(30):
        watching.watch(w, lines, scope)
    if w.chance(12):
        watching.fetch(w, scope)
    return lines


def declarations(w: Writer, outer: dict[str, Kind], chosen: list[str]) -> list[str]:
    """The functions of a program; `outer` are the names that they may read."""
    lines: list[str] = []
    if w.chance(40):
        lines += functions.declare(w, outer)
    if w.chance(20):
        lines += recursion.declare(w, outer)
    if "growing" in chosen:
        lines += growing.declare(w, outer)
    if "calls" in chosen:
        lines += calls.callers(w)
        lines += calls.declare(w, outer) if w.chance(60) else []
    for _ in range(w.pick((0, 0, 1, 2))):
        w.refill()
        lines += statements.function(w, outer)
    return lines

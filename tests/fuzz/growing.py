"""Tensors whose sizes change from trip to trip: lengthened, cut, thinned out and turned in loops, branches and calls."""

from __future__ import annotations

from tests.fuzz.writer import ANY, Form, Kind, Scope, Writer

LONGER = {
    1: (
        "concat([{x}, {=}])",
        "concat([{x}, {=}])",
        "concat([{=}, {x}[:1]])",
        "concat([[{.}], {x}])",
        "flatten(stack([{x}, {=}]))",
        "concat([{x}[1:], {=}])",
        "concat([{x}[::2], {=}])",
    ),
    2: (
        "concat([{x}, {=}])",
        "concat([{x}, {=}], axis=1)",
        "concat([{=}, {x}[:1]], axis=0)",
        "concat([{=}, {x}[:, -1:]], axis=1)",
    ),
}
SHORTER = {
    1: (
        "{x}[1:]",
        "{x}[1:] * {.}",
        "{x}[:-1]",
        "{x}[::2]",
        "{x}[1::2] * {.}",
        "{x}[1:] * {x}[:-1]",
        "{x}[{x} > {.}]",
        "({=})[-3:]",
    ),
    2: ("{x}[1:]", "{x}[:, 1:] * {.}", "{x}[:, ::2]", "{x}[::2]", "({=})[1:, :-1]", "{x}[:2, 1:]"),
}
CHANGED = {
    1: ("{=}", "{=}", "{x} * {x}[:1]", "{x}[::-1] * {=}", "cumsum({x})", "{x} * sum({=})", "where({b=}, {x}, {=})"),
    2: (
        "{=}",
        "{x}.T",
        "({x} @ {x}.T) * 0.1",
        'einsum("ij,ik->jk", {x}, {=}) * 0.1',
        "{x} * {x}[:1]",
        "{x} + sum({=}, axis=1, keepdims=true)",
        "{x} - {x}[:, :1]",
    ),
}
READ = {
    0: ("sum({x})", "sum({x})", "sum({=})", "sum({x} * {=})", "mean({x})", "max({x})", "norm({x})"),
    1: ("dot({x}, {=})", "{x}[0]", "{x}[-1]", "{x} @ {x}", "sum({x}[1:] * {x}[:-1])", "sum({x}[{x} > {.}])"),
    2: ("sum({x} @ {x}.T)", "{x}[0, 0]", "sum(({x} * {x}[0])[:, 0])", "sum({x}, axis=0)[0]", 'einsum("ij->", {x})'),
}
"""By rank; `{x}` is the tensor, `{=}` an elementwise expression of it, `{.}` a scalar."""

GROWERS = (
    "fn {name}(x) { for i in 0..2 { if x.size < 8 { x = concat([x, {=}]) } }; return x }",
    "fn {name}(x) { k = 0; while k < 2 and x.size > 1 { k += 1; x = x[1:] * {.} }; return x }",
    "fn {name}(x) = concat([x, {=}])[:6]",
    "fn {name}(x) { if x.size > 3 { return x[::2] }; return {=} }",
    "fn {name}(x) { g = x; for i in 0..3 { if i == 1 { continue }; x = x[:-1] * {.}; g = concat([x, g])[:7] }; return g }",
)


def filled(w: Writer, scope: Scope, template: str, x: str) -> str:
    """A template about the tensor `x`."""
    names = {n: k for n, k in scope.names.items() if not k.shape} | {x: Kind("f64", ANY)}
    kept, w.functions = w.functions, [f for f in w.functions if not any(p.shape for p in f.params)]
    text = w.fill(template.replace("{x}", x), Scope(names), Kind("f64", ANY), 2)
    w.functions = kept
    return text


def begin(w: Writer, scope: Scope) -> list[str]:
    """A tensor that is to change its size."""
    name = w.fresh("x")
    rank = w.pick((1, 1, 1, 2))
    sizes = {1: ((1,), (2,), (3,), (4,)), 2: ((2, 2), (2, 3))}
    value = w.expression(scope, Kind("f64", w.pick(sizes[rank])), 2)
    scope.growing[name] = rank
    return [f"{name} = {value} * {w.pick(('1.0', w.expression(scope, Kind('f64'), 1)))}"]


def step(w: Writer, scope: Scope) -> list[str] | None:
    """A tensor changes its size once."""
    if not scope.growing:
        return begin(w, scope)
    x = w.pick(scope.growing)
    rank = scope.growing[x]
    table = w.pick((LONGER, SHORTER, SHORTER, CHANGED))
    line = f"{x} = {filled(w, scope, w.pick(table[rank]), x)}"
    if rank == 1 and w.growers and w.chance(20):
        line = f"{x} = {w.pick(w.growers)}({x})"
    if table is LONGER and (scope.trips > 3 or w.chance(20)):
        return [f"if {x}.size < 8 {{ {line} }}"]
    if w.chance(20):
        return [f"if {filled(w, scope, 'sum({=}) > {.}', x)} {{ {line} }}"]
    return [line]


def steps(w: Writer, scope: Scope) -> list[str] | None:
    """A loop in which a tensor changes its size, with what else may stand there."""
    if scope.depth >= 3 or scope.trips > 6:
        return None
    lines = [] if scope.growing and w.chance(50) else begin(w, scope)
    inner = scope.inner(3)
    counter = w.fresh("i")
    inner.names[counter] = Kind("i64")
    inner.fixed.add(counter)
    total = w.fresh("s")
    body = []
    for _ in range(w.number(1, 3)):
        body += step(w, inner) or []
        if w.chance(30):
            body += w.block(inner, 1, "")
        if w.chance(20):
            body += [f"{total} += {read(w, inner)}"]
            scope.names[total] = inner.names[total] = Kind("f64")
    if total in scope.names:
        lines.append(f"{total} = 0.0")
    body = ["    " + line for line in body]
    if w.chance(60):
        return [*lines, f"for {counter} in 0..{w.number(1, 3)} {{", *body, "}"]
    return [*lines, f"{counter} = 0", f"while {counter} < {w.number(1, 3)} {{", f"    {counter} += 1", *body, "}"]


def read(w: Writer, scope: Scope) -> str:
    """A scalar of a tensor that grows."""
    x = w.pick(scope.growing)
    return filled(w, scope, w.pick(READ[w.pick((0, scope.growing[x]))]), x)


def total(w: Writer, scope: Scope) -> list[str] | None:
    if not scope.growing:
        return None
    name = w.fresh("s")
    line = f"{name} = {read(w, scope)}"
    scope.names[name] = Kind("f64")
    return [line]


def keep(w: Writer, scope: Scope) -> list[str] | None:
    """The value that a tensor has now, under another name: a target for later."""
    if not scope.growing:
        return None
    x = w.pick(scope.growing)
    old = w.pick([n for n, rank in scope.growing.items() if rank == scope.growing[x]])
    name = w.fresh("x") if w.chance(60) else old
    scope.growing[name] = scope.growing[x]
    return [f"{name} = {x}"]


def gradient(w: Writer, scope: Scope) -> list[str] | None:
    """A derivative with respect to anything of a value that a growing tensor gives, and of that derivative."""
    if not scope.growing:
        return None
    lines = []
    y = read(w, scope)
    for _ in range(w.pick((1, 1, 2, 2, 3))):
        g = w.fresh("g")
        if w.chance(40):
            target = w.pick(scope.growing)
            scope.growing[g] = scope.growing[target]
        else:
            target = w.pick(scope.floats() or scope.growing)
            if target in scope.growing:
                scope.growing[g] = scope.growing[target]
            else:
                scope.names[g] = scope.names[target]
        lines.append(f"{g} = grad({y}, {target})")
        y = w.pick((f"sum({g})", f"sum({g} * {g})"))
    return [*lines, f"print {g}"]


def product(w: Writer, scope: Scope) -> list[str] | None:
    """`jvp` and `vjp` of a growing tensor."""
    if not scope.growing:
        return None
    x, y = w.pick(scope.growing), w.pick(scope.growing)
    floats = [n for n in scope.floats() if scope.names[n].dtype == "f64"]
    g = w.fresh("d")
    if floats and w.chance(50) and not w.ruled:
        scope.growing[g] = scope.growing[y]
        target = w.pick(floats)
        return [f"{g} = jvp({y}, {target}, {w.expression(scope, scope.names[target], 1)})", f"print {g}"]
    along, given = ("vjp", y) if w.ruled else w.pick((("jvp", x), ("vjp", y)))
    scope.growing[g] = scope.growing[y if along == "jvp" else x]
    return [f"{g} = {along}({y}, {x}, {filled(w, scope, '{=}', given)})", f"print {g}"]


def show(w: Writer, scope: Scope) -> list[str] | None:
    return [f"print {w.pick(scope.growing)}"] if scope.growing else None


def declare(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """Some functions that give a tensor of another size."""
    lines = []
    for text in GROWERS:
        if w.chance(40):
            name = w.fresh("grow")
            scope = Scope({"x": Kind("f64", ANY)} | outer)
            lines.append(w.fill(text.replace("{name}", name), scope, Kind("f64", ANY), 2))
            w.growers.append(name)
    return lines


FORMS = (Form(steps, 6), Form(step, 4), Form(gradient, 5), Form(product, 2), Form(total, 2), Form(keep, 2), Form(show))

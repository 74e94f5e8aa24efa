"""The statements of the generator, except those about derivatives and about tensors that grow."""

from __future__ import annotations

import re

from tests.fuzz.writer import Form, Function, Kind, Scope, Writer

PLACES = {
    1: ("0", "-1", "1:3", "::2", ":", "{i} % 2", "[0, 2, 0]", "::-1"),
    2: ("0", ":, 0", "-1, 1:", "{i} % 2", "{i} % 2, 0", "..., ::2", "[0, 1, 0]", ":, none, 0"),
}
OVER = {"0..3": 3, "0..4": 4, "0..1": 1, "0..0": 0, "3..0 step -1": 3, "1..6 step 2": 3, "[2, 0, 1]": 3}


def kind(w: Writer) -> Kind:
    """The kind of a new name."""
    dtype = w.pick(("f64", "f64", "f64", "f64", "f64", "f64", "f32", "f32", "i64", "i64", "bool", "i32"))
    return Kind(dtype, w.pick(w.shapes) if dtype in ("f64", "f32") else w.pick(((), (), (), (3,))))


def assign(w: Writer, scope: Scope) -> list[str]:
    changeable = scope.free(lambda _: True)
    if changeable and w.chance(55):
        name = w.pick(changeable)
        of = scope.names[name]
    else:
        name, of = w.fresh("v"), kind(w)
    value = w.expression(scope, of)
    scope.names[name] = of
    return [f"{name} = {value}"]


def store(w: Writer, scope: Scope) -> list[str] | None:
    """An assignment to elements."""
    tensors = scope.free(lambda k: k.is_float and k.shape not in ((), (0,), (1,), (2,)))
    if not tensors:
        return None
    name = w.pick(tensors)
    scalar = Kind(scope.names[name].dtype)
    match w.number(0, 9):
        case 0:
            return [f"{name}[1:] = {name}[:-1] * {w.literal(scalar)}"]
        case 1:
            return [
                f"{name}[{name} > {w.literal(scalar)}] {w.pick(('=', '+=', '*='))} {w.expression(scope, scalar, 2)}"
            ]
    counters = [n for n, k in scope.names.items() if k == Kind("i64")]
    place = w.pick(PLACES[len(scope.names[name].shape)])
    place = place.replace("{i}", w.pick(counters) if counters else "1")
    if "[" in place and w.chance(50):
        return [f"{name} = scatter_add({name}, [1, 0, 1], {w.expression(scope, scalar, 2)})"]
    return [f"{name}[{place}] {w.pick(('=', '=', '+=', '*='))} {w.expression(scope, scalar, 2)}"]


def show(w: Writer, scope: Scope) -> list[str] | None:
    if not scope.names:
        return None
    scalars = [n for n, k in scope.names.items() if k.shape == () and k.dtype != "bool"]
    if scalars and w.chance(20):
        return [f'print "at {{{w.pick(scalars)}}} and {{{w.pick(scalars)}:.3e}}"']
    return [f"print {', '.join(w.pick(scope.names) for _ in range(w.number(1, 2)))}"]


def pack(w: Writer, scope: Scope) -> list[str]:
    """A tuple, made or made anew."""
    if scope.tuples and w.chance(50):
        name = w.pick(scope.tuples)
    else:
        name = w.fresh("t")
    kinds = scope.tuples.get(name, (kind(w), kind(w)))
    scope.tuples[name] = kinds
    return [f"{name} = ({', '.join(w.expression(scope, k, 2) for k in kinds)})"]


def unpack(w: Writer, scope: Scope) -> list[str] | None:
    """Names from a tuple, or two names of one kind exchanged."""
    if scope.tuples and w.chance(70):
        name = w.pick(scope.tuples)
        names = [w.fresh("v") for _ in scope.tuples[name]]
        scope.names |= dict(zip(names, scope.tuples[name], strict=True))
        return [f"{', '.join(names)} = {name}"]
    one = scope.free(lambda _: True)
    pairs = [(a, b) for a in one for b in one if a < b and scope.names[a] == scope.names[b]]
    if not pairs:
        return None
    a, b = w.pick(pairs)
    return [f"{a}, {b} = {b}, {w.expression(scope, scope.names[a], 1)}"]


def branch(w: Writer, scope: Scope) -> list[str] | None:
    if scope.depth >= 3:
        return None
    lines = [f"if {w.expression(scope, Kind('bool'), 2)} {{", *w.block(scope.inner(), w.number(1, 3))]
    if w.chance(20):
        lines += [f"}} else if {w.expression(scope, Kind('bool'), 1)} {{", *w.block(scope.inner(), w.number(0, 2))]
    if w.chance(60):
        lines += ["} else {", *w.block(scope.inner(), w.number(1, 3))]
    return [*lines, "}"]


def loop(w: Writer, scope: Scope) -> list[str] | None:
    if scope.depth >= 3 or scope.trips > 16:
        return None
    rows = [n for n, k in scope.names.items() if k.shape in ((2, 3), (3, 2), (3,), (4,), (0,))]
    if rows and w.chance(30):
        matrix = w.pick(rows)
        of = scope.names[matrix]
        row = w.fresh("r")
        inner = scope.inner(of.shape[0])
        inner.names[row] = Kind(of.dtype, of.shape[1:])
        head = f"for {row} in {matrix} {{"
        if w.chance(30):
            head = f"for {row}n, {row} in enumerate({matrix}) {{"
            inner.names[f"{row}n"] = Kind("i64")
    else:
        over, trips = w.pick(OVER.items())
        inner = scope.inner(trips)
        counter = w.fresh("i")
        inner.names[counter] = Kind("i64")
        head = f"for {counter} in {over} {{"
    return [head, *w.block(inner, w.number(1, 3)), "}"]


def repeat(w: Writer, scope: Scope) -> list[str] | None:
    """A `while` whose number of trips is bounded."""
    if scope.depth >= 3 or scope.trips > 16:
        return None
    counter = w.fresh("k")
    scope.names[counter] = Kind("i64")
    scope.fixed.add(counter)
    inner = scope.inner(4)
    extra = f" and {w.expression(inner, Kind('bool'), 1)}" if w.chance(50) else ""
    return [
        f"{counter} = 0",
        f"while {counter} < {w.number(0, 4)}{extra} {{",
        f"    {counter} += 1",
        *w.block(inner, w.number(1, 3)),
        "}",
    ]


def checkpoint(w: Writer, scope: Scope) -> list[str]:
    """Statements computed again for derivatives, where nothing leads out of them: else they stand by themselves."""
    lines = w.block(scope, w.number(1, 4))
    leads_out = any(re.search(r"\b(break|continue|return)\b|:=", line) for line in lines)
    return [line[4:] for line in lines] if leads_out else ["checkpoint {", *lines, "}"]


def leave(w: Writer, scope: Scope) -> list[str] | None:
    """An early end of the trip, of the loop, or of the function."""
    ways = ["break", "continue"] if scope.in_loop else []
    if scope.function:
        ways.append(f"return {w.expression(scope, scope.function, 2)}")
    return [f"if {w.expression(scope, Kind('bool'), 1)} {{ {w.pick(ways)} }}"] if ways else None


def check(w: Writer, scope: Scope) -> list[str] | None:
    return [f'assert {w.expression(scope, Kind("bool"), 2)}, "no"'] if w.chance(20) else None


def update(w: Writer, scope: Scope) -> list[str] | None:
    """A param gets a new value."""
    if not scope.top or not scope.params:
        return None
    name = w.pick(scope.params)
    return [f"{name} := {w.expression(scope, scope.names[name], 2)}"]


def function(w: Writer, outer: dict[str, Kind]) -> list[str]:
    """A `fn` over values of known kinds; `outer` are the names of the top level that it may read."""
    params = tuple(Kind("f64", w.pick(((), (), (3,)))) for _ in range(w.number(1, 2)))
    result = Kind("f64", w.pick(((), (3,))))
    name = w.fresh("fun")
    own = {f"p{i}": k for i, k in enumerate(params)}
    scope = Scope(own | outer, function=result, depth=1, fixed=set(outer), outside=frozenset(own | outer))
    head = f"fn {name}({', '.join(own)})"
    if w.chance(30):
        lines = [f"{head} = {w.expression(scope, result)}"]
    else:
        body = w.block(scope, w.number(1, 4))
        lines = [f"{head} {{", *body, f"    return {w.expression(scope, result, 2)}", "}"]
    if w.ruled and w.chance(60):
        lines += rule(w, name, own, {"y": result, "g": result}, outer)
    w.functions.append(Function(name, params, result))
    return lines


def rule(w: Writer, name: str, own: dict[str, Kind], results: dict[str, Kind], outer: dict[str, Kind]) -> list[str]:
    """A derivative rule: some cotangent for each argument, right or wrong."""
    scope = Scope(own | results | outer, depth=1)
    given = [", ".join(w.expression(scope, k, 2) for k in own.values()) for _ in range(2)]
    lines = [f"vjp {name}({', '.join(own)}; {', '.join(results)}) {{"]
    if w.chance(40):
        lines.append(f"    if {w.expression(scope, Kind('bool'), 1)} {{ return {given[1]} }}")
    return [*lines, f"    return {given[0]}", "}"]


FORMS = {
    "plain": (Form(assign, 5), Form(show), Form(check)),
    "elements": (Form(store, 4),),
    "loops": (Form(loop, 2), Form(repeat, 2), Form(leave)),
    "branches": (Form(branch, 2),),
    "tuples": (Form(pack, 2), Form(unpack, 2)),
    "updates": (Form(update),),
    "checkpoints": (Form(checkpoint, 2),),
}
"""By what a program may be made of."""

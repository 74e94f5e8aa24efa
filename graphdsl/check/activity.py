"""Which values may lie between a derivative's target and what is differentiated, on the finished core.

From it: the marks by which eager mode records, the errors of grammars/README.md, "Derivatives" (an order that the
text does not fix; a `y` from outside the function), and the warning where a derivative is zero by the text, with the
reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from graphdsl.check.context import Asked
from graphdsl.check.zero import why_zero
from graphdsl.core.between import Between
from graphdsl.core.call_graph import functions
from graphdsl.core.instances import Instances
from graphdsl.core.ir import Apply, Custom, Derive, Fail, Func, ParamTarget, Program, Target, Value
from graphdsl.core.links import Links, Node
from graphdsl.core.structure import regions, results, walk
from graphdsl.source.diagnostic import Diagnostic, Label


def analyse(program: Program, asked: Asked, forwards: Collection[Value] = ()) -> list[Diagnostic]:
    """Mark what is to be recorded; the errors and warnings there are. `forwards`: results of walks that are half a `jvp`."""
    links = Links(program.main)
    instances = Instances(links)
    walks = [Between(links, d, instances) for d in links.derives]
    found: list[Diagnostic] = []
    for between in walks:
        _mark(links, between)
        found.extend(_from_outside(links, between))
    found.extend(_unfixed_orders(walks))
    _mark_higher(links)
    if links.customs:
        found.extend(_custom_rules(links, walks, forwards))
    if not found:
        found.extend(warning for between in walks for warning in why_zero(links, between, asked))
    return found


# ---- marks ----------------------------------------------------------------------------------


def _mark(links: Links, walk: Between) -> None:
    """`tracked`: the walk goes on from here, or a target is passed on; `leaf`: a target is made here."""
    for node in walk.walked:
        if isinstance(node, Value):
            node.tracked = True
    for target, holders in zip(walk.derive.targets, walk.holders, strict=True):
        for node in _held_by(links, walk, target, holders):
            if links.origins.get(node):
                node.tracked = True
            else:
                node.leaf = True


def _held_by(links: Links, walk: Between, target: Target, holders: Collection[Node]) -> set[Value]:
    """The values by which the walk finds a target: where it is made, and where it is passed on."""
    if isinstance(target, ParamTarget):  # the walk may end where its leaves are only passed on
        return {v for v in _passed_on(links, walk.values) if links.origins.get(v) or v in holders}
    if walk.values.isdisjoint(holders):
        return set()
    return {v for v in holders if isinstance(v, Value)}


def _mark_higher(links: Links) -> None:
    """`higher`; and where that is so, all that rules compute may be differentiated again, derivatives in them included."""
    for derive in links.derives:
        derive.higher = any(out.tracked or out.leaf for out in derive.outs)
    if links.customs and any(derive.higher for derive in links.derives):
        for custom in links.customs:
            for func in (custom.rule, *functions(custom.rule)):
                _mark_all(func)
        for derive in links.derives:
            derive.higher = any(out.tracked or out.leaf for out in derive.outs)


# ---- rules of functions' own ------------------------------------------------------------------


def _custom_rules(links: Links, walks: list[Between], forwards: Collection[Value]) -> Iterator[Diagnostic]:
    """Mark which derivatives call rules that may fail; a `jvp` through one is an error."""
    reached = _reached(links, walks)
    for derive, customs in reached.items():
        rules = [custom for custom in customs if not custom.through]
        derive.fails = any(_may_fail(custom.rule) for custom in rules)
        if rules and derive.outs[0] in forwards:
            custom = min(rules, key=lambda c: c.span.start)
            yield Diagnostic(
                "E0410",
                "a `jvp` cannot go through a function with a derivative rule of its own, which only leads backwards",
                derive.span,
                "use `vjp` or `jacobian`, or write the function without its `vjp`",
                (Label(custom.span, "this call has such a rule"),),
            )


def _reached(links: Links, walks: list[Between]) -> dict[Derive, set[Custom]]:
    """The calls with a rule to which each derivative may come, also through other derivatives."""
    reached = {w.derive: {c for c in links.customs if not w.values.isdisjoint(c.outs)} for w in walks}
    changed = True
    while changed:
        changed = False
        for between in walks:
            mine = reached[between.derive]
            before = len(mine)
            for inner in between.through:
                mine |= reached[inner]
            changed |= len(mine) > before
    return reached


def _may_fail(rule: Func) -> bool:
    return any(
        isinstance(instr, Fail) or (isinstance(instr, Apply) and instr.fails)
        for func in (rule, *functions(rule))
        for instr in walk(func.body)
    )


def _mark_all(func: Func) -> None:
    """All floats of a function are recorded."""
    values = list(func.body.params)
    for instr in walk(func.body):
        values += results(instr)
        values += [p for block in regions(instr) for p in block.params]
    for value in values:
        value.tracked |= value.type.dtype.is_float


# ---- errors ---------------------------------------------------------------------------------


def _unfixed_orders(walks: list[Between]) -> Iterator[Diagnostic]:
    """A derivative that walks through its own earlier result, straight or through other derivatives."""
    through = {walk.derive: list(walk.through) for walk in walks}
    reported: set[tuple[int, int]] = set()
    for derive in _in_circles(through):
        place = (derive.span.start, derive.span.end)
        if place in reported:
            continue
        reported.add(place)
        yield Diagnostic(
            "E0401",
            "the order of this derivative depends on how often it is reached: "
            "what it differentiates may be its own result from an earlier trip",
            derive.span,
            "the order of a derivative is fixed by the text: write `grad(grad(y, x), x)` for a second derivative, "
            "or differentiate something that is computed anew in each trip",
        )


def _in_circles(through: dict[Derive, list[Derive]]) -> list[Derive]:
    """Those that lead back to themselves: what is left when all that lead nowhere are taken away, both ways."""
    alone = [d for d, inner in through.items() if d in inner]
    if alone:
        return alone
    left = {d: set(inner) for d, inner in through.items()}
    while True:
        used = {d for inner in left.values() for d in inner}
        ends = [d for d, inner in left.items() if not inner or d not in used]
        if not ends:
            return [d for d in through if d in left]
        for d in ends:
            del left[d]
        for inner in left.values():
            inner.difference_update(ends)


def _from_outside(links: Links, walk: Between) -> Iterator[Diagnostic]:
    """`grad(y, w)` where `y` was computed before the function was entered."""
    derive = walk.derive
    if not links.func_of(derive).body.params:
        return
    roots = _roots(links, derive.y)
    entering = {v for v in roots if links.defs[v].instr is None}
    if roots != entering:
        return
    for target in derive.targets:
        if isinstance(target, ParamTarget) or _roots(links, target) & roots:
            continue
        name = derive.y.name or "y"
        yield Diagnostic(
            "E0402",
            f"`{name}` came into this function from outside: a derivative reaches back to the entry of its call only",
            derive.span,
            f"compute `{name}` in the function, or pass a function and call it here: `fn D(f, x) = grad(f(x), x)`",
            (Label(links.func_of(derive).span, "it was computed before this call"),),
        )
        return


def _roots(links: Links, value: Value) -> set[Value]:
    """The values that may be this one, where they were made: in this function, as far as that goes."""
    return {v for v in _passed_on(links, [value]) if not links.origins.get(v)}


def _passed_on(links: Links, values: Iterable[Node]) -> set[Value]:
    """These values, and all that they may have been before they were passed on."""
    todo = [v for v in values if isinstance(v, Value)]
    found = set(todo)
    while todo:
        for source in links.origins.get(todo.pop(), ()):
            if isinstance(source, Value) and source not in found:
                found.add(source)
                todo.append(source)
    return found

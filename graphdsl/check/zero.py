"""Why a derivative is zero: the warning for a target on which `y` does not depend, decided by the text alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from graphdsl.core.between import Between
from graphdsl.core.ir import Apply, Call, For, If, Leaf, ParamTarget, Value, While
from graphdsl.core.links import Links
from graphdsl.core.structure import operands
from graphdsl.source.diagnostic import Diagnostic, Label

_CODE = "W0101"


def why_zero(links: Links, walk: Between) -> Iterator[Diagnostic]:
    """A warning for each target of a derivative that `y` does not depend on."""
    for target, holders in zip(walk.derive.targets, walk.holders, strict=True):
        if isinstance(target, ParamTarget) or not walk.values.isdisjoint(holders):
            continue
        y, name = walk.derive.y.name or "y", target.name or "the target"
        message, hint, labels = _reason(links, walk, target, y, name)
        yield Diagnostic(_CODE, message, walk.derive.span, hint, labels, severity="warning")


def _reason(links: Links, walk: Between, target: Value, y: str, name: str) -> tuple[str, str | None, tuple[Label, ...]]:
    fresh = _fresh_leaf(links, walk, target)
    if fresh is not None:
        return (
            f"this derivative is zero: `:=` made `{name}` a fresh leaf after `{y}` was computed",
            f"take the derivative before `{name} := …`, or compute `{y}` again",
            (Label(fresh.span, f"`{name}` is a new value from here on"),),
        )
    stop = _stopped(links, walk, target)
    if stop is not None:
        how = f"`{name}` reaches `{y}` only through `{stop.op.name}` at line {stop.span.line}"
        hint = f"`{stop.op.name}` passes no derivative on"
        return f"this derivative is zero: {how}", hint, (Label(stop.span, hint),)
    return f"this derivative is zero: `{y}` does not depend on `{name}`", None, ()


def _fresh_leaf(links: Links, walk: Between, target: Value) -> Leaf | None:
    """The `:=` that made the target, where `y` depends on what the param held before."""
    made = links.defs[target].instr
    holders = _back_to_origins(links, target)
    leaves = [links.defs[v].instr for v in holders if isinstance(links.defs[v].instr, Leaf)]
    if not leaves and not isinstance(made, Leaf):
        return None
    last = max(leaves, key=lambda leaf: leaf.span.start)
    earlier = {
        d.instr.out
        for d in links.defs.values()
        if isinstance(d.instr, Leaf) and d.instr.param == last.param and d.instr not in leaves
    }
    needed = _backwards(links.sources, walk.derive.y)
    return last if not earlier.isdisjoint(needed) else None


def _back_to_origins(links: Links, value: Value) -> set[Value]:
    return {v for v in _backwards(links.origins, value) if isinstance(v, Value)}


def _stopped(links: Links, walk: Between, target: Value) -> Apply | None:
    """The op without derivative through which every way from the target to `y` leads; the last of them."""
    every = _all_sources(links)
    needed = _backwards(every, walk.derive.y)
    if target not in needed:
        return None
    passing = _backwards(_into_calls(links), walk.derive.y)
    stops = []
    for v in passing:
        made = links.defs[v].instr if isinstance(v, Value) else None
        if isinstance(made, Apply) and any(a not in passing and target in _backwards(every, a) for a in made.args):
            stops.append(made)
    return max(stops, key=lambda i: i.span.start, default=None)


def _into_calls(links: Links) -> dict[Any, list[Any]]:
    """The sources of each value, also those of params and of what calls return."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for v, sources in (*links.sources.items(), *links.origins.items()):
        found[v].extend(sources)
    for arg, entered in links.enters.items():
        for call, i in entered:
            found[call.func.body.params[i]].append(arg)
    return found


def _all_sources(links: Links) -> dict[Any, list[Any]]:
    """For each value all values from which it is computed, with or without a derivative."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for v, d in links.defs.items():
        if d.instr is not None:
            found[v].extend(operands(d.instr))
    for instr in {d.instr for d in links.defs.values() if d.instr is not None}:
        match instr:
            case If(then=then, orelse=orelse, outs=outs):
                _add(found, outs, then.yields, orelse.yields)
            case While(cond=cond, body=body, outs=outs, inits=inits):
                for made in (outs, cond.params, body.params):
                    _add(found, made, inits, body.yields)
            case For(body=body, outs=outs, inits=inits):
                for made in (outs, body.params[1:]):
                    _add(found, made, inits, body.yields)
            case Call(func=func, args=args, outs=outs):
                _add(found, outs, func.body.yields)
                _add(found, func.body.params, args)
    return found


def _add(found: dict[Any, list[Any]], made: Any, *sources: Any) -> None:
    for values in sources:
        for m, s in zip(made, values, strict=True):
            found[m].append(s)


def _backwards(sources: Any, start: Any) -> set[Any]:
    found, todo = {start}, [start]
    while todo:
        for source in sources.get(todo.pop(), ()):
            if source not in found:
                found.add(source)
                todo.append(source)
    return found

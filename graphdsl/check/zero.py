"""Why a derivative is zero: the warning for a target on which `y` does not depend, decided by the text alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from graphdsl.check.context import Asked
from graphdsl.check.printing import source_text
from graphdsl.core.between import Between
from graphdsl.core.dependence import Sources, all_sources, backwards
from graphdsl.core.ir import Apply, Custom, Leaf, ParamTarget, Value
from graphdsl.core.links import Links
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span

_CODE = "W0101"
_FIRST = "the first derivative"  # of a `hessian` or an `hvp`, which has no text of its own
_LONGEST = 24


def why_zero(links: Links, walk: Between, asked: Asked) -> Iterator[Diagnostic]:
    """A warning for each target of a derivative that `y` does not depend on, in the words of the program."""
    span = walk.derive.span
    y = _as_written(asked, walk.derive.y, span) or _FIRST
    for target, holders in zip(walk.derive.targets, walk.holders, strict=True):
        if isinstance(target, ParamTarget) or not walk.values.isdisjoint(holders):
            continue
        name = _as_written(asked, target, span)
        if name is None:
            continue  # one of the checker's own, by which a `jvp` is found: what it is of has been told
        message, hint, labels = _reason(links, walk, target, y, name)
        yield Diagnostic(_CODE, f"this is zero: {message}", span, hint, labels, severity="warning")


def _as_written(asked: Asked, value: Value, span: Span) -> str | None:
    """What the derivative at `span` calls a value."""
    texts = (text for place, text in asked.get(value, ()) if span.start <= place.start and place.end <= span.end)
    return next((_short(text, "what is differentiated") for text in texts), None)


def _short(text: str, otherwise: str) -> str:
    return f"`{text}`" if len(text) <= _LONGEST else otherwise


def _reason(links: Links, walk: Between, target: Value, y: str, name: str) -> tuple[str, str | None, tuple[Label, ...]]:
    fresh = _fresh_leaf(links, walk, target)
    if fresh is not None:
        return (
            f"`:=` made `{fresh.param}` a fresh leaf after {y} was computed",
            f"take the derivative before `{fresh.param} := …`, or compute {y} again",
            (Label(fresh.span, f"`{fresh.param}` is a new value from here on"),),
        )
    stop = _stopped(links, walk, target)
    if stop is not None:
        written = source_text(stop.span)
        how = _short(stop.op.name if written.startswith(f"{stop.op.name}(") else written, "what stands")
        label = Label(stop.span, "no derivative passes through here")
        return f"{name} reaches {y} only through {how} at line {stop.span.line}", None, (label,)
    custom = _past(links, walk, target)
    if custom is not None:
        how = _short(source_text(custom.span), "a call")
        message = f"{name} reaches {y} only through {how} at line {custom.span.line}, and not by its arguments"
        hint = "a function with a derivative rule of its own has a derivative by its arguments alone: pass it as one"
        return message, hint, (Label(custom.span, "this call has such a rule"),)
    return f"{y} does not depend on {name}", None, ()


def _past(links: Links, walk: Between, target: Value) -> Custom | None:
    """A call that reads the target otherwise than as an argument for which its own derivative rule gives a cotangent."""
    every = all_sources(links)
    needed = backwards(every, [walk.derive.y])
    past = (c for c in links.customs if needed.intersection(c.outs) and _reads(every, c, target))
    return min(past, key=lambda c: c.span.start, default=None)


def _reads(every: Sources, custom: Custom, target: Value) -> bool:
    return any(target in backwards(every, [result]) for result in custom.results)


def _fresh_leaf(links: Links, walk: Between, target: Value) -> Leaf | None:
    """The `:=` that made the target, where `y` depends on what the param held before."""
    made = links.defs[target].instr
    holders = _back_to_origins(links, target)
    leaves = [links.defs[v].instr for v in holders if isinstance(links.defs[v].instr, Leaf)]
    if not leaves and not isinstance(made, Leaf):
        return None
    last = max(leaves, key=_place)
    every = [d.instr for d in links.defs.values() if isinstance(d.instr, Leaf) and d.instr.param == last.param]
    if last is min(every, key=_place):
        return None  # the param's first value
    # its own value of an earlier trip is another one, too
    needed = backwards(links.sources, [walk.derive.y])
    return None if needed.isdisjoint(leaf.out for leaf in every) else last


def _place(leaf: Leaf) -> int:
    return leaf.span.start


def _back_to_origins(links: Links, value: Value) -> set[Value]:
    return {v for v in backwards(links.origins, [value]) if isinstance(v, Value)}


def _stopped(links: Links, walk: Between, target: Value) -> Apply | None:
    """The op without derivative through which every way from the target to `y` leads; the last of them."""
    every = all_sources(links)
    needed = backwards(every, [walk.derive.y])
    if target not in needed:
        return None
    passing = backwards(_into_calls(links), [walk.derive.y])
    stops = []
    for v in passing:
        made = links.defs[v].instr if isinstance(v, Value) else None
        if isinstance(made, Apply):
            blocked = [a for a in made.args if a not in passing and target in backwards(every, [a])]
            stops += [_last_of_floats(links, every, target, made, a) for a in blocked]
    return max(stops, key=lambda i: (i.span.start, i.span.end), default=None)


def _last_of_floats(links: Links, every: Sources, target: Value, stop: Apply, arg: Value) -> Apply:
    """Where ints or bools are all that `stop` gets: the op that made them of floats."""
    while not arg.type.dtype.is_float:
        made = links.defs[arg].instr
        onwards = [a for a in made.args if target in backwards(every, [a])] if isinstance(made, Apply) else []
        if not isinstance(made, Apply) or not onwards:
            return stop
        stop, arg = made, onwards[-1]
    return stop


def _into_calls(links: Links) -> dict[Any, list[Any]]:
    """The sources of each value, also those of params and of what calls return."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for v, sources in (*links.sources.items(), *links.origins.items()):
        found[v].extend(sources)
    for arg, entered in links.enters.items():
        for call, i in entered:
            found[call.func.body.params[i]].append(arg)
    return found

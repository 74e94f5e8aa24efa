"""From which values each value is computed, with or without a derivative: into calls and out of them, through all joins.

`graphdsl.core.links` has the ways that derivatives go; these are all ways. Calls of one function are not told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdsl.core.ir import Call, For, If, While
from graphdsl.core.links import Links, Node
from graphdsl.core.structure import operands

Sources = Mapping[Any, Sequence[Any]]


def all_sources(links: Links) -> Sources:
    """For each value those from which it is computed in one step."""
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


def inverse(sources: Sources) -> Sources:
    """For each value those that are computed from it in one step."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for made, parts in sources.items():
        for part in parts:
            found[part].append(made)
    return found


def _add(found: dict[Any, list[Any]], made: Any, *sources: Any) -> None:
    for values in sources:
        for m, s in zip(made, values, strict=True):
            found[m].append(s)


def backwards(sources: Any, start: Iterable[Node]) -> set[Any]:
    """All that leads to any of `start`, these included (with the inverse: all to which these lead)."""
    found = set(start)
    todo = list(found)
    while todo:
        for source in sources.get(todo.pop(), ()):
            if source not in found:
                found.add(source)
                todo.append(source)
    return found

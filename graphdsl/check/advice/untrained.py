"""Params that no gradient reaches, in a program that takes derivatives.

A param that the program updates is none of these: it holds state, or the derivative by it says itself that it is zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from graphdsl.check.advice.subject import Subject, warning
from graphdsl.core.dependence import Sources, backwards
from graphdsl.core.ir import Leaf, Value
from graphdsl.source.diagnostic import Diagnostic
from graphdsl.syntax import ast


def untrained_params(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    derives = s.links.derives
    if not derives:
        return
    asked = [v for d in derives for v in (d.y, *d.targets) if isinstance(v, Value)]
    leads = backwards(_uncut(s), asked)
    leaves: dict[str, list[Value]] = defaultdict(list)
    for instr in s.instructions():
        if isinstance(instr, Leaf):
            leaves[instr.param].append(instr.out)
    for stmt in s.module.body:
        match stmt:
            case ast.Declare(kind="param", name=name) if len(leaves[name.id]) == 1:
                (leaf,) = leaves[name.id]
                if leaf.type.dtype.is_float and leaf not in leads:
                    message = f"no gradient reaches `{name.id}`: no derivative that is taken leads back to it"
                    yield warning("W0203", message, name.span, "what is not trained is an `input` or a `const`")


def _uncut(s: Subject) -> Sources:
    """From which values each is computed, but for what `:=` cuts off."""
    return {v: found for v, found in s.sources.items() if not isinstance(s.links.defs[v].instr, Leaf)}

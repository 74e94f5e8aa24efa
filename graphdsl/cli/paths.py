"""What `graphdsl grad --paths` shows: a line for each path, and one for their sum."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.cli.output import Output
from graphdsl.cli.streams import width
from graphdsl.ops.types import F32
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.api.paths import Chain
    from graphdsl.runtime.events import Shown

_MOST_STEPS = 9  # of a path that are shown, at its ends
_APART = 10  # between the formula and the paths


def show(chains: Sequence[Chain], of: Shown, symbols: Sequence[str], output: Output) -> None:
    """The paths by each name, beside what is differentiated; `symbols` are the derivatives as they are written."""
    if output.as_json:
        for chain in chains:
            _events(chain, of, output)
        return
    formula = next((f"{of.name} = {c.formula}" for c in chains if c.formula not in (None, of.name)), of.name)
    rows = [_rows(chain, symbol) for chain, symbol in zip(chains, symbols, strict=True)]
    label, route, factors, product = (max((len(r[i]) for part in rows for r in part), default=0) for i in range(4))
    room, beside = width(sys.stdout), len(formula) + _APART
    taken = label + 3 + route + 5 + factors + 3 + product
    fits = room is None or beside + taken <= room
    if not fits:
        output.line(formula)
    for n, (name, way, how, result) in enumerate(row for part in rows for row in part):
        if fits:
            head = "" if n else formula
            output.line(f"{head:<{beside}}{name:<{label}}   {way:<{route}}     {how:<{factors}} = {result}")
        else:
            _wrapped(output, name.ljust(label), way, f"{how} = {result}" if how else f"= {result}")


def _wrapped(output: Output, name: str, way: str, result: str) -> None:
    """One path on a terminal on which its line does not fit."""
    indent = 2 + len(name) + 3
    output.sentence(way, indent, f"  {name}   ")
    output.sentence(result, indent + 2, " " * indent)


def _rows(chain: Chain, symbol: str) -> list[tuple[str, str, str, str]]:
    """Of each path its name, the way, the factors, and their product; last the sum."""
    rows = []
    for number, path in enumerate(chain.paths, 1):
        steps = _ends([step.name for step in path.steps])
        factors = _ends([_number(f, chain) for f in path.factors])
        rows.append((f"path {number}", " → ".join(steps), " × ".join(factors), _number(path.product, chain)))
    if left := chain.count - len(chain.paths):
        rows.append(("", f"{left:,} more, not shown", "", _number(chain.rest, chain)))
    rows.append((symbol, f"sum of {counted(chain.count, 'path')}", "", _number(chain.gradient.value, chain)))
    return rows


def _ends(parts: list[str]) -> list[str]:
    """The first and the last of many."""
    if len(parts) <= _MOST_STEPS:
        return parts
    half = _MOST_STEPS // 2
    return [*parts[:half], f"({len(parts) - 2 * half} more)", *parts[-half:]]


def _number(value: Any, chain: Chain) -> str:
    from graphdsl.runtime.format import number

    dtype = chain.gradient.dtype
    with np.errstate(over="ignore"):
        return number(np.float32(value) if dtype is F32 else value, dtype)


def _events(chain: Chain, of: Shown, output: Output) -> None:
    from graphdsl.render import json
    from graphdsl.runtime.format import json_value

    def raw(value: Any) -> json.Raw:
        return json.Raw(json_value(value, chain.gradient.dtype))

    for number, path in enumerate(chain.paths, 1):
        steps = [{"name": step.name, "line": step.line} for step in path.steps]
        factors = [raw(f) for f in path.factors]
        output.event(
            "path", of=of.name, wrt=chain.wrt, path=number, steps=steps, factors=factors, product=raw(path.product)
        )
    counts = {"paths": chain.count, "shown": len(chain.paths), "rest": raw(chain.rest)}
    output.event("grad", of=json.shown(of), wrt=chain.wrt, **json.content(chain.gradient), **counts)

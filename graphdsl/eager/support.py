"""What the generated code calls: effects, derivatives, wrapping. `SUPPORT` is its global names."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, inf, nan
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.eager.tape import Node, backward, last_leaf, origin, tick
from graphdsl.ops.types import F32, Type
from graphdsl.runtime.events import Shown
from graphdsl.runtime.format import formatted, text
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Fault

# ---- numbers ----------------------------------------------------------------------------------


def wrap64(n: int) -> int:
    """An int as i64 arithmetic leaves it."""
    return (n + 2**63) % 2**64 - 2**63


def wrap32(n: int) -> int:
    """An int as i32 arithmetic leaves it."""
    return (n + 2**31) % 2**32 - 2**31


class Shape:
    """Stands for an operand of which only the shape is read."""

    __slots__ = ("ndim", "shape")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


# ---- effects ----------------------------------------------------------------------------------


def show(rt: Runtime, instr: ir.Print, values: Sequence[Any]) -> None:
    """A print: one event for each text and for each run of values."""
    left = iter(values)
    line = instr.span.line
    run: list[Shown] = []
    for item in instr.items:
        if isinstance(item, ir.Item):
            run.append(Shown(item.name, item.value.type.dtype, next(left)))
            continue
        if run:
            rt.sink.values(line, run)
            run = []
        rt.sink.text(line, written(item, left))
    if run:
        rt.sink.values(line, run)


def written(parts: ir.Text, values: Any) -> str:
    """A text with its values put in."""
    shown = []
    for part in parts:
        if isinstance(part, str):
            shown.append(part)
        else:
            value, dtype = next(values), part.value.type.dtype
            shown.append(text(value, dtype) if part.spec is None else formatted(value, dtype, part.spec))
    return "".join(shown)


def save(rt: Runtime, instr: ir.Save, words: Sequence[Any], values: Sequence[Any]) -> None:
    """A save."""
    path = written(instr.path, iter(words))
    rt.save(path, [(item.name, item.value.type.dtype, v) for item, v in zip(instr.items, values, strict=True)])


def failure(instr: ir.Fail, numbers: Sequence[int], words: Sequence[Any]) -> Fault:
    """The fault that an instruction stands for."""
    shown = () if instr.text is None else (written(instr.text, iter(words)),)
    return Fault(instr.kind, *numbers, *instr.words, *shown)


# ---- derivatives ------------------------------------------------------------------------------


def derive(
    rt: Runtime,
    y: Node | None,
    seed: Any,
    nodes: Sequence[Node | str | None],
    values: Sequence[Any],
    types: Sequence[Type],
) -> list[Any]:
    """The derivatives of `y` with respect to the values whose nodes are given."""
    places = _places(rt, y, nodes)
    found = {} if y is None else backward(y, seed + 0.0, {p for p in places if p is not None})
    return [
        _like(values[i], found[p], types[i]) if p in found else _zeros(rt, nodes[i], values[i], types[i])
        for i, p in enumerate(places)
    ]


def derive_recorded(
    rt: Runtime,
    y: Node | None,
    seed: Any,
    nodes: Sequence[Node | str | None],
    values: Sequence[Any],
    types: Sequence[Type],
    seed_node: Node | None,
) -> list[Any]:
    """The same, with a node for each result."""
    places = _places(rt, y, nodes)
    found = {} if y is None else backward(y, (seed + 0.0, seed_node), {p for p in places if p is not None}, record=True)
    results: list[Any] = []
    for i, p in enumerate(places):
        results.extend(found[p] if p in found else (_zeros(rt, nodes[i], values[i], types[i]), None))
    return results


def _places(rt: Runtime, y: Node | None, nodes: Sequence[Node | str | None]) -> list[int | None]:
    """The numbers of the nodes of targets; a text is a param, and means its leaf on which `y` last depended."""
    return [None if n is None else last_leaf(y, n) if isinstance(n, str) else origin(n)[0] for n in nodes]


def _zeros(rt: Runtime, node: Any, value: Any, type: Type) -> Any:
    if type.rank:
        shape = np.shape(value) if value is not None else [d if isinstance(d, int) else 0 for d in type.shape]
        return np.zeros(shape, type.dtype.numpy)
    return np.float32(0) if type.dtype is F32 else 0.0


def _like(value: Any, result: Any, type: Type) -> Any:
    """A derivative in the dtype that the target's name has."""
    if type.rank:
        return result if result.dtype == type.dtype.numpy else result.astype(type.dtype.numpy)
    return np.float32(result) if type.dtype is F32 else float(result)


SUPPORT: dict[str, Any] = {
    "Shape": Shape,
    "copysign": copysign,
    "derive": derive,
    "derive_recorded": derive_recorded,
    "failure": failure,
    "inf": inf,
    "nan": nan,
    "save": save,
    "show": show,
    "tick": tick,
    "wrap32": wrap32,
    "wrap64": wrap64,
}

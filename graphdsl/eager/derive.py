"""Derivatives where a program takes them: from nodes to values, and, where these are differentiated again, to nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdsl.eager.rules import recorded_step
from graphdsl.eager.tape import Node, Seen, Watch, backward, last_leaf, origin
from graphdsl.ops.types import Type
from graphdsl.runtime.numbers import NUMBERS

Target = Node | str | None  # the node of a value; the name of a param: its leaf on which `y` last depended


def derive(
    y: Node | None,
    seed: Any,
    targets: Sequence[Target],
    values: Sequence[Any],
    types: Sequence[Type],
    watch: Watch = None,
    seen: Seen | None = None,
) -> list[Any]:
    """The derivatives of `y` with respect to targets, which have these values; `types` are those of the results."""
    places = _places(y, targets)
    found = {} if y is None else backward(y, seed + 0.0, {p for p in places if p is not None}, watch=watch, seen=seen)
    results = []
    for place, value, type in zip(places, values, types, strict=True):
        if place in found:
            results.append(_converted(found[place], type))
        else:
            results.append(zeros(value, type))
    return results


def derive_recorded(
    y: Node | None,
    seed: Any,
    targets: Sequence[Target],
    values: Sequence[Any],
    types: Sequence[Type],
    seed_node: Node | None,
    seed_type: Type,
    watch: Watch = None,
    seen: Seen | None = None,
) -> list[Any]:
    """The same, with a node after each result."""
    places = _places(y, targets)
    found = {}
    if y is not None:
        start = recorded_step("from_zero", seed_type)((seed, seed_node))
        found = backward(y, start, {p for p in places if p is not None}, record=True, watch=watch, seen=seen)
    results: list[Any] = []
    for place, value, type in zip(places, values, types, strict=True):
        if place not in found:
            results += [zeros(value, type), None]
        elif _converted(found[place][0], type) is found[place][0]:
            results += found[place]
        else:
            results += recorded_step("cast", type)(found[place])
    return results


def _places(y: Node | None, targets: Sequence[Target]) -> list[int | None]:
    return [None if n is None else last_leaf(y, n) if isinstance(n, str) else origin(n)[0] for n in targets]


def zeros(value: Any, type: Type) -> Any:
    """A cotangent of zeros for a value (None: of which only the type is known)."""
    if type.rank:
        shape = np.shape(value) if value is not None else [d if isinstance(d, int) else 0 for d in type.shape]
        return np.zeros(shape, type.dtype.numpy)
    return NUMBERS[type.dtype](0)


def _converted(result: Any, type: Type) -> Any:
    """A derivative in the dtype that the target's name has; itself where it has that already."""
    if type.rank:
        return result.astype(type.dtype.numpy, copy=False)
    number = NUMBERS[type.dtype]
    return result if isinstance(result, number) else number(result)

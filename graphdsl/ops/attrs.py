"""Attrs as keys: a form of them that can be hashed, equal for attrs that mean the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from graphdsl.ops.types import Size, Type


def frozen(value: Any, sized: Callable[[Size], Hashable] = lambda size: size) -> Hashable:
    """The key of an attr, of all attrs of an op, or of anything made up like them.

    Numbers are told apart by type and by bits (1, 1.0 and True, and 0.0 and -0.0, are equal to Python; nan is not even
    equal to itself). `sized` says what stands for a size that is known only as the program runs: keys that are to be
    equal whatever sizes these are number them.
    """
    match value:
        case Size():
            return sized(value)
        case Mapping():
            return tuple((name, frozen(v, sized)) for name, v in sorted(value.items()))
        case tuple() | list():
            return tuple(frozen(v, sized) for v in value)
        case Type():
            return (value.dtype, frozen(value.shape, sized), value.weak)
        case bool() | int() | float():
            return (type(value).__name__, repr(value))
        case _:
            return value

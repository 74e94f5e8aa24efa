"""Texts with values in them, in both modes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphdsl.core.ir import Text
from graphdsl.ops.files import Hole
from graphdsl.runtime.format import formatted, text


def written(parts: Text, values: Iterator[Any]) -> str:
    """A text with its values put in, which are taken from `values`."""
    return filled((p if isinstance(p, str) else Hole(p.value.type.dtype, p.spec) for p in parts), values)


def filled(parts: Iterable[str | Hole], values: Iterator[Any]) -> str:
    """Words, and in each hole the next of the values."""
    return "".join(p if isinstance(p, str) else _shown(p, next(values)) for p in parts)


def _shown(hole: Hole, value: Any) -> str:
    return text(value, hole.dtype) if hole.spec is None else formatted(value, hole.dtype, hole.spec)

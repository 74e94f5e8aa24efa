"""Whether two runs of one program agree, and where they first differ: prints, error, values, gradients, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphdsl.ops.types import DType
from graphdsl.runtime.events import Shown
from graphdsl.source.diagnostic import Diagnostic
from graphdsl.source.record import dataclass
from graphdsl.source.words import counted

# What a run ends with where it hits a limit: no property of the program, and not the same in both modes.
LIMITS = ("E0730", "E0732", "E0733", "E0734")

Event = tuple[int, list[Shown] | str]  # as `Recorded` keeps it: the line, and what was printed there


@dataclass
class Outcome:
    """What one run left: its prints, its error, and the values and gradients by name."""

    prints: list[Event]
    error: Diagnostic | None
    values: Mapping[str, Shown]
    gradients: Mapping[str, Shown]


@dataclass(frozen=True)
class Difference:
    """The first place where two runs part. `ulps` is known for floats of one dtype."""

    where: str
    first: str
    second: str
    ulps: int | None = None


def first_difference(a: Outcome, b: Outcome) -> Difference | None:
    """None where the outcomes are the same to the bit."""
    return (
        _prints(a.prints, b.prints)
        or _errors(a.error, b.error)
        or _named(a.values, b.values, "")
        or _named(a.gradients, b.gradients, "the gradient of ")
    )


def _prints(a: Sequence[Event], b: Sequence[Event]) -> Difference | None:
    for number, ((line, one), (other_line, two)) in enumerate(zip(a, b, strict=False), 1):
        where = f"print {number}, at line {line}"
        if line != other_line:
            return Difference(f"print {number}", f"line {line}", f"line {other_line}")
        if isinstance(one, str) or isinstance(two, str):
            if one != two:
                return Difference(where, str(one), str(two))
            continue
        if len(one) != len(two):
            return Difference(where, counted(len(one), "item"), counted(len(two), "item"))
        for x, y in zip(one, two, strict=True):
            if (found := _shown(x, y, f"`{x.name}` in {where}")) is not None:
                return found
    if len(a) != len(b):
        return Difference("the number of prints", str(len(a)), str(len(b)))
    return None


def _errors(a: Diagnostic | None, b: Diagnostic | None) -> Difference | None:
    first, second = (_error_text(e) for e in (a, b))
    return Difference("how the run ends", first, second) if first != second else None


def _error_text(error: Diagnostic | None) -> str:
    if error is None:
        return "without an error"
    return f"{error.code} at line {error.span.line}, column {error.span.column}: {error.message}"


def _named(a: Mapping[str, Shown], b: Mapping[str, Shown], kind: str) -> Difference | None:
    for name in dict.fromkeys((*a, *b)):
        if name not in a or name not in b:
            return Difference(f"{kind}`{name}`", "set" if name in a else "not set", "set" if name in b else "not set")
        if (found := _shown(a[name], b[name], f"{kind}`{name}`")) is not None:
            return found
    return None


def _shown(a: Shown, b: Shown, where: str) -> Difference | None:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        from graphdsl.runtime.format import type_text

        return Difference(where, type_text(a.dtype, a.shape), type_text(b.dtype, b.shape))
    one, two = (np.asarray(x.value, a.dtype.numpy) for x in (a, b))
    unequal = np.argwhere(np.atleast_1d(_bits(one) != _bits(two)))
    if not len(unequal):
        return None
    place = tuple(int(i) for i in unequal[0]) if a.shape else ()
    if place:
        where += f" at [{', '.join(map(str, place))}] ({len(unequal)} of {counted(one.size, 'element')} differ)"
    return Difference(where, _text(one[place], a.dtype), _text(two[place], a.dtype), _ulps(one[place], two[place]))


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers that are equal where the values are the same; there is one NaN."""
    if array.dtype.kind != "f":
        return array
    ones = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return ones.view(np.int64 if array.dtype.itemsize == 8 else np.int32)


def _text(value: Any, dtype: DType) -> str:
    from graphdsl.runtime.format import number

    return number(value if dtype is DType.F32 else value.item(), dtype)


def _ulps(a: Any, b: Any) -> int | None:
    """How many floats lie between two floats."""
    if a.dtype.kind != "f" or np.isnan(a) or np.isnan(b):
        return None
    return abs(_rank(a) - _rank(b))


def _rank(value: Any) -> int:
    """The place of a float in the order of all floats of its width; -0.0 comes just before 0.0."""
    bits = int(_bits(np.asarray(value)))
    lowest = -(2 ** (8 * value.dtype.itemsize - 1))
    return bits if bits >= 0 else lowest - bits - 1

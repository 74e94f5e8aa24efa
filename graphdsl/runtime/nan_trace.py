"""`graphdsl grad --why-nan`: each NaN or inf of a run, with the one it comes from.

Kept for each value is only what it last was, and a path goes through each place of the program once, so that a long run
takes no more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from graphdsl.core.ir import NanCheck, NanWalk
from graphdsl.core.nan_paths import Paths
from graphdsl.ops.op import Effect
from graphdsl.ops.signs import sign
from graphdsl.runtime.nans import Array, Nans, Place, beside, by_element, element, first, made_from
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span

Kind = Literal["nan", "inf"]
_TESTS = {"nan": np.isnan, "inf": np.isinf}
_KINDS: tuple[Kind, ...] = ("nan", "inf")


@dataclass(eq=False)
class Step:
    """A NaN or inf at one place of a path; `cause` is the step before it. `times`: how often the path came through here."""

    span: Span
    text: str
    backward: bool
    number: int  # of the value or cotangent
    order: int
    cause: Step | None
    times: int = 1


class Trace(Nans):
    """Follows what is not finite, and stops nowhere."""

    def __init__(self, paths: Paths) -> None:
        super().__init__()
        self._paths = paths
        self._last: dict[tuple[int, Kind], Step] = {}
        self._count = 0

    def walk(self, instr: NanWalk, results: Sequence[Any]) -> None:
        """Nothing is to be said of a derivative under way."""

    def check(self, check: NanCheck, args: Sequence[Any], result: Any, before: Sequence[bool] = ()) -> None:
        """One more step, for the NaNs and for the infinities of a result; those that a sum had before are no news."""
        if not check.made.number:
            return
        array = np.asarray(result)
        fresh = [kind for kind, was in zip_longest(_KINDS, before) if not was and _TESTS[kind](array).any()]
        added = "; the sum before had an inf" * any(before)  # a NaN is news where there was an inf
        steps = {kind: self._step(check, args, array, first(_TESTS[kind](array)), added) for kind in fresh}
        self._last.update({(check.made.number, kind): step for kind, step in steps.items()})

    def path(self, value: int, result: Any) -> list[Step]:
        """The way to the value with this number, whose result is not finite; from where that arose."""
        kind: Kind = "nan" if np.isnan(result).any() else "inf"
        steps = []
        step = self._before(value, kind)
        while step is not None:
            steps.append(step)
            step = step.cause
        return steps[::-1]

    def _step(self, check: NanCheck, args: Sequence[Any], result: Array, place: Place, added: str) -> Step:
        source = _source(check, [np.asarray(a) for a in args], result, place)
        cause = None if source is None else self._before(*source)
        self._count += 1
        earlier = cause
        while earlier is not None and earlier.number != check.made.number:
            earlier = earlier.cause
        if earlier is not None:  # a loop: the way goes through here once
            return replace(earlier, order=self._count, times=earlier.times + 1)
        text = _text(check, place, args, result, "made" if source is None else "gave") + added
        return Step(check.span, text, check.made.operand is not None, check.made.number, self._count, cause)

    def _before(self, source: int, kind: Kind) -> Step | None:
        """The last step at a value, or at what it was before under other names; else where it came from outside."""
        numbers = self._paths.all_before(source)
        for k in (kind, "inf"):  # sums of infinities may be a NaN that no step made
            found = [self._last[n, k] for n in numbers if (n, k) in self._last]
            if found:
                return max(found, key=lambda step: step.order)
        for n in numbers:
            if n in self._paths.given:
                span, words = self._paths.given[n]
                return Step(span, f"{kind} {words}", False, n, 0, None)
        return None


def _source(check: NanCheck, args: list[Array], result: Array, place: Place) -> tuple[int, Kind] | None:
    """The number of the operand that brought it to this element, and what that has there; None: it arose here."""
    here = by_element(check.made, args, result)
    for kind in _KINDS:
        for source, array in zip(check.made.sources, args, strict=True):
            if array.dtype.kind == "f" and _TESTS[kind](array[beside(place, array)] if here else array).any():
                return source, kind
    return None


def _text(check: NanCheck, place: Place, args: Sequence[Any], result: Any, verb: str) -> str:
    made = check.made
    value, where = element(check, place, result)
    if made.op.effect is Effect.READ:
        return f"{value}{where} was read from a file"
    what = f"`{sign(made.op)}`" if made.operand is None else f"the derivative of `{sign(made.op)}`"
    given = made_from(check, place, args, result)
    return f"{what} {verb} {value}{where}{': ' * bool(given)}{given}"

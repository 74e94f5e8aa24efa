"""What is said where a NaN or inf arises (`--check-nan`): the same for both modes.

An op *makes* a NaN where no operand has one, and an inf where no operand has one or a NaN: at the same element if it
works element by element, else anywhere. So `0 / 0`, `log(0)` and `inf - inf` make one; what was fed, read from a file or
written as a literal was not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdsl.core.formula import rule_formula
from graphdsl.core.ir import Made, NanCheck, NanWalk
from graphdsl.ops.op import Elementwise
from graphdsl.ops.signs import sign, unnamed
from graphdsl.ops.types import DType
from graphdsl.runtime.events import Shown
from graphdsl.runtime.format import number, probed, text
from graphdsl.runtime.showing import summary
from graphdsl.source.diagnostic import Fault, FaultKind, Label

BY_OP = FaultKind("E0740", "`{0}` made {1}{2}")
BY_RULE = FaultKind("E0741", "the derivative of `{0}` made {1}{2}", "the rule of `{0}`: {3}")

_SMALL = 8  # elements of a tensor that are shown

Array = np.ndarray[Any, Any]
Place = tuple[int, ...]


class Nans:
    """Of one run: the derivatives under way, each with what was noted first in it."""

    def __init__(self) -> None:
        self._walks: list[Fault | None] = []

    def check(self, check: NanCheck, args: Sequence[Any], result: Any, before: Sequence[bool] = ()) -> None:
        """Fail where an op made a NaN or inf; note where a derivative's rule did, in a sum without."""
        if check.made.operand is None:
            fault = _fault(check, args, result)
            if fault is not None:
                raise fault
        elif self._walks[-1] is None and not any(before):
            self._walks[-1] = _fault(check, args, result)

    def walk(self, instr: NanWalk, results: Sequence[Any]) -> None:
        """A derivative begins, or ends: then fail where it is not finite by what was noted."""
        if not instr.ends:
            self._walks.append(None)
            return
        fault = self._walks.pop()
        if fault is not None and not all(np.isfinite(result).all() for result in results):
            if instr.span.start < instr.span.end:  # else no place of the program asks for it
                fault.labels = (*fault.labels, Label(instr.span, "in this derivative"))
            raise fault


def _fault(check: NanCheck, args: Sequence[Any], result: Any) -> Fault | None:
    """What is wrong with a result that is not finite; None: it was not made so here."""
    place = _place(check.made, args, result)
    if place is None:
        return None
    made = check.made
    words = (sign(made.op), *element(check, place, result))
    kind = BY_OP if made.operand is None else BY_RULE
    fault = Fault(kind, *words, *(() if made.operand is None else (_rule(made),)))
    fault.span = check.span
    fault.labels = (Label(check.span, made_from(check, place, args, result)),)
    return fault


def element(check: NanCheck, place: Place, result: Any) -> tuple[str, str]:
    """An element of a result, and where it is in it."""
    value = number(np.asarray(result)[place], check.result.type.dtype)
    return value, f" at {list(place)}" if place else ""


def made_from(check: NanCheck, place: Place, args: Sequence[Any], result: Any) -> str:
    """What an element of a result was made from."""
    parts = zip(check.made.roles, check.args, args, strict=True)
    shown = [_shown(role, arg.type.dtype, value, check.made, place, result) for role, arg, value in parts]
    return "; ".join(dict.fromkeys(shown))


def _rule(made: Made) -> str:
    """The rule as a formula."""
    assert made.operand is not None
    return rule_formula(made.op, made.operand, made.operands, made.out, made.attrs) or "it has no formula"


def _place(made: Made, args: Sequence[Any], result: Any) -> Place | None:
    """The first element that was made a NaN or inf."""
    found = np.asarray(result)
    given = [np.asarray(a) for a in args]
    if made.operand is not None and unnamed(made.op):  # part of a rule itself, whose own operands nobody looks at
        given = given[:1]
    floats = [a for a in given if a.dtype.kind == "f"]
    if by_element(made, given, found):
        nan, infinite = (np.zeros(found.shape, bool) for _ in range(2))
        for a in floats:
            nan |= np.isnan(a)
            infinite |= np.isinf(a)
    else:
        nan = np.asarray(any(np.isnan(a).any() for a in floats))
        infinite = np.asarray(any(np.isinf(a).any() for a in floats))
    wrong = (np.isnan(found) & ~nan) | (np.isinf(found) & ~nan & ~infinite)
    if not wrong.any():
        return None
    return first(wrong)


def first(which: Array) -> Place:
    """The first place where an array is true."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(which)), which.shape))


def by_element(made: Made, args: Sequence[Array], result: Array) -> bool:
    """Whether an element is made from the elements at the same place."""
    return isinstance(made.op.compute, Elementwise) and all(_fits(a.shape, result.shape) for a in args)


def _shown(role: str, dtype: DType, value: Any, made: Made, place: Place, result: Any) -> str:
    """What something was made from, as it counts for this element."""
    array = np.asarray(value)
    if array.ndim and isinstance(made.op.compute, Elementwise) and _fits(array.shape, np.shape(result)):
        at = beside(place, array)
        return f"{role}{list(at)} = {number(array[at], dtype)}"
    if array.size <= _SMALL:
        return f"{role} = {text(value, dtype)}"
    return probed(summary(Shown(role, dtype, value)))


def beside(place: Place, operand: Array) -> Place:
    """The place in an operand, whose elements may be repeated, for one in the result."""
    return tuple(
        i if size > 1 else 0 for i, size in zip(place[len(place) - operand.ndim :], operand.shape, strict=True)
    )


def _fits(shape: Place, whole: Place) -> bool:
    """Whether elements are repeated to a whole shape."""
    pairs = zip(shape, whole[len(whole) - len(shape) :], strict=False)
    return len(shape) <= len(whole) and all(size in (1, all_of_it) for size, all_of_it in pairs)

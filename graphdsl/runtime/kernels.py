"""What eager mode calls to compute one op: the quickest function on run-time values that has the bits that
grammars/README.md, "Numbers", asks for.

`kernel(op, types, attrs)` gives a function of the operands. Numbers are Python's `float` (f64), `int`, `bool` and
`numpy.float32`; tensors are arrays. A `Draw` gets the random stream first, a `Host` op the runtime. The caller has
NumPy's warnings off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphdsl.ops.op import Attrs, Contract, Draw, Elementwise, Host, Op, Pointwise, Reduce, Scatter, Setting, SumTo
from graphdsl.ops.types import F64, Type
from graphdsl.runtime import contraction, drawing, elementwise, moving, reducing
from graphdsl.runtime.numbers import NUMBERS

Kernel = Callable[..., Any]


def kernel(op: Op, types: tuple[Type, ...], attrs: Attrs, own: bool = False) -> Kernel:
    """The function that computes `op` on values of these types.

    `own` is for a `Scatter` that takes its first operand over, in a list that holds it: written in place if nobody
    else holds it.
    """
    typing = op.typing(Setting(F64), types, attrs)
    outs, attrs = typing.outs, attrs if typing.attrs is None else typing.attrs
    match op.compute:
        case Elementwise():
            return elementwise.kernel(op, types, attrs)
        case Reduce():
            return reducing.kernel(op, types, attrs)
        case SumTo():
            return reducing.sum_to(types[0].dtype, types[0].rank, types[1].rank)
        case Contract():
            return contraction.kernel(op, types, attrs)
        case Pointwise():
            return moving.pointwise(op, types, attrs, number(outs[0]))
        case Scatter():
            return moving.scatter(op, types, attrs, own)
        case Draw():
            return drawing.kernel(op, outs[0].dtype, attrs)
        case Host(run=run):
            return _host(partial(run, **attrs), outs)
    raise TypeError(f"`{op.name}` is not computed")


def number(type: Type) -> Callable[[Any], Any] | None:
    """What makes a scalar of this type from what NumPy gave; None where it is a tensor."""
    return None if type.rank else NUMBERS[type.dtype]


def _host(run: Kernel, outs: tuple[Type, ...]) -> Kernel:
    makers = [number(t) for t in outs]
    if not any(makers):
        return run
    if len(makers) == 1:
        make = makers[0]
        return lambda *args: make(run(*args))  # type: ignore[misc]
    return lambda *args: tuple(m(x) if m else x for m, x in zip(makers, run(*args), strict=True))

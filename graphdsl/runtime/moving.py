"""Ops that move data or make it, and writing into arrays: in place where nobody else holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphdsl.ops.indexing import write
from graphdsl.ops.op import Attrs, Op, Pointwise, Scatter
from graphdsl.ops.types import F32, I32, Type

Kernel = Callable[..., Any]


def pointwise(op: Op, types: tuple[Type, ...], attrs: Attrs, make: Callable[[Any], Any] | None) -> Kernel:
    """The function that NumPy has for it; a scalar result becomes a number."""
    compute = op.compute
    assert isinstance(compute, Pointwise)
    if op.name == "dim":
        axis = attrs["axis"]
        return lambda x: x.shape[axis]
    if op.name == "index" and (quick := _quick_index(types, attrs["spec"])):
        return quick
    run = partial(compute.numpy, **attrs) if attrs else compute.numpy
    if make is None and types and I32 in {t.dtype for t in types if not t.rank}:
        run = _with_i32(run, types)
    return run if make is None else lambda *operands: make(run(*operands))


def _with_i32(run: Kernel, types: tuple[Type, ...]) -> Kernel:
    """With i32 scalars as NumPy's: of a Python int it would make an array of i64."""
    made = [np.int32 if t.dtype is I32 and not t.rank else None for t in types]
    return lambda *operands: run(*(x if f is None else f(x) for f, x in zip(made, operands, strict=True)))


def _quick_index(types: tuple[Type, ...], spec: Any) -> Kernel | None:
    """Single places on the leading axes of an array, by far the most frequent index."""
    x = types[0]
    if not spec or len(spec) > x.rank or any(entry != ("at",) for entry in spec) or any(t.rank for t in types[1:]):
        return None
    if len(spec) == x.rank and x.dtype is not F32:
        return lambda x, *places: x.item(*places)
    if len(spec) == 1:
        return lambda x, i: x[i]
    return lambda x, *places: x[places]


# ---- writing ------------------------------------------------------------------------------------------


def scatter(op: Op, types: tuple[Type, ...], attrs: Attrs, own: bool) -> Kernel:
    """The function that writes into a copy; with `own`, into what a list hands over, if nobody else holds that."""
    compute = op.compute
    assert isinstance(compute, Scatter)
    put = _writer(types, attrs["spec"], compute.add)
    if not own:

        def copying(x: Any, v: Any, *places: Any) -> Any:
            x = x.copy()
            put(x, v, *places)
            return x

        return copying

    def taking(box: list[Any], v: Any, *places: Any) -> Any:
        alone = _holders(box) <= _ALONE
        x = box.pop()
        if not (alone and x.base is None and x.flags.writeable):
            x = x.copy()
        put(x, v, *places)
        return x

    return taking


def _writer(types: tuple[Type, ...], spec: Any, add: bool) -> Kernel:
    x = types[0]
    single = len(spec) == x.rank and all(entry == ("at",) for entry in spec) and not any(t.rank for t in types[1:])
    if single and not add:
        if x.rank == 1:
            return lambda x, v, i: x.__setitem__(i, v)
        return lambda x, v, *places: x.__setitem__(places, v)
    return lambda x, v, *places: write(x, v, places, spec, add)


def _holders(box: list[Any]) -> int:
    """How many references there are to what a list holds."""
    return sys.getrefcount(box[0])


_ALONE = _holders([np.zeros(1)])

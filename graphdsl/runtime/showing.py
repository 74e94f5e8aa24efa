"""What a `print` or a probe of the core says, as events for the run's sink: the same for both modes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.ops.types import F32, F64, DType
from graphdsl.runtime.events import Shown, Sink, Summary
from graphdsl.runtime.texts import written


def show(sink: Sink, instr: ir.Print, values: Iterable[Any]) -> None:
    """One event for each text and for each run of values; `values` are those of the items, in order."""
    left = iter(values)
    line = instr.span.line
    run: list[Shown] = []
    for item in instr.items:
        if isinstance(item, ir.Item):
            run.append(Shown(item.name, item.value.type.dtype, next(left)))
            continue
        if run:
            sink.values(line, run)
            run = []
        sink.text(line, written(item, left))
    match instr.event:
        case "stats":
            sink.probe(line, [summary(shown) for shown in run])
        case "probe":
            sink.probe(line, run)
        case "print" if run:
            sink.values(line, run)


def summary(shown: Shown) -> Summary:
    """The statistics of a value."""
    values = np.asarray(shown.value, shown.dtype.numpy).reshape(-1)
    kept = values[~np.isnan(values)] if shown.dtype.is_float else values
    nans = values.size - kept.size
    if not kept.size:
        return Summary(shown.name, shown.dtype, shown.shape, None, None, None, nans)
    low, high = kept.min()[()], kept.max()[()]
    return Summary(shown.name, shown.dtype, shown.shape, low, high, _mean(kept, shown.dtype), nans)


def _mean(values: np.ndarray[Any, Any], dtype: DType) -> Any:
    """By the sum of the language, whose bits depend on no machine."""
    from graphdsl.ops.reductions import SUM
    from graphdsl.ops.types import Type
    from graphdsl.runtime.kernels import kernel

    total = kernel(SUM, (Type(F64, (values.size,)),), {"axes": (0,), "keepdims": False})(values.astype(F64.numpy))
    mean = float(total) / values.size
    return np.float32(mean) if dtype is F32 else mean

"""Why a gradient is not finite: the way of a NaN or inf to it, from where it arose."""

from __future__ import annotations

import numpy as np

from graphdsl.api.program import Prepared, Result
from graphdsl.runtime.nan_trace import Step


def ways(prepared: Prepared, result: Result) -> dict[str, list[Step] | None]:
    """For each gradient of the last run of a program that follows its NaNs, the way to it; None: it is finite."""
    trace = prepared.trace
    assert trace is not None
    derivatives = prepared.checked.program.derivatives
    return {
        name: None if np.isfinite(g.value).all() else trace.path(derivatives[name].number, g.value)
        for name, g in result.gradients.items()
    }

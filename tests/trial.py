"""One body, compiled by itself and made a NumPy ufunc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdsl.native.elementwise import define_kernel, define_loops
from graphdsl.native.linked import Linked
from graphdsl.native.names import ELEMENTWISE_LOOP
from graphdsl.native.target import Target, host
from graphdsl.native.ufuncs import ufunc
from graphdsl.ops.scalar import S
from graphdsl.ops.types import DType
from graphdsl.source.diagnostic import FaultKind


def array_function(
    body: Callable[..., S],
    operands: Sequence[DType],
    target: Target | None = None,
    kinds: Sequence[FaultKind] = (),
) -> Any:
    """A ufunc over arrays of exactly these dtypes that computes `body(code, *elements)`."""
    made_for = target or host()
    module = made_for.module("trial")
    define_loops(module, made_for)
    result = define_kernel(module, made_for, "trial", body, operands, kinds)
    linked = Linked(made_for.object_code(str(module)), [ELEMENTWISE_LOOP, "trial.info"])
    return ufunc("trial", linked[ELEMENTWISE_LOOP], linked["trial.info"], operands, [result], keep=linked)

"""Constant folding: an op on literals is computed once, by the very kernel that would compute it as the program runs.

Where that fails it is left, to fail in its place. A param is no literal, whatever its first value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdsl.core.ir import Apply, Const, Func, Value
from graphdsl.graph.rename import blocks_of, graph_body
from graphdsl.ops.attrs import frozen
from graphdsl.ops.op import Elementwise
from graphdsl.runtime.kernels import kernel
from graphdsl.runtime.numbers import NUMBERS
from graphdsl.source.diagnostic import Fault


def fold_constants(main: Func) -> None:
    """Compute what depends on literals only."""
    known: dict[Value, Any] = {}
    kernels: dict[Any, Any] = {}
    for block in blocks_of(main):
        body = []
        for instr in graph_body(block):
            made = _folded(instr, known, kernels)
            if isinstance(made, Const) and not made.out.type.shape and not isinstance(made.value, tuple):
                known[made.out] = NUMBERS[made.out.type.dtype](made.value)
            body.append(made)
        block.body = body


def _folded(instr: Any, known: dict[Value, Any], kernels: dict[Any, Any]) -> Any:
    """The instruction, or the literal that it comes to."""
    match instr:
        case Apply(op=op, args=args, attrs=attrs, outs=(out,)) if (
            isinstance(op.compute, Elementwise) and not out.type.shape and all(a in known for a in args)
        ):
            value = _computed(op, args, attrs, known, kernels)
            return instr if value is None else Const(instr.span, value, out)
        case _:
            return instr


def _computed(
    op: Any, args: tuple[Value, ...], attrs: Any, known: dict[Value, Any], kernels: dict[Any, Any]
) -> float | int | bool | None:
    key = (op, frozen(attrs), *(a.type.dtype for a in args))
    if key not in kernels:
        kernels[key] = kernel(op, tuple(a.type for a in args), attrs)
    try:
        with np.errstate(all="ignore"):
            value = kernels[key](*(known[a] for a in args))
    except Fault:
        return None
    return value if isinstance(value, bool | int) else float(value)

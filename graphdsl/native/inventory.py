"""Which bodies the kernel library holds, and what it calls them. Needs no compiler: only the table of ops.

An elementwise op that NumPy computes to the same bits is left to NumPy, and so is one that comes down to a few such
steps (`graphdsl.runtime.python_code`). Attrs that change a body (`powi`, checked casts) are never compiled here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphdsl.native.steps import Measure, measure
from graphdsl.ops.choosing import cast_attrs
from graphdsl.ops.op import Attrs, Draw, Elementwise, Op, Setting, TypeProblem
from graphdsl.ops.scalar import S
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Type

FEW_STEPS = 1


@dataclass(frozen=True, eq=False)
class Entry:
    """One body for operands of certain dtypes."""

    name: str
    op: Op
    operands: tuple[DType, ...]
    attrs: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def measure(self) -> Measure:
        """How long the body is, and the dtype of its result."""
        return measure(self.body, self.operands)

    def body(self, *args: Any) -> S:
        """What is computed, as `Code`."""
        compute = self.op.compute
        assert isinstance(compute, (Elementwise, Draw))
        return compute.body(*args, **dict(self.attrs))


def entry_for(op: Op, operands: tuple[DType, ...], attrs: Attrs) -> Entry:
    """The entry of an elementwise op over operands of these dtypes."""
    words = [op.name, *(d.value for d in operands)]
    if op.name == "cast":
        words.append("to." + attrs["dtype"].value)
    return Entry(".".join(words), op, operands, tuple(attrs.items()))


def by_numpy(op: Op, operands: tuple[DType, ...]) -> bool:
    """Whether NumPy's own function has the bits of this op."""
    compute = op.compute
    if not isinstance(compute, Elementwise) or compute.numpy is None:
        return False
    return compute.numpy_ints or operands[-1].is_float


def is_held(op: Op, attrs: Attrs) -> bool:
    """Whether the library has this op at all: not where attrs change the body, but for plain casts."""
    return not attrs or (op.name == "cast" and not attrs.get("checked"))


def elementwise_entries() -> Iterator[Entry]:
    """The elementwise kernels of the library."""
    found = set()
    for op in OPS.values():
        for operands, attrs in _signatures(op):
            entry = entry_for(op, operands, attrs)
            if entry.name not in found and not by_numpy(op, operands) and is_long(entry.measure):
                found.add(entry.name)
                yield entry


def draw_entries() -> Iterator[Entry]:
    """The random distributions of the library."""
    for op in OPS.values():
        if isinstance(op.compute, Draw):
            for dtype in (F32, F64):
                yield Entry(draw_name(op, dtype), op, (I64,) * 4, (("dtype", dtype),))


def draw_name(op: Op, dtype: DType) -> str:
    """What the library calls a distribution."""
    return f"{op.name}.{dtype.value}"


def arity(op: Op) -> int:
    """The number of operands of an elementwise op."""
    if op.params is not None:
        return len(op.params)
    assert isinstance(op.compute, Elementwise)
    return len(positional(op.compute.body)) - 1


def positional(body: Callable[..., S]) -> list[str]:
    """The names of a function's positional parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in inspect.signature(body).parameters.items() if p.kind in kinds]


def _signatures(op: Op) -> Iterator[tuple[tuple[DType, ...], Attrs]]:
    """The dtypes (and attrs) for which an op's body may be compiled."""
    compute = op.compute
    if not isinstance(compute, Elementwise):
        return
    if op.name == "cast":
        for source in (F32, F64):
            for to in (I32, I64):
                yield (source,), cast_attrs(to, checked=False, weak=False)
        return
    keywords = inspect.signature(compute.body).parameters.values()
    if any(p.kind is inspect.Parameter.KEYWORD_ONLY for p in keywords):
        return
    for dtype in DType:
        for first in (dtype, BOOL):
            operands = (first, *[dtype] * (arity(op) - 1))
            try:
                typing = op.typing(Setting(F64), tuple(Type(d) for d in operands), {})
            except TypeProblem:
                continue
            if typing.operands == operands:
                yield operands, {}


def is_long(measure: Measure) -> bool:
    """Whether a body over arrays pays for native code, or needs it."""
    return measure.native or measure.count > FEW_STEPS

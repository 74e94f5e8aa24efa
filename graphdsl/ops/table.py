"""The table of operations, by name: every `Op` that stands in an entry file. Adding an op touches that file alone."""

from __future__ import annotations

from graphdsl.ops import (
    arithmetic,
    arranging,
    choosing,
    contraction,
    convolution,
    creation,
    draws,
    einsum,
    files,
    functions,
    index_checks,
    indexing,
    joining,
    neural,
    reductions,
    scans,
    shape,
    special,
    statistics,
)
from graphdsl.ops.op import Op

ENTRY_FILES = (
    arithmetic,
    choosing,
    functions,
    special,
    reductions,
    statistics,
    scans,
    contraction,
    einsum,
    shape,
    joining,
    arranging,
    index_checks,
    indexing,
    creation,
    neural,
    convolution,
    draws,
    files,
)

OPS: dict[str, Op] = {
    entry.name: entry for file in ENTRY_FILES for entry in vars(file).values() if isinstance(entry, Op)
}

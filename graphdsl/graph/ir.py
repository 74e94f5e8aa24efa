"""What graph mode adds to the core: saved values for reverse walks, and fused kernels.

A graph is a `Func` of the core whose `Derive` instructions have been replaced by the instructions that compute them.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdsl.core.ir import Block, Value
from graphdsl.source.span import Span


@dataclass(eq=False, repr=False, slots=True)
class NewTape:
    """An empty growing stack of saved values. It is freed at the end of the block that makes it.

    `out` has the type i64 and stands for the stack; it may be an argument of a `Call`, nothing else.
    """

    span: Span
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Push:
    """Saves `values` on top of the tape, the last one topmost."""

    span: Span
    tape: Value
    values: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class Rewind:
    """Sets the tape's reading position to its top. Reading takes nothing off."""

    span: Span
    tape: Value


@dataclass(eq=False, repr=False, slots=True)
class Pop:
    """Reads what one `Push` saved (types and number are those of the push) and moves the reading position below it."""

    span: Span
    tape: Value
    outs: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class Fused:
    """One kernel: the elementwise, pointwise and reducing `Apply`s of `body`, computed together.

    `body.params` are `args` inside, `body.yields` what becomes `outs`.
    """

    span: Span
    args: tuple[Value, ...]
    body: Block
    outs: tuple[Value, ...]

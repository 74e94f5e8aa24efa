"""What graph mode adds to the core: saved values for reverse walks, and fused kernels.

A graph is a `Func` of the core whose `Derive` instructions have been replaced by the instructions that compute them.

Saved values. A tape is memory that only grows. A `Push` writes one entry, whose form is a `Record`, and gives its
place (an i64, never 0; 0 stands for "no entry"). A `Read` reads fields of the entry at a place, as often as one likes.
Places are ordinary values: a loop carries the place of its last entry and saves it in the next one, so a reverse loop
goes from entry to entry. What a `Read` gives *is* the value that was pushed: a second derivative adds its cotangents
to the same sum. For that a shadow of a tape has room for a running sum for each field of each entry, zero at first.
"""

from __future__ import annotations

from graphdsl.core.ir import Block, TapeValue, Value
from graphdsl.ops.types import Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span


class Record:
    """The form of one entry: the types of its fields, in order. Compared by identity."""

    __slots__ = ("types",)

    def __init__(self, types: list[Type] | None = None) -> None:
        self.types: list[Type] = types if types is not None else []


@dataclass(eq=False, repr=False, slots=True)
class NewTape:
    """An empty tape. It is freed at the end of the block that makes it.

    `out` has the type i64 and stands for the tape; it may be an argument of a `Call`, nothing else.
    """

    span: Span
    out: TapeValue


@dataclass(eq=False, repr=False, slots=True)
class Push:
    """Saves `values`, the fields of `record`, as a new entry; `out` is its place."""

    span: Span
    tape: TapeValue
    record: Record
    values: tuple[Value, ...]
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Read:
    """`outs[i]` is field `fields[i]` of the entry at `at`. The entry never changes."""

    span: Span
    tape: TapeValue
    record: Record
    at: Value
    fields: tuple[int, ...]
    outs: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class NewShadow:
    """Running sums for each float field of each entry that `tape` has or will get, all zero.

    Freed at the end of the block that makes it. `tape` may be a shadow itself.
    `out` has the type i64; it may be an argument of a `Call`, nothing else.
    """

    span: Span
    tape: TapeValue
    out: TapeValue


@dataclass(eq=False, repr=False, slots=True)
class Take:
    """`outs[i]` is the sum for field `fields[i]` of the entry at `at`: what was put there last, or zeros of the field's
    shape. Depends on the `Put`s before it."""

    span: Span
    shadow: TapeValue
    record: Record
    at: Value
    fields: tuple[int, ...]
    outs: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class Put:
    """Writes sums for fields of the entry at `at`."""

    span: Span
    shadow: TapeValue
    record: Record
    at: Value
    fields: tuple[int, ...]
    values: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class Result:
    """The result of a derivative while others are still to be built: a new value, equal to `arg`, which hands on its
    whole cotangent. There is none in a finished graph."""

    span: Span
    arg: Value
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Fused:
    """One kernel: the elementwise, pointwise and reducing `Apply`s of `body`, computed together.

    `body.params` are `args` inside, `body.yields` what becomes `outs`.
    """

    span: Span
    args: tuple[Value, ...]
    body: Block
    outs: tuple[Value, ...]

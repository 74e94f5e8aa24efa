"""What a running program says, as events: the sinks that the CLI and the API pass in turn them into text or JSON.

One event for each text, for each run of consecutive values of a `print`, and for each value that a probe shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphdsl.ops.types import F32, F64, DType
from graphdsl.source.record import dataclass, field


class Shown(NamedTuple):
    """A printed value under its source text."""

    name: str
    dtype: DType
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape if isinstance(self.value, np.ndarray) else ()


class Summary(NamedTuple):
    """The statistics of a value: `low`, `high` and `mean` of what is not NaN (None: there is nothing), and how many NaNs."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    low: Any
    high: Any
    mean: Any
    nans: int

    @property
    def mean_dtype(self) -> DType:
        return F32 if self.dtype is F32 else F64


class Sink(Protocol):
    """Takes print events in the order in which they happen. `line` is that of the statement."""

    def values(self, line: int, items: Sequence[Shown]) -> None: ...

    def text(self, line: int, text: str) -> None: ...

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        """What a name that is watched was given at this line."""

    def flush(self) -> None:
        """What was said so far must be out (an error follows, or the end)."""


@dataclass
class Recorded:
    """A sink that keeps what it gets: `(line, items or text)`."""

    events: list[tuple[int, list[Shown] | str]] = field(default_factory=list)
    probes: list[tuple[int, list[Shown | Summary]]] = field(default_factory=list)

    def values(self, line: int, items: Sequence[Shown]) -> None:
        self.events.append((line, list(items)))

    def text(self, line: int, text: str) -> None:
        self.events.append((line, text))

    def probe(self, line: int, items: Sequence[Shown | Summary]) -> None:
        self.probes.append((line, list(items)))

    def flush(self) -> None:
        pass

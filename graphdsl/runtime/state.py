"""What a run has beside its values: the sink, the random stream, fed values, the folder for files, limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from graphdsl.ops.files import Hole
from graphdsl.ops.types import DType, Type, wrap64
from graphdsl.runtime.events import Recorded, Sink
from graphdsl.runtime.limits import Limits
from graphdsl.source.record import dataclass, field

if TYPE_CHECKING:
    from graphdsl.runtime.nans import Nans


@dataclass
class Stream:
    """The place in the random stream: the key, and the number of the next block."""

    key: int = 0
    counter: int = 0

    def seed(self, key: int, counter: int = 0) -> None:
        """Go to a place."""
        self.key = key & (2**64 - 1)
        self.counter = counter & (2**64 - 1)

    @property
    def place(self) -> tuple[int, int]:
        """The key and the counter, as a program's ints."""
        return wrap64(self.key), wrap64(self.counter)

    def take(self, count: int) -> int:
        """The counter at which a draw of `count` elements begins; the next one begins after it."""
        start = self.counter
        self.counter = (start + count) & (2**64 - 1)
        return start


class Files(Protocol):
    """What loads and saves values for runs, each of which it is told of."""

    def begin(self) -> None: ...

    def load(self, folder: str, path: str, entry: Any, type: Type, limits: Limits) -> Any: ...

    def save(self, folder: str, path: str, items: Sequence[tuple[str, DType, Any]]) -> None: ...


@dataclass
class Runtime:
    """One run. `feeds` are values as given, by name; `fed` those of them that the program takes, converted. `deadline` is
    the end of its time, on the clock of `time.monotonic`.
    `active_calls` is counted where a program has recursion, in eager mode; `ops` by code made to count them; `saves` always.
    `files` loads and saves (None: what `runtime.files` does)."""

    sink: Sink = field(default_factory=Recorded)
    random: Stream = field(default_factory=Stream)
    folder: str = "."
    feeds: dict[str, Any] = field(default_factory=dict)
    fed: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    deadline: float = inf
    active_calls: int = 0
    ops: int = 0
    saves: int = 0
    files: Files | None = None

    @cached_property
    def nans(self) -> Nans:
        """What was found where the program looks for NaNs."""
        from graphdsl.runtime.nans import Nans  # few runs look for them

        return Nans()

    def load(self, path: Sequence[str | Hole], words: Sequence[Any], entry: Any, type: Type) -> Any:
        """A value from a file, of the type that the program was checked with; `words` are the values in its path."""
        from graphdsl.runtime import files
        from graphdsl.runtime.texts import filled

        name = filled(path, iter(words))
        return (self.files or files).load(self.folder, name, entry, type, self.limits)

    def save(self, path: str, items: Sequence[tuple[str, DType, Any]]) -> None:
        """Write named values to a file, whole or not at all."""
        from graphdsl.runtime import files

        self.saves += 1
        (self.files or files).save(self.folder, path, items)

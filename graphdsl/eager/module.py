"""One Python module made from one program: its text, the place of each line, and the names it refers to.

The place of a line says which loops are around it, and which local counts the trips of each: a fault reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import length_hint
from types import CodeType
from typing import Any, NamedTuple

from graphdsl.core.ir import For, Func, Instr, While

FILE = "<graphdsl program>"
_ENDLESS = 2**62  # trips
TRIPS = f"repeat(None, {_ENDLESS})"  # what a `while` goes over: no other iterator counts as cheaply


class Around(NamedTuple):
    """A loop around a line: the locals that count its trips, and that hold how many were made before these."""

    loop: While | For
    counter: str
    before: str | None


class Place(NamedTuple):
    """What a line belongs to: an instruction, and the loops around it in this Python function, the innermost last."""

    instr: Instr
    around: tuple[Around, ...]

    def trips(self, held: Mapping[str, Any]) -> list[tuple[While | For, int]]:
        """The loops, each with the trip that is under way (counted from 1), where the function's locals are `held`."""
        return [(a.loop, _trip(held[a.counter]) + (held[a.before] if a.before else 0)) for a in self.around]


def _trip(counter: Any) -> int:
    """The index of a `for`, or what is left of `TRIPS`."""
    return counter + 1 if isinstance(counter, int) else _ENDLESS - length_hint(counter)


class Lines:
    """The lines of one Python function being written, and the place of each."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.places: list[Place | None] = []
        self.depth = 1
        self.around: tuple[Around, ...] = ()  # the loops around the next line, the innermost last

    def add(self, line: str, instr: Instr | None = None) -> None:
        self.text.append("\t" * self.depth + line)
        self.places.append(None if instr is None else Place(instr, self.around))

    def take_back(self) -> tuple[str, Instr | None]:
        """The last line, which is written no more, and what it belonged to."""
        place = self.places.pop()
        return self.text.pop(), None if place is None else place.instr


class Module:
    """Functions and constants collected for one `compile`."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self.text: list[str] = []
        self.places: list[Place | None] = [None]  # of each line; lines count from 1
        self.callees: dict[Func, str] = {}
        self.counts_calls = False  # whether there may be more active calls than the checker can see
        self.counts_ops = False  # whether the code counts the ops that run
        self.limited = False  # whether the code asks at every step if a limit is reached
        self._known: dict[Any, str] = {}
        self._count = 0

    def name(self, prefix: str) -> str:
        """A global name that is not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        """The global name of an object, compared by identity."""
        if id(value) not in self._known:
            self._known[id(value)] = name = self.name(prefix)
            self.globals[name] = value  # this also keeps the id taken
        return self._known[id(value)]

    def bound(self, key: Any, make: Callable[[], Any], prefix: str = "k") -> str:
        """The global name of what `make` gives, made once a key."""
        if key not in self._known:
            self._known[key] = name = self.name(prefix)
            self.globals[name] = make()
        return self._known[key]

    def callee(self, func: Func) -> str:
        """The Python name of a function of the program."""
        if func not in self.callees:
            self.callees[func] = self.name("f")
        return self.callees[func]

    def function(self, name: str, params: list[str], lines: Lines) -> None:
        """Add a function of these lines."""
        self.text.append(f"def {name}({', '.join(params)}):")
        self.places.append(None)
        self.text.extend(lines.text)
        self.places.extend(lines.places)

    def compile(self) -> CodeType:
        return compile("\n".join(self.text) + "\n", FILE, "exec", dont_inherit=True)

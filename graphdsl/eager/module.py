"""One Python module made from one program: its text, the place of each line, and the names it refers to."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from graphdsl.core.ir import Func, Instr

FILE = "<graphdsl program>"


class Lines:
    """The lines of one Python function being written, and the instruction each belongs to."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.origin: list[Instr | None] = []
        self.depth = 1

    def add(self, line: str, instr: Instr | None = None) -> None:
        self.text.append("\t" * self.depth + line)
        self.origin.append(instr)


class Module:
    """Functions and constants collected for one `compile`."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self.text: list[str] = []
        self.origin: list[Instr | None] = [None]  # of each line; lines count from 1
        self.callees: dict[Func, str] = {}
        self.counts_calls = False  # whether there may be more active calls than the checker can see
        self.counts_ops = False  # whether the code counts the ops that run
        self.counts_memory = False  # whether the code asks how much memory all values take
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
        self.origin.append(None)
        self.text.extend(lines.text)
        self.origin.extend(lines.origin)

    def compile(self) -> CodeType:
        return compile("\n".join(self.text) + "\n", FILE, "exec", dont_inherit=True)

"""The state of a reverse walk at one place, and flags that are often known."""

from __future__ import annotations

from graphdsl.core.between import State as Abstract
from graphdsl.core.emit import Emit
from graphdsl.core.ir import Value
from graphdsl.ops.types import BOOL
from graphdsl.source.record import dataclass

Flag = bool | Value


@dataclass(slots=True)
class State:
    """`sums` are the running sums (None for a place, which only leads on). `held[i]` are the values that may be target
    `i`, each with the flag that it is (None: it is found). `found[i]` is its sum, if that was found; `done[i]` whether
    it was."""

    sums: dict[Value, Value | None]
    held: list[dict[Value, Flag] | None]
    found: list[Value]
    done: list[Flag]

    def copy(self) -> State:
        return State(dict(self.sums), [h and dict(h) for h in self.held], list(self.found), list(self.done))

    @property
    def finished(self) -> bool:
        """Whether nothing is left to walk for."""
        return not self.sums or all(h is None for h in self.held)

    def abstract(self) -> Abstract:
        """The same without code."""
        return Abstract(set(self.sums), [None if h is None else frozenset(h) for h in self.held])

    def holds(self, value: Value) -> bool:
        """Whether `value` may be a target."""
        return any(h is not None and value in h for h in self.held)


def either(emit: Emit, one: Flag, other: Flag) -> Flag:
    """One or the other."""
    if one is True or other is True:
        return True
    if one is False:
        return other
    return one if other is False else emit.or_(one, other)


def both(emit: Emit, one: Flag, other: Flag) -> Flag:
    """One and the other."""
    if one is False or other is False:
        return False
    if one is True:
        return other
    return one if other is True else emit.and_(one, other)


def negated(emit: Emit, flag: Flag) -> Flag:
    """Not so."""
    return (not flag) if isinstance(flag, bool) else emit.not_(flag)


def as_value(emit: Emit, flag: Flag) -> Value:
    """A flag as a value of the graph."""
    return emit.const(flag, BOOL) if isinstance(flag, bool) else flag

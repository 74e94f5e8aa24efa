"""What a name or an expression stands for while a program is checked.

Tensors are values of the core; tuples, texts and functions exist only here. A binding can be taken apart into the core
values it holds (`leaves`) and put together again around others (`rebuild`): so it passes through joins and calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from graphdsl.core.ir import Item, Text, Value
from graphdsl.ops.op import Op
from graphdsl.ops.types import Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.syntax import ast

Static = bool | int | float | str | tuple["Static", ...]

MOST_LEAVES = 10_000
MOST_LEVELS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A value of the core; `static` is what it is, where that may decide a type (grammars/README.md, "Expressions")."""

    value: Value
    static: Static | None = None

    @property
    def type(self) -> Type:
        return self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class Tuple:
    items: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Str:
    """A string, or a text made of values where it stands."""

    parts: Text

    @property
    def plain(self) -> str | None:
        return "".join(self.parts) if all(isinstance(p, str) for p in self.parts) else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A `fn` of the file."""

    node: ast.FnDef


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A lambda, with what its free names were where it was made."""

    node: ast.Lambda
    captured: tuple[tuple[str, Slot | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """An op, or (`op` is None) a form that the checker writes out: `grad`, `f64(…)`."""

    name: str
    op: Op | None


@dataclass(frozen=True, slots=True, eq=False)
class Special:
    """`none`, the result of a function that gives nothing, or what came of an error."""

    kind: Literal["none", "nothing", "poison"]


NONE = Special("none")
NOTHING = Special("nothing")
POISON = Special("poison")

Function = Named | Closure | Builtin
Binding = Tensor | Tuple | Str | Named | Closure | Builtin | Special


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """What a name holds: `is_set` is true where it is set (None: on every path), else `why` says how it may not be."""

    binding: Binding
    span: Span
    is_set: Value | None = None
    why: str = ""


def kind_name(binding: Binding) -> str:
    """What a message calls it."""
    match binding:
        case Tensor():
            return str(binding.type)
        case Tuple(items=items):
            return f"a tuple of {len(items)}"
        case Str():
            return "a string"
        case Named() | Closure() | Builtin():
            return "a function"
        case Special(kind="none"):
            return "`none`"
        case _:
            return "nothing"


# ---- taking apart and putting together ----------------------------------------------------------------


def leaves(binding: Binding) -> Iterator[Value]:
    """The core values in it, in order."""
    match binding:
        case Tensor(value=value):
            yield value
        case Tuple(items=items):
            for item in items:
                yield from leaves(item)
        case Str(parts=parts):
            for part in parts:
                if isinstance(part, Item):
                    yield part.value
        case Closure(captured=captured):
            for _, slot in captured:
                if slot is not None:
                    yield from slot_leaves(slot)


def slot_leaves(slot: Slot) -> Iterator[Value]:
    """The core values of a slot, then its flag."""
    yield from leaves(slot.binding)
    if slot.is_set is not None:
        yield slot.is_set


def rebuild(binding: Binding, swap: Callable[[Value], Value]) -> Binding:
    """The same around other values: `swap` is asked for each leaf, in order."""
    match binding:
        case Tensor(value=value, static=static):
            return Tensor(swap(value), static)
        case Tuple(items=items):
            return Tuple(tuple(rebuild(item, swap) for item in items))
        case Str(parts=parts):
            return Str(tuple(p if isinstance(p, str) else replace(p, value=swap(p.value)) for p in parts))
        case Closure(node=node, captured=captured):
            return Closure(node, tuple((n, None if s is None else rebuild_slot(s, swap)) for n, s in captured))
        case _:
            return binding


def rebuild_slot(slot: Slot, swap: Callable[[Value], Value]) -> Slot:
    """The same slot around other values."""
    binding = rebuild(slot.binding, swap)
    return Slot(binding, slot.span, None if slot.is_set is None else swap(slot.is_set), slot.why)


def measure(binding: Binding) -> tuple[int, int]:
    """How many values a binding holds, and how deep it is nested."""
    match binding:
        case Tuple(items=items):
            parts = [measure(item) for item in items]
        case Closure(captured=captured):
            parts = [measure(slot.binding) for _, slot in captured if slot is not None]
        case _:
            return 1, 0
    return sum(p[0] for p in parts) + 1, max((p[1] for p in parts), default=0) + 1


def without_static(binding: Binding) -> Binding:
    """A name, an argument or a result is not a literal any more."""
    match binding:
        case Tensor(value=value, static=static) if static is not None:
            return Tensor(value)
        case Tuple(items=items):
            return Tuple(tuple(without_static(item) for item in items))
        case _:
            return binding


def has_poison(binding: Binding) -> bool:
    """Whether an error has spoilt it."""
    match binding:
        case Special(kind="poison"):
            return True
        case Tuple(items=items):
            return any(has_poison(item) for item in items)
        case _:
            return False

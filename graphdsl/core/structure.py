"""The parts of any instruction, by the form of its class: what it reads, what it makes, its regions.

So printing, checking, copying and dead code need no list of instructions, and know those that graph mode adds.
A field `out` or `outs` is made; other fields with values (also inside items of a print) are read; blocks are regions.
Fields that hold a tape are annotated as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from graphdsl.core.ir import Block, Checkpoint, Convert, For, If, Item, Value, While
from graphdsl.source.record import dataclass

Substitute = Callable[[Value], Value]


@dataclass(frozen=True)
class Form:
    """The names of a class's fields, by what they hold. `tapes` are among those made and read; `all` are all, in order."""

    made: tuple[str, ...]
    read: tuple[str, ...]
    regions: tuple[str, ...]
    tapes: tuple[str, ...]
    all: tuple[str, ...]


_READS = ("Value", "Item", "Text")
_MADE = ("out", "outs")


_FORMS: dict[type, Form] = {}


def form(kind: type) -> Form:
    """How instructions of a class are made up."""
    if kind not in _FORMS:
        _FORMS[kind] = _form(kind)
    return _FORMS[kind]


def _form(kind: type) -> Form:
    named = [(f.name, str(f.type)) for f in fields(kind)]
    return Form(
        tuple(n for n, _ in named if n in _MADE),
        tuple(n for n, t in named if n not in _MADE and any(w in t for w in _READS)),
        tuple(n for n, t in named if t == "Block"),
        tuple(n for n, t in named if t == "TapeValue"),
        tuple(n for n, _ in named),
    )


def results(instr: Any) -> tuple[Value, ...]:
    """The values that an instruction makes."""
    names = form(type(instr)).made
    if not names:
        return ()
    made = getattr(instr, names[0])
    return (made,) if isinstance(made, Value) else made


def operands(instr: Any) -> list[Value]:
    """The values that an instruction reads itself (not in its regions), in order."""
    found: list[Value] = []
    for name in form(type(instr)).read:
        part = getattr(instr, name)
        if isinstance(part, Value):
            found.append(part)
        elif part is not None:
            found.extend(_values(part))
    return found


def counts(loop: While | For) -> list[Value]:
    """What a loop reads beside what it carries: how many trips it makes, and what they are counted from."""
    return [v for v in (loop.count if isinstance(loop, For) else None, loop.before) if v is not None]


def passed(instr: Any) -> Iterator[tuple[Sequence[Value], Sequence[Value]]]:
    """Which values an instruction passes on under other names, from branches, from trip to trip, by a conversion."""
    match instr:
        case Convert(arg=arg, out=out):
            yield (arg,), (out,)
        case If(then=then, orelse=orelse, outs=outs):
            yield then.yields, outs
            yield orelse.yields, outs
        case Checkpoint(body=body, outs=outs):
            yield body.yields, outs
        case While(inits=inits, cond=cond, body=body, outs=outs):
            for targets in (cond.params, body.params, outs):
                yield inits, targets
                yield body.yields, targets
        case For(inits=inits, body=body, outs=outs):
            for targets in (body.params[1:], outs):
                yield inits, targets
                yield body.yields, targets


def regions(instr: Any) -> tuple[Block, ...]:
    """Every block inside an instruction, also of a fused kernel."""
    return tuple(getattr(instr, name) for name in form(type(instr)).regions)


def walk(block: Block) -> Iterator[Any]:
    """Every instruction of a block and its regions, in program order; iterative."""
    stack: list[Iterator[Any]] = [iter(block.body)]
    while stack:
        for instr in stack[-1]:
            yield instr
            if inner := regions(instr):
                stack.extend(iter(b.body) for b in reversed(inner))
                break
        else:
            stack.pop()


def rebuilt(instr: Any, read: Substitute, make: Substitute, region: Callable[[Block], Block]) -> Any:
    """A copy with other operands, results and regions."""
    kind = type(instr)
    shape = form(kind)
    parts = []
    for name in shape.all:
        part = getattr(instr, name)
        if name in shape.made:
            part = _mapped(part, make)
        elif name in shape.read:
            part = _mapped(part, read)
        elif name in shape.regions:
            part = region(part)
        parts.append(part)
    return kind(*parts)


def reconnect(instr: Any, read: Substitute) -> None:
    """Change what an instruction reads, in place."""
    for name in form(type(instr)).read:
        part = getattr(instr, name)
        if part is not None:
            setattr(instr, name, _mapped(part, read))


def _values(part: Any) -> Iterator[Value]:
    match part:
        case Value():
            yield part
        case Item():
            yield part.value
        case tuple():
            for inner in part:
                yield from _values(inner)


def _mapped(part: Any, change: Substitute) -> Any:
    match part:
        case Value():
            return change(part)
        case Item(value=value, name=name, spec=spec):
            return Item(change(value), name, spec)
        case tuple():
            return tuple(_mapped(inner, change) for inner in part)
        case _:
            return part

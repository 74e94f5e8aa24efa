"""What the instructions of a graph read and make, and where tensors are used for the last time.

A block owns the tensors it makes and those handed to it (its params; in a branch also outer values that nothing after the branch
reads). Whoever uses an owned tensor last may take its buffer over; otherwise it is released there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphdsl.core import ir
from graphdsl.core.ir import Block, Value
from graphdsl.graph.ir import Fused, NewTape, Pop, Push, Rewind

Instr = ir.Instr | NewTape | Push | Rewind | Pop | Fused


def reads(instr: Instr) -> tuple[Value, ...]:
    """The values an instruction reads itself, not in its regions."""
    match instr:
        case ir.Apply(args=args) | ir.Call(args=args) | Fused(args=args):
            return args
        case ir.Convert(arg=arg) | ir.Leaf(arg=arg) | ir.Seed(arg=arg):
            return (arg,)
        case ir.If(cond=cond):
            return (cond,)
        case ir.While(inits=inits):
            return inits
        case ir.For(count=count, inits=inits):
            return (count, *inits)
        case ir.Print(items=items):
            return tuple(in_items(items))
        case ir.Save(path=path, items=items):
            return (*in_items((path,)), *(i.value for i in items))
        case ir.Fail(numbers=numbers, text=text):
            return (*numbers, *in_items((text,))) if text is not None else numbers
        case Push(tape=tape, values=values):
            return (tape, *values)
        case Rewind(tape=tape) | Pop(tape=tape):
            return (tape,)
        case _:
            return ()


def makes(instr: Instr) -> tuple[Value, ...]:
    """The values an instruction makes."""
    match instr:
        case (
            ir.Const(out=out)
            | ir.Convert(out=out)
            | ir.Leaf(out=out)
            | ir.Feed(out=out)
            | ir.Undef(out=out)
            | NewTape(out=out)
        ):
            return (out,)
        case ir.Print() | ir.Fail() | ir.Save() | ir.Seed() | Push() | Rewind():
            return ()
        case _:
            return instr.outs


def in_items(items: Iterable[ir.Item | ir.Text]) -> Iterator[Value]:
    """The values in the items of a print or text, in order."""
    for item in items:
        if isinstance(item, ir.Item):
            yield item.value
        else:
            yield from (part.value for part in item if isinstance(part, ir.Item))


class Usage:
    """The tensors from outside that each region reads; each region is looked at once."""

    def __init__(self) -> None:
        self._outer: dict[Block, frozenset[Value]] = {}

    def outer(self, block: Block) -> frozenset[Value]:
        """The tensors that a block reads and does not make."""
        if block not in self._outer:
            stack = [block]
            while stack:
                inner = [b for instr in stack[-1].body for b in ir.blocks(instr) if b not in self._outer]
                if inner:
                    stack.extend(inner)
                else:
                    self._outer[stack[-1]] = self._collect(stack.pop())
        return self._outer[block]

    def _collect(self, block: Block) -> frozenset[Value]:
        read = set(block.yields)
        made = set(block.params)
        for instr in block.body:
            read.update(reads(instr))
            made.update(makes(instr))
            for inner in ir.blocks(instr):
                read |= self._outer[inner]
        return frozenset(v for v in read - made if v.type.shape)

    def dying(self, block: Block, given: Iterable[Value]) -> tuple[list[Value], list[list[Value]]]:
        """Of the tensors that `block` owns (`given` and those it makes): which are never used, and which instruction is
        the last use of each. Those that it yields live on. A value an instruction makes in vain dies there too."""
        owned = {v for v in given if v.type.shape}
        owned.update(v for instr in block.body for v in makes(instr) if v.type.shape)
        live = set(block.yields)
        ends: list[list[Value]] = []
        for instr in reversed(block.body):
            used = {v: None for v in makes(instr) if v.type.shape}
            used.update((v, None) for v in reads(instr) if v in owned)
            for inner in ir.blocks(instr):
                used.update((v, None) for v in self._sorted(inner) if v in owned)
            ends.append([v for v in used if v not in live])
            live.update(used)
        ends.reverse()
        return [v for v in given if v.type.shape and v not in live], ends

    def _sorted(self, block: Block) -> list[Value]:
        return sorted(self.outer(block), key=id)

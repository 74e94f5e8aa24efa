"""Where tensors are used for the last time.

A block owns the tensors it makes and those handed to it (its params; in a branch also outer values that nothing after
the branch reads). Whoever uses an owned tensor last may take its buffer over; otherwise it is released there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Block, Value
from graphdsl.core.structure import operands, regions, results
from graphdsl.graph.ir import Fused

Instr = Any  # of the core, or what graph mode adds


def reads(instr: Instr) -> list[Value]:
    """The values whose elements an instruction reads itself; those that it only measures need not live."""
    match instr:
        case ir.Apply(op=op, args=args) if op.shape_only:
            return [a for i, a in enumerate(args) if i not in op.shape_only]
        case Fused(args=args, body=body):
            read = {a for inner in body.body for a in reads(inner)}
            return [a for a, p in zip(args, body.params, strict=True) if p in read]
        case _:
            return operands(instr)


class Usage:
    """The tensors from outside that each region reads; each region is looked at once."""

    def __init__(self) -> None:
        self._outer: dict[Block, dict[Value, None]] = {}

    def outer(self, block: Block) -> dict[Value, None]:
        """The tensors that a block reads and does not make, in a fixed order."""
        if block not in self._outer:
            stack = [block]
            while stack:
                inner = [b for instr in stack[-1].body for b in regions(instr) if b not in self._outer]
                if inner:
                    stack.extend(inner)
                else:
                    done = stack.pop()
                    self._outer[done] = self._collect(done)
        return self._outer[block]

    def _collect(self, block: Block) -> dict[Value, None]:
        read = dict.fromkeys(block.yields)
        made = set(block.params)
        for instr in block.body:
            read.update(dict.fromkeys(reads(instr)))
            made.update(results(instr))
            for inner in regions(instr):
                read.update(self._outer[inner])
        return {v: None for v in read if v.type.shape and v not in made}

    def plan(self, block: Block, given: Iterable[Value]) -> Plan:
        """How `block` deals with the tensors that it owns: `given` and those that it makes."""
        owned = {v: None for v in given if v.type.shape}
        dead = list(owned)
        owned.update((v, None) for instr in block.body for v in results(instr) if v.type.shape)
        live = set(block.yields)
        ends: list[dict[Value, None]] = []
        for instr in reversed(block.body):
            used = {v: None for v in results(instr) if v.type.shape}
            used.update((v, None) for v in reads(instr) if v in owned)
            for inner in regions(instr):
                used.update((v, None) for v in self.outer(inner) if v in owned)
            ends.append({v: None for v in used if v not in live})
            live.update(used)
        ends.reverse()
        return Plan(owned, [v for v in dead if v not in live], ends)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a block owns; what of it is never used; and the tensors for which an instruction is the last use (among them
    those that it makes in vain). What the block yields dies nowhere."""

    owned: dict[Value, None]
    unused: list[Value]
    ends: list[dict[Value, None]]

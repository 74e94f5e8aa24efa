"""Which parts of a tensor have to be copies, because the tensor is written into while they are still needed.

`r = x[i]` can lie where `x` does. But if `x[j] = v` stands before the last use of `r`, that write would have to copy all
of `x`: a copy of `r`, which is read anyway, is less. So `outliving` finds those indices. It may find too many, never too few
for what one function does; what a call is given counts as written into there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Apply, Block, Value
from graphdsl.core.structure import operands, passed, regions
from graphdsl.ops.op import Pointwise, Scatter, SumTo

_ALWAYS = -1  # a last use of which nobody knows when it comes

Keeps = Callable[[Any], bool]


def outliving(top: Block, keeps: Keeps = lambda instr: False) -> set[Apply]:
    """The indices in a function's body that should give copies; `keeps`: whether an instruction puts away what it reads."""
    blocks = _blocks(top)
    if not any(_writes(instr) for block in blocks for instr in block.body):
        return set()
    return _Search(blocks, keeps).found


def _blocks(top: Block) -> list[Block]:
    """Every block, the outer ones first."""
    found = [top]
    for block in found:
        found.extend(inner for instr in block.body for inner in regions(instr))
    return found


def _writes(instr: Any) -> bool:
    return isinstance(instr, Apply) and isinstance(instr.op.compute, Scatter)


def _is_part(instr: Any) -> bool:
    """Whether the result may lie in operand 0."""
    return isinstance(instr, Apply) and isinstance(instr.op.compute, Pointwise | SumTo) and bool(instr.args)


class _Search:
    def __init__(self, blocks: list[Block], keeps: Keeps) -> None:
        self.keeps = keeps
        self.parents: dict[Value, Value] = {}
        for block in blocks:
            for instr in block.body:
                self._unite_in(instr)
        self.written = {self._tensor(v) for block in blocks for instr in block.body for v in self._written(instr)}
        self.found: set[Apply] = set()
        self._inside: dict[Block, tuple[set[Value], set[Value]]] = {}  # what is read and what is written in it
        for block in reversed(blocks):
            self._block(block)

    # ---- values that take turns in one buffer ----

    def _tensor(self, value: Value) -> Value:
        while value in self.parents:
            value = self.parents[value]
        return value

    def _unite(self, one: Value, other: Value) -> None:
        one, other = self._tensor(one), self._tensor(other)
        if one is not other:
            self.parents[one] = other

    def _unite_in(self, instr: Any) -> None:
        match instr:
            case Apply() if _writes(instr):
                self._unite(instr.args[0], instr.outs[0])
            case ir.Leaf():
                self._unite(instr.arg, instr.out)
            case _:
                for sources, targets in passed(instr):
                    for source, target in zip(sources, targets, strict=True):
                        self._unite(source, target)

    def _written(self, instr: Any) -> list[Value]:
        if _writes(instr):
            return [instr.args[0]]
        return [a for a in instr.args if a.type.rank] if isinstance(instr, ir.Call) else []

    # ---- one block, those inside it before ----

    def _block(self, block: Block) -> None:
        last: dict[Value, int] = {}
        written: dict[Value, list[int]] = defaultdict(list)
        for position, instr in enumerate(block.body):
            read, inside = set(operands(instr)), {self._tensor(v) for v in self._written(instr)}
            for region in regions(instr):
                read |= self._inside[region][0]
                inside |= self._inside[region][1]
            for tensor in inside:
                written[tensor].append(position)
            last.update(dict.fromkeys(read, position))
        self._inside[block] = set(last) | set(block.yields), set(written)
        for instr in block.body:
            if isinstance(instr, ir.While | ir.For) or self.keeps(instr):
                kept = instr.inits if isinstance(instr, ir.While | ir.For) else operands(instr)
                last.update(dict.fromkeys(kept, _ALWAYS))
        last.update(dict.fromkeys(block.yields, _ALWAYS))
        self._parts(block, last, written)

    def _parts(self, block: Block, last: dict[Value, int], written: dict[Value, list[int]]) -> None:
        """The last one first, as a part of a part is needed as long as that is."""
        for position in range(len(block.body) - 1, -1, -1):
            instr: Any = block.body[position]
            if not _is_part(instr) or not instr.outs[0].type.rank:
                continue
            whole, end = instr.args[0], last.get(instr.outs[0], position)
            tensor = self._tensor(whole)
            writes = written[tensor]
            after = bisect_right(writes, position)
            within = after < len(writes) and writes[after] <= end
            if instr.op.name == "index" and (tensor in self.written if end == _ALWAYS else within):
                self.found.add(instr)
            elif last.get(whole, position) != _ALWAYS:
                last[whole] = _ALWAYS if end == _ALWAYS else max(end, last[whole])

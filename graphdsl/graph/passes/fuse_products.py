"""Transposes that only products read: the product reads the operand itself with its last two axes swapped.

The attr `swapped` of such a product has a bool for each operand. What remains unused of the transposes is taken out.
"""

from __future__ import annotations

from collections import Counter

from graphdsl.core.ir import Apply, Block, Func, Value
from graphdsl.core.structure import operands, regions
from graphdsl.ops.op import Contract


def fold_transposes(func: Func) -> None:
    """Let the products of a function read through transposes."""
    source: dict[Value, Value] = {}
    uses: Counter[Value] = Counter()
    blocks = [func.body]
    for block in blocks:  # grows as it runs
        uses.update(block.yields)
        for instr in block.body:
            uses.update(operands(instr))
            blocks.extend(regions(instr))
            if isinstance(instr, Apply) and _swaps(instr):
                source[instr.outs[0]] = instr.args[0]
    if not source:
        return
    for block in blocks:
        for instr in block.body:
            if isinstance(instr, Apply) and isinstance(instr.op.compute, Contract):
                _through(instr, source, uses)
    for block in blocks:
        _without(block, source, uses)


def _swaps(instr: Apply) -> bool:
    """Whether an op is a transpose of the last two axes alone."""
    if instr.op.name != "transpose":
        return False
    perm = instr.attrs["perm"]
    rank = len(perm)
    return rank >= 2 and tuple(perm) == (*range(rank - 2), rank - 1, rank - 2)


def _through(instr: Apply, source: dict[Value, Value], uses: Counter[Value]) -> None:
    swapped = tuple(a in source for a in instr.args)
    stacked = min(a.type.rank for a in instr.args) == 1 and max(a.type.rank for a in instr.args) > 2
    if any(swapped) and not stacked:
        uses.subtract(instr.args)
        instr.args = tuple(source.get(a, a) for a in instr.args)
        uses.update(instr.args)
        instr.attrs = {**instr.attrs, "swapped": swapped}


def _without(block: Block, source: dict[Value, Value], uses: Counter[Value]) -> None:
    block.body = [i for i in block.body if not (isinstance(i, Apply) and i.outs[0] in source and not uses[i.outs[0]])]

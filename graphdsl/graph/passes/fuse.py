"""Kernels: elementwise ops, access patterns and sums over one iteration space, computed in one pass over memory.

Producers go with their consumers, and siblings that read the same tensors with each other, forward and backward pass
alike. What can fail, and every other effect, stays where it is; pure ops may move past it. A value that several
kernels use is stored once; what is made of scalars alone (zeros, a scalar repeated) is made again wherever it is
used.
"""

from __future__ import annotations

import heapq
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Apply, Block, Func, Value
from graphdsl.core.structure import operands, reconnect, regions, results
from graphdsl.graph.ir import Fused
from graphdsl.graph.passes.fuse_checks import split_checks
from graphdsl.graph.passes.fuse_groups import Group, Groups, Node
from graphdsl.graph.passes.fuse_kinds import Part, as_apply, part
from graphdsl.graph.passes.fuse_products import fold_transposes
from graphdsl.graph.passes.fuse_shapes import share_shapes
from graphdsl.ops.op import Effect


def fuse(main: Func) -> None:
    """Put the ops of `main`, and of the functions it calls, into kernels."""
    for func in _functions(main):
        fold_transposes(func)
        share_shapes(func)
        todo = [func.body]
        while todo:
            block = todo.pop()
            _block(block)
            todo.extend(inner for instr in block.body if not isinstance(instr, Fused) for inner in regions(instr))


def _functions(main: Func) -> list[Func]:
    found = {main: None}
    todo = [main.body]
    while todo:
        for instr in todo.pop().body:
            todo.extend(regions(instr))
            if isinstance(instr, ir.Call) and instr.func not in found:
                found[instr.func] = None
                todo.append(instr.func.body)
    return list(found)


def _block(block: Block) -> None:
    instrs = [as_apply(i) for instr in block.body for i in split_checks(instr)]
    if sum(part(i) is not Part.NONE for i in instrs) < 2:
        return
    groups = _grouped(instrs)
    used = _uses(block, instrs, groups)
    block.body = _ordered(groups, [_emitted(node, used) for node in groups.nodes])


# ---- grouping -----------------------------------------------------------------------------------------


def _grouped(instrs: list[Any]) -> Groups:
    groups = Groups()
    last_effect: Node | None = None
    for instr in instrs:
        before = [groups.maker[v] for v in _reads(instr) if v in groups.maker]
        if _is_effect(instr):
            if last_effect is not None:
                before.append(last_effect)
            last_effect = groups.add(instr, before)
        elif part(instr) is Part.VIRTUAL:
            groups.add_virtual(instr, before)
        elif part(instr) is Part.NONE or not groups.join(instr, before):
            groups.add(instr, before)
    return groups


def _reads(instr: Any) -> list[Value]:
    """All values that an instruction needs, in its regions too."""
    found = list(operands(instr))
    todo = list(regions(instr))
    while todo:
        block = todo.pop()
        found.extend(block.yields)
        for inner in block.body:
            found.extend(operands(inner))
            todo.extend(regions(inner))
    return found


def _is_effect(instr: Any) -> bool:
    match instr:
        case Apply(op=op, fails=fails):
            return fails or op.effect is not Effect.NONE
        case ir.Const() | ir.Convert() | ir.Leaf() | ir.Feed() | ir.Undef() | Fused():
            return False
        case _:
            return True


# ---- what becomes of the groups -----------------------------------------------------------------------


def _uses(block: Block, instrs: list[Any], groups: Groups) -> set[Value]:
    """The values that are needed outside of the group that makes them."""
    used = set(block.yields)
    for node in groups.nodes:
        inside = {o for m in node.members for o in m.outs} if isinstance(node, Group) else set()
        copied = node.virtual if isinstance(node, Group) else {}
        for instr in node.members:
            used.update(v for v in _reads(instr) if v not in inside and v not in copied)
    return used


def _emitted(node: Node, used: set[Value]) -> Any:
    if not isinstance(node, Group):
        (instr,) = node.members
        return None if node.is_virtual and not any(v in used for v in results(instr)) else instr
    members: dict[Apply, None] = {}
    for instr in node.members:
        members.update((node.virtual[a], None) for a in instr.args if a in node.virtual)
        members[instr] = None
    if len(members) == 1:
        return node.members[0]
    if not any(o in used for m in members for o in m.outs):
        return None
    return fused(list(members), [o for m in node.members for o in m.outs if o in used])


def fused(members: list[Apply], outs: list[Value]) -> Fused:
    """One kernel of these ops, in order, that keeps `outs`."""
    inner: dict[Value, Value] = {}
    params: dict[Value, Value] = {}

    def inside(value: Value) -> Value:
        if value in inner:
            return inner[value]
        if value not in params:
            params[value] = Value(value.type, value.name)
        return params[value]

    body: list[Any] = []
    for member in _needed(members, outs):
        copy = Apply(
            member.span,
            member.op,
            member.args,
            member.attrs,
            tuple(Value(o.type, o.name) for o in member.outs),
            member.fails,
        )
        reconnect(copy, inside)
        inner.update(zip(member.outs, copy.outs, strict=True))
        body.append(copy)
    block = Block(list(params.values()), body, [inner[o] for o in outs])
    return Fused(members[-1].span, tuple(params), block, tuple(outs))


def _needed(members: list[Apply], outs: list[Value]) -> list[Apply]:
    """Without what nobody uses (no kernel holds what can fail)."""
    used = set(outs)
    found = []
    for member in reversed(members):
        if used.intersection(member.outs):
            found.append(member)
            used.update(member.args)
    return found[::-1]


def _ordered(groups: Groups, emitted: list[Any]) -> list[Any]:
    """The instructions so that each stands after what it needs, as near to the order of the program as that allows."""
    left = {node: len(node.before) for node in groups.nodes}
    place = {node: i for i, node in enumerate(groups.nodes)}
    ready = [(node.last, place[node]) for node in groups.nodes if not left[node]]
    heapq.heapify(ready)
    found = []
    while ready:
        _, at = heapq.heappop(ready)
        if emitted[at] is not None:
            found.append(emitted[at])
        for follower in groups.nodes[at].after:
            left[follower] -= 1
            if not left[follower]:
                heapq.heappush(ready, (follower.last, place[follower]))
    assert len(found) == sum(e is not None for e in emitted)
    return found

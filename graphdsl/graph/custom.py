"""Reversing a call whose function has a derivative rule of its own: the rule is called, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Call, Custom, If, Value
from graphdsl.graph.walking import Flag, State, as_value, either
from graphdsl.ops.types import Type

if TYPE_CHECKING:
    from graphdsl.graph.walk import Walk


def contribute(walk: Walk, instr: Custom, totals: list[Value | None], state: State) -> None:
    """What the arguments get, from the left: what the rule gives where some cotangent is not 0."""
    if not any(walk.wants(arg, state) for arg in instr.args):
        return
    cotangents = [walk.zeros(o) if t is None else t for o, t in zip(instr.outs, totals, strict=True)]
    if instr.through:
        _pass_through(walk, instr, cotangents, state)
        return
    given = [walk.frames.value(v) for v in (*instr.given, *instr.outs)]
    outs = tuple(Value(Type(a.type.dtype, a.type.shape)) for a in instr.args)
    branches = Block(), Block()
    with walk.into(branches[0]):
        branches[0].yields = _called(walk, instr, [*given, *cotangents])
    with walk.into(branches[1]):
        branches[1].yields = _of_zeros(walk, instr, given, cotangents)
    walk.write(If(instr.span, _some(walk.emit, cotangents), *branches, outs))
    for arg, out in zip(instr.args, outs, strict=True):
        if walk.wants(arg, state):
            walk.contribute(arg, out, None, state)


def _pass_through(walk: Walk, instr: Custom, cotangents: list[Value], state: State) -> None:
    """The rule gives the running sums of the arguments."""
    sums = [walk.total(arg, state) for arg in instr.args]
    given = [walk.frames.value(v) for v in instr.given]
    for arg, out in zip(instr.args, _called(walk, instr, [*given, *cotangents, *sums]), strict=True):
        if walk.wants(arg, state):
            state.sums[arg] = out


def _called(walk: Walk, instr: Custom, given: list[Value]) -> list[Value]:
    outs = tuple(Value(Type(a.type.dtype, a.type.shape)) for a in instr.args)
    walk.write(Call(instr.span, instr.rule, tuple(given), outs))
    return list(outs)


def _of_zeros(walk: Walk, instr: Custom, given: list[Value], cotangents: list[Value]) -> list[Value]:
    """Where all cotangents are 0, so is what the rule gives; and it depends on them as it does, but on nothing else."""
    if not walk.derive.higher:
        return [walk.zeros(arg) for arg in instr.args]
    cut = [walk.emit.stop_gradient(v) if v.type.dtype.is_float else v for v in given]
    return [walk.emit.vanish(v) for v in _called(walk, instr, [*cut, *cotangents])]


def _some(emit: Emit, cotangents: list[Value]) -> Value:
    """Whether an element of them is not 0."""
    total: Flag = False
    for g in cotangents:
        nonzero = emit.ne(g, emit.like(0.0, g))
        total = either(emit, total, emit.any(nonzero, axis=None, keepdims=False) if g.type.rank else nonzero)
    return as_value(emit, total)

"""Exact identities: rewrites that hold for every bit, also of nan, infinities and zeros, and whatever stands around.

So `x * 1` and a transpose of a transpose go, `x + 0.0` and `x - x` do not. An op that can fail is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphdsl.core.ir import Apply, Const, Convert, For, Func, If, Leaf, Value, While
from graphdsl.graph.rename import blocks_of, graph_body, rename
from graphdsl.ops.type_rules import same_shape
from graphdsl.ops.types import Type

Makers = dict[Value, Any]
Rule = Callable[[Apply, Makers], Value | None]


def simplify(main: Func) -> None:
    """Replace each value that is certainly equal to another one; take known branches."""
    same: dict[Value, Value] = {}
    makers: Makers = {}

    def read(value: Value) -> Value:
        while value in same:
            value = same[value]
        return value

    for block in blocks_of(main):
        kept: list[Any] = []
        waiting = list(reversed(graph_body(block)))
        while waiting:
            instr = waiting.pop()
            taken = _taken(instr, makers, read)
            if taken is not None:
                waiting.extend(reversed(taken.body))
                same.update(zip(instr.outs, taken.yields, strict=True))
                continue
            equal = _equal(instr, makers, read)
            if equal is not None:
                same[instr.out if not isinstance(instr, Apply) else instr.outs[0]] = equal
                continue
            kept.append(instr)
            _constant_carried(instr, same)
            if isinstance(instr, Apply):
                makers[instr.outs[0]] = instr
            elif isinstance(instr, Const):
                makers[instr.out] = instr
        block.body = kept
    rename(main, same)


def _taken(instr: Any, makers: Makers, read: Callable[[Value], Value]) -> Any:
    """The branch of an `if` whose condition is known."""
    if not isinstance(instr, If):
        return None
    made = makers.get(read(instr.cond))
    return (instr.then if made.value else instr.orelse) if isinstance(made, Const) else None


def _constant_carried(instr: Any, same: dict[Value, Value]) -> None:
    """What a loop carries and never changes is what it began with."""
    match instr:
        case While(inits=inits, cond=cond, body=body, outs=outs):
            for init, c, p, following, out in zip(inits, cond.params, body.params, body.yields, outs, strict=True):
                if following is p:
                    same[c] = same[p] = same[out] = init
        case For(inits=inits, body=body, outs=outs):
            for init, p, following, out in zip(inits, body.params[1:], body.yields, outs, strict=True):
                if following is p:
                    same[p] = same[out] = init


def _equal(instr: Any, makers: Makers, read: Callable[[Value], Value]) -> Value | None:
    match instr:
        case Convert(arg=arg, out=out) if arg.type.dtype is out.type.dtype:
            return read(arg)
        case Leaf(arg=arg):
            return read(arg)
        case Apply(op=op, fails=False) if op.name in _RULES:
            found = _RULES[op.name](_with(instr, read), makers)
            return found if found is not None and _fits(found.type, instr.outs[0].type) else None
        case _:
            return None


def _with(instr: Apply, read: Callable[[Value], Value]) -> Apply:
    return Apply(instr.span, instr.op, tuple(read(a) for a in instr.args), instr.attrs, instr.outs, instr.fails)


def _fits(found: Type, made: Type) -> bool:
    return found.dtype is made.dtype and same_shape(found.shape, made.shape)


# ---- the identities -------------------------------------------------------------------------


def _number(value: Value, makers: Makers) -> float | int | bool | None:
    made = makers.get(value)
    return made.value if isinstance(made, Const) and not isinstance(made.value, tuple) else None


def _one_on_the_right(instr: Apply, makers: Makers) -> Value | None:
    x, y = instr.args
    return x if _number(y, makers) == 1 else None


def _one_on_either_side(instr: Apply, makers: Makers) -> Value | None:
    x, y = instr.args
    return x if _number(y, makers) == 1 else y if _number(x, makers) == 1 else None


def _minus_zero(instr: Apply, makers: Makers) -> Value | None:
    """`x - 0.0` is `x`, also where that is -0.0."""
    x, y = instr.args
    n = _number(y, makers)
    return x if n is not None and n == 0 and math.copysign(1.0, n) > 0 else None


def _itself(instr: Apply, makers: Makers) -> Value | None:
    return instr.args[0]


def _twice(instr: Apply, makers: Makers) -> Value | None:
    made = makers.get(instr.args[0])
    return made.args[0] if isinstance(made, Apply) and made.op is instr.op else None


def _transposed(instr: Apply, makers: Makers) -> Value | None:
    perm = instr.attrs["perm"]
    if list(perm) == sorted(perm):
        return instr.args[0]
    made = makers.get(instr.args[0])
    if isinstance(made, Apply) and made.op is instr.op and all(made.attrs["perm"][p] == i for i, p in enumerate(perm)):
        return made.args[0]
    return None


def _chosen(instr: Apply, makers: Makers) -> Value | None:
    c, x, y = instr.args
    known = _number(c, makers)
    return (x if known else y) if known is not None else x if x is y else None


_RULES: dict[str, Rule] = {
    "mul": _one_on_either_side,
    "div": _one_on_the_right,
    "sub": _minus_zero,
    "stop_gradient": _itself,
    "cast": _itself,
    "reshape": _itself,
    "reshape_like": _itself,
    "broadcast_to": _itself,
    "broadcast_like": _itself,
    "sum_to": _itself,
    "neg": _twice,
    "not_": _twice,
    "transpose": _transposed,
    "where": _chosen,
}

"""`graphdsl ops`: what each built-in does, with its derivative, read from the table of operations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import click

from graphdsl.cli.options import output_options
from graphdsl.cli.output import Output
from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Value
from graphdsl.ops.op import REQUIRED, Composite, Effect, Elementwise, Into, Kind, Op, Param, Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F64, Size, Type
from graphdsl.render.formula import formula
from graphdsl.source.span import Source, Span

_SPAN = Span(Source("<ops>", ""), 0, 0)


@click.command("ops", short_help="what each built-in does, with its derivative")
@click.argument("name", required=False)
@output_options
def command(name: str | None, output: Output) -> None:
    """What each built-in does, with its derivative.

    \b
    Example:  graphdsl ops sqrt
    """
    if name is None:
        for group in dict.fromkeys(op.group for op in OPS.values()):
            ops = [op for op in OPS.values() if op.group == group]
            _list(group, ops, output)
        return
    if name not in OPS:
        from difflib import get_close_matches

        near = get_close_matches(name, OPS, 3, 0.5)
        hint = f" Did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else " `graphdsl ops` lists them."
        raise click.UsageError(f"There is no op `{name}`.{hint}")
    _explain(OPS[name], output)


def _list(group: str, ops: list[Op], output: Output) -> None:
    if output.as_json:
        for op in ops:
            output.event("op", **_facts(op))
        return
    output.line(output.stdout_paint(group or "other", "strong"))
    wide = max(len(signature(op)) for op in ops)
    for op in ops:
        output.line(f"  {signature(op):<{min(wide, 34)}}  {op.doc}")
    output.line()


def _explain(op: Op, output: Output) -> None:
    if output.as_json:
        output.event("op", **_facts(op))
        return
    output.line(output.stdout_paint(signature(op), "strong"))
    output.line(f"    {op.doc}")
    for label, text in _details(op):
        output.line(f"    {label:<13} {text}")


def _facts(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "signature": signature(op),
        "group": op.group,
        "doc": op.doc,
        "callable": op.params is not None,
        "bound_ulps": None if math.isinf(op.bound) else op.bound,
        "faults": [fault.code for fault in op.faults],
        "effect": op.effect.value,
        "derivatives": dict(derivatives(op)),
    }


def _details(op: Op) -> Iterator[tuple[str, str]]:
    kind = type(op.compute).__name__.lower()
    yield "computed", {"composite": "from other ops, where the call is checked"}.get(kind, kind)
    if isinstance(op.compute, Elementwise):
        yield "error", "none" if op.bound == 0 else f"at most {op.bound} ulp"
    if op.faults:
        yield "can fail", "; ".join(f"{fault.code} {fault.message}" for fault in op.faults)
    if op.effect is Effect.RANDOM:
        yield "effect", "draws from the random stream"
    if op.effect is Effect.READ:
        yield "effect", "reads a file"
    found = list(derivatives(op))
    for operand, text in found:
        yield f"to {operand}", text
    if not found and not isinstance(op.compute, Composite):
        yield "derivative", "none"


def signature(op: Op) -> str:
    """How a call is written."""
    if op.params is None:
        return op.name
    return f"{op.name}({', '.join(_param(p) for p in op.params)})"


def _param(param: Param) -> str:
    if param.kind is Kind.SIZES:
        return f"*{param.name}"
    if param.default is REQUIRED:
        return param.name
    return f"{param.name}={str(param.default).lower() if param.default in (None, True, False) else param.default}"


def derivatives(op: Op) -> Iterator[tuple[str, str]]:
    """For each operand, its contribution from the cotangent `g` of the result `y`, as a formula."""
    if not isinstance(op.vjp, tuple):
        if op.vjp is not None:
            yield "each operand", "its part of `g`"
        return
    operands = [p.name for p in op.params or () if p.kind is Kind.TENSOR]
    for i, rule in enumerate(op.vjp):
        if rule is None:
            continue
        names = operands if len(operands) > i else ["x", "y_", "z"][: max(len(op.vjp), len(operands))]
        if len(op.vjp) == 2 and not operands:
            names = ["a", "b"]
        yield names[i], _formula(op, i, names) or "a rule that depends on how it is called"


def _formula(op: Op, i: int, names: list[str]) -> str | None:
    """The rule for operand `i`, traced on matrices (None: it needs to know more than that)."""
    shape = (Size("n"), Size("m"))
    block = Block()
    emit = Emit(block, Setting(F64), _SPAN)
    attrs = {p.name: p.default for p in op.params or () if p.kind in (Kind.AXES, Kind.STATIC)}
    operands = [Value(Type(F64, shape), name) for name in names]
    g = Value(Type(F64, shape), "g")
    y = Value(Type(F64, shape), "y")
    block.params = [g, y, *operands]
    rules = op.vjp
    assert isinstance(rules, tuple)
    rule = rules[i]
    assert rule is not None
    try:
        made = rule(emit, g, y, *operands, **attrs)
    except Exception:  # a rule may ask for anything; this is only for show
        return None
    if isinstance(made, Into):
        return f"{made.op}(…)"
    return None if made is None else formula(block, made)

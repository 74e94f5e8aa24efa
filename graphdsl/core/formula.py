"""Instructions of the core as one formula: `scale(g, 0.5 / y)`. What is used twice is written twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Const, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.ops.op import Attrs, Into, Kind, Op, Setting
from graphdsl.ops.signs import OPERATORS
from graphdsl.ops.types import F64, Type

_TIGHT = {
    "**": 4,
    "*": 2,
    "/": 2,
    "//": 2,
    "%": 2,
    "@": 2,
    "+": 1,
    "-": 1,
    "&": 0,
    "|": 0,
}  # how an operator binds; others: -1
_INFIX = {name: (sign, _TIGHT.get(sign, -1)) for sign, name in OPERATORS.items()}  # by the name of the op
_ATOM = 9
_LONGEST = 400


def formula(block: Block, value: Value) -> str:
    """How `value` comes from the block's params, which are called by their names."""
    texts: dict[Value, tuple[str, int]] = {v: (v.name or "?", _ATOM) for v in block.params}
    for instr in block.body:
        match instr:
            case Const(value=number, out=out):
                texts[out] = (repr(number), _ATOM)
            case Apply(op=op, args=args, attrs=attrs, outs=outs):
                written = _apply(op.name, [texts[a] for a in args], dict(attrs))
                for out in outs:
                    texts[out] = written if len(written[0]) <= _LONGEST else ("…", _ATOM)
            case _:
                return f"({type(instr).__name__.lower()})"
    return texts[value][0]


def operand_names(op: Op, count: int | None = None) -> list[str]:
    """Names for the operands of an op, in formulas; `count`: how many there are, where that depends on the call."""
    named = [p.name for p in op.params or () if p.kind is Kind.TENSOR]
    if count is None:
        count = len(op.vjp) if isinstance(op.vjp, tuple) else len(named)
    if len(named) >= count:
        return named[:count]
    if count > 4:
        return [f"x{i}" for i in range(count)]
    return ["a", "b"] if count == 2 and not named else ["x", "z", "u", "v"][:count]


def rule_formula(op: Op, i: int, operands: Sequence[Type], out: Type, attrs: Attrs) -> str | None:
    """What the derivative rule of an op gives operand `i`, from the cotangent `g` of the result `y`; None: there is no formula
    for it."""
    names = operand_names(op, len(operands))
    xs = [Value(type, name) for type, name in zip(operands, names, strict=True)]
    y, g = Value(out, "y"), Value(out, "g")
    block = Block([g, y, *xs])
    emit = Emit(block, Setting(F64), NOWHERE)
    try:
        if callable(op.vjp):
            result = op.vjp(emit, i, g, y, *xs, **attrs)
        else:
            rule = op.vjp[i] if op.vjp is not None else None
            result = None if rule is None else rule(emit, g, y, *xs, **attrs)
    except Exception:  # a rule may ask for anything; this is only for show
        return None
    if isinstance(result, Into):
        return f"{result.op}(…)"
    return None if result is None else formula(block, result)


def _apply(name: str, args: list[tuple[str, int]], attrs: dict[str, Any]) -> tuple[str, int]:
    if name in _INFIX and len(args) == 2:
        sign, tight = _INFIX[name]
        left, right = args
        return f"{_within(left, tight)} {sign} {_within(right, tight + 1)}", tight
    if name == "neg":
        return f"-{_within(args[0], 3)}", 3
    if name == "not_":
        return f"~{_within(args[0], 3)}", 3
    if name == "powi":
        return f"{_within(args[0], 5)} ** {attrs['k']}", 4
    plain = {k: v for k, v in attrs.items() if isinstance(v, int | tuple) and all(isinstance(i, int) for i in _many(v))}
    known = [f"{k}={v}" for k, v in plain.items() if not isinstance(v, bool) or v]
    return f"{name}({', '.join([text for text, _ in args] + known)})", _ATOM


def _many(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _within(written: tuple[str, int], tight: int) -> str:
    text, own = written
    return text if own >= tight else f"({text})"

"""Instructions of the core as one formula: `scale(g, 0.5 / y)`. What is used twice is written twice."""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Apply, Block, Const, Value

# name of the op → how it is written, and how tightly that binds
_INFIX = {
    "add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2), "floordiv": ("//", 2), "mod": ("%", 2),
    "matmul": ("@", 2), "pow": ("**", 4), "eq": ("==", -1), "ne": ("!=", -1), "lt": ("<", -1), "le": ("<=", -1),
    "gt": (">", -1), "ge": (">=", -1), "and_": ("&", 0), "or_": ("|", 0),
}  # fmt: skip
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

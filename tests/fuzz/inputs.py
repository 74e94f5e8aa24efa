"""Inputs and params of every dtype, fed and set from outside or by their defaults, with dims that have names."""

from __future__ import annotations

from tests.fuzz.writer import Kind, Writer

SHAPES = {"": (), "[3]": (3,), "[n]": (3,), "[m, n]": (2, 3), "[_]": (4,), "[m, m]": (2, 2), "[0]": (0,)}
"""How the dims of a type may be written, and what they are; `m` is 2 and `n` is 3."""


def declare(w: Writer, default: str) -> tuple[list[str], dict[str, Kind]]:
    """Some declarations, and the kinds of their names and of their dims."""
    lines, names = [], {}
    for _ in range(w.number(1, 4)):
        dtype = w.pick((default, default, "f64", "f32", "i64", "i32", "bool"))
        dims, shape = w.pick(SHAPES.items())
        kind = Kind(dtype, shape)
        input_ = w.chance(65)
        name = w.fresh("in" if input_ else "w")
        fed = w.chance(60)
        first = f" = {value(w, kind)}" if not input_ or not fed or w.chance(40) else ""
        if fed:
            w.arguments.append(f"--{'feed' if input_ else 'set'} {name}={given(w, kind)}")
        lines.append(f"{'input' if input_ else 'param'} {name}: {dtype}{dims}{first}")
        names[name] = kind
        names |= {dim: Kind("i64") for dim in "mn" if dim in dims}
    if w.chance(30):
        name = w.fresh("c")
        kind = Kind("f64", w.pick(((), (3,))))
        lines.append(f"const {name} = {w.literal(kind)}")
    return lines, names


def value(w: Writer, kind: Kind) -> str:
    """A value of a kind that converts to it."""
    if kind.dtype == "f64":
        return w.literal(kind)
    weak = w.literal(Kind({"f32": "f64"}.get(kind.dtype, "i64"), kind.shape)) if kind.dtype != "bool" else None
    return f"{kind.dtype}({weak})" if weak is not None else w.literal(kind)


def given(w: Writer, kind: Kind) -> str:
    """A value of a kind as the command line takes it."""
    if kind.shape:
        row = Kind(kind.dtype, kind.shape[1:])
        return f"[{','.join(given(w, row) for _ in range(kind.shape[0]))}]"
    if kind.is_float:
        return w.pick(("0.5", "1", "-2.25", "3e-1", "nan", "-0.0", "1e300" if kind.dtype == "f64" else "1e30", "0"))
    return w.pick(("true", "false")) if kind.dtype == "bool" else w.pick(("0", "1", "-3", "7", "2"))

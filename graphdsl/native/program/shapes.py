"""The sizes of results as code, with the checks that only the run can make.

Most follow from the type: a dim is an int, or a size that an operand has too. The rest, and the
checks of ops that can fail for their operands' sizes, are told here by op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply
from graphdsl.native.flow import int64
from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Elementwise
from graphdsl.ops.places import entries, region_sizes
from graphdsl.ops.scalar import Code, Reader, S
from graphdsl.ops.types import I64, Size, Type

Rule = Callable[[Code, Sequence[Reader], Attrs, Type], Sequence[S]]


def sizes(code: Code, apply: Apply, xs: Sequence[Reader]) -> tuple[Any, ...]:
    """The sizes of the first result as LLVM values; fails where the operands do not fit."""
    out = apply.outs[0].type
    if isinstance(apply.op.compute, Elementwise):
        if not apply.fails:
            return _typed(apply, xs) or _joined(code, xs, out, False)
        return _joined(code, xs, out, True)
    rule = RULES.get(apply.op.name)
    if rule is None or not (apply.fails or _typed(apply, xs) is None):
        found = _typed(apply, xs)
        assert found is not None, f"no rule for the sizes of {apply.op.name}"
        return found
    computed = rule(code, xs, apply.attrs, out)
    return tuple(int64(d) if isinstance(d, int) else _ref(s) for d, s in zip(out.shape, computed, strict=True))


def _ref(size: S) -> ir.Value:
    return getattr(size, "ref")  # noqa: B009


def _typed(apply: Apply, xs: Sequence[Reader]) -> tuple[Any, ...] | None:
    """The sizes by the type alone, or None."""
    found: list[Any] = []
    for dim in apply.outs[0].type.shape:
        if isinstance(dim, int):
            found.append(int64(dim))
            continue
        known = _with_dim(apply, xs, dim)
        if known is None:
            return None
        found.append(known)
    return tuple(found)


def _with_dim(apply: Apply, xs: Sequence[Reader], dim: Size) -> Any:
    for arg, x in zip(apply.args, xs, strict=True):
        for axis, d in enumerate(arg.type.shape):
            if d is dim:
                return _ref(x.size(axis))
    return None


def check(code: Code, condition: S, kind: Any, *numbers: S | int) -> None:
    """Fail where `condition` holds."""
    code.fail(condition, kind, *(code.const(I64, n) if isinstance(n, int) else n for n in numbers))


# ---- elementwise --------------------------------------------------------------------------------------


def _joined(code: Code, xs: Sequence[Reader], out: Type, checked: bool) -> tuple[Any, ...]:
    """Sizes that broadcast together, operand by operand as the type rule does."""
    one = code.const(I64, 1)
    shape: list[S] = []
    for x in xs:
        rank = max(len(shape), x.rank)
        left = [one] * (rank - len(shape)) + shape
        right = [one] * (rank - x.rank) + [x.size(a) for a in range(x.rank)]
        shape = [joined(code, a, b, axis, checked) for axis, (a, b) in enumerate(zip(left, right, strict=True))]
    return tuple(int64(d) if isinstance(d, int) else _ref(s) for d, s in zip(out.shape, shape, strict=True))


def joined(code: Code, a: S, b: S, axis: int, checked: bool = True) -> S:
    """The size of two that meet."""
    if _same(a, b) or _is(b, 1):
        return a
    if _is(a, 1):
        return b
    if checked:
        check(code, a.ne(b) & a.ne(1) & b.ne(1), faults.BROADCAST, a, b, axis)
    return code.select(a.eq(1), b, a)


def _same(a: S, b: S) -> bool:
    x, y = _ref(a), _ref(b)
    return x is y or (isinstance(x, ir.Constant) and isinstance(y, ir.Constant) and x.constant == y.constant)


def _is(a: S, number: int) -> bool:
    x = _ref(a)
    return isinstance(x, ir.Constant) and x.constant == number


# ---- by op --------------------------------------------------------------------------------------------


def given_sizes(code: Code, xs: Sequence[Reader], entries: Sequence[int | Size | None], least: int = 0) -> list[S]:
    """The sizes of a SIZES attr, whose operands come last; none may be below `least`."""
    unknown = [s for s in entries if not isinstance(s, int)]
    left = iter(xs[len(xs) - len(unknown) :])
    found = [code.const(I64, s) if isinstance(s, int) else next(left).at(()) for s in entries]
    for entry, size in zip(entries, found, strict=True):
        if entry is None:
            check(code, size < least, faults.NEGATIVE_SIZE, size)
    return found


def _product(code: Code, sizes: Sequence[S]) -> S:
    total = code.const(I64, 1)
    for size in sizes:
        total = total * size
    return total


def _made(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    return given_sizes(code, xs, attrs["sizes"])


def _reshape(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    found = given_sizes(code, xs, attrs["sizes"], least=-1)
    elements = _product(code, [xs[0].size(a) for a in range(xs[0].rank)])
    one, zero = code.const(I64, 1), code.const(I64, 0)
    may_be_open = [not isinstance(s, int) or s == -1 for s in attrs["sizes"]]
    opened = [s.eq(-1) if maybe else code.const(_bool(), False) for s, maybe in zip(found, may_be_open, strict=True)]
    count = zero
    for flag in opened:
        count = count + code.convert(flag, I64)
    rest = _product(code, [code.select(flag, one, s) for flag, s in zip(opened, found, strict=True)])
    divisor = code.select(rest.eq(0), one, rest)
    missing = elements / divisor
    if any(may_be_open):
        check(code, count.eq(1) & (rest.eq(0) | (missing * divisor).ne(elements)), faults.RESHAPE, elements, rest)
        check(code, count > 1, faults.NEGATIVE_SIZE, -1)
    result = [code.select(flag, missing, s) for flag, s in zip(opened, found, strict=True)]
    total = _product(code, result)
    check(code, total.ne(elements), faults.RESHAPE, elements, total)
    return result


def _bool() -> Any:
    from graphdsl.ops.types import BOOL

    return BOOL


def _broadcast_to(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    found = given_sizes(code, xs, attrs["sizes"])
    x = xs[0]
    lead = len(found) - x.rank
    for axis in range(x.rank):
        size, wanted = x.size(axis), found[lead + axis]
        if not (_same(size, wanted) or _is(size, 1)):
            check(code, size.ne(wanted) & size.ne(1), faults.CANNOT_BROADCAST, size, wanted, axis)
    return found


def _index(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    check_takes(code, xs[0], xs[1:], attrs)
    return region_sizes(code, attrs["spec"], xs[0], xs[1:])


def check_takes(code: Code, x: Reader, operands: Sequence[Reader], attrs: Attrs) -> None:
    """Int tensors in an index must broadcast together."""
    takes = [e.operands[0] for e in entries(attrs["spec"], operands, x.rank) if e.kind == "take"]
    if len(takes) > 1:
        most = max(t.rank for t in takes)
        for axis in range(most):
            size = code.const(I64, 1)
            for t in takes:
                own = axis - most + t.rank
                if own >= 0:
                    size = joined(code, size, t.size(own), axis)


def _concat(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    along = attrs["axis"]
    same_sizes(code, xs, along)
    total = xs[0].size(along)
    for x in xs[1:]:
        total = total + x.size(along)
    return [total if axis == along else xs[0].size(axis) for axis in range(xs[0].rank)]


def _stack(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    same_sizes(code, xs, None)
    found = [xs[0].size(axis) for axis in range(xs[0].rank)]
    found.insert(attrs["axis"], code.const(I64, len(xs)))
    return found


def same_sizes(code: Code, xs: Sequence[Reader], but: int | None) -> None:
    """All sizes must be those of the first operand, on every axis but one."""
    for x in xs[1:]:
        for axis in range(x.rank):
            a, b = xs[0].size(axis), x.size(axis)
            if axis != but and not _same(a, b):
                check(code, a.ne(b), faults.LENGTHS, a, b, axis)


def _part(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    return [xs[axis == attrs["axis"]].size(axis) for axis in range(xs[0].rank)]


def _range(code: Code, xs: Sequence[Reader], attrs: Attrs, out: Type) -> Sequence[S]:
    count = xs[1].at(())
    if attrs["size"] is None:
        check(code, count < 0, faults.NEGATIVE_SIZE, count)
    return [count]


RULES: dict[str, Rule] = {
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "index": _index,
    "concat": _concat,
    "stack": _stack,
    "part": _part,
    "range": _range,
    "zeros": _made,
    "ones": _made,
    "full": _made,
    "uniform": _made,
    "normal": _made,
}

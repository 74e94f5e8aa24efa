"""The sizes of results as code, with the checks that only the run can make.

Most follow from the type: a dim is an int, or a size that an operand has too. The rest, and the checks of ops that
can fail for their operands' sizes, are told by the op's entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply
from graphdsl.native.flow import int64
from graphdsl.native.program.values import ref
from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Draw, Elementwise, Pointwise, Setting
from graphdsl.ops.scalar import Code, Reader, S
from graphdsl.ops.sizes import made
from graphdsl.ops.type_rules import MOST_ELEMENTS, extent
from graphdsl.ops.types import F64, I64, Size, Type

Rule = Callable[[Code, Sequence[Reader], Attrs], Sequence[S]]


def sizes(code: Code, apply: Apply, xs: Sequence[Reader]) -> tuple[Any, ...]:
    """The sizes of the first result as LLVM values; fails where the operands do not fit."""
    out = apply.outs[0].type
    if isinstance(apply.op.compute, Elementwise):
        if not apply.fails:
            return _typed(apply, xs) or _joined(code, xs, out, False)
        return _joined(code, xs, out, True)
    rule = _rule(apply)
    typed = _typed(apply, xs)
    if typed is not None and not (rule is not None and apply.fails):
        return typed
    if rule is None:
        found = _by_dims(apply, xs, _typed_again(apply))
        assert found is not None, f"no rule for the sizes of {apply.op.name}"
        return found
    computed = rule(code, xs, apply.attrs)
    return tuple(int64(d) if isinstance(d, int) else ref(s) for d, s in zip(out.shape, computed, strict=True))


def grows(apply: Apply) -> bool:
    """Whether a result may be of more elements than can be counted: sizes of several operands meet in it."""
    dims, given = apply.outs[0].type.shape, [a.type.shape for a in apply.args if a.type.shape]
    if ("sizes" in apply.attrs and apply.fails) or (len(dims) < 2 and len(given) < 2):
        return False
    ints = [d for d in dims if isinstance(d, int)]
    if len(ints) == len(dims) and extent(ints) <= MOST_ELEMENTS:
        return False
    needed = Counter(d for d in dims if d not in (0, 1))
    return not any(needed <= Counter(shape) for shape in given)


def _typed(apply: Apply, xs: Sequence[Reader]) -> tuple[Any, ...] | None:
    """The sizes by the type alone, or None."""
    return _by_dims(apply, xs, apply.outs[0].type)


def _typed_again(apply: Apply) -> Type:
    """The type by the operands as they are now: a pass may have put others in their place, of which the same sizes have
    other names."""
    return apply.op.typing(Setting(F64), tuple(a.type for a in apply.args), apply.attrs).outs[0]


def _by_dims(apply: Apply, xs: Sequence[Reader], type: Type) -> tuple[Any, ...] | None:
    """The sizes in `type`, each read off an operand that has it; None where none has."""
    found: list[Any] = []
    for dim in type.shape:
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
                return ref(x.size(axis))
    return None


def check(code: Code, condition: S, kind: Any, *numbers: S | int) -> None:
    """Fail where `condition` holds."""
    code.fail(condition, kind, *(code.const(I64, n) if isinstance(n, int) else n for n in numbers))


# ---- elementwise --------------------------------------------------------------------------------------


def _joined(code: Code, xs: Sequence[Reader], out: Type, checked: bool) -> tuple[Any, ...]:
    shape = fit(code, xs, checked)
    return tuple(int64(d) if isinstance(d, int) else ref(s) for d, s in zip(out.shape, shape, strict=True))


def fit(code: Code, xs: Sequence[Reader], checked: bool = True) -> list[S]:
    """Sizes that broadcast together, operand by operand as the type rule does."""
    one = code.const(I64, 1)
    shape: list[S] = []
    for x in xs:
        rank = max(len(shape), x.rank)
        left = [one] * (rank - len(shape)) + shape
        right = [one] * (rank - x.rank) + [x.size(a) for a in range(x.rank)]
        shape = [joined(code, a, b, axis, checked) for axis, (a, b) in enumerate(zip(left, right, strict=True))]
    return shape


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
    x, y = ref(a), ref(b)
    return x is y or (isinstance(x, ir.Constant) and isinstance(y, ir.Constant) and x.constant == y.constant)


def _is(a: S, number: int) -> bool:
    x = ref(a)
    return isinstance(x, ir.Constant) and x.constant == number


def _rule(apply: Apply) -> Rule | None:
    """What tells the sizes where the type does not."""
    match apply.op.compute:
        case Pointwise(sizes=rule):
            return rule
        case Draw():
            return made
    return None

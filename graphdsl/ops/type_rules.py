"""Type rules that many entries share: promotion by kind of op, broadcasting, axes, sizes.

Each rule takes `(setting, types, attrs)` and gives a `Typing`, or raises a `TypeProblem` that names what disagrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

from graphdsl.ops.op import Attrs, Setting, TypeProblem, TypeRule, Typing
from graphdsl.ops.types import BOOL, F64, I64, Dim, DType, Size, Type, join_dtypes

Shape = tuple[Dim, ...]

# ---- dims ------------------------------------------------------------------------------------------


def join_dims(a: Dim, b: Dim) -> tuple[Dim, bool] | None:
    """The dim of two that broadcast together, and whether only the run can tell that they do; None: they cannot."""
    if a is b or b == 1:
        return a, False
    if a == 1:
        return b, False
    match a, b:
        case int(), int():
            return (a, False) if a == b else None
        case int(), _:
            return a, True
        case _, int():
            return b, True
    return Size(), True


def same_dims(a: Dim, b: Dim) -> tuple[Dim, bool] | None:
    """Like `join_dims`, for two that must be equal."""
    if a is b or a == b:
        return a, False
    if isinstance(a, int):
        return None if isinstance(b, int) else (a, True)
    return b, True


def broadcast(types: Sequence[Type]) -> tuple[Shape, bool]:
    """The shape of operands broadcast together, and whether only the run can tell that they fit."""
    shape: Shape = ()
    fails = False
    for i, t in enumerate(types):
        rank = max(len(shape), t.rank)
        left, right = _padded(shape, rank), _padded(t.shape, rank)
        joined = []
        for axis, (a, b) in enumerate(zip(left, right, strict=True)):
            dim = join_dims(a, b)
            if dim is None:
                raise _no_fit(types, i, a, b, axis)
            joined.append(dim[0])
            fails |= dim[1]
        shape = tuple(joined)
    return shape, fails


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dims are known to be equal."""
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(map(same_dim, a, b))


def count(shape: Shape) -> int | None:
    """The number of elements, if it is known."""
    sizes = [d for d in shape if isinstance(d, int)]
    return prod(sizes) if len(sizes) == len(shape) or 0 in sizes else None


def same_count(a: Shape, b: Shape) -> bool | None:
    """Whether two shapes have as many elements; None: only the run can tell."""
    known = count(a), count(b)
    if None not in known:
        return known[0] == known[1]
    ints = [prod(d for d in s if isinstance(d, int)) for s in (a, b)]
    sizes = [Counter(d for d in s if isinstance(d, Size)) for s in (a, b)]
    return True if ints[0] == ints[1] and sizes[0] == sizes[1] else None


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _no_fit(types: Sequence[Type], operand: int, a: Dim, b: Dim, axis: int) -> TypeProblem:
    shown = " and ".join(f"`{t}`" for t in types if t.shape)
    return TypeProblem(
        "E0302",
        f"the shapes of {shown} do not fit: {a} against {b} on axis {axis} of the result",
        "sizes that meet must be equal, or one of them 1",
        operand,
    )


# ---- elementwise ops: a dtype policy and broadcasting --------------------------------------------------

Policy = Callable[[Setting, Sequence[Type]], tuple[DType, bool]]


def arithmetic_dtype(setting: Setting, types: Sequence[Type]) -> tuple[DType, bool]:
    """The joined dtype; only bools give i64."""
    dtype, weak = join_dtypes(types, setting.default_float)
    return (I64, False) if dtype is BOOL else (dtype, weak)


def joined_dtype(setting: Setting, types: Sequence[Type]) -> tuple[DType, bool]:
    """The joined dtype; bools stay bool."""
    return join_dtypes(types, setting.default_float)


def float_dtype(setting: Setting, types: Sequence[Type]) -> tuple[DType, bool]:
    """The joined dtype made a float: weak ints become weak floats, others the default float."""
    dtype, weak = join_dtypes(types, setting.default_float)
    if dtype.is_float:
        return dtype, weak
    return (F64, True) if weak else (setting.default_float, False)


def logic_dtype(setting: Setting, types: Sequence[Type]) -> tuple[DType, bool]:
    """Bools or ints; floats have no bits to combine."""
    for i, t in enumerate(types):
        if t.dtype.is_float:
            raise TypeProblem("E0301", f"`&`, `|` and `~` take bools and ints, not {t}", "compare first: `x > 0`", i)
    return join_dtypes(types, setting.default_float)


def int_dtype(setting: Setting, types: Sequence[Type]) -> tuple[DType, bool]:
    """Ints as i64."""
    for i, t in enumerate(types):
        if not t.dtype.is_int:
            raise TypeProblem("E0301", f"an int is needed here, not {t}", "cast it: `i64(x)`", i)
    return I64, False


def elementwise(
    policy: Policy, out: DType | None = None, fails: Callable[[DType, Attrs], bool] | None = None
) -> TypeRule:
    """Operands joined by `policy` and broadcast; the result is of that dtype, or of `out`, which is never weak."""

    def rule(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
        dtype, weak = policy(setting, types)
        shape, checks = broadcast(types)
        result = Type(dtype, shape, weak) if out is None else Type(out, shape)
        return Typing((dtype,) * len(types), (result,), checks or (fails is not None and fails(dtype, attrs)))

    return rule


arithmetic = elementwise(arithmetic_dtype)
floating = elementwise(float_dtype)
selection = elementwise(joined_dtype)
comparison = elementwise(joined_dtype, BOOL)
logic = elementwise(logic_dtype)
classification = elementwise(float_dtype, BOOL)


# ---- arguments ----------------------------------------------------------------------------------------


def one_axis(axis: int, rank: int, new: bool = False) -> int:
    """An axis counted from 0; `new`: where an axis is put in."""
    size = rank + new
    if not -size <= axis < size:
        raise TypeProblem("E0304", f"axis {axis} is out of range for rank {rank}", _axes_hint(rank + new))
    return axis % size


def axes_of(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from 0, in order; none means all."""
    if axis is None:
        return tuple(range(rank))
    axes = sorted(one_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis))
    if len(set(axes)) < len(axes):
        raise TypeProblem("E0304", f"axis {next(a for a in axes if axes.count(a) > 1)} is named twice")
    return tuple(axes)


def _axes_hint(size: int) -> str:
    return f"axes are counted from 0 to {size - 1}, or from the end from -1" if size else "a scalar has no axes"


MOST_ELEMENTS = 2**60  # of f64 they take the most bytes that an i64 can count


def extent(sizes: Sequence[int]) -> float:
    """The product of the sizes that are not 0 (or -1), rounded as `sizes.few_enough` does it. Also an empty tensor has
    places that are counted in i64."""
    total = 1.0
    for size in sizes:
        total *= float(max(size, 1))
    return total


def sizes_of(sizes: Sequence[int | Size | None]) -> tuple[Shape, bool]:
    """The shape that sizes given as an attr name, and whether the run has to test them: none negative, and together not
    too many elements (of which one size that a tensor has already cannot be)."""
    for size in sizes:
        if isinstance(size, int) and size < 0:
            raise TypeProblem("E0309", f"a size of {size}: sizes must not be negative")
    shape = tuple(Size() if s is None else s for s in sizes)
    ints = [s for s in sizes if isinstance(s, int)]
    counted = extent(ints) <= MOST_ELEMENTS if len(ints) == len(sizes) else len(sizes) == 1
    return shape, None in sizes or not counted


def size_operands(sizes: Sequence[int | Size | None]) -> tuple[DType, ...]:
    """The dtypes of the operands that hold the sizes that are not ints."""
    return tuple(I64 for s in sizes if not isinstance(s, int))

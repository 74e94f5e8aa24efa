"""Reductions over axes, and `sum_to`, the sum of a gradient over a broadcast, in the order of grammars/README.md, "Numbers"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, FoldKind, Kind, Op, Param, Reduce, Setting, SumTo, TypeProblem, TypeRule, Typing
from graphdsl.ops.shape import merged
from graphdsl.ops.type_rules import Policy, arithmetic_dtype, axes_of, joined_dtype
from graphdsl.ops.types import BOOL, I32, I64, DType, Type

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

GROUP = "reductions"
PARAMS = (Param("x"), Param("axis", Kind.AXES, None), Param("keepdims", Kind.STATIC, False))


def total_dtype(setting: Setting, types: Any) -> tuple[DType, bool]:
    """Sums and products of bools and ints are i64."""
    dtype, weak = arithmetic_dtype(setting, types)
    return (I64 if dtype is I32 else dtype), weak


def _bool_dtype(setting: Setting, types: Any) -> tuple[DType, bool]:
    if types[0].dtype is not BOOL:
        raise TypeProblem("E0301", f"a bool is needed here, not {types[0]}", "compare first: `x != 0`", 0)
    return BOOL, False


def axes_in(attrs: Attrs, rank: int) -> tuple[int, ...]:
    """The axes of a call: `axes` where they are normalised, else `axis` as written (none: all)."""
    return attrs["axes"] if "axes" in attrs else axes_of(attrs.get("axis"), rank)


def reduction(policy: Policy, out: DType | None = None, nonempty: bool = False, single: bool = False) -> TypeRule:
    """`nonempty`: an empty axis is an error. `single`: one axis, or all of them."""

    def rule(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
        (x,) = types
        dtype, weak = policy(setting, types)
        axes = axes_in(attrs, x.rank)
        if single and 1 < len(axes) < x.rank:
            raise TypeProblem("E0304", "one axis is needed here, or none for all elements")
        keepdims = bool(attrs.get("keepdims", False))
        kept = tuple(1 if a in axes else d for a, d in enumerate(x.shape) if keepdims or a not in axes)
        sizes = [x.shape[a] for a in axes]
        fails = nonempty and not all(isinstance(d, int) and d > 0 for d in sizes)
        result = Type(dtype, kept, weak) if out is None else Type(out, kept)
        return Typing((dtype,), (result,), fails, {"axes": axes, "keepdims": keepdims})

    return rule


# ---- sums ----------------------------------------------------------------------------------------------


def _spread(e: Emit, g: Value, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """A reduced value, repeated along what was reduced."""
    return e.broadcast_like(g, x, axes=() if keepdims else axes)


SUM = Op(
    name="sum",
    doc="The sum; 0 of nothing; bools and ints add up in i64.",
    params=PARAMS,
    typing=reduction(total_dtype),
    compute=Reduce("sum"),
    vjp=(lambda e, g, y, x, *, axes, keepdims: _spread(e, g, x, axes, keepdims),),
    linear=(0,),
    bound=float("inf"),
    reference="numpy.sum",
    group=GROUP,
    minus_zeros=(),
)


def _sum_to_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    g, like = types
    return Typing((g.dtype, like.dtype), (Type(g.dtype, like.shape),))


def _sum_to_minus_zeros(types: Sequence[Type]) -> tuple[int, ...]:
    """Where it is known that something is summed, none."""
    g, like = types
    pairs = zip(g.shape, like.shape, strict=False)
    summed = g.rank > like.rank or any(b == 1 and isinstance(a, int) and a != 1 for a, b in pairs)
    return () if summed else (0,)


SUM_TO = Op(
    name="sum_to",
    doc="A gradient summed over the axes along which a value of the second operand's shape was repeated.",
    typing=_sum_to_types,
    compute=SumTo(),
    vjp=(lambda e, c, y, g, like: e.broadcast_like(c, g, axes=()), None),
    linear=(0,),
    shape_only=(1,),
    bound=float("inf"),
    group="derivatives",
    minus_zeros=_sum_to_minus_zeros,
)


# ---- products ------------------------------------------------------------------------------------------

_FEW = 32  # factors


def _flat_last(e: Emit, x: Value, axes: tuple[int, ...]) -> Value:
    """`x` with the reduced axes moved to the end and made one."""
    kept = [a for a in range(x.type.rank) if a not in axes]
    moved = e.transpose(x, perm=(*kept, *axes))
    return merged(e, moved, len(kept))


def _others(e: Emit, x: Value, axes: tuple[int, ...]) -> Value:
    """For each element the product of the others it is multiplied with: without division, so that zeros are right."""
    flat = _flat_last(e, x, axes)
    size = flat.type.shape[-1]
    products = _one_left_out(e, flat, size) if isinstance(size, int) and size <= _FEW else _from_both_ends(e, flat)
    kept = [a for a in range(x.type.rank) if a not in axes]
    moved = e.reshape_like(products, e.transpose(x, perm=(*kept, *axes)))
    back = sorted(range(x.type.rank), key=(*kept, *axes).__getitem__)
    return e.transpose(moved, perm=tuple(back))


def _one_left_out(e: Emit, x: Value, size: int) -> Value:
    """By a product for each: of little use for many factors, but without a step in order."""
    numbers = e.range(e.const(0, I64), e.const(size, I64), e.const(1, I64), size=size)
    itself = e.eq(expand(e, numbers, 0), expand(e, numbers, 1))
    rows = e.where(itself, e.like(1.0, x), expand(e, x, x.type.rank - 1))
    return e.prod(rows, axes=(rows.type.rank - 1,), keepdims=False)


def _from_both_ends(e: Emit, x: Value) -> Value:
    """What comes before, times what comes after."""
    axis = x.type.rank - 1
    before = e.shifted(e.cumprod(x, axis=axis), axis=axis, by=1, fill=1.0)
    after = e.flip(e.shifted(e.cumprod(e.flip(x, axis=axis), axis=axis), axis=axis, by=1, fill=1.0), axis=axis)
    return e.mul(before, after)


def expand(e: Emit, x: Value, axis: int) -> Value:
    """`x` with a new axis of size 1."""
    return e.index(x, spec=(("full",),) * axis + (("new",),))


def _prod_slope(e: Emit, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    return e.scale(_spread(e, g, x, axes, keepdims), _others(e, x, axes))


def _prod_forward(
    e: Emit, tangents: tuple[Value, ...], y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool
) -> Value:
    return e.sum(e.scale(tangents[0], _others(e, x, axes)), axes=axes, keepdims=keepdims)


PROD = Op(
    name="prod",
    doc="The product; 1 of nothing; bools and ints multiply in i64.",
    params=PARAMS,
    typing=reduction(total_dtype),
    compute=Reduce("prod"),
    vjp=(_prod_slope,),
    jvp=_prod_forward,
    bound=float("inf"),
    reference="numpy.prod",
    group=GROUP,
)

# ---- extremes ------------------------------------------------------------------------------------------


def _share(e: Emit, y: Value, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """What each element has of its maximum: an even part where it is one of the ties, else 0."""
    tie = e.cast(e.eq(x, _spread(e, y, x, axes, keepdims)), dtype=x.type.dtype)
    count = e.sum(tie, axes=axes, keepdims=keepdims)
    return e.div(tie, _spread(e, count, x, axes, keepdims))


def _extreme_slope(e: Emit, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    return e.scale(_spread(e, g, x, axes, keepdims), _share(e, y, x, axes, keepdims))


def _extreme_forward(
    e: Emit, tangents: tuple[Value, ...], y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool
) -> Value:
    return e.sum(e.scale(tangents[0], _share(e, y, x, axes, keepdims)), axes=axes, keepdims=keepdims)


def _extreme(name: FoldKind, doc: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=PARAMS,
        typing=reduction(joined_dtype, nonempty=True),
        compute=Reduce(name),
        vjp=(_extreme_slope,),
        jvp=_extreme_forward,
        faults=(faults.EMPTY,),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
    )


MAX = _extreme("max", "The largest element; nan if there is one; ties share a gradient evenly.")
MIN = _extreme("min", "The smallest element; nan if there is one; ties share a gradient evenly.")


def _place(name: str, fold: FoldKind, doc: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=PARAMS,
        typing=reduction(joined_dtype, I64, nonempty=True, single=True),
        compute=Reduce(fold, search=True),
        faults=(faults.EMPTY,),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
    )


ARGMAX = _place("argmax", "max", "Where the largest element is; the first of ties; nan counts as the largest.")
ARGMIN = _place("argmin", "min", "Where the smallest element is; the first of ties; nan counts as the smallest.")


def _truth(name: str, fold: FoldKind, doc: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=PARAMS,
        typing=reduction(_bool_dtype),
        compute=Reduce(fold),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
    )


ALL = _truth("all", "min", "Whether all are true; true of nothing.")
ANY = _truth("any", "max", "Whether one is true; false of nothing.")

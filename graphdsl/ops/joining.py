"""Repeating and joining: broadcast, concat, stack, and `part`, which takes back what was joined.

`like` in a name means that the result has the shape of the last operand, of which nothing else is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops import faults, sizes
from graphdsl.ops.op import Attrs, Into, Kind, Op, Param, Pointwise, Setting, TypeProblem, Typing
from graphdsl.ops.shape import GROUP, Sizes
from graphdsl.ops.sizes import run_sizes
from graphdsl.ops.type_rules import one_axis, same_dims, size_operands, sizes_of
from graphdsl.ops.types import I64, Dim, Size, Type, join_dtypes
from graphdsl.source.diagnostic import Fault

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

    Places = tuple[S, ...]
    Readers = tuple[Reader, ...]


# ---- broadcast -----------------------------------------------------------------------------------------


def _broadcast_to_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    x, *_ = types
    sizes: Sizes = tuple(attrs["sizes"])
    shape, unknown = sizes_of(sizes)
    fails = unknown
    if x.rank > len(shape):
        raise TypeProblem("E0302", f"cannot broadcast {x} to fewer axes: {len(shape)}", operand=0)
    lead = len(shape) - x.rank
    for axis, (a, b) in enumerate(zip(x.shape, shape[lead:], strict=True)):
        joined = same_dims(a, b) if a != 1 else (b, False)
        if joined is None:
            raise TypeProblem("E0302", f"cannot broadcast axis {axis} of {x} to {b}", "only an axis of size 1 grows", 0)
        fails |= joined[1]
    return Typing((x.dtype, *size_operands(sizes)), (x.with_shape(shape),), fails, {"sizes": sizes})


def _broadcast_to_numpy(x: Any, *operands: int, sizes: Sizes) -> Any:
    dims = run_sizes(sizes, operands)
    for axis, (a, b) in enumerate(zip(np.shape(x), dims[len(dims) - np.ndim(x) :], strict=True)):
        if a not in (b, 1):
            raise Fault(faults.CANNOT_BROADCAST, a, b, axis)
    return np.broadcast_to(x, dims)


def _broadcast_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    """The element of the first operand that is repeated here; `axes` are those that it lacks, besides leading ones."""
    x = xs[0]
    left = [p for axis, p in enumerate(place) if axis not in attrs.get("axes", ())]
    left = left[len(left) - x.rank :]
    zero = code.const(I64, 0)
    return x.at(tuple(code.select(x.size(axis).eq(1), zero, p) for axis, p in enumerate(left)))


BROADCAST_TO = Op(
    name="broadcast_to",
    doc="Repeated along axes of size 1 and along new leading axes.",
    params=(Param("x"), Param("sizes", Kind.SIZES)),
    typing=_broadcast_to_types,
    compute=Pointwise(_broadcast_at, _broadcast_to_numpy, sizes.broadcast_to),
    vjp=(lambda e, g, y, x, *rest, sizes: g,),
    linear=(0,),
    faults=(faults.CANNOT_BROADCAST, faults.NEGATIVE_SIZE, faults.TOO_MANY),
    bound=0.0,
    reference="numpy.broadcast_to",
    group=GROUP,
    minus_zeros=(0,),
)


def _broadcast_like_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    x, like = types
    return Typing((x.dtype, like.dtype), (x.with_shape(like.shape),), attrs={"axes": tuple(attrs.get("axes", ()))})


def _broadcast_like_numpy(x: Any, like: Any, *, axes: tuple[int, ...]) -> Any:
    return np.broadcast_to(np.expand_dims(x, axes) if axes else x, np.shape(like))


BROADCAST_LIKE = Op(
    name="broadcast_like",
    doc="Repeated to the shape of the second operand; `axes` of it are put in first.",
    typing=_broadcast_like_types,
    compute=Pointwise(_broadcast_at, _broadcast_like_numpy),
    vjp=(
        lambda e, c, y, x, like, *, axes: e.sum(c, axes=axes, keepdims=False) if axes else c,
        None,
    ),
    linear=(0,),
    shape_only=(1,),
    bound=0.0,
    group="derivatives",
    minus_zeros=(0,),
)

# ---- concat and stack ----------------------------------------------------------------------------------


def _rows_type(setting: Setting, types: tuple[Type, ...], what: str) -> Type:
    """The common dtype of what is put together, which has one rank."""
    if not types:
        raise TypeProblem("E0308", f"`{what}` needs at least one tensor")
    for i, t in enumerate(types):
        if t.rank != types[0].rank:
            raise TypeProblem(
                "E0308", f"items of different ranks cannot be put together: {types[0]} and {t}", operand=i
            )
    dtype, weak = join_dtypes(types, setting.default_float)
    return Type(dtype, (), weak)


def _same_axis(types: tuple[Type, ...], axis: int) -> tuple[Dim, bool]:
    """The size that all have on an axis, and whether only the run can tell that they do."""
    dim, fails = types[0].shape[axis], False
    for i, t in enumerate(types[1:], 1):
        same = same_dims(dim, t.shape[axis])
        if same is None:
            raise TypeProblem(
                "E0308",
                f"the items differ on axis {axis}: {types[0]} and {t}",
                "all axes but the one along which they are joined must be equal",
                i,
            )
        dim, fails = same[0], fails or same[1]
    return dim, fails


def _concat_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    kind = _rows_type(setting, types, "concat")
    rank = types[0].rank
    if not rank:
        raise TypeProblem("E0308", "`concat` joins tensors of rank 1 or more", "for scalars write a list: `[a, b]`")
    along = one_axis(attrs.get("axis", 0), rank)
    shape: list[Dim] = []
    fails = False
    for axis in range(rank):
        if axis == along:
            sizes = [t.shape[axis] for t in types]
            known = [d for d in sizes if isinstance(d, int)]
            left = [d for d in sizes if isinstance(d, Size)]
            shape.append(left[0] if len(left) == 1 and not sum(known) else Size() if left else sum(known))
        else:
            dim, checked = _same_axis(types, axis)
            shape.append(dim)
            fails |= checked
    out = Type(kind.dtype, tuple(shape), kind.weak)
    return Typing((kind.dtype,) * len(types), (out,), fails, {"axis": along})


def _concat_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    axis = attrs["axis"]
    start = code.const(I64, 0)
    chosen: S | None = None
    for x in xs:
        size = x.size(axis)
        inside = place[axis] - start
        # a place in another piece is held inside this one; what is read there is not used
        held = code.select((inside < 0) | (inside >= size), code.const(I64, 0), inside)
        element = x.at((*place[:axis], held, *place[axis + 1 :]))
        chosen = element if chosen is None else code.select(place[axis] >= start, element, chosen)
        start = start + size
    assert chosen is not None
    return chosen


def _concat_sizes(code: Code, xs: Sequence[Reader], attrs: Attrs) -> list[S]:
    along = attrs["axis"]
    sizes.same(code, xs, along)
    total = code.const(I64, 0)
    for x in xs:
        total = total + x.size(along)
    return [total if axis == along else xs[0].size(axis) for axis in range(xs[0].rank)]


def _check_same(xs: Sequence[Any], but: int | None) -> None:
    for x in xs[1:]:
        for axis, (a, b) in enumerate(zip(np.shape(xs[0]), np.shape(x), strict=True)):
            if axis != but and a != b:
                raise Fault(faults.LENGTHS, a, b, axis)


def _concat_numpy(*xs: Any, axis: int) -> Any:
    _check_same(xs, axis)
    return np.concatenate(xs, axis)


def _concat_slope(e: Emit, i: int, g: Value, y: Value, *xs: Value, axis: int) -> Value:
    start = e.const(0, I64)
    known = 0
    for x in xs[:i]:
        size = x.type.shape[axis]
        if isinstance(size, int):
            known += size
        else:
            start = e.add(start, e.dim(x, axis=axis))
    start = (
        e.add(start, e.const(known, I64))
        if any(isinstance(x.type.shape[axis], Size) for x in xs[:i])
        else e.const(known, I64)
    )
    return e.part(g, xs[i], start, axis=axis)


CONCAT = Op(
    name="concat",
    doc="Tensors one behind the other along an axis.",
    params=(Param("xs", Kind.TENSORS), Param("axis", Kind.STATIC, 0)),
    typing=_concat_types,
    compute=Pointwise(_concat_at, _concat_numpy, _concat_sizes),
    vjp=_concat_slope,
    linear=(-1,),
    faults=(faults.LENGTHS,),
    bound=0.0,
    reference="numpy.concatenate",
    group=GROUP,
    minus_zeros=(-1,),
)


def _part_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    g, like, _ = types
    axis = attrs["axis"]
    shape = (*g.shape[:axis], like.shape[axis], *g.shape[axis + 1 :])
    return Typing((g.dtype, like.dtype, I64), (g.with_shape(shape),))


def _part_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    axis = attrs["axis"]
    return xs[0].at((*place[:axis], place[axis] + xs[2].at(()), *place[axis + 1 :]))


def _part_sizes(code: Code, xs: Sequence[Reader], attrs: Attrs) -> list[S]:
    return [xs[axis == attrs["axis"]].size(axis) for axis in range(xs[0].rank)]


def _part_numpy(g: Any, like: Any, start: int, *, axis: int) -> Any:
    return g[(slice(None),) * axis + (slice(start, start + np.shape(like)[axis]),)]


def _part_slope(e: Emit, c: Value, y: Value, g: Value, like: Value, start: Value, *, axis: int) -> Into:
    stop = e.add(start, e.dim(like, axis=axis))
    spec = (("full",),) * axis + (("slice", "v", "v", None),)
    return Into("index_add", (c, start, stop), {"spec": spec})


PART = Op(
    name="part",
    doc="As many elements along an axis as the second operand has, beginning at the third.",
    typing=_part_types,
    compute=Pointwise(_part_at, _part_numpy, _part_sizes),
    vjp=(_part_slope, None, None),
    linear=(0,),
    shape_only=(1,),
    bound=0.0,
    group="derivatives",
    minus_zeros=(0,),
)


def _stack_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    kind = _rows_type(setting, types, "stack")
    rank = types[0].rank
    axis = one_axis(attrs.get("axis", 0), rank, new=True)
    dims = [_same_axis(types, a) for a in range(rank)]
    shape: list[Dim] = [d for d, _ in dims]
    shape.insert(axis, len(types))
    out = Type(kind.dtype, tuple(shape), kind.weak)
    return Typing((kind.dtype,) * len(types), (out,), any(f for _, f in dims), {"axis": axis})


def _stack_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    axis = attrs["axis"]
    rest = (*place[:axis], *place[axis + 1 :])
    chosen = xs[0].at(rest)
    for i, x in enumerate(xs[1:], 1):
        chosen = code.select(place[axis].eq(i), x.at(rest), chosen)
    return chosen


def _stack_sizes(code: Code, xs: Sequence[Reader], attrs: Attrs) -> list[S]:
    sizes.same(code, xs)
    found = sizes.all_sizes(xs[0])
    found.insert(attrs["axis"], code.const(I64, len(xs)))
    return found


def _stack_numpy(*xs: Any, axis: int) -> Any:
    _check_same(xs, None)
    return np.stack(xs, axis)


STACK = Op(
    name="stack",
    doc="Tensors of one shape side by side along a new axis; `[a, b]`.",
    params=(Param("xs", Kind.TENSORS), Param("axis", Kind.STATIC, 0)),
    typing=_stack_types,
    compute=Pointwise(_stack_at, _stack_numpy, _stack_sizes),
    vjp=lambda e, i, g, y, *xs, axis: e.index(g, spec=(("full",),) * axis + (("at", i),)),
    linear=(-1,),
    faults=(faults.LENGTHS,),
    bound=0.0,
    reference="numpy.stack",
    group=GROUP,
    minus_zeros=(-1,),
)

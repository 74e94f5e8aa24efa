"""What moves elements without computing: reshape, transpose, broadcast, concat, stack; and what asks for sizes.

`like` in a name means that the result has the shape of the last operand, of which nothing else is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops import faults, sizes
from graphdsl.ops.op import Attrs, Composite, Kind, Op, Param, Pointwise, Setting, TypeProblem, Typing
from graphdsl.ops.places import flat_place, from_flat
from graphdsl.ops.sizes import run_sizes
from graphdsl.ops.type_rules import (
    axes_of,
    count,
    one_axis,
    same_count,
    selection,
    size_operands,
    sizes_of,
)
from graphdsl.ops.types import I64, Dim, Size, Type
from graphdsl.source.diagnostic import Fault
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

    Places = tuple[S, ...]
    Readers = tuple[Reader, ...]

GROUP = "shape"
Sizes = tuple[int | Size | None, ...]

# ---- sizes as values -----------------------------------------------------------------------------------


def dims_of(e: Emit, x: Value, axes: Sequence[int]) -> tuple[list[int | Size], list[Value]]:
    """The sizes of some axes as a SIZES attr, and the operands that go with it."""
    entries = [x.type.shape[a] for a in axes]
    return entries, [e.dim(x, axis=a) for a, d in zip(axes, entries, strict=True) if not isinstance(d, int)]


def dim_value(e: Emit, x: Value, axis: int) -> Value:
    """The size of an axis as an i64."""
    size = x.type.shape[axis]
    return e.const(size, I64) if isinstance(size, int) else e.dim(x, axis=axis)


def count_along(e: Emit, x: Value, axes: Sequence[int]) -> Value:
    """The number of elements along these axes, an i64."""
    known = 1
    total = None
    for axis in axes:
        size = x.type.shape[axis]
        if isinstance(size, int):
            known *= size
        else:
            dim = e.dim(x, axis=axis)
            total = dim if total is None else e.mul(total, dim)
    if total is None:
        return e.const(known, I64)
    return total if known == 1 else e.mul(total, e.const(known, I64))


DIM = Op(
    name="dim",
    doc="The size of one axis.",
    typing=lambda setting, types, attrs: Typing((types[0].dtype,), (Type(I64),)),
    compute=Pointwise(
        lambda code, place, xs, sizes, attrs: xs[0].size(attrs["axis"]), lambda x, *, axis: int(np.shape(x)[axis])
    ),
    shape_only=(0,),
    group=GROUP,
)


def _shape(e: Emit, x: Value) -> Value:
    if not x.type.rank:
        return e.zeros(sizes=(0,), dtype=I64)
    return e.stack(*(dim_value(e, x, a) for a in range(x.type.rank)), axis=0)


SHAPE = Op(
    name="shape",
    doc="The sizes of all axes, an i64 tensor.",
    params=(Param("x"),),
    typing=lambda setting, types, attrs: Typing((types[0].dtype,), (Type(I64, (types[0].rank,)),)),
    compute=Composite(_shape),
    reference="numpy.shape",
    group=GROUP,
)


def _size(e: Emit, x: Value, *, axis: int | None = None) -> Value:
    if axis is not None:
        return dim_value(e, x, one_axis(axis, x.type.rank))
    return count_along(e, x, range(x.type.rank))


SIZE = Op(
    name="size",
    doc="The number of elements, or the size of one axis.",
    params=(Param("x"), Param("axis", Kind.STATIC, None)),
    typing=lambda setting, types, attrs: Typing((types[0].dtype,), (Type(I64),)),
    compute=Composite(_size),
    reference="numpy.size",
    group=GROUP,
)

# ---- reshape -------------------------------------------------------------------------------------------


def _reshape_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    x, *_ = types
    sizes: Sizes = tuple(attrs["sizes"])
    operands = (x.dtype, *size_operands(sizes))
    open_axes = [i for i, s in enumerate(sizes) if s == -1]
    if len(open_axes) > 1:
        raise TypeProblem("E0306", "only one size of a shape may be -1")
    shape, unknown = sizes_of([0 if s == -1 else s for s in sizes])
    if open_axes:
        at = open_axes[0]
        shape = (*shape[:at], _missing(x, (*shape[:at], *shape[at + 1 :])), *shape[at + 1 :])
    same = same_count(x.shape, shape)
    if same is False:
        shown = ", ".join(str(s) for s in sizes)
        raise TypeProblem(
            "E0306",
            f"cannot reshape {counted(count(x.shape), 'element')} ({x}) into [{shown}], which has {count(shape)}",
        )
    settled = same is True and not (unknown and (None in sizes or 0 in shape))
    return Typing(operands, (x.with_shape(shape),), not settled, {"sizes": sizes})


def _missing(x: Type, others: tuple[Dim, ...]) -> Dim:
    """The size that -1 stands for."""
    have, rest = count(x.shape), count(others)
    if have is not None and rest is not None:
        if rest == 0 or have % rest:
            raise TypeProblem(
                "E0306", f"cannot reshape {counted(have, 'element')} ({x}): {rest} of the sizes given do not divide it"
            )
        return have // rest
    left = list(x.shape)
    if all(d in left and (left.remove(d) or True) for d in others if isinstance(d, Size)):  # type: ignore[func-returns-value]
        sizes = [d for d in left if isinstance(d, Size)]
        ints = [prod(d for d in s if isinstance(d, int)) for s in (left, others)]
        if len(sizes) == 1 and ints[0] == ints[1]:
            return sizes[0]
        if not sizes and ints[1] and ints[0] % ints[1] == 0:
            return ints[0] // ints[1]
    return Size()


def _reshape_numpy(x: Any, *operands: int, sizes: Sizes) -> Any:
    dims = list(run_sizes(sizes, operands, least=-1))
    elements = int(np.size(x))
    if dims.count(-1) == 1:
        rest = prod(d for d in dims if d != -1)
        if rest == 0 or elements % rest:
            raise Fault(faults.RESHAPE, elements, rest)
        dims[dims.index(-1)] = elements // rest
    if -1 in dims:
        raise Fault(faults.NEGATIVE_SIZE, -1)
    if prod(dims) != elements:
        raise Fault(faults.RESHAPE, elements, prod(dims))
    return np.reshape(x, dims)


def _same_order(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    """The element with the same number in row-major order."""
    return xs[0].at(from_flat(code, flat_place(code, place, sizes), [xs[0].size(a) for a in range(xs[0].rank)]))


RESHAPE = Op(
    name="reshape",
    doc="The same elements in another shape; one size may be -1.",
    params=(Param("x"), Param("sizes", Kind.SIZES)),
    typing=_reshape_types,
    compute=Pointwise(_same_order, _reshape_numpy, sizes.reshaped),
    vjp=(lambda e, g, y, x, *rest, sizes: e.reshape_like(g, x),),
    linear=(0,),
    faults=(faults.RESHAPE, faults.NEGATIVE_SIZE, faults.TOO_MANY),
    bound=0.0,
    reference="numpy.reshape",
    group=GROUP,
    minus_zeros=(0,),
)

RESHAPE_LIKE = Op(
    name="reshape_like",
    doc="The same elements in the shape of the second operand, which has as many.",
    typing=lambda setting, types, attrs: Typing(
        (types[0].dtype, types[1].dtype), (types[0].with_shape(types[1].shape),)
    ),
    compute=Pointwise(_same_order, lambda x, like: np.reshape(x, np.shape(like))),
    vjp=(lambda e, c, y, g, like: e.reshape_like(c, g), None),
    linear=(0,),
    shape_only=(1,),
    bound=0.0,
    group="derivatives",
    minus_zeros=(0,),
)


def merged(e: Emit, x: Value, first: int, stop: int | None = None) -> Value:
    """`x` with the axes from `first` up to `stop` as one, of size 1 if there are none."""
    end = x.type.rank if stop is None else stop
    before, operands = dims_of(e, x, range(first))
    after, more = dims_of(e, x, range(end, x.type.rank))
    known = count(x.type.shape[first:end])
    total = [] if known is not None else [count_along(e, x, range(first, end))]
    made: Value = e.reshape(x, *operands, *total, *more, sizes=(*before, known, *after))
    return made


def _flatten(e: Emit, x: Value) -> Value:
    if x.type.rank == 1:
        return e.reshape(x, *dims_of(e, x, (0,))[1], sizes=tuple(x.type.shape))
    return e.reshape(x, sizes=(-1,)) if 0 not in x.type.shape else e.reshape(x, sizes=(0,))


FLATTEN = Op(
    name="flatten",
    doc="All elements in one axis.",
    params=(Param("x"),),
    typing=selection,
    compute=Composite(_flatten),
    reference="numpy.ndarray.flatten",
    group=GROUP,
)


def _squeeze(e: Emit, x: Value, *, axis: Any = None) -> Value:
    ones = tuple(a for a, d in enumerate(x.type.shape) if d == 1)
    axes = ones if axis is None else axes_of(axis, x.type.rank)
    for a in axes:
        size = x.type.shape[a]
        if isinstance(size, int) and size != 1:
            raise TypeProblem("E0306", f"cannot squeeze axis {a}: its size is {size}, not 1")
    entries, operands = dims_of(e, x, [a for a in range(x.type.rank) if a not in axes])
    return e.reshape(x, *operands, sizes=tuple(entries))


SQUEEZE = Op(
    name="squeeze",
    doc="Without the axes of size 1, or without the ones named, which must have it.",
    params=(Param("x"), Param("axis", Kind.AXES, None)),
    typing=selection,
    compute=Composite(_squeeze),
    reference="numpy.squeeze",
    group=GROUP,
)


def _expand_dims(e: Emit, x: Value, *, axis: int) -> Value:
    at = one_axis(axis, x.type.rank, new=True)
    if not x.type.rank:
        return e.reshape(x, sizes=(1,))
    return e.index(x, spec=(("full",),) * at + (("new",),))


EXPAND_DIMS = Op(
    name="expand_dims",
    doc="With a new axis of size 1.",
    params=(Param("x"), Param("axis", Kind.STATIC)),
    typing=selection,
    compute=Composite(_expand_dims),
    reference="numpy.expand_dims",
    group=GROUP,
)

# ---- transpose -----------------------------------------------------------------------------------------


def _transpose_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    (x,) = types
    if "perm" in attrs:
        perm = tuple(attrs["perm"])
    elif attrs.get("axes") is None:
        perm = tuple(reversed(range(x.rank)))
    else:
        axes = attrs["axes"] if isinstance(attrs["axes"], tuple) else (attrs["axes"],)
        perm = tuple(one_axis(a, x.rank) for a in axes)
        if sorted(perm) != list(range(x.rank)):
            raise TypeProblem("E0304", f"`axes` must name each axis of {x} once, not {attrs['axes']}")
    return Typing((x.dtype,), (x.with_shape(tuple(x.shape[a] for a in perm)),), attrs={"perm": perm})


def _transpose_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    perm = attrs["perm"]
    return xs[0].at(tuple(place[perm.index(a)] for a in range(len(perm))))


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


TRANSPOSE = Op(
    name="transpose",
    doc="The axes in another order, reversed unless said otherwise; `x.T`.",
    params=(Param("x"), Param("axes", Kind.AXES, None)),
    typing=_transpose_types,
    compute=Pointwise(_transpose_at, lambda x, *, perm: np.transpose(x, perm)),
    vjp=(lambda e, g, y, x, *, perm: e.transpose(g, perm=inverse(perm)),),
    linear=(0,),
    bound=0.0,
    reference="numpy.transpose",
    group=GROUP,
    minus_zeros=(0,),
)


def _swapaxes(e: Emit, x: Value, *, axis1: int, axis2: int) -> Value:
    perm = list(range(x.type.rank))
    a, b = one_axis(axis1, x.type.rank), one_axis(axis2, x.type.rank)
    perm[a], perm[b] = perm[b], perm[a]
    return e.transpose(x, perm=tuple(perm))


SWAPAXES = Op(
    name="swapaxes",
    doc="With two axes swapped.",
    params=(Param("x"), Param("axis1", Kind.STATIC), Param("axis2", Kind.STATIC)),
    typing=selection,
    compute=Composite(_swapaxes),
    reference="numpy.swapaxes",
    group=GROUP,
)


def _flip(e: Emit, x: Value, *, axis: Any = None) -> Value:
    axes = axes_of(axis, x.type.rank)
    if not axes:
        return e.reshape(x, sizes=x.type.shape)
    spec = tuple(("slice", None, None, -1) if a in axes else ("full",) for a in range(x.type.rank))
    return e.index(x, spec=spec)


FLIP = Op(
    name="flip",
    doc="Elements in reverse order along axes.",
    params=(Param("x"), Param("axis", Kind.AXES, None)),
    typing=selection,
    compute=Composite(_flip),
    reference="numpy.flip",
    group=GROUP,
)

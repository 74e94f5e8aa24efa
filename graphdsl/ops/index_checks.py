"""What is done to an index before anything is read with it: ints are checked and counted from 0, masks become ints.

Each check is an op of its own. So what remains, reading and writing, cannot fail for its index, and may be fused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Elementwise, Host, Op, Setting, TypeProblem, Typing
from graphdsl.ops.places import Spec
from graphdsl.ops.shape import dim_value
from graphdsl.ops.type_rules import arithmetic_dtype, elementwise, int_dtype, same_dims
from graphdsl.ops.types import BOOL, I64, Size, Type
from graphdsl.source.diagnostic import Fault
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

GROUP = "indexing"


def _in_range(code: Code, i: S, size: S, *, axis: int) -> S:
    code.fail((i < -size) | (i >= size), faults.INDEX, i, size, code.const(I64, axis))
    return code.select(i < 0, i + size, i)


IN_RANGE = Op(
    name="in_range",
    doc="An index counted from 0; it is an error if the axis, whose size is the second operand, has no such place.",
    typing=elementwise(int_dtype, fails=lambda dtype, attrs: True),
    compute=Elementwise(_in_range, python_ints="x if 0 <= x < y else kernel(x, y)"),
    faults=(faults.INDEX,),
    bound=0.0,
    group=GROUP,
)


def _not_zero(code: Code, step: S) -> S:
    code.fail(step.eq(0), faults.STEP)
    return step


NONZERO_STEP = Op(
    name="nonzero_step",
    doc="A step, which must not be 0.",
    typing=elementwise(arithmetic_dtype, fails=lambda dtype, attrs: True),
    compute=Elementwise(_not_zero, python_ints="x or kernel(x)"),
    vjp=(lambda e, g, y, step: g,),
    faults=(faults.STEP,),
    bound=0.0,
    group=GROUP,
)


def _equal(code: Code, a: S, b: S, *, axes: tuple[int, int]) -> S:
    code.fail(a.ne(b), faults.AXES, a, b, *(code.const(I64, axis) for axis in axes))
    return code.select(a.eq(b), a, b)  # of the shape of both


SAME_SIZE = Op(
    name="same_size",
    doc="The size of one axis; it is an error if another, whose size is the second operand, differs from it.",
    typing=elementwise(int_dtype, fails=lambda dtype, attrs: True),
    compute=Elementwise(_equal, python_ints="x if x == y else kernel(x, y)"),
    faults=(faults.AXES,),
    bound=0.0,
    group=GROUP,
)


def same_size(e: Emit, a: Value, i: int, b: Value, j: int, axes: tuple[int, int] | None = None) -> Value:
    """The size of axis `i` of `a`, which must be that of axis `j` of `b`; `axes`: what to call the two."""
    shown = axes or (i, j)
    same = same_dims(a.type.shape[i], b.type.shape[j])
    if same is None:
        sizes = a.type.shape[i], b.type.shape[j]
        raise TypeProblem("E0303", faults.AXES.text(*sizes, *shown))
    size = dim_value(e, a, i)
    return e.same_size(size, dim_value(e, b, j), axes=shown) if same[1] else size


def _mask_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    mask, x = types
    axis = attrs["axis"]
    fails = False
    for a, d in enumerate(mask.shape):
        same = same_dims(d, x.shape[axis + a])
        if same is None:
            raise TypeProblem(
                "E0307", f"a mask of shape {mask} on axis {axis + a} of {x}: {d} against {x.shape[axis + a]}", operand=0
            )
        fails |= same[1]
    count = Size(why="the count of true elements")
    return Typing((BOOL, x.dtype), (Type(I64, (count,)),) * mask.rank, fails, {"axis": axis})


def _mask_places(runtime: Any, mask: Any, x: Any, *, axis: int) -> Any:
    for a, (d, size) in enumerate(zip(np.shape(mask), np.shape(x)[axis:], strict=False)):
        if d != size:
            raise Fault(faults.MASK, d, size, axis + a)
    places = tuple(p.astype(np.int64) for p in np.nonzero(mask))
    return places[0] if len(places) == 1 else places


MASK_PLACES = Op(
    name="mask_places",
    doc="The places where a mask is true, one index tensor an axis; it must fit the axes of `x` from `axis` on.",
    typing=_mask_types,
    compute=Host(_mask_places),
    shape_only=(1,),
    faults=(faults.MASK,),
    bound=0.0,
    group=GROUP,
)


def prepared(e: Emit, x: Value, spec: Spec, operands: tuple[Value, ...]) -> tuple[Spec, tuple[Value, ...]]:
    """The index with ints and tensors checked and counted from 0, and masks turned into tensors."""
    _check_spec(x.type, spec, operands)
    ready: list[tuple[Any, ...]] = []
    given: list[Value] = []
    axis = 0
    left = iter(operands)
    for entry in spec:
        match entry:
            case ("int", int(k)):
                size = x.type.shape[axis]
                if isinstance(size, int) and -size <= k < size:
                    ready.append(("at", k % size))
                else:
                    ready.append(("at",))
                    given.append(e.in_range(e.const(k, I64), dim_value(e, x, axis), axis=axis))
            case ("int",) | ("tensor",):
                ready.append(("at",) if entry[0] == "int" else ("take",))
                given.append(e.in_range(next(left), dim_value(e, x, axis), axis=axis))
            case ("mask",):
                mask = next(left)
                made = e.mask_places(mask, x, axis=axis)
                places = (made,) if mask.type.rank == 1 else made
                ready.extend((("take",),) * len(places))
                given.extend(places)
                axis += len(places) - 1
            case ("slice", a, b, c):
                bounds = [_bound(next(left)) if w == "v" else None for w in (a, b, c)]
                if c in ("v", 0):
                    bounds[2] = e.nonzero_step(bounds[2] or e.const(0, I64))
                    c = "v"
                ready.append(("slice", a, b, c))
                given.extend(e.convert(v, I64) for v in bounds if v is not None)
            case ("at",) | ("take",):
                ready.append(entry)
                given.append(next(left))
            case _:
                ready.append(entry)
        axis += entry[0] != "new"
    return tuple(ready), tuple(given)


def _bound(v: Value) -> Value:
    if v.type.rank or not v.type.dtype.is_int:
        raise TypeProblem("E0307", f"a bound of a slice is an int, not {v.type}")
    return v


def _check_spec(x: Type, spec: Spec, operands: tuple[Value, ...]) -> None:
    used = sum(entry[0] != "new" for entry in spec)
    masks = [o.type.rank for o in operands if o.type.dtype is BOOL]
    if masks:
        used += masks[0] - 1
    if used > x.rank:
        what = f"{counted(used, 'index')} on {x}, which has {counted(x.rank, 'axis')}"
        raise TypeProblem("E0307", what if x.rank else "a scalar cannot be indexed")
    if len(masks) > 1 or (masks and any(entry[0] in ("tensor", "take") for entry in spec)):
        raise TypeProblem("E0307", "an index takes one mask, and no int tensor beside it")
    if masks == [0]:
        raise TypeProblem("E0307", "a mask needs at least one axis; this is a scalar bool", "use `if` or `where`")
    tensors = [i for i, entry in enumerate(spec) if entry[0] in ("tensor", "take")]
    if tensors and tensors[-1] - tensors[0] >= len(tensors):
        raise TypeProblem(
            "E0307", "int tensors in one index must stand side by side", "index in two steps: `x[i][:, j]`"
        )

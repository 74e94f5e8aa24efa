"""Indexing: `x[…]`, assignment into a copy, adding into one. `graphdsl.ops.places` tells how an index is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops import faults, sizes
from graphdsl.ops.index_checks import prepared
from graphdsl.ops.op import (
    Attrs,
    Composite,
    Into,
    Op,
    Param,
    Pointwise,
    Scatter,
    Setting,
    TypeProblem,
    Typing,
)
from graphdsl.ops.places import Entry, Spec, entries, flat_place, source_place
from graphdsl.ops.type_rules import arithmetic_dtype, broadcast, joined_dtype, same_dims
from graphdsl.ops.types import I64, Dim, DType, Size, Type
from graphdsl.source.diagnostic import Fault
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

GROUP = "indexing"

# ---- types ---------------------------------------------------------------------------------------------


def _slice_size(words: tuple[Any, ...], size: Dim) -> Dim:
    if isinstance(size, int) and "v" not in words:
        return len(range(*slice(*words).indices(size)))
    start, stop, step = words
    if start is None and stop is None and step in (None, 1, -1):
        return size
    return Size()


def _picked(x: Type, found: list[Entry], types: dict[int, Type]) -> tuple[tuple[Dim, ...], bool]:
    """The shape of what an index picks, and whether only the run can tell that its tensors fit each other."""
    takes = [types[id(entry)] for entry in found if entry.kind == "take"]
    joined, fails = broadcast(takes)
    shape: list[Dim] = []
    seen = False
    for entry in found:
        size = x.shape[entry.axis] if entry.axis is not None else 1
        match entry.kind:
            case "take" if not seen:
                shape.extend(joined)
                seen = True
            case "slice":
                shape.append(_slice_size(entry.words, size))
            case "full" | "new":
                shape.append(size)
            case _:
                pass
    return tuple(shape), fails


def _index_shape(x: Type, spec: Spec, operands: tuple[Type, ...]) -> tuple[tuple[Dim, ...], bool]:
    for i, t in enumerate(operands):
        if not t.dtype.is_int:
            raise TypeProblem("E0307", f"an index is an int, not {t}", "cast it: `i64(i)`", i)
    found = entries(spec, operands, x.rank)
    return _picked(x, found, {id(f): f.operands[0] for f in found if f.operands})


def _index_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    x, *rest = types
    shape, fails = _index_shape(x, attrs["spec"], tuple(rest))
    return Typing((x.dtype, *(I64 for _ in rest)), (x.with_shape(shape),), fails, {"spec": attrs["spec"]})


def _scatter_dtype(setting: Setting, x: Type, v: Type) -> tuple[DType, bool]:
    if x.weak:
        return joined_dtype(setting, (x, v))
    return x.dtype, False


def _scatter_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    """`v` broadcasts to what the index picks. That it converts without loss is for the caller to see to."""
    x, v, *rest = types
    shape, fails = _index_shape(x, attrs["spec"], tuple(rest))
    lead = v.rank - len(shape)
    if lead > 0 and any(d != 1 for d in v.shape[:lead]):
        raise TypeProblem(
            "E0302",
            f"a value of rank {v.rank} does not fit the {counted(len(shape), 'axis')} it is assigned to",
            operand=1,
        )
    for axis, (d, size) in enumerate(zip(reversed(v.shape), reversed(shape), strict=False)):
        same = (size, False) if d == 1 else same_dims(d, size)
        if same is None:
            raise TypeProblem(
                "E0302",
                f"{d} values do not fit the {counted(size, 'element')} they are assigned to "
                f"(axis {len(shape) - 1 - axis})",
                "sizes must be equal, or the value's 1",
                1,
            )
        fails |= same[1]
    dtype, weak = _scatter_dtype(setting, x, v)
    out = Type(dtype, x.shape, weak)
    return Typing((dtype, dtype, *(I64 for _ in rest)), (out,), fails, {"spec": attrs["spec"]})


def _prepare_index(e: Emit, args: tuple[Value, ...], attrs: Attrs) -> tuple[tuple[Value, ...], Attrs]:
    spec, operands = prepared(e, args[0], attrs["spec"], args[1:])
    return (args[0], *operands), {"spec": spec}


def _prepare_scatter(e: Emit, args: tuple[Value, ...], attrs: Attrs) -> tuple[tuple[Value, ...], Attrs]:
    spec, operands = prepared(e, args[0], attrs["spec"], args[2:])
    return (args[0], args[1], *operands), {"spec": spec}


# ---- reading -------------------------------------------------------------------------------------------


def _index_at(code: Code, place: tuple[S, ...], xs: tuple[Reader, ...], sizes: tuple[S, ...], attrs: Attrs) -> S:
    return xs[0].at(source_place(code, place, attrs["spec"], xs[0], xs[1:]))


def _numpy_key(found: list[Entry]) -> tuple[Any, ...]:
    """The index as NumPy takes it, with `:` for the tensors."""
    key: list[Any] = []
    for entry in found:
        match entry.kind:
            case "at":
                key.append(int(entry.operands[0]) if entry.operands else entry.words[0])
            case "slice":
                left = iter(entry.operands)
                key.append(slice(*(int(next(left)) if w == "v" else w for w in entry.words)))
            case "new":
                key.append(None)
            case _:
                key.append(slice(None))
    return tuple(key)


def split_key(spec: Spec, operands: tuple[Any, ...], rank: int) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """The index in two steps: what makes a view, and then (or None) the tensors, with `:` for every other axis.

    NumPy would move the axes of tensors to the front where an int stands apart from them.
    """
    found = entries(spec, operands, rank)
    key = _numpy_key(found)
    if not any(f.kind == "take" for f in found):
        return key, None
    return key, tuple(f.operands[0] if f.kind == "take" else slice(None) for f in found if f.kind != "at")


def _check_tensors(spec: Spec, operands: tuple[Any, ...], rank: int) -> None:
    shapes = [np.shape(f.operands[0]) for f in entries(spec, operands, rank) if f.kind == "take"]
    if len(shapes) < 2:
        return
    joined: list[int] = []
    most = max(len(s) for s in shapes)
    for axis in range(most):
        sizes = [s[axis - most + len(s)] for s in shapes if axis - most + len(s) >= 0]
        size = 1
        for other in sizes:
            if other not in (1, size) and size != 1:
                raise Fault(faults.BROADCAST, size, other, axis)
            size = other if size == 1 else size
        joined.append(size)


def _numpy_index(x: Any, *operands: Any, spec: Spec) -> Any:
    rank = np.ndim(x)
    _check_tensors(spec, operands, rank)
    view, tensors = split_key(spec, operands, rank)
    x = x if rank else np.asarray(x)
    return x[view] if tensors is None else x[view][tensors]


def _to_index(e: Emit, g: Value, y: Value, x: Value, *operands: Value, spec: Spec) -> Into:
    return Into("index_add", (g, *operands), {"spec": spec})


INDEX = Op(
    name="index",
    doc="`x[…]`: elements, rows, slices, gathers.",
    typing=_index_types,
    compute=Pointwise(_index_at, _numpy_index, sizes.indexed),
    vjp=(_to_index,),
    linear=(0,),
    prepare=_prepare_index,
    faults=(faults.BROADCAST,),
    bound=0.0,
    reference="numpy.ndarray.__getitem__",
    group=GROUP,
    minus_zeros=(0,),
)

# ---- writing -------------------------------------------------------------------------------------------


def write(x: Any, v: Any, operands: tuple[Any, ...], spec: Spec, add: bool) -> None:
    """What `update` and `index_add` do, to an array that nobody else holds."""
    rank = np.ndim(x)
    _check_tensors(spec, operands, rank)
    key, tensors = split_key(spec, operands, rank)
    target = x[key]
    shape = np.shape(target if tensors is None else target[tensors])
    if np.ndim(v):
        v = _fitted(v, shape)
    if tensors is None:
        x[key] = target + v if add else v
    elif add:
        np.add.at(target, tensors, v)
    else:
        target[tensors] = v


def _fitted(v: Any, shape: tuple[int, ...]) -> Any:
    """`v` without leading axes of size 1 that its place lacks; a fault if it does not fit there."""
    rank = min(np.ndim(v), len(shape))
    sizes = np.shape(v)[np.ndim(v) - rank :]
    for axis, (a, b) in enumerate(zip(sizes, shape[len(shape) - rank :], strict=True)):
        if a not in (1, b):
            raise Fault(faults.BROADCAST, a, b, len(shape) - rank + axis)
    return np.reshape(v, sizes)


def _number_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    return Typing((types[0].dtype,), (Type(I64, types[0].shape),))


NUMBERS_LIKE = Op(
    name="numbers_like",
    doc="The number of each element in row-major order.",
    typing=_number_types,
    compute=Pointwise(
        lambda code, place, xs, sizes, attrs: flat_place(code, place, sizes),
        lambda x: np.arange(np.size(x), dtype=np.int64).reshape(np.shape(x)) if np.ndim(x) else 0,
    ),
    shape_only=(0,),
    bound=0.0,
    group="derivatives",
)


def _repeats(spec: Spec) -> bool:
    return any(entry[0] == "take" for entry in spec)


def _to_kept(e: Emit, g: Value, y: Value, x: Value, v: Value, *operands: Value, spec: Spec) -> Value:
    return e.update(g, e.like(0.0, g), *operands, spec=spec)


def _to_written(e: Emit, g: Value, y: Value, x: Value, v: Value, *operands: Value, spec: Spec) -> Value:
    """What stands at the places written to; of several values for one place only the last one counts."""
    picked = e.index(g, *operands, spec=spec)
    if _repeats(spec):
        numbers = e.numbers_like(picked)
        written = e.update(e.zeros_like(g, dtype=I64), numbers, *operands, spec=spec)
        last = e.eq(e.index(written, *operands, spec=spec), numbers)
        picked = e.where(last, picked, e.like(0.0, picked))
    return _without_lead(e, picked, v)


def _without_lead(e: Emit, picked: Value, v: Value) -> Value:
    """Where the value had more axes than its place (all of size 1): these again."""
    lead = v.type.rank - picked.type.rank
    return e.index(picked, spec=(("new",),) * lead) if lead > 0 else picked


UPDATE = Op(
    name="update",
    doc="`x[…] = v` as a value: a copy of `x` with elements replaced; of several for one place the last one.",
    typing=_scatter_types,
    compute=Scatter(add=False),
    vjp=(_to_kept, _to_written),
    linear=(0, 1),
    prepare=_prepare_scatter,
    faults=(faults.BROADCAST,),
    bound=0.0,
    reference="numpy.ndarray.__setitem__",
    group=GROUP,
    minus_zeros=(0, 1),
)

INDEX_ADD = Op(
    name="index_add",
    doc="A copy of `x` with values added to elements, in order, as often as a place is named.",
    typing=_scatter_types,
    compute=Scatter(add=True),
    vjp=(
        lambda e, g, y, x, v, *operands, spec: g,
        lambda e, g, y, x, v, *operands, spec: _without_lead(e, e.index(g, *operands, spec=spec), v),
    ),
    linear=(0, 1),
    prepare=_prepare_scatter,
    faults=(faults.BROADCAST,),
    reference="numpy.add.at",
    group=GROUP,
    minus_zeros=(0,),
)


def _scatter_add(e: Emit, x: Value, i: Value, v: Value) -> Value:
    kind = "tensor" if i.type.rank else "int"
    dtype, _ = arithmetic_dtype(e.setting, (x.type, v.type))  # of a sum: nothing is lost
    if dtype is not x.type.dtype and not (x.type.weak and v.type.weak):
        x = e.convert(x, dtype)
    return e.index_add(x, v, i, spec=((kind,),))


SCATTER_ADD = Op(
    name="scatter_add",
    doc="A copy of `x` with `v` added at the rows `i`, in order, as often as one is named.",
    params=(Param("x"), Param("i"), Param("v")),
    typing=_scatter_types,
    compute=Composite(_scatter_add),
    reference="numpy.add.at",
    group=GROUP,
)

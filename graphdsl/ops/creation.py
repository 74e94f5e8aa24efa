"""What makes tensors: constants, ranges, and zeros in the shape of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Composite, Elementwise, Kind, Op, Param, Pointwise, Setting, TypeProblem, Typing
from graphdsl.ops.ranges import count_by_step, strided_count
from graphdsl.ops.sizes import few_enough, made, run_sizes
from graphdsl.ops.type_rules import elementwise, selection, size_operands, sizes_of
from graphdsl.ops.types import F64, I64, DType, Size, Type

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

    Places = tuple[S, ...]
    Readers = tuple[Reader, ...]

GROUP = "made"
SIZES = Param("sizes", Kind.SIZES)
Sizes = tuple[int | Size | None, ...]


def default_dtype(t: Type, setting: Setting) -> DType:
    """A weak type's default type; another's own."""
    return setting.default_float if t.weak and t.dtype.is_float else t.dtype


# ---- constants -----------------------------------------------------------------------------------------


def _made_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    shape, unknown = sizes_of(attrs["sizes"])
    dtype = attrs.get("dtype") or setting.default_float
    return Typing(
        size_operands(attrs["sizes"]), (Type(dtype, shape),), unknown, {"sizes": tuple(attrs["sizes"]), "dtype": dtype}
    )


def _constant(name: str, doc: str, number: int) -> Op:
    def at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
        return code.const(attrs["dtype"], number)

    def numpy(*operands: int, sizes: Sizes, dtype: DType) -> Any:
        return np.full(run_sizes(sizes, operands), number, dtype.numpy)

    return Op(
        name=name,
        doc=doc,
        params=(SIZES,),
        typing=_made_types,
        compute=Pointwise(at, numpy, made),
        vjp=lambda e, i, g, y, *operands, **attrs: None,
        faults=(faults.NEGATIVE_SIZE, faults.TOO_MANY),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
        minus_zeros=(),
    )


ZEROS = _constant("zeros", "A tensor of zeros; sizes as arguments or as one list.", 0)
ONES = _constant("ones", "A tensor of ones; sizes as arguments or as one list.", 1)


def _full_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    value, *_ = types
    if value.rank:
        raise TypeProblem("E0305", f"`full` takes a scalar, not {value}", "use `broadcast_to(x, sizes)`", 0)
    shape, unknown = sizes_of(attrs["sizes"])
    dtype = default_dtype(value, setting)
    operands = (dtype, *size_operands(attrs["sizes"]))
    return Typing(operands, (Type(dtype, shape),), unknown, {"sizes": tuple(attrs["sizes"])})


def _full_numpy(value: Any, *operands: int, sizes: Sizes) -> Any:
    dims = run_sizes(sizes, operands)
    return np.full(dims, value, {bool: np.bool_, int: np.int64}.get(type(value), np.asarray(value).dtype))


FULL = Op(
    name="full",
    doc="A tensor with one value throughout.",
    params=(SIZES, Param("value")),
    typing=_full_types,
    compute=Pointwise(lambda code, place, xs, sizes, attrs: xs[0].at(()), _full_numpy, made),
    vjp=(lambda e, g, y, value, *rest, sizes: g,),
    linear=(0,),
    faults=(faults.NEGATIVE_SIZE, faults.TOO_MANY),
    bound=0.0,
    reference="numpy.full",
    group=GROUP,
)


def _like_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    (x,) = types
    dtype = attrs.get("dtype") or default_dtype(x, setting)
    return Typing((x.dtype,), (Type(dtype, x.shape),), attrs={"dtype": dtype})


def _constant_like(name: str, doc: str, number: int) -> Op:
    def numpy(x: Any, *, dtype: DType) -> Any:
        return np.full(np.shape(x), number, dtype.numpy)

    return Op(
        name=name,
        doc=doc,
        params=(Param("x"),),
        typing=_like_types,
        compute=Pointwise(lambda code, place, xs, sizes, attrs: code.const(attrs["dtype"], number), numpy),
        shape_only=(0,),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
        minus_zeros=(),
    )


ZEROS_LIKE = _constant_like("zeros_like", "Zeros in the shape and dtype of another tensor.", 0)
ONES_LIKE = _constant_like("ones_like", "Ones in the shape and dtype of another tensor.", 1)


def _full_like(e: Emit, x: Value, value: Value) -> Value:
    dtype = default_dtype(x.type, e.setting)
    return e.broadcast_like(e.cast(value, dtype=dtype), x, axes=())


FULL_LIKE = Op(
    name="full_like",
    doc="One value throughout, in the shape and dtype of another tensor.",
    params=(Param("x"), Param("value")),
    typing=selection,
    compute=Composite(_full_like),
    reference="numpy.full_like",
    group=GROUP,
)


def _eye(e: Emit, n: Value, m: Value | None = None) -> Value:
    rows = _range(e, n)
    columns = rows if m is None else _range(e, m)
    same = e.eq(e.index(rows, spec=(("full",), ("new",))), columns)
    return e.cast(same, dtype=e.setting.default_float)


EYE = Op(
    name="eye",
    doc="1 on the diagonal, else 0.",
    params=(Param("n"), Param("m", default=None)),
    typing=selection,
    compute=Composite(_eye),
    bound=0.0,
    reference="numpy.eye",
    group=GROUP,
)

# ---- ranges --------------------------------------------------------------------------------------------


def _range_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    size = attrs.get("size")
    shape, unknown = sizes_of((size,))
    return Typing((I64, I64, I64), (Type(I64, shape),), unknown, {"size": size})


def _range_at(code: Code, place: Places, xs: Readers, sizes: Places, attrs: Attrs) -> S:
    return xs[0].at(()) + place[0] * xs[2].at(())


def _range_sizes(code: Code, xs: Sequence[Reader], attrs: Attrs) -> list[S]:
    count = xs[1].at(())
    code.fail(count < 0, faults.NEGATIVE_SIZE, count)
    few_enough(code, [count])
    return [count]


def _range_numpy(start: int, count: int, step: int, *, size: int | Size | None) -> Any:
    run_sizes((int(count),), ())
    return np.arange(count, dtype=np.int64) * np.int64(step) + np.int64(start)


RANGE = Op(
    name="range",
    doc="`count` ints from `start` on: what `a..b step s` is made of. `size` is the count where it is known.",
    typing=_range_types,
    compute=Pointwise(_range_at, _range_numpy, _range_sizes),
    faults=(faults.NEGATIVE_SIZE, faults.TOO_MANY),
    bound=0.0,
    group=GROUP,
)


def _range(e: Emit, count: Value) -> Value:
    """`0..count`, its size known where `count` is a literal."""
    if count.type.rank or not count.type.dtype.is_int:
        raise TypeProblem("E0309", f"a size is an int, not {count.type}")
    known = e.literal(count)
    size = known if isinstance(known, int) and known >= 0 else None
    return e.range(e.const(0, I64), count, e.const(1, I64), size=size)


def _arange_count(code: Code, start: S, stop: S, step: S) -> S:
    """At least 1 where the stop lies ahead, however far a step leads beyond it."""
    code.fail((start - start).ne(0) | (step - step).ne(0) | stop.ne(stop), faults.NO_COUNT)
    ahead = code.select(step > 0, start < stop, start > stop)
    count = code.op1("ceil", (stop - start) / step)
    some = code.select(count < 1, code.const(F64, 1.0), count)
    return code.select(ahead, some, code.const(F64, 0.0))


ARANGE_COUNT = Op(
    name="arange_count",
    doc="The number of elements of `arange(start, stop, step)` of floats, itself a float: it may be more than an i64 holds.",
    typing=elementwise(lambda setting, types: (F64, False), fails=lambda dtype, attrs: True),
    compute=Elementwise(_arange_count),
    vjp=lambda e, i, g, y, *operands, **attrs: None,
    faults=(faults.NO_COUNT,),
    bound=0.0,
    group=GROUP,
)


def _arange(e: Emit, start: Value, stop: Value | None = None, step: Value | None = None) -> Value:
    if stop is None:
        start, stop = e.const(0, I64, weak=True), start
    if step is None:
        step = e.const(1, I64, weak=True)
    else:
        step = e.nonzero_step(step) if e.literal(step) in (None, 0) else step
    for i, v in enumerate((start, stop, step)):
        if v.type.rank:
            raise TypeProblem("E0305", f"`arange` takes scalars, not {v.type}", operand=i)
    dtype = default_dtype(e.add(e.add(start, stop), step).type, e.setting)
    if not dtype.is_float:
        return e.cast(_int_arange(e, start, stop, step), dtype=dtype)
    first, end, by = (e.cast(v, dtype=F64) for v in (start, stop, step))
    numbers = _range(e, e.cast(e.arange_count(first, end, by), dtype=I64))
    return e.cast(e.add(first, e.mul(e.cast(numbers, dtype=F64), by)), dtype=dtype)


def _int_arange(e: Emit, start: Value, stop: Value, step: Value) -> Value:
    literals = [e.literal(v) for v in (start, stop, step)]
    start, stop, step = (e.convert(v, I64) for v in (start, stop, step))
    count = count_by_step(e, (start, stop, step), literals)
    size = None
    if count is None:
        up, down = (strided_count(e, start, stop, step, way) for way in (True, False))
        count = e.where(e.gt(step, e.const(0, I64)), up, down)
    elif all(isinstance(v, int) for v in literals):
        size = e.literal(count)
    return e.range(start, count, step, size=size)


ARANGE = Op(
    name="arange",
    doc="`start`, `start + step`, … below `stop`; element `i` is `start + i * step`.",
    params=(Param("start"), Param("stop", default=None), Param("step", default=None)),
    typing=selection,
    compute=Composite(_arange),
    reference="numpy.arange",
    group=GROUP,
)


def _linspace(e: Emit, start: Value, stop: Value, num: Value) -> Value:
    for i, v in enumerate((start, stop, num)):
        if v.type.rank:
            raise TypeProblem("E0305", f"`linspace` takes scalars, not {v.type}", operand=i)
    joined = e.add(start, stop).type
    dtype = default_dtype(joined, e.setting) if joined.dtype.is_float else e.setting.default_float
    first, end = e.cast(start, dtype=F64), e.cast(stop, dtype=F64)
    numbers = _range(e, num)
    last = e.sub(num, e.const(1, I64))
    by = e.div(e.sub(end, first), e.cast(e.maximum(last, e.const(1, I64)), dtype=F64))
    inner = e.add(first, e.mul(e.cast(numbers, dtype=F64), by))
    at_end = e.and_(e.eq(numbers, last), e.gt(last, e.const(0, I64)))
    return e.cast(e.where(at_end, end, inner), dtype=dtype)


LINSPACE = Op(
    name="linspace",
    doc="`num` numbers from `start` to `stop`, both included, evenly spaced.",
    params=(Param("start"), Param("stop"), Param("num", default=50)),
    typing=selection,
    compute=Composite(_linspace),
    reference="numpy.linspace",
    group=GROUP,
)

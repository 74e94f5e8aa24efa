"""Random numbers: what is made of one block of the stream. Element `j` of a draw uses block `counter + j` alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphdsl.ops import faults
from graphdsl.ops.creation import SIZES
from graphdsl.ops.forms import Body
from graphdsl.ops.op import Attrs, Composite, Draw, Effect, Elementwise, Op, Param, Setting, TypeProblem, Typing
from graphdsl.ops.shape import dim_value, dims_of
from graphdsl.ops.type_rules import elementwise, floating, selection, size_operands, sizes_of
from graphdsl.ops.types import F64, I64, DType, Size, Type

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

GROUP = "random"


def _draw_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    shape, unknown = sizes_of(attrs["sizes"])
    dtype: DType = attrs.get("dtype") or setting.default_float
    known = {"sizes": tuple(attrs["sizes"]), "dtype": dtype}
    return Typing(size_operands(attrs["sizes"]), (Type(dtype, shape),), unknown, known)


def _body(name: str) -> Body:
    """A body of `graphdsl.ops.math.random`, which is imported when it is first compiled."""

    def body(code: Code, *words: S, dtype: DType) -> S:
        written: Body = getattr(import_module("graphdsl.ops.math.random"), name)
        return written(code, *words, dtype=dtype)

    return body


UNIFORM = Op(
    name="uniform",
    doc="Random numbers evenly from [0, 1); sizes as arguments or as one list, none for a scalar.",
    params=(SIZES,),
    typing=_draw_types,
    compute=Draw(_body("uniform")),
    effect=Effect.RANDOM,
    faults=(faults.NEGATIVE_SIZE, faults.TOO_MANY),
    reference="numpy.random.Generator.random",
    group=GROUP,
)

NORMAL = Op(
    name="normal",
    doc="Random numbers from the standard normal distribution; sizes as arguments or as one list, none for a scalar.",
    params=(SIZES,),
    typing=_draw_types,
    compute=Draw(_body("normal")),
    effect=Effect.RANDOM,
    faults=(faults.NEGATIVE_SIZE, faults.TOO_MANY),
    bound=4.0,
    reference="numpy.random.Generator.standard_normal",
    group=GROUP,
)

# ---- written in other ops ------------------------------------------------------------------------------


def _uniform_like(e: Emit, x: Value, dtype: DType) -> Value:
    sizes, operands = dims_of(e, x, range(x.type.rank))
    return e.uniform(*operands, sizes=tuple(sizes), dtype=dtype)


def _bernoulli(e: Emit, p: Value) -> Value:
    return e.cast(e.lt(_uniform_like(e, p, F64), p), dtype=e.setting.default_float)


BERNOULLI = Op(
    name="bernoulli",
    doc="1 with the probability that each element of `p` gives, else 0.",
    params=(Param("p"),),
    typing=floating,
    compute=Composite(_bernoulli),
    bound=0.0,
    reference="torch.bernoulli",
    group=GROUP,
)


_MOST_INTS = 2**53  # of one range: a uniform number tells no more apart


def _randint_count(code: Code, low: S, high: S) -> S:
    count = high - low
    code.fail((count < 1) | (count > _MOST_INTS), faults.NO_INTS, low, high)
    return count


RANDINT_COUNT = Op(
    name="randint_count",
    doc="How many ints `randint(low, high)` draws from.",
    typing=elementwise(lambda setting, types: (I64, False), fails=lambda dtype, attrs: True),
    compute=Elementwise(_randint_count),
    faults=(faults.NO_INTS,),
    bound=0.0,
    group=GROUP,
)


def _randint(e: Emit, low: Value, high: Value, *sizes_operands: Value, sizes: tuple[Any, ...]) -> Value:
    for i, v in enumerate((low, high)):
        if v.type.rank or not v.type.dtype.is_int:
            raise TypeProblem("E0305", f"`randint` goes from an int to an int, not {v.type}", operand=i)
    low = e.convert(low, I64)
    count = e.randint_count(low, e.convert(high, I64))
    drawn = e.mul(e.uniform(*sizes_operands, sizes=sizes, dtype=F64), e.cast(count, dtype=F64))
    whole = e.minimum(e.cast(e.floor(drawn), dtype=I64), e.sub(count, e.const(1, I64)))
    return e.add(low, whole)


RANDINT = Op(
    name="randint",
    doc="Random ints evenly from `low` up to, but not, `high`, which lies at most 2**53 above.",
    params=(Param("low"), Param("high"), SIZES),
    typing=selection,
    compute=Composite(_randint),
    bound=0.0,
    reference="numpy.random.randint",
    group=GROUP,
)


def _permutation(e: Emit, x: Value) -> Value:
    """The order of random numbers; of a tensor, its rows in that order."""
    if x.type.rank:
        count = dim_value(e, x, 0)
        return e.take(x, _order(e, count, x.type.shape[0]), axis=0)
    if not x.type.dtype.is_int:
        raise TypeProblem("E0305", f"`permutation` takes an int or a tensor, not {x.type}", operand=0)
    size = e.literal(x)
    return _order(e, e.convert(x, I64), size if isinstance(size, int) and size >= 0 else None)


def _order(e: Emit, count: Value, size: int | Size | None) -> Value:
    operands = () if isinstance(size, int) else (count,)
    return e.argsort(e.uniform(*operands, sizes=(size,), dtype=F64), axis=0)


PERMUTATION = Op(
    name="permutation",
    doc="The ints below `x` in random order, or the rows of a tensor.",
    params=(Param("x"),),
    typing=selection,
    compute=Composite(_permutation),
    bound=0.0,
    reference="numpy.random.permutation",
    group=GROUP,
)


def _dropout(e: Emit, x: Value, p: Value) -> Value:
    kept = e.ge(_uniform_like(e, x, F64), p)
    return e.where(kept, e.div(x, e.sub(e.like(1, p), p)), e.like(0, x))


DROPOUT = Op(
    name="dropout",
    doc="Each element is 0 with probability `p`, else divided by `1 - p`.",
    params=(Param("x"), Param("p", default=0.5)),
    typing=floating,
    compute=Composite(_dropout),
    reference="torch.nn.functional.dropout",
    group="neural",
)

"""Rearranging written in other ops: triangles, diagonals, rolling, taking, splitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem
from graphdsl.ops.shape import dim_value
from graphdsl.ops.type_rules import arithmetic, one_axis, selection
from graphdsl.ops.types import I64

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

GROUP = "shape"


def _composite(name: str, doc: str, params: tuple[Param, ...], expand: Any, typing: Any = selection) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=params,
        typing=typing,
        compute=Composite(expand),
        bound=0.0,
        reference=f"numpy.{name}",
        group=GROUP,
    )


def numbers(e: Emit, x: Value, axis: int, checked: Value | None = None) -> Value:
    """`0..n` for an axis of size `n`; `checked` is that size, where something was checked of it first."""
    size = dim_value(e, x, axis) if checked is None else checked
    return e.range(e.const(0, I64), size, e.const(1, I64), size=x.type.shape[axis])


def _lower(e: Emit, x: Value, k: int) -> Value:
    """Where the column is at most the row and `k`."""
    if x.type.rank < 2:
        raise TypeProblem("E0305", f"a matrix is needed here, not {x.type}", operand=0)
    rows = e.expand_dims(numbers(e, x, x.type.rank - 2), axis=1)
    return e.le(numbers(e, x, x.type.rank - 1), e.add(rows, e.const(k, I64)))


K = (Param("x"), Param("k", Kind.STATIC, 0))

TRIL = _composite(
    "tril",
    "The lower triangle; 0 above the `k`-th diagonal.",
    K,
    lambda e, x, k=0: e.where(_lower(e, x, k), x, e.like(0, x)),
)
TRIU = _composite(
    "triu",
    "The upper triangle; 0 below the `k`-th diagonal.",
    K,
    lambda e, x, k=0: e.where(_lower(e, x, k - 1), e.like(0, x), x),
)


def _diagonal(e: Emit, x: Value, k: int) -> Value:
    rows, columns = dim_value(e, x, 0), dim_value(e, x, 1)
    down, right = e.const(max(-k, 0), I64), e.const(max(k, 0), I64)
    count = e.maximum(e.minimum(e.sub(rows, down), e.sub(columns, right)), e.const(0, I64))
    steps = e.range(e.const(0, I64), count, e.const(1, I64), size=_diagonal_size(x, k))
    return e.index(x, e.add(steps, down), e.add(steps, right), spec=(("take",), ("take",)))


def _diagonal_size(x: Value, k: int) -> int | None:
    rows, columns = x.type.shape
    if isinstance(rows, int) and isinstance(columns, int):
        return max(min(rows - max(-k, 0), columns - max(k, 0)), 0)
    return None


def _diag(e: Emit, x: Value, *, k: int = 0) -> Value:
    match x.type.rank:
        case 2:
            return _diagonal(e, x, k)
        case 1:
            places = numbers(e, x, 0)
            rows = e.add(places, e.const(max(-k, 0), I64))
            columns = e.add(places, e.const(max(k, 0), I64))
            size = x.type.shape[0]
            side = size + abs(k) if isinstance(size, int) else None if k else size
            operands = [] if isinstance(side, int) else [e.add(e.dim(x, axis=0), e.const(abs(k), I64))] * 2
            empty = e.zeros(*operands, sizes=(side, side), dtype=x.type.dtype)
            return e.update(empty, x, rows, columns, spec=(("take",), ("take",)))
    raise TypeProblem("E0305", f"`diag` takes a vector or a matrix, not {x.type}", operand=0)


DIAG = _composite("diag", "The `k`-th diagonal of a matrix, or the matrix with a vector on it.", K, _diag)


def _trace(e: Emit, x: Value) -> Value:
    if x.type.rank != 2:
        raise TypeProblem("E0305", f"`trace` takes a matrix, not {x.type}", operand=0)
    return e.sum(_diagonal(e, x, 0))


TRACE = _composite("trace", "The sum of the diagonal.", (Param("x"),), _trace, arithmetic)


def _roll(e: Emit, x: Value, shift: Value, *, axis: int | None = None) -> Value:
    if axis is None:
        return e.reshape_like(_roll(e, e.flatten(x), shift, axis=0), x)
    along = one_axis(axis, x.type.rank)
    size = dim_value(e, x, along)
    moved = e.sub(numbers(e, x, along), shift)
    places = e.mod(moved, e.maximum(size, e.const(1, I64)))
    return e.index(x, places, spec=(("full",),) * along + (("take",),))


ROLL = _composite(
    "roll",
    "Elements moved along an axis, those that leave at one end coming back at the other.",
    (Param("x"), Param("shift"), Param("axis", Kind.STATIC, None)),
    _roll,
)


def _take(e: Emit, x: Value, i: Value, *, axis: int | None = None) -> Value:
    if axis is None:
        x, axis = e.flatten(x), 0
    along = one_axis(axis, x.type.rank)
    kind = "tensor" if i.type.rank else "int"
    return e.index(x, i, spec=(("full",),) * along + ((kind,),))


TAKE = _composite(
    "take",
    "The elements, or the slices along an axis, that ints name.",
    (Param("x"), Param("i"), Param("axis", Kind.STATIC, None)),
    _take,
)


def _split(e: Emit, x: Value, *, sections: int, axis: int = 0) -> tuple[Value, ...]:
    along = one_axis(axis, x.type.rank)
    size = x.type.shape[along]
    if sections < 1 or (isinstance(size, int) and size % sections):
        raise TypeProblem("E0306", f"cannot split an axis of size {size} into {sections} equal parts", operand=0)
    before = list(x.type.shape[:along])
    after = list(x.type.shape[along + 1 :])
    each = size // sections if isinstance(size, int) else -1
    operands = [e.dim(x, axis=a) for a, d in enumerate(x.type.shape) if not isinstance(d, int) and a != along]
    cut = e.reshape(x, *operands, sizes=(*before, sections, each, *after))
    return tuple(e.index(cut, spec=(("full",),) * along + (("int", i),)) for i in range(sections))


SPLIT = _composite(
    "split",
    "A tuple of equal parts along an axis.",
    (Param("x"), Param("sections", Kind.STATIC), Param("axis", Kind.STATIC, 0)),
    _split,
)


def _lerp(e: Emit, a: Value, b: Value, weight: Value) -> Value:
    return e.add(a, e.mul(weight, e.sub(b, a)))


LERP = Op(
    name="lerp",
    doc="`a + weight * (b - a)`.",
    params=(Param("a"), Param("b"), Param("weight")),
    typing=arithmetic,
    compute=Composite(_lerp),
    bound=float("inf"),
    reference="torch.lerp",
    group="elementwise",
)

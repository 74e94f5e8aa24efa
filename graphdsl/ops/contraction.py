"""Products of vectors and matrices, by NumPy's rules for ranks; the order of their sums is that of
grammars/README.md, "Numbers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.ops import faults
from graphdsl.ops.op import Attrs, Composite, Contract, Op, Param, Setting, TypeProblem, Typing
from graphdsl.ops.reductions import expand
from graphdsl.ops.type_rules import arithmetic, arithmetic_dtype, broadcast, same_dims
from graphdsl.ops.types import Dim, Type
from graphdsl.source.diagnostic import FaultKind

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

GROUP = "linear algebra"


def _mismatch(a: Type, b: Type, m: Dim, n: Dim) -> TypeProblem:
    return TypeProblem("E0303", inner_fault(a.rank, b.rank).text(m, n), f"the operands are {a} and {b}")


def inner_fault(rank_a: int, rank_b: int) -> FaultKind:
    """What it is when the inner sizes turn out to differ."""
    match rank_a, rank_b:
        case 1, 1:
            return faults.INNER_VECTORS
        case 1, _:
            return faults.INNER_VECTOR_LEFT
        case _, 1:
            return faults.INNER_VECTOR_RIGHT
    return faults.INNER


def _matmul_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    a, b = types
    for i, t in enumerate(types):
        if not t.rank:
            raise TypeProblem("E0303", "`@` multiplies vectors and matrices; this is a scalar", "use `*`", i)
    m, n = a.shape[-1], b.shape[0 if b.rank == 1 else -2]
    inner = same_dims(m, n)
    if inner is None:
        raise _mismatch(a, b, m, n)
    dtype, weak = arithmetic_dtype(setting, types)
    batch, fails = broadcast((a.with_shape(a.shape[:-2]), b.with_shape(b.shape[:-2])))
    rows = a.shape[-2:-1] if a.rank > 1 else ()
    columns = b.shape[-1:] if b.rank > 1 else ()
    out = Type(dtype, (*batch, *rows, *columns), weak)
    return Typing((dtype, dtype), (out,), fails or inner[1], {"guard": attrs.get("guard", ())})


Guard = tuple[int, ...]


def _turned(e: Emit, x: Value) -> Value:
    """`x` with its last two axes swapped."""
    axes = list(range(x.type.rank))
    axes[-2:] = axes[:-3:-1]
    return e.transpose(x, perm=tuple(axes))


def _last(e: Emit, x: Value) -> Value:
    return expand(e, x, x.type.rank)


def _scaled(e: Emit, g: Value, x: Value, both: bool) -> Value:
    """`g * x`; `both`: `x` is a cotangent, too."""
    return e.scale_both(g, x) if both else e.scale(g, x)


def _product(e: Emit, a: Value, b: Value, cotangent: int, both: bool) -> Value:
    """`a @ b`, of which one is a cotangent, or both are."""
    return e.matmul(a, b, guard=(0, 1) if both else (cotangent,))


def _to_left(e: Emit, g: Value, y: Value, a: Value, b: Value, *, guard: Guard) -> Value:
    """The cotangent of `a`: `g @ b.T`, or what that comes down to for vectors."""
    both = 1 in guard
    match a.type.rank, b.type.rank:
        case 1, 1:
            return _scaled(e, g, b, both)
        case _, 1:
            return _scaled(e, _last(e, g), b, both)
        case 1, 2:
            return _product(e, b, g, 1, both)
        case 1, rank:
            row = _product(e, expand(e, g, rank - 2), _turned(e, b), 0, both)
            return e.reshape_like(e.sum_to(row, expand(e, a, 0)), a)
    return _product(e, g, _turned(e, b), 0, both)


def _to_right(e: Emit, g: Value, y: Value, a: Value, b: Value, *, guard: Guard) -> Value:
    """The cotangent of `b`: `a.T @ g`."""
    both = 0 in guard
    match a.type.rank, b.type.rank:
        case 1, 1:
            return _scaled(e, g, a, both)
        case 1, rank:
            return _scaled(e, expand(e, g, rank - 2), _last(e, a), both)
        case 2, 1:
            return _product(e, _turned(e, a), g, 1, both)
        case _, 1:
            column = _product(e, _turned(e, a), _last(e, g), 1, both)
            return e.reshape_like(e.sum_to(column, _last(e, b)), b)
    return _product(e, _turned(e, a), g, 1, both)


def _forward(
    e: Emit, tangents: tuple[Value | None, ...], y: Value, a: Value, b: Value, *, guard: Guard
) -> Value | None:
    ta, tb = tangents
    left = None if ta is None else _product(e, ta, b, 0, 1 in guard)
    right = None if tb is None else _product(e, a, tb, 1, 0 in guard)
    if left is None or right is None:
        return left if right is None else right
    return e.add(left, right)


MATMUL = Op(
    name="matmul",
    doc="`@`: the product of matrices, of stacks of matrices, and of vectors with them.",
    typing=_matmul_types,
    compute=Contract(),
    vjp=(_to_left, _to_right),
    jvp=_forward,
    faults=(
        faults.INNER,
        faults.INNER_VECTORS,
        faults.INNER_VECTOR_LEFT,
        faults.INNER_VECTOR_RIGHT,
        faults.BROADCAST,
    ),
    bound=float("inf"),
    reference="numpy.matmul",
    group=GROUP,
)


def _dot(e: Emit, a: Value, b: Value) -> Value:
    if not (a.type.rank and b.type.rank):
        return e.mul(a, b)
    if b.type.rank > 2:
        raise TypeProblem("E0305", f"`dot` takes a second operand of rank 2 at most, not {b.type}", "use `@`", 1)
    return e.matmul(a, b)


DOT = Op(
    name="dot",
    doc="The product of vectors or matrices; a scalar multiplies.",
    params=(Param("a"), Param("b")),
    typing=arithmetic,
    compute=Composite(_dot),
    bound=float("inf"),
    reference="numpy.dot",
    group=GROUP,
)

OUTER = Op(
    name="outer",
    doc="The products of each element of one with each of another.",
    params=(Param("a"), Param("b")),
    typing=arithmetic,
    compute=Composite(lambda e, a, b: e.mul(_last(e, e.flatten(a)), e.flatten(b))),
    reference="numpy.outer",
    group=GROUP,
)

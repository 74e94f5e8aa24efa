"""`einsum`, written in other ops: two operands at a time, from left to right, each pair by one matrix product.

An axis is named by its letter, one that `...` stands for by its number from the right (-1 is the last).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphdsl.ops.arranging import numbers
from graphdsl.ops.index_checks import same_size
from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem
from graphdsl.ops.shape import dims_of, merged
from graphdsl.ops.type_rules import arithmetic, same_dims
from graphdsl.source.record import dataclass
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

Label = str | int
Labels = tuple[Label, ...]


@dataclass(frozen=True)
class Named:
    """A tensor, a label for each axis."""

    value: Value
    labels: Labels


def _einsum(e: Emit, *operands: Value, subscripts: str) -> Value:
    inputs, output = _read(subscripts, [x.type.rank for x in operands])
    left = [_own(e, Named(x, labels)) for x, labels in zip(operands, inputs, strict=True)]
    out = _implied(inputs) if output is None else output
    known = {label for labels in inputs for label in labels}
    for label in out:
        if label not in known or out.count(label) > 1:
            raise TypeProblem("E0305", f"`{label}` of the result of `{subscripts}` must stand once, and in an operand")
    while len(left) > 1:
        a, b, *rest = left
        kept = {*out, *(label for x in rest for label in x.labels)}
        left = [_pair(e, a, b, kept), *rest]
    last = _summed(e, left[0], set(out))
    return _ordered(e, last, out)


# ---- subscripts ----------------------------------------------------------------------------------------


def _read(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels | None]:
    """The labels of the operands, and of the result if it is written."""
    text = "".join(subscripts.split())
    given, arrow, result = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(ranks):
        raise TypeProblem(
            "E0305", f"`{subscripts}` is for {counted(len(parts), 'operand')}, and {len(ranks)} are given"
        )
    inputs = [_labels(part, rank, i) for i, (part, rank) in enumerate(zip(parts, ranks, strict=True))]
    if not arrow:
        return inputs, None
    most = max((sum(isinstance(label, int) for label in labels) for labels in inputs), default=0)
    letters = len(result.replace("...", ""))
    return inputs, _labels(result, letters + (most if "..." in result else 0), None)


def _labels(part: str, rank: int, operand: int | None) -> Labels:
    """`i...j` of a tensor of rank 4: i, -2, -1, j."""
    before, dots, after = part.partition("...")
    letters = before + after
    wrong = next((c for c in letters if not (c.isascii() and c.isalpha())), None)
    if wrong is not None:
        raise TypeProblem("E0305", f"`{wrong}` is no letter for an axis: they are a to z and A to Z", operand=operand)
    more = rank - len(letters)
    if more < 0 or (more and not dots):
        raise TypeProblem(
            "E0305", f"`{part}` is for rank {len(letters)}, and the operand has rank {rank}", operand=operand
        )
    return (*before, *range(-more, 0), *after)


def _implied(inputs: Sequence[Labels]) -> Labels:
    """The result where none is written: the axes of `...`, then the letters that stand once, in alphabetical order."""
    every = [label for labels in inputs for label in labels]
    dots = sorted({label for label in every if isinstance(label, int)})
    return (*dots, *sorted(label for label in set(every) if isinstance(label, str) and every.count(label) == 1))


# ---- operands ------------------------------------------------------------------------------------------


def _own(e: Emit, x: Named) -> Named:
    """A label that stands twice means the diagonal of its axes."""
    axes = list(range(len(x.labels)))  # as the operand is written
    while (twice := next((c for c in x.labels if x.labels.count(c) > 1), None)) is not None:
        first = x.labels.index(twice)
        second = x.labels.index(twice, first + 1)
        rest = [axis for axis in range(len(x.labels)) if axis not in (first, second)]
        front = e.transpose(x.value, perm=(first, second, *rest))
        places = numbers(e, front, 0, same_size(e, front, 0, front, 1, axes=(axes[first], axes[second])))
        axes = [axes[axis] for axis in (first, *rest)]
        labels = (twice, *(x.labels[axis] for axis in rest))
        x = Named(e.index(front, places, places, spec=(("take",), ("take",))), labels)
    return x


def _summed(e: Emit, x: Named, kept: set[Label]) -> Named:
    """The axes that nothing else needs are summed over."""
    gone = tuple(axis for axis, label in enumerate(x.labels) if label not in kept)
    if not gone:
        return x
    return Named(e.sum(x.value, axis=gone), tuple(label for label in x.labels if label in kept))


def _without_ones(e: Emit, x: Named, other: Named) -> Named:
    """Without axes of size 1 that the other operand has longer."""
    sizes = dict(zip(other.labels, other.value.type.shape, strict=True))
    gone = [
        axis
        for axis, (label, size) in enumerate(zip(x.labels, x.value.type.shape, strict=True))
        if size == 1 and sizes.get(label, 1) != 1
    ]
    if not gone:
        return x
    spec = tuple(("at", 0) if axis in gone else ("full",) for axis in range(len(x.labels)))
    return Named(e.index(x.value, spec=spec), tuple(c for axis, c in enumerate(x.labels) if axis not in gone))


def _pair(e: Emit, a: Named, b: Named, kept: set[Label]) -> Named:
    """The product of two operands, summed over what both have and nothing else needs."""
    a, b = _without_ones(e, a, b), _without_ones(e, b, a)
    a, b = _summed(e, a, kept.union(b.labels)), _summed(e, b, kept.union(a.labels))
    both = [label for label in a.labels if label in b.labels]
    batch = [label for label in both if label in kept]
    over = [label for label in both if label not in kept]
    rows = [label for label in a.labels if label not in both]
    columns = [label for label in b.labels if label not in both]
    left = _ordered(e, a, (*batch, *rows, *over))
    right = _fitted(e, _ordered(e, b, (*batch, *over, *columns)), left, len(batch), len(rows), len(over))
    n, r = len(batch), len(rows)
    row_sizes, column_sizes = dims_of(e, left, range(n + r)), dims_of(e, right, range(n + len(over), right.type.rank))
    made = e.matmul(
        merged(e, merged(e, left, n + r), n, n + r), merged(e, merged(e, right, n + len(over)), n, n + len(over))
    )
    result = e.reshape(made, *row_sizes[1], *column_sizes[1], sizes=(*row_sizes[0], *column_sizes[0]))
    return Named(result, (*batch, *rows, *columns))


def _ordered(e: Emit, x: Named, labels: Labels) -> Value:
    made: Value = e.transpose(x.value, perm=tuple(x.labels.index(label) for label in labels))
    return made


def _fitted(e: Emit, right: Value, left: Value, batch: int, rows: int, over: int) -> Value:
    """`right` in the sizes that `left` has for the axes of both: a check, where they are known only as it runs."""
    pairs = [(i, i) for i in range(batch)] + [(batch + j, batch + rows + j) for j in range(over)]
    unsure = False
    for here, there in pairs:
        one, other = right.type.shape[here], left.type.shape[there]
        same = same_dims(one, other)
        if same is None:
            raise TypeProblem("E0303", f"an axis of `einsum` is {other} in one operand and {one} in another")
        unsure |= same[1]
    if not unsure:
        return right
    sizes, operands = dims_of(e, left, [there for _, there in pairs])
    last, more = dims_of(e, right, range(len(pairs), right.type.rank))
    made: Value = e.broadcast_to(right, *operands, *more, sizes=(*sizes, *last))
    return made


EINSUM = Op(
    name="einsum",
    doc='Products summed over axes by letters: `einsum("ij,jk->ik", A, B)`; `...` stands for axes without letters.',
    params=(Param("subscripts", Kind.TEXT), Param("operands", Kind.OPERANDS)),
    typing=arithmetic,
    compute=Composite(_einsum),
    bound=float("inf"),
    reference="numpy.einsum",
    group="linear algebra",
)

"""Convolutions and pooling, written in other ops: windows are slices side by side, and a product sums over them.

So an element of a convolution is a sum in the order of a matrix product, over channel, then row, then column of the
kernel (grammars/README.md, "Numbers").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem, TypeRule
from graphdsl.ops.shape import dim_value, merged
from graphdsl.ops.type_rules import arithmetic, floating, selection
from graphdsl.ops.types import I64

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

GROUP = "neural"
_MOST_PLACES = 4096  # in a window: each is a slice of its own


def _numbers(given: Any, count: int, what: str, least: int) -> tuple[int, ...]:
    """One int for all axes, or one for each."""
    found = given if isinstance(given, tuple) else (given,) * count
    if len(found) != count or any(isinstance(n, bool) or not isinstance(n, int) or n < least for n in found):
        raise TypeProblem("E0305", f"`{what}` is an int from {least} on, or {count} of them")
    return found


def _padded(e: Emit, x: Value, padding: tuple[int, ...]) -> Value:
    """`x` with zeros around its last axes."""
    if not any(padding):
        return x
    lead = x.type.rank - len(padding)
    added = (*(0,) * lead, *(2 * p for p in padding))
    sizes: list[Any] = []
    operands: list[Value] = []
    for axis, (size, more) in enumerate(zip(x.type.shape, added, strict=True)):
        if isinstance(size, int):
            sizes.append(size + more)
        else:
            sizes.append(None if more else size)
            operands.append(e.add(e.dim(x, axis=axis), e.const(more, I64)))
    empty = e.zeros(*operands, sizes=tuple(sizes), dtype=x.type.dtype)
    stops = [e.add(dim_value(e, x, lead + i), e.const(p, I64)) for i, p in enumerate(padding)]
    inner = tuple(("slice", p, "v", None) for p in padding)
    return e.update(empty, x, *stops, spec=(("full",),) * lead + inner)


def _windows(e: Emit, x: Value, window: tuple[int, ...], stride: tuple[int, ...], spread: tuple[int, ...]) -> Value:
    """For each place of a window over the last axes, in row-major order, what stands there: along a new axis in front
    of these axes.
    """
    n = len(window)
    lead = x.type.rank - n
    for axis, (size, wide, apart) in enumerate(zip(x.type.shape[lead:], window, spread, strict=True)):
        if isinstance(size, int) and size < (wide - 1) * apart + 1:
            message = f"a window of {(wide - 1) * apart + 1} does not fit axis {lead + axis} of {x.type}"
            raise TypeProblem("E0305", message, "a smaller window, or more padding", 0)
    pieces = []
    for place in product(*(range(wide) for wide in window)):
        spec: list[tuple[Any, ...]] = [("full",)] * lead
        stops = []
        for axis, (k, wide, step, apart) in enumerate(zip(place, window, stride, spread, strict=True)):
            left = (wide - 1 - k) * apart  # what the window's last places need behind this one
            size = x.type.shape[lead + axis]
            if isinstance(size, int):
                spec.append(("slice", k * apart, size - left, step))
            else:
                stops.append(e.sub(e.dim(x, axis=lead + axis), e.const(left, I64)))
                spec.append(("slice", k * apart, "v", step))
        pieces.append(e.index(x, *stops, spec=tuple(spec)))
    return e.stack(*pieces, axis=lead)


def _convolution(
    e: Emit, x: Value, k: Value, *, n: int, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Value:
    """Over the last `n` axes of `x` (batch, channels, …), by `k` (channels out, channels in, …)."""
    name = f"conv{n}d"
    for i, (value, what) in enumerate(((x, "batch, channels"), (k, "channels out, channels in"))):
        if value.type.rank != n + 2:
            axes = ", ".join((what, *("height", "width")[2 - n :]))
            raise TypeProblem("E0305", f"`{name}` takes {n + 2} axes ({axes}), not {value.type}", operand=i)
    window = k.type.shape[2:]
    if not all(isinstance(w, int) for w in window):
        raise TypeProblem(
            "E0320", f"the size of the kernel of `{name}` must be known when the program is checked", None, 1
        )
    wide = tuple(w for w in window if isinstance(w, int))
    _check_window(wide, name)
    strides, around, apart = (
        _numbers(given, n, what, least)
        for given, what, least in ((stride, "stride", 1), (padding, "padding", 0), (dilation, "dilation", 1))
    )
    parts = _numbers(groups, 1, "groups", 1)[0]
    given, taken = x.type.shape[1], k.type.shape[1]
    if isinstance(given, int) and isinstance(taken, int) and given != taken * parts:
        groups_text = "" if parts == 1 else f" in each of {parts} groups"
        raise TypeProblem(
            "E0303",
            f"`{name}`: {given} channels, and the kernels take {taken}{groups_text}",
            f"x is {x.type}, k is {k.type}",
            1,
        )
    seen = _windows(e, _padded(e, x, around), wide, strides, apart)
    if parts == 1:
        return _product(e, seen, k, n)
    return e.concat(*(_product(e, *pair, n) for pair in zip(*_parts(e, seen, k, parts, name), strict=True)), axis=1)


def _check_window(window: tuple[int, ...], name: str) -> None:
    count = prod(window)
    if not 0 < count <= _MOST_PLACES:
        raise TypeProblem(
            "E0305", f"the kernel of `{name}` has {count:,} places, and 1 to {_MOST_PLACES:,} are possible"
        )


def _parts(e: Emit, seen: Value, k: Value, parts: int, name: str) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Channels in and out, cut into groups."""
    inside, outside = seen.type.shape[1], k.type.shape[0]
    if not isinstance(inside, int) or not isinstance(outside, int) or inside % parts or outside % parts:
        raise TypeProblem(
            "E0305", f"{inside} channels in and {outside} out make no {parts} groups of `{name}`", operand=1
        )
    return e.split(seen, sections=parts, axis=1), e.split(k, sections=parts, axis=0)


def _product(e: Emit, seen: Value, k: Value, n: int) -> Value:
    """Windows (batch, channels, place, …) times kernels (channels out, channels in, …)."""
    moved = e.transpose(seen, perm=(0, *range(3, n + 3), 1, 2))  # batch, …, channels, place
    made = e.matmul(merged(e, moved, n + 1), e.transpose(merged(e, k, 1), perm=(1, 0)))
    return e.transpose(made, perm=(0, n + 1, *range(1, n + 1)))


def _entry(n: int, doc: str) -> Op:
    name = f"conv{n}d"
    several = (("stride", 1), ("padding", 0), ("dilation", 1))  # one for all axes, or one for each
    settings = (*((what, Kind.AXES, default) for what, default in several), ("groups", Kind.STATIC, 1))
    return Op(
        name=name,
        doc=doc,
        params=(Param("x"), Param("k"), *(Param(what, kind, default) for what, kind, default in settings)),
        typing=arithmetic,
        compute=Composite(partial(_convolution, n=n)),
        bound=float("inf"),
        reference=f"torch.nn.functional.{name}",
        group=GROUP,
    )


CONV1D = _entry(1, "Windows of a signal (batch, channels, places) times kernels (channels out, in, places).")
CONV2D = _entry(2, "Windows of an image (batch, channels, height, width) times kernels.")


# ---- pooling -------------------------------------------------------------------------------------------


def _pooled(e: Emit, x: Value, size: Any, stride: Any, name: str) -> Value:
    """The windows over height and width, along axis 2."""
    if x.type.rank != 4:
        raise TypeProblem("E0305", f"`{name}` takes 4 axes (batch, channels, height, width), not {x.type}", operand=0)
    window = _numbers(size, 2, "size", 1)
    _check_window(window, name)
    steps = window if stride is None else _numbers(stride, 2, "stride", 1)
    return _windows(e, x, window, steps, (1, 1))


def _pool(name: str, doc: str, pool: Callable[[Emit, Value], Value], typing: TypeRule, bound: float) -> Op:
    def expand(e: Emit, x: Value, *, size: Any, stride: Any = None) -> Value:
        return pool(e, _pooled(e, x, size, stride, name))

    return Op(
        name=name,
        doc=f"{doc} of each window; windows stand side by side, or `stride` apart.",
        params=(Param("x"), Param("size", Kind.AXES), Param("stride", Kind.AXES, None)),
        typing=typing,
        compute=Composite(expand),
        bound=bound,
        reference=f"torch.nn.functional.{name}",
        group=GROUP,
    )


MAX_POOL2D = _pool("max_pool2d", "The largest element", lambda e, x: e.max(x, axis=2), selection, 0.0)
AVG_POOL2D = _pool("avg_pool2d", "The mean", lambda e, x: e.mean(x, axis=2), floating, float("inf"))

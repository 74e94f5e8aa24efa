"""Ops: scalars in registers, views, and everything else by the kind of what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphdsl.core.ir import Apply, Value
from graphdsl.graph.ir import Fused
from graphdsl.native.flow import int64
from graphdsl.native.program import shapes, views
from graphdsl.native.program.frame import Frame
from graphdsl.native.program.launch import launch
from graphdsl.native.program.reading import Operand, Sized
from graphdsl.native.program.reduce import reduce, sum_to
from graphdsl.native.program.space import Region
from graphdsl.native.program.values import Tensor, parts, ref, whole
from graphdsl.ops.choosing import cast_attrs
from graphdsl.ops.op import Contract, Draw, Elementwise, Host, Pointwise, Reduce, Scatter, SumTo
from graphdsl.ops.scalar import S
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, Type


def apply(frame: Frame, instr: Apply) -> None:
    """Any op of the core."""
    match instr.op.compute:
        case Elementwise() if instr.op.name == "fits":
            shapes.fit(frame.code, [Operand(frame, a) for a in instr.args])
            frame.values[instr.outs[0]] = frame.code.const(BOOL, True).ref
        case Elementwise(body=body) if not instr.outs[0].type.shape:
            result = body(frame.code, *(frame.scalar(a) for a in instr.args), **instr.attrs)
            frame.values[instr.outs[0]] = ref(result)
        case Elementwise() if _keeps(instr):
            renamed(frame, instr.args[0], instr.outs[0])
        case Pointwise() if not instr.outs[0].type.shape:
            frame.values[instr.outs[0]] = ref(element(frame, instr))
        case Pointwise() if instr not in frame.unit.apart and views.view(frame, instr):
            pass
        case Elementwise() | Pointwise():
            single(frame, instr)
        case Reduce():
            reduce(frame, instr)
        case SumTo():
            sum_to(frame, instr)
        case Contract():
            from graphdsl.native.program.products import product

            product(frame, instr)
        case Scatter():
            from graphdsl.native.program.scatter import scatter

            scatter(frame, instr)
        case Draw():
            from graphdsl.native.program.draws import draw

            draw(frame, instr)
        case Host():
            from graphdsl.native.program.host import host

            host(frame, instr)
        case other:
            raise TypeError(f"{instr.op.name} cannot be compiled: {type(other).__name__}")


def _keeps(instr: Apply) -> bool:
    """Whether an elementwise op gives its operand as it is."""
    out = instr.outs[0].type
    same = instr.args[0].type.dtype is out.dtype
    return same and (instr.op.name == "stop_gradient" or (instr.op.name == "cast" and not instr.fails))


def element(frame: Frame, instr: Apply) -> S:
    """A pointwise op with a scalar result."""
    compute = instr.op.compute
    assert isinstance(compute, Pointwise)
    xs = tuple(Operand(frame, a) for a in instr.args)
    if compute.sizes is not None and instr.fails:
        compute.sizes(frame.code, xs, instr.attrs)
    return compute.at(frame.code, (), xs, (), instr.attrs)


def renamed(frame: Frame, arg: Value, out: Value) -> None:
    """`out` is the value `arg`, with what its type says of sizes."""
    native = frame.hand_on(arg)
    frame.values[out] = whole(out.type, parts(native)) if isinstance(native, Tensor) else native


def converted(frame: Frame, instr: Any) -> None:
    """A conversion without loss between floats."""
    if not instr.out.type.shape:
        frame.values[instr.out] = ref(frame.code.convert(frame.scalar(instr.arg), instr.out.type.dtype))
        return
    dtype = instr.out.type.dtype
    inner = Value(Type(dtype, instr.arg.type.shape))
    made = Apply(instr.span, OPS["cast"], (instr.arg,), cast_attrs(dtype, checked=False, weak=False), (inner,))
    single(frame, made)
    frame.values[instr.out] = whole(instr.out.type, parts(frame.values[inner]))


def single(frame: Frame, instr: Apply) -> None:
    """One op by itself as a kernel; none if nobody reads its elements."""
    if instr.outs[0] in frame.dying and not instr.fails:
        sizes = shapes.sizes(frame.code, instr, [Operand(frame, a) for a in instr.args])
        if shapes.grows(instr):
            frame.countable(instr.outs[0].type.dtype, sizes)
        hollow(frame, instr.outs[0], sizes)
        return
    params = tuple(dict.fromkeys(instr.args))
    region = Region(params, (instr,), instr.outs)
    launch(frame, region, {p: p for p in params}, inner_sizes(frame, region, {p: p for p in params}), instr.outs)


def fused(frame: Frame, instr: Fused) -> None:
    """A kernel as the fusion pass has put it together."""
    region = Region(
        tuple(instr.body.params), tuple(b for b in instr.body.body if isinstance(b, Apply)), tuple(instr.body.yields)
    )
    outer = dict(zip(region.params, instr.args, strict=True))
    sizes = inner_sizes(frame, region, outer)
    kept = []
    for out, inner in zip(instr.outs, region.outs, strict=True):
        if out in frame.dying:
            hollow(frame, out, sizes[inner])
        else:
            kept.append((out, inner))
    if kept:
        outs, inners = zip(*kept, strict=True)
        launch(frame, replace(region, outs=inners), outer, sizes, outs)


def hollow(frame: Frame, out: Value, sizes: Sequence[Any]) -> None:
    """What is only measured has sizes and no elements."""
    del frame.dying[out]
    nothing = frame.nothing(out.type)
    frame.values[out] = whole(out.type, [*parts(nothing)[:2], *sizes])


def inner_sizes(frame: Frame, region: Region, outer: dict[Value, Value]) -> dict[Value, tuple[Any, ...]]:
    """The sizes of all values in a region, checked in program order."""
    found: dict[Value, tuple[Any, ...]] = {}
    scalars: dict[Value, Any] = {}
    for param in region.params:
        native = frame.values[outer[param]]
        if isinstance(native, Tensor):
            found[param] = native.sizes
        else:
            found[param] = ()
            scalars[param] = native
    instr = frame.instr
    for inner in region.body:
        frame.instr = inner
        xs = [Sized(frame, a, found[a], scalars.get(a)) for a in inner.args]
        if isinstance(inner.op.compute, Reduce):
            found[inner.outs[0]] = (int64(1),) * inner.outs[0].type.rank  # a sum of everything
        else:
            found[inner.outs[0]] = shapes.sizes(frame.code, inner, xs)
            if shapes.grows(inner) and inner.outs[0] not in region.outs:
                frame.countable(inner.outs[0].type.dtype, found[inner.outs[0]])
    frame.instr = instr
    return found

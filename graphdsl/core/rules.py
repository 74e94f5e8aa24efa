"""Derivative rules as templates: a rule of an op's entry, traced once for given types and read by both modes.

A template is a `Block`. Eager mode compiles it to a Python function; graph mode inlines it. So there is one rule, and
the same ops in the same order. The rest of what happens between two rules is written here too, once: a contribution is
summed over what was broadcast, and added to the running sum, which starts from +0.0.

    vjp_template(…, i, first=True)    params: g…, operands…, outs…   yields: the new running sum of operand i
    vjp_template(…, i, first=False)   params: the running sum, g…, operands…, outs…   yields: the same
    jvp_template(…, active)           params: a tangent for each active operand, operands…, outs…
                                      yields: the tangent of the result

There is one `g` for each result of the op (all ops so far have one). A cotangent and a running sum hold no -0.0: they
began with +0.0, and so must the seed of a `vjp` (`u + 0.0`); where a contribution is such by what it is made of, adding
+0.0 to it is left out. `uses` says, for every param, whether the
template reads its value, only its shape, or nothing of it: what is not read need not be kept, and may be anything.
None: there is no derivative this way (`round`, an int): nothing is added.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Const, Value
from graphdsl.ops.attrs import frozen
from graphdsl.ops.op import Attrs, Elementwise, Into, Op, Pointwise, Scatter, Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.type_rules import same_shape
from graphdsl.ops.types import Dim, Size, Type
from graphdsl.source.record import dataclass
from graphdsl.source.span import Source, Span


class Use(enum.Enum):
    """What a template reads of a param."""

    NONE = "none"
    SHAPE = "shape"
    VALUE = "value"


@dataclass(frozen=True, eq=False)
class Template:
    """A traced rule. Its instructions are `Apply` and `Const` only; `uses` has an entry for each of `block.params`.

    `owned`: the result is an array of its own; else it may be a param, or a view of one, and is not to be written into
    (as `index_add` does with the running sum that it gets) without a copy.
    """

    block: Block
    uses: tuple[Use, ...]
    owned: bool

    @property
    def out(self) -> Value:
        return self.block.yields[0]


NOWHERE = Span(Source("<derivative rule>", ""), 0, 0)


def vjp_template(
    op: Op, attrs: Attrs, operands: Sequence[Type], outs: Sequence[Type], operand: int, first: bool, setting: Setting
) -> Template | None:
    """The template that adds the contribution of one use of `op` to the sum for its operand number `operand`.

    Without `first`, the running sum is the first param, and the result is `add(sum, contribution)`; an `Into` is
    applied to the sum itself, which only this use holds: it may be changed in place.
    """
    if not operands[operand].dtype.is_float or op.vjp is None:
        return None

    def trace(e: Emit, known: Attrs, ins: list[Type], results: list[Type]) -> Block | None:
        return _trace_vjp(e, op, known, ins, results, operand, first)

    return _cached(("vjp", operand, first), op, attrs, operands, outs, setting, trace)


def jvp_template(
    op: Op, attrs: Attrs, operands: Sequence[Type], outs: Sequence[Type], active: Sequence[bool], setting: Setting
) -> Template | None:
    """The template for the tangent of the result, from the tangents of those operands that have one (`active`)."""
    if not any(active) or not outs[0].dtype.is_float:
        return None

    def trace(e: Emit, known: Attrs, ins: list[Type], results: list[Type]) -> Block | None:
        return _trace_jvp(e, op, known, ins, results, active)

    return _cached(("jvp", *active), op, attrs, operands, outs, setting, trace)


def inline(template: Template, emit: Emit, *values: Value) -> Value:
    """Write the template's instructions again, for these values (one a param; an unused one may be any value)."""
    found = dict(zip(template.block.params, values, strict=True))
    sizes: dict[Size, Dim] = {}
    for param, value, use in zip(template.block.params, values, template.uses, strict=True):
        if use is not Use.NONE:
            sizes.update((d, s) for d, s in zip(param.type.shape, value.type.shape, strict=True) if isinstance(d, Size))
    for instr in template.block.body:
        match instr:
            case Const(value=int() | float() as number, out=out):
                found[out] = emit.const(number, out.type.dtype)
            case Apply(op=op, args=args, attrs=attrs, outs=outs):
                known = {name: _with_sizes(v, sizes) for name, v in attrs.items()}
                found.update(zip(outs, again(emit, op, [found[a] for a in args], known), strict=True))
                sizes.update(
                    (d, s)
                    for old in outs
                    for d, s in zip(old.type.shape, found[old].type.shape, strict=True)
                    if isinstance(d, Size) and d not in sizes
                )
    return found[template.out]


def again(emit: Emit, op: Op, args: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    """Apply `op` to operands that have their final dtypes, as an instruction of the core does."""
    types = tuple(_strong(a.type) for a in args)
    typing = op.typing(emit.setting, types, attrs)
    outs = tuple(Value(_strong(t)) for t in typing.outs)
    known = attrs if typing.attrs is None else typing.attrs
    emit.block.body.append(Apply(emit.span, op, tuple(args), known, outs, typing.fails))
    return outs


def in_order(op: Op, count: int) -> list[int]:
    """The numbers of `count` operands in the order in which they get their contributions: from left to right.

    But a tensor that was written into comes last: its rule writes into the cotangent, in place if nothing reads that later.
    """
    numbers = list(range(count))
    return [*numbers[1:], 0] if isinstance(op.compute, Scatter) else numbers


# ---- tracing -------------------------------------------------------------------------------------------


def _trace_vjp(
    e: Emit, op: Op, attrs: Attrs, operands: list[Type], results: list[Type], operand: int, first: bool
) -> Block | None:
    acc = [] if first else [Value(operands[operand])]
    gs, xs, ys = [Value(t) for t in results], [Value(t) for t in operands], [Value(t) for t in results]
    e.block.params = [*acc, *gs, *xs, *ys]
    contribution = _contribution(e, op, operand, _one(gs), _one(ys), xs, attrs)
    if contribution is None:
        return None
    if isinstance(contribution, Into):
        start = acc[0] if acc else e.nothing_like(xs[operand])
        total = e.apply(OPS[contribution.op], start, *contribution.args, **contribution.attrs)
    else:
        fitting = _fit(e, contribution, xs[operand])
        total = e.add(acc[0], fitting) if acc else from_zero(e, fitting, gs)
    e.block.yields = [total]
    return e.block


def _contribution(
    e: Emit, op: Op, operand: int, g: Any, y: Any, xs: Sequence[Value], attrs: Attrs
) -> Value | Into | None:
    if op.vjp is None:
        return None
    if callable(op.vjp):
        return op.vjp(e, operand, g, y, *xs, **attrs)
    rule = op.vjp[operand] if operand < len(op.vjp) else None
    return None if rule is None else rule(e, g, y, *xs, **attrs)


def _fit(e: Emit, contribution: Value, operand: Value) -> Value:
    """The contribution in the shape of the operand, which was broadcast if the two are not known to be the same."""
    if same_shape(contribution.type.shape, operand.type.shape):
        return contribution
    return e.sum_to(contribution, operand)


def _trace_jvp(
    e: Emit, op: Op, attrs: Attrs, operands: list[Type], results: list[Type], active: Sequence[bool]
) -> Block | None:
    tangents = [Value(t) if used else None for t, used in zip(operands, active, strict=True)]
    xs, ys = [Value(t) for t in operands], [Value(t) for t in results]
    e.block.params = [*(t for t in tangents if t is not None), *xs, *ys]
    total = _tangent(e, op, attrs, tangents, xs, ys)
    if total is None:
        return None
    e.block.yields = [total]
    return e.block


def _tangent(
    e: Emit, op: Op, attrs: Attrs, tangents: Sequence[Value | None], xs: list[Value], ys: list[Value]
) -> Value | None:
    """The tangent of the result: a rule of the entry's own, the op itself where it is linear, else from `vjp`."""
    if op.jvp is not None:
        tangent = op.jvp(e, tuple(tangents), _one(ys), *xs, **attrs)
        return None if tangent is None else from_zero(e, tangent, ())
    if op.linear:
        return _linear_tangent(e, op, attrs, tangents, xs)
    if not isinstance(op.compute, Elementwise) or op.vjp is None:
        return None
    total: Value | None = None
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        part = _contribution(e, op, i, tangent, _one(ys), xs, attrs)
        if part is not None:
            assert not isinstance(part, Into)
            total = from_zero(e, part, ()) if total is None else e.add(total, part)
    if total is None or same_shape(total.type.shape, ys[0].type.shape):
        return total
    return e.broadcast_like(total, ys[0], axes=())


def _linear_tangent(e: Emit, op: Op, attrs: Attrs, tangents: Sequence[Value | None], xs: list[Value]) -> Value | None:
    linear = range(len(xs)) if op.linear == (-1,) else op.linear
    if not any(tangents[i] for i in linear):
        return None
    args = [(tangents[i] or e.nothing_like(x)) if i in linear else x for i, x in enumerate(xs)]
    return from_zero(e, e.apply(op, *args, **attrs), ())


def _one(values: Sequence[Value]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


# ---- negative zeros --------------------------------------------------------------------------------------


def from_zero(e: Emit, value: Value, sums: Sequence[Value]) -> Value:
    """`value + 0.0`, or `value` itself where no element of it can be -0.0. `sums` are known to hold none."""
    made = {out: instr for instr in e.block.body if isinstance(instr, Apply | Const) for out in _outs(instr)}
    stack, seen = [value], set(sums)
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        match made.get(v):
            case Const(value=int() | float() as number) if math.copysign(1.0, number) > 0:
                pass
            case Apply() as instr if (sources := _minus_zeros(instr)) is not None:
                stack.extend(sources)
            case _:
                return e.add(value, e.like(0.0, value))
    return value


def _minus_zeros(instr: Apply) -> Sequence[Value] | None:
    """The operands from which alone a -0.0 in a result may come; None: the op makes some."""
    places = instr.op.minus_zeros
    if callable(places):
        places = places([a.type for a in instr.args])
    return instr.args if places == (-1,) else None if places is None else [instr.args[i] for i in places]


def _outs(instr: Any) -> tuple[Value, ...]:
    return instr.outs if isinstance(instr, Apply) else (instr.out,)


# ---- what a template reads, and what it gives ------------------------------------------------------------


def _without_unused(block: Block) -> None:
    """Drop instructions whose results nothing reads: a rule may compute what this operand does not need."""
    needed = set(block.yields)
    kept = []
    for instr in reversed(block.body):
        if needed.intersection(_outs(instr)):
            kept.append(instr)
            if isinstance(instr, Apply):
                needed.update(instr.args)
    block.body = kept[::-1]


def _uses(block: Block) -> tuple[Use, ...]:
    uses = dict.fromkeys(block.params, Use.NONE)
    for instr in block.body:
        if isinstance(instr, Apply):
            for i, arg in enumerate(instr.args):
                if arg in uses and uses[arg] is not Use.VALUE:
                    uses[arg] = Use.SHAPE if i in instr.op.shape_only else Use.VALUE
    uses.update((v, Use.VALUE) for v in block.yields if v in uses)
    return tuple(uses[p] for p in block.params)


def _owned(block: Block) -> bool:
    """Whether what the block yields is computed by an op that makes a new array."""
    for instr in block.body:
        if isinstance(instr, Apply) and block.yields[0] in instr.outs:
            moves = isinstance(instr.op.compute, Pointwise) and instr.op.name not in ("zeros_like", "concat", "stack")
            return not moves and instr.op.name not in ("stop_gradient", "cast")
    return False


# ---- the cache: one template for all types that differ only in which sizes are unknown --------------------

_templates: dict[Any, Template | None] = {}
_MOST = 4096  # templates kept

Trace = Callable[[Emit, Attrs, "list[Type]", "list[Type]"], "Block | None"]


def _cached(
    what: tuple[Any, ...],
    op: Op,
    attrs: Attrs,
    operands: Sequence[Type],
    outs: Sequence[Type],
    setting: Setting,
    trace: Trace,
) -> Template | None:
    names = _Names()
    ins, results = [names.type(t) for t in operands], [names.type(t) for t in outs]
    known = {name: _with_sizes(v, names) for name, v in attrs.items()}
    key = (what, op, setting, *(frozen(part, names.numbers.__getitem__) for part in (ins, results, known)))
    if key not in _templates:
        if len(_templates) >= _MOST:
            _templates.clear()
        block = trace(Emit(Block(), setting, NOWHERE), known, ins, results)
        if block is not None:
            _without_unused(block)
        _templates[key] = None if block is None else Template(block, _uses(block), _owned(block))
    return _templates[key]


class _Names(dict[Size, Size]):
    """Sizes of the template for sizes of the program, numbered as they are met."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[Size, int] = {}

    def __missing__(self, size: Size) -> Size:
        self[size] = made = Size()
        self.numbers[made] = len(self.numbers)
        return made

    def type(self, t: Type) -> Type:
        return Type(t.dtype, tuple(self[d] if isinstance(d, Size) else d for d in t.shape))


def _strong(t: Type) -> Type:
    return Type(t.dtype, t.shape)


def _with_sizes(value: Any, sizes: Mapping[Size, Any]) -> Any:
    """An attr with its sizes replaced; those that are not known stay."""
    match value:
        case Size():
            return sizes[value] if isinstance(sizes, _Names) else sizes.get(value, value)
        case tuple() | list():
            return tuple(_with_sizes(v, sizes) for v in value)
        case Type():
            return Type(value.dtype, _with_sizes(value.shape, sizes), value.weak)
        case _:
            return value

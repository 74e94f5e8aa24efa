"""What networks are made of: activations, softmax, losses. All are written in other ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdsl.ops.forms import X, function, math_body
from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem
from graphdsl.ops.statistics import as_float
from graphdsl.ops.type_rules import floating, one_axis, selection

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

GROUP = "neural"


def _composite(name: str, doc: str, params: tuple[Param, ...], expand: Any, reference: str) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=params,
        typing=floating,
        compute=Composite(expand),
        bound=float("inf"),
        reference=reference,
        group=GROUP,
    )


# ---- activations ---------------------------------------------------------------------------------------


def _softplus(code: Code, x: S) -> S:
    """`max(x, 0) + log(1 + u)`, `u = exp(-|x|)`; the logarithm by Kahan's way, which keeps tiny `u`."""
    u = math_body("exp")(code, -abs(x))
    sum_ = 1.0 + u
    rest = code.select(sum_.eq(1.0), u, math_body("log")(code, sum_) * (u / (sum_ - 1.0)))
    kept = code.select(x > 0.0, x + rest, rest)
    return code.select(x.ne(x), x, kept)


SOFTPLUS = function(
    "softplus",
    "`log(1 + exp(x))`, without overflow.",
    lambda e, y, x: e.sigmoid(x),
    body=_softplus,
    bound=3.0,
    reference="torch.nn.functional.softplus",
    group=GROUP,
)

SILU = _composite(
    "silu",
    "`x * sigmoid(x)`.",
    X,
    lambda e, x: e.mul(x, e.sigmoid(x)),
    "torch.nn.functional.silu",
)


def _leaky_relu(e: Emit, x: Value, slope: Value) -> Value:
    return e.where(e.gt(x, e.like(0, x)), x, e.mul(slope, x))


LEAKY_RELU = _composite(
    "leaky_relu",
    "`x` above 0, else `negative_slope * x`.",
    (Param("x"), Param("negative_slope", default=0.01)),
    _leaky_relu,
    "torch.nn.functional.leaky_relu",
)

# ---- softmax -------------------------------------------------------------------------------------------


def _shifted(e: Emit, x: Value, axis: int) -> tuple[Value, int]:
    """`x` less its largest element along the axis: what `softmax` sees no difference in."""
    x = as_float(e, x)
    along = one_axis(axis, x.type.rank)
    return e.sub(x, e.stop_gradient(e.max(x, axis=along, keepdims=True))), along


def _softmax(e: Emit, x: Value, *, axis: int = -1) -> Value:
    moved, along = _shifted(e, x, axis)
    weights = e.exp(moved)
    return e.div(weights, e.sum(weights, axis=along, keepdims=True))


def _log_softmax(e: Emit, x: Value, *, axis: int = -1) -> Value:
    moved, along = _shifted(e, x, axis)
    return e.sub(moved, e.log(e.sum(e.exp(moved), axis=along, keepdims=True)))


AXIS = (Param("x"), Param("axis", Kind.STATIC, -1))

SOFTMAX = _composite(
    "softmax", "Exponentials divided by their sum along an axis.", AXIS, _softmax, "scipy.special.softmax"
)
LOG_SOFTMAX = _composite(
    "log_softmax", "The logarithm of `softmax`, without loss.", AXIS, _log_softmax, "scipy.special.log_softmax"
)

# ---- losses --------------------------------------------------------------------------------------------

PAIR = (Param("x"), Param("target"))

MSE_LOSS = _composite(
    "mse_loss",
    "The mean square difference.",
    PAIR,
    lambda e, x, target: e.mean(e.powi(e.sub(x, target), k=2)),
    "torch.nn.functional.mse_loss",
)


def _huber_loss(e: Emit, x: Value, target: Value, delta: Value) -> Value:
    off = e.sub(x, target)
    size = e.abs(off)
    half = e.like(0.5, off)
    square = e.mul(half, e.powi(off, k=2))
    line = e.mul(delta, e.sub(size, e.mul(half, delta)))
    return e.mean(e.where(e.le(size, delta), square, line))


HUBER_LOSS = _composite(
    "huber_loss",
    "The mean of half squares near 0, of lines beyond `delta`.",
    (*PAIR, Param("delta", default=1.0)),
    _huber_loss,
    "torch.nn.functional.huber_loss",
)


def _cross_entropy(e: Emit, x: Value, target: Value) -> Value:
    """Of logits along the last axis, against class numbers or probabilities."""
    scores = _log_softmax(e, x)
    if target.type.dtype.is_float:
        return e.neg(e.mean(e.sum(e.mul(scores, target), axis=-1)))
    if target.type.rank != x.type.rank - 1 or x.type.rank != 2:
        raise TypeProblem(
            "E0305", f"`cross_entropy` takes logits of rank 2 and a class for each row, not {x.type} and {target.type}"
        )
    rows = e.numbers_like(target)
    return e.neg(e.mean(e.index(scores, rows, target, spec=(("tensor",), ("tensor",)))))


CROSS_ENTROPY = _composite(
    "cross_entropy",
    "The mean negative log probability of the right class; `x` holds logits, `target` class numbers or probabilities.",
    PAIR,
    _cross_entropy,
    "torch.nn.functional.cross_entropy",
)


def _one_hot(e: Emit, i: Value, n: Value) -> Value:
    if not i.type.dtype.is_int:
        raise TypeProblem("E0301", f"`one_hot` takes ints, not {i.type}", operand=0)
    classes = e.arange(n, None, None)
    inside = e.in_range(i, n, axis=i.type.rank)
    same = e.eq(e.expand_dims(inside, axis=-1), classes)
    return e.cast(same, dtype=e.setting.default_float)


ONE_HOT = Op(
    name="one_hot",
    doc="1 at the place that an int names on a new last axis of size `n`, else 0.",
    params=(Param("i"), Param("n")),
    typing=selection,
    compute=Composite(_one_hot),
    bound=0.0,
    reference="torch.nn.functional.one_hot",
    group="shape",
)

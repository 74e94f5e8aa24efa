"""What networks are made of: activations, softmax, losses. All are written in other ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdsl.ops.arranging import numbers
from graphdsl.ops.forms import X, function
from graphdsl.ops.index_checks import same_size
from graphdsl.ops.op import Composite, Kind, Op, Param, TypeProblem
from graphdsl.ops.statistics import as_float
from graphdsl.ops.type_rules import floating, one_axis, selection

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value

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


SOFTPLUS = function(
    "softplus",
    "`log(1 + exp(x))`, without overflow.",
    lambda e, y, x: e.sigmoid(x),
    bound=1.2,
    reference="torch.nn.functional.softplus",
    group=GROUP,
    cost=30,
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


ELU = _composite(
    "elu",
    "`x` above 0, else `alpha * (exp(x) - 1)`.",
    (Param("x"), Param("alpha", default=1.0)),
    lambda e, x, alpha: e.where(e.gt(x, e.like(0, x)), x, e.mul(alpha, e.expm1(x))),
    "torch.nn.functional.elu",
)


def _layer_norm(e: Emit, x: Value, *, axis: int = -1, eps: float = 1e-5) -> Value:
    x = as_float(e, x)
    off = e.sub(x, e.mean(x, axis=axis, keepdims=True))
    spread = e.add(e.var(x, axis=axis, keepdims=True), e.like(float(eps), x))
    return e.div(off, e.sqrt(spread))


LAYER_NORM = _composite(
    "layer_norm",
    "Shifted and scaled along an axis to mean 0 and variance 1.",
    (Param("x"), Param("axis", Kind.STATIC, -1), Param("eps", Kind.STATIC, 1e-5)),
    _layer_norm,
    "torch.nn.functional.layer_norm",
)

EMBEDDING = _composite(
    "embedding",
    "The rows of a table that ints name.",
    (Param("i"), Param("table")),
    lambda e, i, table: e.take(table, i, axis=0),
    "torch.nn.functional.embedding",
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


def _binary_cross_entropy(e: Emit, x: Value, target: Value) -> Value:
    least = e.like(-100.0, x)
    yes = e.mul(target, e.at_least(e.log(x), least))
    no = e.mul(e.sub(e.like(1.0, x), target), e.at_least(e.log1p(e.neg(x)), least))
    return e.neg(e.mean(e.add(yes, no)))


BINARY_CROSS_ENTROPY = _composite(
    "binary_cross_entropy",
    "The mean negative log probability of yes or no; `x` holds probabilities. A logarithm is -100 at least.",
    PAIR,
    _binary_cross_entropy,
    "torch.nn.functional.binary_cross_entropy",
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
    rows = numbers(e, x, 0, same_size(e, x, 0, target, 0))
    return e.neg(e.mean(e.index(scores, rows, target, spec=(("take",), ("tensor",)))))


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

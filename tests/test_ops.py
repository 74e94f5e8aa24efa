"""The op table: every entry by what it says of itself, and its types and values against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.ops.op import Elementwise, Op, Setting, TypeProblem
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Size, Type
from graphdsl.source.diagnostic import Fault
from tests import plain_ops

SETTING = Setting(F64)
NAMES = sorted(OPS)
ELEMENTWISE = [n for n in NAMES if isinstance(OPS[n].compute, Elementwise)]


def emitter() -> Emit:
    return Emit(Block(), SETTING, NOWHERE)


def value_of(x: Any, weak: bool = False, sizes: bool = False) -> Value:
    """A value with the type of an array; with `sizes`, its sizes are known only as it runs."""
    a = np.asarray(x)
    dtype = DType.of(a)
    return Value(Type(dtype, tuple(Size() if sizes else d for d in a.shape), weak))


def call(name: str, *args: Any, unknown: bool = False, **attrs: Any) -> Any:
    """The result of an op on arrays, by the reference interpreter."""
    e = emitter()
    arrays = [None if a is None else np.asarray(a) for a in args]
    values = [None if a is None else value_of(a, sizes=unknown) for a in arrays]
    out = e.apply(OPS[name], *values, **attrs)
    e.block.yields = [out]
    return plain_ops.run(e.block, {v: a for v, a in zip(values, arrays, strict=True) if v is not None})[0]


# ---- what every entry has -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_complete(name: str) -> None:
    op = OPS[name]
    assert op.name == name
    assert op.doc.endswith((".", "`.", "`"))
    assert op.group
    assert op.params is None or len({p.name for p in op.params}) == len(op.params)


def test_names_are_unique() -> None:
    from graphdsl.ops import table

    entries = [v for file in table.ENTRY_FILES for v in vars(file).values() if isinstance(v, Op)]
    assert len({id(e) for e in entries}) == len({e.name for e in entries})


# ---- elementwise entries: for every dtype and shape ------------------------------------------------------

SPECIAL = {
    F64: np.array([0.0, -0.0, 1.0, -2.5, 0.5, np.inf, -np.inf, np.nan, 5e-324, -1e308, 3.0, 1e300]),
    F32: np.array([0.0, -0.0, 1.0, -2.5, 0.5, np.inf, -np.inf, np.nan, 1e-45, -3e38, 3.0, 1e30], np.float32),
    I64: np.array([0, 1, -1, 5, -7, 2**63 - 1, -(2**63), 3]),
    I32: np.array([0, 1, -1, 5, -7, 2**31 - 1, -(2**31), 3], np.int32),
    BOOL: np.array([False, True]),
}
ATTRS: dict[str, dict[str, Any]] = {
    "cast": {"dtype": F64},
    "powi": {"k": 3},
    "polygamma": {"order": 1},
    "bell": {"half": True},
    "in_range": {"axis": 0},
    "same_size": {"axes": (0, 1)},
}


def arity(op: Op) -> int:
    assert isinstance(op.compute, Elementwise)
    return {"where": 3}.get(op.name, len(op.params) if op.params else op.compute.body.__code__.co_argcount - 1)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_types_are_what_is_computed(name: str) -> None:
    op = OPS[name]
    for dtypes in itertools.product(DType, repeat=arity(op)):
        arrays = [np.ones(shape, d.numpy) for d, shape in zip(dtypes, ((2, 3), (3,), (2, 1)), strict=False)]
        try:
            made = call(name, *arrays, **ATTRS.get(name, {}))
        except TypeProblem:
            continue
        except Fault as fault:
            found = fault.kind
            assert found in op.faults
            continue
        assert made.shape == np.broadcast_shapes(*(a.shape for a in arrays))


REFERENCES: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "neg": np.negative,
    "abs": np.absolute,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "sqrt": np.sqrt,
}


@pytest.mark.parametrize("name", sorted(REFERENCES))
@pytest.mark.parametrize("dtype", [F64, F32, I64, I32])
def test_elementwise_values_are_numpys(name: str, dtype: DType) -> None:
    x = SPECIAL[dtype]
    args = [x] if arity(OPS[name]) == 1 else [x[:, None], x[None, :]]
    if name in ("floordiv", "mod") and dtype.is_int:
        args[1] = args[1][args[1] != 0][None, :]
    if not dtype.is_float and name in ("round", "sqrt", "div", "isnan", "isinf", "isfinite"):
        args = [a.astype(np.float64) for a in args]
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](*args)
    made = call(name, *args)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)
    if made.dtype.kind == "f" and name not in ("maximum", "minimum"):
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(made)[numbers], np.signbit(expected)[numbers])


def test_extremes_order_zeros_and_propagate_nan() -> None:
    assert not np.signbit(call("maximum", [0.0, -0.0], [-0.0, 0.0])).any()
    assert np.signbit(call("minimum", [0.0, -0.0], [-0.0, 0.0])).all()
    assert np.isnan(call("maximum", [np.nan, 1.0], [1.0, np.nan])).all()


def test_int_division() -> None:
    assert call("floordiv", -(2**63), -1) == -(2**63)
    assert call("mod", -(2**63), -1) == 0
    for name in ("floordiv", "mod"):
        with pytest.raises(Fault, match="division by zero"):
            call(name, [1, 2], [1, 0])


def test_powers() -> None:
    x = np.array([1.5, -2.0, 0.0, 3.0])
    assert (call("powi", x, k=3) == (x * x) * x).all()
    assert (call("powi", x, k=6) == (x * x * x) * (x * x * x)).all()
    with np.errstate(divide="ignore"):
        assert (call("powi", x, k=-2) == 1 / (x * x)).all()
    assert (call("powi", np.nan, k=0) == 1).all()
    assert (call("pow", [3, -2, 7], [4, 3, 0]) == [81, -8, 1]).all()
    assert call("pow", np.int32(3), np.int32(25)) == np.int32((3**25 + 2**31) % 2**32 - 2**31)
    with pytest.raises(Fault, match="negative power"):
        call("pow", 2, -1)
    with pytest.raises(Fault, match="negative power"):
        call("powi", 2, k=-1)


def test_casts_saturate() -> None:
    x = [1.9, -1.9, np.nan, 1e300, -np.inf]
    assert call("cast", x, dtype=I64).tolist() == [1, -1, 0, 2**63 - 1, -(2**63)]
    assert call("cast", [2**32 + 5], dtype=I32).tolist() == [5]
    with pytest.raises(Fault, match="does not fit i32"):
        call("cast", 2**31, dtype=I32, checked=True)


# ---- weakness and promotion ------------------------------------------------------------------------------


def typed(name: str, *types: Type, setting: Setting = SETTING, **attrs: Any) -> Type:
    e = Emit(Block(), setting, NOWHERE)
    made: Value = e.apply(OPS[name], *(Value(t) for t in types), **attrs)
    return made.type


WEAK_INT, WEAK_FLOAT = Type(I64, (), True), Type(F64, (), True)


def test_weak_results() -> None:
    assert typed("add", WEAK_INT, WEAK_INT) == WEAK_INT
    assert typed("add", WEAK_INT, WEAK_FLOAT) == WEAK_FLOAT
    assert typed("mul", Type(F32), WEAK_FLOAT) == Type(F32)
    assert typed("add", Type(I32), WEAK_INT) == Type(I32)
    assert typed("mul", Type(I32), WEAK_FLOAT, setting=Setting(F32)) == Type(F32)
    assert typed("div", WEAK_INT, WEAK_INT) == WEAK_FLOAT
    assert typed("div", Type(I64), WEAK_INT, setting=Setting(F32)) == Type(F32)
    assert typed("exp", WEAK_INT) == WEAK_FLOAT
    assert typed("add", Type(BOOL), Type(BOOL)) == Type(I64)
    assert typed("add", Type(BOOL), WEAK_INT) == WEAK_INT
    assert typed("eq", WEAK_INT, WEAK_FLOAT) == Type(BOOL)
    rows = Type(F64, (3,), True)
    for name in ("sum", "prod", "mean", "var", "std"):
        assert typed(name, rows) == WEAK_FLOAT
        assert typed(name, rows, setting=Setting(F32)) == WEAK_FLOAT
    assert typed("matmul", rows, rows) == WEAK_FLOAT
    assert typed("full", WEAK_FLOAT, sizes=(2,), setting=Setting(F32)) == Type(F32, (2,))
    assert typed("zeros_like", rows, setting=Setting(F32)) == Type(F32, (3,))
    assert typed("linspace", WEAK_INT, WEAK_INT, WEAK_INT, setting=Setting(F32)).dtype is F32
    assert typed("arange", WEAK_INT).dtype is I64
    assert typed("arange", WEAK_FLOAT, setting=Setting(F32)).dtype is F32


def test_totals_of_ints_are_i64() -> None:
    for name in ("sum", "prod"):
        assert typed(name, Type(I32, (3,))) == Type(I64)
        assert typed(name, Type(BOOL, (3,))) == Type(I64)
    assert typed("argmax", Type(F32, (3, 4)), axis=1) == Type(I64, (3,))


# ---- problems ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("matmul", [(2, 64), (32, 5)], {}, "cannot multiply matrices: 64 columns against 32 rows"),
        ("matmul", [(3,), (4, 2)], {}, "cannot multiply: a vector of 3 elements against 4 rows"),
        ("matmul", [(2, 3), (4,)], {}, "cannot multiply: 3 columns against a vector of 4 elements"),
        ("add", [(2, 3), (2,)], {}, "3 against 2 on axis 1"),
        ("sum", [(2, 3)], {"axis": 2}, "axis 2 is out of range for rank 2"),
        ("sum", [(2, 3)], {"axis": (0, -2)}, "axis 0 is named twice"),
        ("reshape", [(2, 3)], {"sizes": (4, -1)}, "cannot reshape 6 elements"),
        ("reshape", [(2, 3)], {"sizes": (7,)}, "cannot reshape 6 elements"),
        ("concat", [(2, 3), (2, 4)], {}, "the items differ on axis 1"),
        ("stack", [(2,), (2, 4)], {}, "different ranks"),
        ("index", [(2, 3)], {"spec": (("full",), ("full",), ("int", 0))}, "which has 2 axes"),
        ("broadcast_to", [(2, 3)], {"sizes": (2, 4)}, "cannot broadcast axis 1"),
    ],
)
def test_problems_name_what_disagrees(name: str, shapes: list[Any], attrs: Any, message: str) -> None:
    with pytest.raises(TypeProblem, match=message):
        typed(name, *(Type(F64, s) for s in shapes), **attrs)


@pytest.mark.parametrize(
    ("name", "args", "attrs", "message"),
    [
        ("index", [np.ones(3), 5], {"spec": (("int",),)}, "out of range"),
        ("index", [np.ones(3), [0, -4]], {"spec": (("tensor",),)}, "out of range"),
        ("index", [np.ones(3), 0], {"spec": (("slice", None, None, "v"),)}, "step"),
        ("index", [np.ones((3, 3)), [0, 1], [0, 1, 2]], {"spec": (("tensor",), ("tensor",))}, "do not fit"),
        ("index", [np.ones(3), [True, False]], {"spec": (("mask",),)}, "mask"),
        ("reshape", [np.ones(6), 4], {"sizes": (None,)}, "reshape"),
        ("zeros", [-1], {"sizes": (None,)}, "negative"),
        ("update", [np.ones(3), np.ones(2)], {"spec": (("full",),)}, "do not fit"),
        ("concat", [np.ones((2, 3)), np.ones((2, 4))], {}, "differ"),
    ],
)
def test_faults_at_run_time(name: str, args: list[Any], attrs: Any, message: str) -> None:
    with pytest.raises(Fault, match=message) as caught:
        call(name, *args, unknown=True, **attrs)
    declared = [f for op in OPS.values() for f in op.faults]
    assert caught.value.kind in declared
    caught.value.kind.diagnostic(NOWHERE, caught.value.numbers)  # the texts take these numbers


# ---- movement against NumPy ---------------------------------------------------------------------------

X = np.arange(24.0).reshape(2, 3, 4)
SPECS: list[tuple[tuple[Any, ...], list[Any], Any]] = [
    ((("int", 1),), [], np.s_[1]),
    ((("int",), ("int",)), [-1, 2], np.s_[-1, 2]),
    ((("full",), ("slice", 1, None, None)), [], np.s_[:, 1:]),
    ((("slice", None, None, -1), ("slice", "v", "v", 2)), [-3, 9], np.s_[::-1, -3:9:2]),
    ((("slice", 9, None, -2),), [], np.s_[9::-2]),
    ((("full",), ("tensor",)), [[2, 0, 2, 1]], np.s_[:, [2, 0, 2, 1]]),
    ((("tensor",), ("tensor",)), [[[1], [0]], [0, 2]], np.s_[[[1], [0]], [0, 2]]),
    ((("new",), ("int", 0), ("full",), ("new",)), [], np.s_[None, 0, :, None]),
    ((("mask",),), [X[:, :, 0] > 3], np.s_[X[:, :, 0] > 3]),
    ((("full",), ("full",), ("mask",)), [[True, False, True, True]], np.s_[:, :, [True, False, True, True]]),
]


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize(("spec", "operands", "key"), SPECS)
def test_indexing_is_numpys(spec: Any, operands: list[Any], key: Any, sizes: bool) -> None:
    np.testing.assert_array_equal(call("index", X, *operands, spec=spec, unknown=sizes), X[key])
    v = -np.arange(1.0, X[key].size + 1).reshape(X[key].shape)
    expected = X.copy()
    expected[key] = v
    np.testing.assert_array_equal(call("update", X, v, *operands, spec=spec, unknown=sizes), expected)
    expected = X.copy()
    np.add.at(expected, key, v)
    np.testing.assert_array_equal(call("index_add", X, v, *operands, spec=spec, unknown=sizes), expected)


def test_an_int_beside_tensors_keeps_the_axes_in_place() -> None:
    made = call("index", X, [0, 1, 1], spec=(("int", 1), ("full",), ("tensor",)))
    np.testing.assert_array_equal(made, X[1][:, [0, 1, 1]])


@pytest.mark.parametrize("sizes", [False, True])
def test_movement_is_numpys(sizes: bool) -> None:
    def check(name: str, expected: Any, *args: Any, **attrs: Any) -> None:
        np.testing.assert_array_equal(call(name, *args, unknown=sizes, **attrs), expected)

    check("reshape", X.reshape(4, 6), X, sizes=(4, -1))
    check("transpose", X.T, X)
    check("transpose", X.transpose(1, 0, 2), X, axes=(1, 0, -1))
    check("swapaxes", X.swapaxes(0, -1), X, axis1=0, axis2=-1)
    check("flatten", X.flatten(), X)
    check("flip", np.flip(X, 1), X, axis=1)
    check("expand_dims", X[:, :, :, None], X, axis=-1)
    check("squeeze", X[:1, 0], X[:1, :1], axis=1)
    check("concat", np.concatenate([X, X[:, :1]], 1), X, X[:, :1], axis=1)
    check("stack", np.stack([X, -X], -1), X, -X, axis=-1)
    check("broadcast_to", np.broadcast_to(X[0], (5, 3, 4)), X[0], sizes=(5, 3, 4))
    check("shape", [2, 3, 4], X)
    check("size", 24, X)
    check("eye", np.eye(2, 3), 2, 3)
    check("arange", np.arange(7, -2, -3), 7, -2, -3)
    check("arange", np.arange(0.0, 1.0, 0.25), 0.0, 1.0, 0.25)
    check("linspace", np.linspace(0, 1, 5), 0.0, 1.0, 5)
    check("outer", np.outer([1.0, 2.0], [3.0, 4.0]), [1.0, 2.0], [3.0, 4.0])
    check("mean", X.mean((0, 2)), X, axis=(0, 2))
    check("var", X.var(-1, ddof=1), X, axis=-1, ddof=1)
    check("cumsum", X.cumsum(1), X, axis=1)
    check("cumprod", X.cumprod(-1), X)
    check("sort", np.sort(-X, 1), -X, axis=1)
    check("argsort", [2, 0, 1], [3.0, np.nan, 1.0])
    check("tril", np.tril(X, 1), X, k=1)
    check("triu", np.triu(X), X)
    check("diag", np.diag(X[0], -1), X[0], k=-1)
    check("diag", np.diag([1.0, 2.0], 1), [1.0, 2.0], k=1)
    check("trace", X[0].trace(), X[0])
    check("roll", np.roll(X, 5), X, 5)
    check("roll", np.roll(X, -1, 1), X, -1, axis=1)
    check("take", np.take(X, [23, -1, 0]), X, [23, -1, 0])
    check("take", np.take(X, [2, 0], 1), X, [2, 0], axis=1)
    check("one_hot", np.eye(3)[[1, 0]], [1, 0], 3)
    check("count_nonzero", 23, X)
    check("norm", np.sqrt((X * X).sum(2)), X, axis=2)
    check("clamp", X.clip(None, 5), X, None, 5.0)


def test_functions_of_infinities() -> None:
    inf = np.inf
    assert call("logsumexp", [1000.0, 1000.0]) == 1000 + np.log(2)
    assert call("logsumexp", [-inf, -inf]) == -inf
    assert call("logsumexp", [inf, 1.0]) == inf
    assert call("softmax", [1000.0, 1000.0, -inf]).tolist() == [0.5, 0.5, 0]
    made = call("softplus", [-800.0, -40.0, 0.0, 50.0, inf, -inf, np.nan])
    np.testing.assert_allclose(made, np.logaddexp(0, [-800.0, -40.0, 0.0, 50.0, inf, -inf, np.nan]), rtol=1e-15)


def test_known_sizes_stay_known() -> None:
    n = Size("n")
    x = Type(F64, (n, 3))
    assert typed("flatten", Type(F64, (n,))).shape == (n,)
    assert typed("flip", x, axis=0).shape == (n, 3)
    assert typed("sum", x, axis=1, keepdims=True).shape == (n, 1)
    assert typed("add", x, Type(F64, (3,))).shape == (n, 3)
    assert typed("squeeze", Type(F64, (n, 1)), axis=1).shape == (n,)
    e = emitter()
    e.add(Value(x), Value(x))
    applied = e.block.body[-1]
    assert isinstance(applied, Apply)
    assert not applied.fails

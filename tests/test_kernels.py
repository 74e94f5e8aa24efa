"""What eager mode calls for each op: types of results, bits against NumPy where they are NumPy's, and faults in their
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphdsl.native.inventory import arity
from graphdsl.native.names import WORTH_SHARING
from graphdsl.ops import faults
from graphdsl.ops.op import Elementwise, Op, Setting, TypeProblem, Typing
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Size, Type
from graphdsl.runtime import python_code, threads
from graphdsl.runtime.kernels import kernel
from graphdsl.source.diagnostic import Fault
from tests.bits import numbers, without_faults
from tests.test_native_scalar import exact_fma, same_bits

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
PYTHON = {F64: float, F32: np.float32, I32: int, I64: int, BOOL: bool}
ATTRS: dict[str, dict[str, Any]] = {
    "cast": {"dtype": F32, "checked": False},
    "powi": {"k": 3},
    "polygamma": {"order": 1},
    "bell": {"half": True},
    "in_range": {"axis": 0},
    "same_size": {"axes": (0, 1)},
}
ELEMENTWISE = sorted(name for name, op in OPS.items() if isinstance(op.compute, Elementwise))


def made(name: str, *types: Type, own: bool = False, **attrs: Any) -> Any:
    op = OPS[name]
    typing = op.typing(Setting(F64), types, attrs)
    return kernel(op, types, attrs if typing.attrs is None else typing.attrs, own)


def signatures(op: Op) -> Iterator[tuple[DType, ...]]:
    """The dtypes that an elementwise op takes without conversion."""
    attrs = ATTRS.get(op.name, {})
    for dtype in DType:
        for first in {dtype, BOOL}:
            dtypes = (first, *[dtype] * (arity(op) - 1))
            try:
                if op.typing(Setting(F64), tuple(Type(d) for d in dtypes), attrs).operands == dtypes:
                    yield dtypes
            except TypeProblem:
                continue


def operands(op: Op, dtypes: tuple[DType, ...], size: int) -> list[np.ndarray]:
    return without_faults(op, ATTRS.get(op.name, {}), [numbers(d, (size,), i) for i, d in enumerate(dtypes)])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_over_numbers_arrays_and_both(name: str) -> None:
    """The same bits, whether an element stands alone, in an array, in a strided one, or beside a number."""
    op = OPS[name]
    for dtypes in signatures(op):
        attrs = ATTRS.get(name, {})
        out = op.typing(Setting(F64), tuple(Type(d) for d in dtypes), attrs).outs[0].dtype
        xs = operands(op, dtypes, 203)
        whole = made(name, *(Type(d, (203,)) for d in dtypes), **attrs)(*xs)
        assert whole.dtype == np.dtype(out.numpy)
        single = made(name, *(Type(d) for d in dtypes), **attrs)
        alone = [single(*(PYTHON[d](x[i]) for d, x in zip(dtypes, xs, strict=True))) for i in range(203)]
        assert {type(x) for x in alone} == {PYTHON[out]}, dtypes
        same_bits(np.array(alone, out.numpy), whole)
        same_bits(made(name, *(Type(d, (102,)) for d in dtypes), **attrs)(*(x[::-2] for x in xs)), whole[::-2])
        if len(dtypes) > 1:
            mixed = made(name, *(Type(d) for d in dtypes[:-1]), Type(dtypes[-1], (2, 203)), **attrs)
            first = [np.full_like(x, x[5]) for x in xs[:-1]]
            *first, last = without_faults(op, attrs, [*first, xs[-1]])
            numbers_first = [PYTHON[d](x[0]) for d, x in zip(dtypes[:-1], first, strict=True)]
            expected = [single(*numbers_first, PYTHON[dtypes[-1]](v)) for v in last]
            same_bits(mixed(*numbers_first, np.stack([last] * 2)), np.array([expected] * 2, out.numpy))


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if getattr(OPS[n].compute, "numpy", None)])
def test_python_steps_have_the_bits_of_numpy(name: str) -> None:
    """Bodies as Python do what the entry says that NumPy does."""
    op = OPS[name]
    compute = op.compute
    assert isinstance(compute, Elementwise)
    assert compute.numpy
    for dtypes in signatures(op):
        if not (compute.numpy_ints or dtypes[-1].is_float):
            continue
        xs = operands(op, dtypes, 500)
        same_bits(python_code.function(compute.body, dtypes, False)(*xs), getattr(np, compute.numpy)(*xs))


# ---- faults -------------------------------------------------------------------------------------------


def fault(run: Any, *args: Any) -> tuple[Any, tuple[Any, ...]]:
    with pytest.raises(Fault) as caught:
        run(*args)
    return caught.value.kind, caught.value.numbers


@pytest.mark.parametrize("dtype", [I32, I64])
def test_division_by_zero(dtype: DType) -> None:
    for name in ("floordiv", "mod"):
        assert fault(made(name, Type(dtype), Type(dtype)), 1, 0) == (faults.DIVISION, ())
        vector = Type(dtype, (100,))
        x, y = np.ones(100, dtype.numpy), np.ones(100, dtype.numpy)
        assert made(name, vector, vector)(x, y).shape == (100,)
        y[97] = 0
        assert fault(made(name, vector, vector), x, y) == (faults.DIVISION, ())
        assert fault(made(name, Type(dtype), vector), 3, y) == (faults.DIVISION, ())


def test_the_first_element_in_row_major_order_counts() -> None:
    square = Type(I64, (30, 40))
    k = np.ones((30, 40), "i8")
    k[20, 3], k[20, 2], k[29, 0] = -5, -6, -7
    assert fault(made("pow", square, square), k, k) == (faults.NEGATIVE_POWER, (-6,))
    turned = np.asfortranarray(k)
    assert fault(made("pow", square, square), turned, turned) == (faults.NEGATIVE_POWER, (-6,))
    assert fault(made("pow", square, Type(I64, (40,))), k, k[20]) == (faults.NEGATIVE_POWER, (-6,))
    assert fault(made("pow", Type(I64), Type(I64)), 2, -1) == (faults.NEGATIVE_POWER, (-1,))
    assert fault(made("in_range", Type(I64, (3,)), Type(I64), axis=1), np.array([0, -8, 9]), 7) == (
        faults.INDEX,
        (-8, 7, 1),
    )
    assert fault(made("in_range", Type(I64), Type(I64), axis=0), 7, 7) == (faults.INDEX, (7, 7, 0))


def test_checked_cast() -> None:
    cast = {"dtype": I32, "checked": True}
    assert made("cast", Type(I64, (), True), **cast)(-5) == -5
    assert fault(made("cast", Type(I64, (), True), **cast), 2**31) == (faults.WEAK_I32, (2**31,))
    x = np.array([1, 2**40, 2**33])
    assert fault(made("cast", Type(I64, (3,), True), **cast), x) == (faults.WEAK_I32, (2**40,))


def test_sizes_that_do_not_fit() -> None:
    n, m = Size("n"), Size("m")
    run = made("add", Type(F64, (3, n)), Type(F64, (m,)))
    assert run(np.ones((3, 4)), np.ones(4)).shape == (3, 4)
    assert fault(run, np.ones((3, 4)), np.ones(5)) == (faults.BROADCAST, (4, 5, 1))
    run = made("maximum", Type(F64, (n,)), Type(F64, (m,)))
    assert fault(run, np.ones(4), np.ones(5)) == (faults.BROADCAST, (4, 5, 0))
    run = made("where", Type(BOOL, (n,)), Type(F64, (m,)), Type(F64))
    assert fault(run, np.ones(4, bool), np.ones(3), 1.0) == (faults.BROADCAST, (4, 3, 0))


def test_products_that_do_not_fit() -> None:
    n, m = Size("n"), Size("m")
    run = made("matmul", Type(F64, (2, n)), Type(F64, (m, 2)))
    assert run(np.ones((2, 3)), np.ones((3, 2))).shape == (2, 2)
    assert fault(run, np.ones((2, 3)), np.ones((4, 2))) == (faults.INNER, (3, 4))
    assert fault(made("matmul", Type(F64, (n,)), Type(F64, (m,))), np.ones(3), np.ones(4)) == (
        faults.INNER_VECTORS,
        (3, 4),
    )
    run = made("matmul", Type(F64, (n, 2, 3)), Type(F64, (m, 3, 2)))
    assert fault(run, np.ones((2, 2, 3)), np.ones((3, 3, 2))) == (faults.BROADCAST, (2, 3, 0))


def test_extremes_of_nothing() -> None:
    n = Size("n")
    assert fault(made("max", Type(F64, (3, n)), axis=1), np.ones((3, 0))) == (faults.EMPTY, (1,))
    assert made("max", Type(F64, (3, n)), axis=0)(np.ones((3, 0))).shape == (0,)
    assert made("sum", Type(F64, (3, n)))(np.ones((3, 0))) == 0


# ---- the rest -----------------------------------------------------------------------------------------


def test_where_of_two_ints_is_i32() -> None:
    assert made("where", Type(BOOL, (2,)), Type(I32), Type(I32))(np.array([True, False]), 1, 2).dtype == np.int32


def test_sum_to() -> None:
    n, m = Size("n"), Size("m")
    g = np.arange(24.0).reshape(2, 3, 4)
    run = made("sum_to", Type(F64, (2, n, 4)), Type(F64, (m, 4)))
    same_bits(run(g, np.ones((3, 4))), g.sum(0))
    same_bits(run(g, np.ones((1, 4))), g.sum((0, 1))[None])
    assert made("sum_to", Type(F64, (2, n, 4)), Type(F64))(g, 1.0) == g.sum()
    same = made("sum_to", Type(F64, (n,)), Type(F64, (m,)))
    x = np.ones(3)
    assert same(x, x) is x


@pytest.mark.parametrize("guard", [(), (0,), (1,), (0, 1)])
def test_matmul_of_every_rank(guard: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for left, right in (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
    ):
        a, b = rng.normal(size=left), rng.normal(size=right)
        run = made("matmul", Type(F64, left), Type(F64, right), guard=guard)
        np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-12)
        for i in guard:
            zero = [a, b]
            zero[i] = np.zeros_like(zero[i])
            zero[1 - i] = np.full_like(zero[1 - i], np.inf)
            assert not np.any(run(*zero))
            assert np.shape(run(*zero)) == np.shape(a @ b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((300, 200), (200, 250)),
        ((250, 200), (200, 300)),
        ((6, 300, 40), (40, 50)),
        ((5, 40, 64), (5, 64, 48)),
        ((1, 3, 40, 64), (2, 1, 64, 48)),
        ((4096,), (4096, 100)),
    ],
)
@pytest.mark.parametrize("guard", [(), (0,), (1,), (0, 1)])
def test_threads_change_no_bit_of_a_product(
    left: tuple[int, ...], right: tuple[int, ...], guard: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=left), rng.normal(size=right)
    a.ravel()[: a.size // 2] = 0.0  # a guard is about all of an operand, also where a part is 0
    b[..., -1] = np.inf
    assert np.prod(left) * right[-1] >= WORTH_SHARING
    before = threads.count()
    results = []
    try:
        for number in (1, 2, 5):
            threads.choose(number)
            results.append(made("matmul", Type(F64, left), Type(F64, right), guard=guard)(a, b))
    finally:
        threads.choose(before)
    same_bits(results[0], results[1])
    same_bits(results[0], results[2])
    assert np.isnan(results[0]).any()


def test_writing_in_place_only_where_nobody_looks() -> None:
    run = made("update", Type(F64, (5,)), Type(F64), Type(I64), own=True, spec=(("at",),))
    x = np.zeros(5)
    box = [x]
    y = run(box, 1.0, 2)
    assert x[2] == 0
    assert y[2] == 1
    address = y.ctypes.data
    box = [y]
    del y
    z = run(box, 3.0, 0)
    assert z.ctypes.data == address
    assert list(z) == [3, 0, 1, 0, 0]
    part = [np.zeros(10)[2:7]]
    assert list(run(part, 1.0, 1)) == [0, 1, 0, 0, 0]
    copying = made("index_add", Type(F64, (5,)), Type(F64), Type(I64), spec=(("at",),))
    assert list(copying(z, 2.0, 0)) == [5, 0, 1, 0, 0]
    assert z[0] == 3


def test_index_of_places() -> None:
    x = np.arange(6.0).reshape(2, 3)
    both = made("index", Type(F64, (2, 3)), Type(I64), Type(I64), spec=(("at",), ("at",)))(x, 1, 2)
    assert both == 5.0
    assert type(both) is float
    assert list(made("index", Type(F64, (2, 3)), Type(I64), spec=(("at",),))(x, 1)) == [3, 4, 5]
    assert type(made("index", Type(F32, (3,)), Type(I64), spec=(("at",),))(np.ones(3, "f4"), 1)) is np.float32


def test_bodies_that_attrs_change_are_compiled_apart() -> None:
    """Where they need native code; with other attrs it is another kernel."""

    def body(code: Any, x: Any, *, times: int) -> Any:
        for _ in range(times):
            x = code.fma(x, x, code.const(x.dtype, 0.25))
        code.fail(x > 1e9, faults.STEP)
        return x

    op = replace(
        OPS["exp"],
        name="trial",
        faults=(faults.STEP,),
        compute=Elementwise(body),
        typing=lambda s, t, a: Typing((F64,), (t[0],), True),
    )
    x = np.linspace(-1, 1, 101)
    for times in (1, 2):
        expected = x
        for _ in range(times):
            expected = np.array([exact_fma(v, v, 0.25, F64) for v in expected])
        same_bits(kernel(op, (Type(F64, (101,)),), {"times": times})(x), expected)
        assert kernel(op, (Type(F64),), {"times": times})(float(x[7])) == expected[7]

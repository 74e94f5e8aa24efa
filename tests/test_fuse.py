"""Fusion: which ops become one kernel, what stays apart, and that no bit changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from graphdsl.core.clone import clone_block
from graphdsl.core.ir import Apply, Func, Print, Value
from graphdsl.core.verify import verify_funcs
from graphdsl.graph.ir import Fused
from graphdsl.graph.passes.fuse import fuse
from graphdsl.native.program.compiled import compile_graph
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I64, Size
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import ProgramError
from tests.hand_built import SPAN, Hand, same

RNG = np.random.default_rng(3)


def numbers(*shape: int, dtype: str = "f8") -> Any:
    return RNG.normal(size=shape).astype(dtype)


def fused(h: Hand, *outs: Value) -> Func:
    func = h.func(*outs)
    fuse(func)
    verify_funcs(func)
    return func


def names(func: Func) -> list[Any]:
    """The instructions of main: an op's name, or the names of the ops of a kernel."""
    found: list[Any] = []
    for instr in func.body.body:
        if isinstance(instr, Fused):
            found.append([i.op.name for i in instr.body.body if isinstance(i, Apply)])
        elif isinstance(instr, Apply):
            found.append(instr.op.name)
    return found


def kernels(func: Func) -> list[list[str]]:
    return [n for n in names(func) if isinstance(n, list)]


def check(h: Hand, *outs: Value) -> Func:
    """Fused and not, the results are the same; gives the fused graph."""
    plain = h.func(*outs)
    copy = Func("main", clone_block(plain.body, {}, lambda f: f), SPAN)
    wanted = compile_graph(copy, cache=False).run(Runtime(), h.feeds)
    func = fused(h, *outs)
    got = compile_graph(func, cache=False).run(Runtime(), h.feeds)
    for a, b in zip(got, wanted, strict=True):
        assert same(a, b)
    return func


def test_value_and_gradients_are_one_kernel() -> None:
    h, n = Hand(), Size()
    x, w = h.feed(numbers(10_000, dtype="f4"), (n,)), h.feed(numbers(10_000, dtype="f4"), (n,))
    e = h.e
    z = e.add(e.mul(x, w), e.const(0.3, F32))
    loss = e.div(e.sum(e.mul(z, z), axes=(0,), keepdims=False), e.cast(e.dim(x, axis=0), dtype=F32))
    g = e.broadcast_like(e.div(e.const(2.0, F32), e.cast(e.dim(z, axis=0), dtype=F32)), z, axes=())
    gz = e.mul(g, z)
    func = check(h, loss, e.mul(gz, w), e.mul(gz, x))
    (kernel,) = kernels(func)
    assert sorted(kernel) == ["add", "broadcast_like", *["mul"] * 5, "sum"]


def test_what_depends_on_a_sum_comes_after_it() -> None:
    h = Hand()
    x = h.feed(numbers(100))
    e = h.e
    mean = e.div(e.sum(x, axes=(0,), keepdims=False), e.const(100.0, F64))
    centred = e.sub(x, mean)
    repeated = e.sub(x, e.broadcast_like(mean, x, axes=()))
    check(h, e.sum(e.mul(centred, centred), axes=(0,), keepdims=False), repeated)


def test_a_value_that_several_kernels_use_is_stored_once() -> None:
    h = Hand()
    a, b = h.feed(numbers(30, 40)), h.feed(numbers(40, 30))
    e = h.e
    x = e.mul(e.add(a, a), a)
    func = check(h, e.matmul(x, b), e.sub(x, a), e.transpose(e.neg(x), perm=(1, 0)))
    assert ["add", "mul", "sub", "neg"] in kernels(func)


def test_what_fails_stays_where_it_is() -> None:
    h = Hand()
    x, n = h.feed(np.array([6, 4])), h.feed(np.array([3, 0]))
    e = h.e
    twice = e.add(x, x)
    h.print(x)
    quotient = e.floordiv(twice, n)
    h.print(e.mul(quotient, x))
    func = fused(h)
    assert [i for i in names(func) if i == "floordiv" or isinstance(i, list)] == ["floordiv"]
    sink = Recorded()
    with pytest.raises(ProgramError, match="division by zero"):
        compile_graph(func, cache=False).run(Runtime(sink=sink), h.feeds)
    assert len(sink.events) == 1


def test_effects_keep_their_order() -> None:
    h = Hand()
    x = h.feed(numbers(5))
    y = h.e.add(x, x)
    h.print(y)
    z = h.e.mul(y, x)
    h.print(z)
    h.print(h.e.sub(z, y))
    func = fused(h)
    (kernel,) = kernels(func)
    assert kernel == ["add", "mul", "sub"]
    places = [i for i, instr in enumerate(func.body.body) if isinstance(instr, Print)]
    assert len(places) == 3


def test_zeros_are_made_where_they_are_used() -> None:
    h = Hand()
    x = h.feed(numbers(7, 3))
    zeros = h.e.zeros(sizes=(7, 3), dtype=F64)
    func = check(h, h.e.sum(h.e.add(h.e.mul(x, x), zeros), axes=(0, 1), keepdims=False))
    assert names(func) == [["mul", "zeros", "add", "sum"]]


def test_sizes_only_the_run_can_tell_are_checked_before() -> None:
    for columns in (4, 1):
        h = Hand()
        x, y = h.feed(numbers(6, 4), (Size(), 4)), h.feed(numbers(6, columns), (Size(), Size()))
        func = check(h, h.e.mul(h.e.add(x, y), x))
        assert "fits" in names(func)
    h.feeds["x1"] = numbers(6, 3)
    with pytest.raises(ProgramError, match="the sizes 4 and 3 on axis 1"):
        compile_graph(func, cache=False).run(Runtime(), h.feeds)


def test_products_read_through_transposes() -> None:
    h = Hand()
    a, b, v = h.feed(numbers(5, 7)), h.feed(numbers(5, 3)), h.feed(numbers(5))
    e = h.e
    turned = e.transpose(a, perm=(1, 0))
    func = check(h, e.matmul(turned, b), e.matmul(turned, v), e.matmul(e.transpose(b, perm=(1, 0)), a))
    assert "transpose" not in names(func)


def _grow(h: Hand, choice: random.Random, values: list[Value]) -> Value:
    """One more value, by an op chosen at random."""
    e = h.e
    floats = [v for v in values if v.type.dtype is F64]
    full = [v for v in floats if v.type.rank == 2]
    x, y, z = (choice.choice(floats) for _ in range(3))
    m = choice.choice(full)
    rows, columns = m.type.shape
    match choice.randrange(14):
        case 0 | 1 | 2:
            return e.apply(OPS[choice.choice(["add", "sub", "mul", "maximum", "minimum"])], x, y)
        case 3:
            return e.where(e.lt(x, y), y, z)
        case 4:
            return e.cast(e.cast(x, dtype=F32), dtype=F64)
        case 5:
            return e.transpose(e.transpose(m, perm=(1, 0)), perm=(1, 0))
        case 6:
            return e.index(m, spec=(("slice", None, None, -1), ("full",)))
        case 7:
            return e.sum(m, axes=(0, 1), keepdims=choice.random() < 0.5)
        case 8:
            return e.sum(m, axes=(choice.randrange(2),), keepdims=True)
        case 9:
            return e.broadcast_like(e.sum(m, axes=(1,), keepdims=False), m, axes=(1,))
        case 10:
            return e.sum_to(m, choice.choice([v for v in floats if not v.type.rank or v.type.shape == (rows, columns)]))
        case 11:
            return e.update(m, e.const(2.5, F64), e.const(0, I64), spec=(("int",), ("full",)))
        case 12:
            return e.zeros_like(m)
        case _:
            return e.index(e.concat(m, m, axis=0), spec=(("slice", 0, rows, None), ("full",)))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_keep_their_bits(seed: int) -> None:
    choice = random.Random(seed)
    h = Hand()
    rows, columns = choice.choice([(5, 7), (33, 8), (130, 67), (2, 1)])
    values = [
        h.feed(numbers(rows, columns)),
        h.feed(numbers(rows, columns)),
        h.feed(numbers(1, columns)),
        h.feed(numbers(rows, 1)),
        h.feed(numbers(columns)),
        h.feed(numbers().item()),
    ]
    for _ in range(25):
        values.append(_grow(h, choice, values))
    kept = [v for v in values[6:] if choice.random() < 0.4] or values[-1:]
    check(h, *kept)


def test_bools_and_ints_in_one_kernel() -> None:
    h = Hand()
    x = h.feed(numbers(100))
    i = h.feed(RNG.integers(-5, 5, 100).astype("i4"))
    e = h.e
    odd = e.ne(e.and_(i, e.const(1, I64)), e.const(0, I64))
    above = e.gt(x, e.const(0.0, F64))
    both = e.and_(odd, above)
    assert both.type.dtype is BOOL
    check(h, both, e.where(both, x, e.neg(x)), e.sum(e.cast(both, dtype=I64), axes=(0,), keepdims=False))

"""Graphs as native code: regions, tensors in every layout, buffers, tapes, faults, interruptions."""

from __future__ import annotations

import os
import signal
import threading
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from graphdsl.core.ir import Block, Call, Fail, Func, Leaf, Value
from graphdsl.graph.ir import NewTape, Push, Read, Record
from graphdsl.graph.passes.fuse import fuse
from graphdsl.native.elf import Object, usable
from graphdsl.native.program.compiled import compile_graph
from graphdsl.native.support.library import support_object
from graphdsl.native.support.words import SUPPORT, Word
from graphdsl.ops.types import F64, I64, DType, Size, Type
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.limits import Limits
from graphdsl.runtime.state import Runtime
from graphdsl.runtime.threads import choose, count
from graphdsl.source.diagnostic import FaultKind, ProgramError
from tests.hand_built import SPAN, Hand, same

RNG = np.random.default_rng(7)


def numbers(*shape: int, dtype: str = "f8") -> Any:
    return RNG.normal(size=shape).astype(dtype)


# ---- regions ----------------------------------------------------------------------------------------


def test_a_while_loop_of_scalars() -> None:
    h = Hand()
    a, _ = h.while_(
        [h.e.const(0.0, F64), h.e.const(1e4, F64)],
        lambda e, a, b: e.lt(a, b),
        lambda e, a, b: (e.add(a, e.const(2.0, F64)), e.add(b, e.const(1.0, F64))),
    )
    assert h.run(a) == [20_000.0]


@pytest.mark.parametrize("count", [0, -3, 1, 7])
def test_a_counted_loop_makes_its_trips(count: int) -> None:
    h = Hand()
    n = h.feed(np.int64(count))
    total, x = h.loop(
        n,
        [h.e.const(0, I64), h.feed(np.arange(3.0))],
        lambda e, i, t, x: (e.add(t, i), e.mul(x, e.const(2.0, F64))),
    )
    trips = max(count, 0)
    got = h.run(total, x)
    assert got[0] == sum(range(trips))
    assert same(got[1], np.arange(3.0) * 2.0**trips)


@pytest.mark.parametrize("which", [True, False])
def test_a_branch_takes_one_side(which: bool) -> None:
    h = Hand()
    x = h.feed(numbers(4))
    y = h.e.add(x, x)
    s, t = h.branch(
        h.feed(np.bool_(which)),
        lambda e: (e.const(1, I64), e.mul(y, y)),
        lambda e: (e.const(2, I64), y),
        [Type(I64), y.type],
    )
    got = h.run(s, t, y)
    twice = h.feeds["x0"] * 2
    assert got[0] == (1 if which else 2)
    assert same(got[1], twice * twice if which else twice)
    assert same(got[2], twice)


def test_functions_get_and_give_tensors() -> None:
    a, b = Value(Type(F64, (3,))), Value(Type(F64))
    body = Block([a, b])
    e = Hand.emit(body)
    body.yields = [e.mul(a, b), e.add(b, b)]
    func = Func("f", body, SPAN)
    h = Hand()
    x = h.feed(numbers(3))
    outs = []
    for k in (2.0, 3.0):
        made = (Value(a.type), Value(b.type))
        h.block.body.append(Call(SPAN, func, (x, h.e.const(k, F64)), made))
        outs.extend(made)
    got = h.run(*outs, x)
    assert same(got[0], h.feeds["x0"] * 2.0)
    assert same(got[2], h.feeds["x0"] * 3.0)
    assert got[1::2][:2] == [4.0, 6.0]
    assert same(got[4], h.feeds["x0"])


def test_else_if_chains_may_be_long() -> None:
    h = Hand()
    n = h.feed(np.int64(2_990))
    value: Any = None

    def chain(e: Any, k: int) -> Any:
        return e.const(k, I64)

    for k in range(3_000):
        before = value
        test = h.e.eq(n, h.e.const(k, I64))
        (value,) = h.branch(
            test, lambda e, k=k: (chain(e, k),), lambda e, b=before: (b or e.const(-1, I64),), [Type(I64)]
        )
    assert h.run(value) == [2_990]


# ---- kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 100, 4097])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_elements_of_any_number(n: int, dtype: str) -> None:
    h, size = Hand(), Size()
    x, y = (numbers(n) * 10).astype(dtype), (numbers(n) * 10).astype(dtype)
    a, b = h.feed(x, (size,)), h.feed(y, (size,))
    got = h.run(h.e.add(h.e.mul(a, b), a), h.e.lt(a, b), h.e.neg(a))
    assert all(map(same, got, (x * y + x, x < y, -x)))


@pytest.mark.parametrize(
    "shapes", [((5, 7, 3), (7, 1)), ((4, 1), (5,)), ((2, 3, 4), (3, 4)), ((6,), ()), ((1, 9), (1,))]
)
@pytest.mark.parametrize("known", [True, False])
def test_broadcasting(shapes: tuple[tuple[int, ...], ...], known: bool) -> None:
    h = Hand()
    arrays = [numbers(*s) for s in shapes]
    values = [h.feed(a, None if known else tuple(Size() for _ in a.shape)) for a in arrays]
    assert same(h.run(h.e.sub(*values))[0], arrays[0] - arrays[1])


def test_sizes_that_do_not_fit_are_a_fault() -> None:
    h = Hand()
    a, b = h.feed(numbers(5, 7), (Size(), 7)), h.feed(numbers(4, 7), (Size(), 7))
    with pytest.raises(ProgramError, match="the sizes 5 and 4 on axis 0"):
        h.run(h.e.add(a, b))


def test_what_moves_elements() -> None:
    h, e = Hand(), None
    x = numbers(6, 5)
    a, e = h.feed(x), h.e
    i = h.feed(np.array([1, -1, 3]))
    outs = {
        e.transpose(a, perm=(1, 0)): x.T,
        e.index(a, spec=(("full",), ("slice", None, None, -2))): x[:, ::-2],
        e.index(a, spec=(("int", -2),)): x[-2],
        e.index(a, spec=(("int", 2), ("int", 3))): x[2, 3],
        e.index(a, spec=(("slice", 1, 4, None),)): x[1:4],
        e.index(a, spec=(("new",), ("int", 1), ("new",))): x[None, 1, None],
        e.index(a, i, spec=(("tensor",),)): x[[1, -1, 3]],
        e.index(a, i, spec=(("full",), ("tensor",))): x[:, [1, -1, 3]],
        e.reshape(a, sizes=(3, -1)): x.reshape(3, 10),
        e.concat(a, a, axis=1): np.concatenate([x, x], 1),
        e.stack(a, a, axis=1): np.stack([x, x], 1),
        e.broadcast_to(a, sizes=(2, 6, 5)): np.broadcast_to(x, (2, 6, 5)),
        e.zeros(sizes=(3, 4), dtype=DType.F32): np.zeros((3, 4), "f4"),
    }
    for got, want in zip(h.run(*outs), outs.values(), strict=True):
        assert same(got, want)


@pytest.mark.parametrize("shape", [(5, 7, 3), (200, 33, 2), (0, 3, 2), (3, 0, 2), (1, 1, 1)])
def test_reductions_over_any_axes(shape: tuple[int, ...]) -> None:
    h = Hand()
    x = numbers(*shape)
    a = h.feed(x)
    outs: dict[Value, Any] = {}
    for axes in (axes for k in (1, 2, 3) for axes in combinations(range(3), k)):
        for keep in (False, True):
            outs[h.e.sum(a, axes=axes, keepdims=keep)] = x.sum(axis=axes, keepdims=keep)
            if x.size:
                outs[h.e.max(a, axes=axes, keepdims=keep)] = x.max(axis=axes, keepdims=keep)
    for got, want in zip(h.run(*outs), outs.values(), strict=True):
        assert np.shape(got) == np.shape(want)
        assert np.allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (5, 1), (1, 5, 6), (4, 1, 1), (4, 5, 6), (1, 1, 1), ()])
@pytest.mark.parametrize("known", [True, False])
def test_a_gradient_is_summed_over_what_was_repeated(shape: tuple[int, ...], known: bool) -> None:
    h = Hand()
    x = numbers(4, 5, 6)
    like = h.feed(np.zeros(shape), None if known else tuple(Size() for _ in shape))
    axes = tuple(i for i in range(3) if i < 3 - len(shape) or shape[i - 3 + len(shape)] != x.shape[i])
    got = h.run(h.e.sum_to(h.feed(x), like))[0]
    assert np.allclose(got, x.sum(axis=axes).reshape(shape), rtol=1e-12)
    assert np.shape(got) == shape


@pytest.mark.parametrize("ranks", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3), (3, 1), (1, 3)])
def test_products(ranks: tuple[int, int]) -> None:
    h = Hand()
    a = numbers(*{1: (7,), 2: (5, 7), 3: (4, 5, 7)}[ranks[0]])
    b = numbers(*{1: (7,), 2: (7, 3), 3: (4, 7, 3)}[ranks[1]])
    got = h.run(h.e.matmul(h.feed(a), h.feed(b)))[0]
    assert np.shape(got) == np.shape(a @ b)
    assert np.allclose(got, a @ b, rtol=1e-12)


def test_a_guarded_product_of_zeros_is_zero() -> None:
    h = Hand()
    nans, zeros = h.feed(np.full((3, 3), np.nan)), h.feed(-np.zeros((3, 3)))
    vector = h.feed(-np.zeros(3))
    e = h.e
    got = h.run(
        e.matmul(nans, zeros, guard=(1,)), e.matmul(zeros, nans, guard=(0, 1)), e.matmul(nans, vector, guard=(1,))
    )
    assert all(same(x, np.zeros_like(x)) for x in got)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_threads_change_no_bit(dtype: str) -> None:
    h = Hand()
    x, y = h.feed(numbers(300_001, dtype=dtype)), h.feed(numbers(300_001, dtype=dtype))
    a, b = h.feed(numbers(200, 300, dtype=dtype)), h.feed(numbers(300, 250, dtype=dtype))
    v = h.feed(numbers(300, dtype=dtype))
    product = h.e.mul(h.e.add(x, y), y)
    total = h.e.sum(product, axes=(0,), keepdims=False)
    wide = h.e.add(h.e.matmul(a, b), h.e.matmul(a, h.e.matmul(b, h.feed(numbers(250, 1, dtype=dtype)))))
    func = h.func(total, product, wide, h.e.matmul(a, v), h.e.sum(wide, axes=(1,), keepdims=False))
    fuse(func)
    compiled = compile_graph(func, cache=False)
    results = []
    before = count()
    for threads in (1, 2, 5):
        choose(threads)
        for _ in range(10):
            results.append(compiled.run(Runtime(), h.feeds))
    choose(before)
    assert all(all(map(same, results[0], other)) for other in results[1:])


# ---- buffers ----------------------------------------------------------------------------------------


def test_assignment_leaves_other_names_alone() -> None:
    h = Hand()
    x = numbers(4, 5)
    a = h.feed(x)
    own = h.e.add(a, h.e.const(0.0, F64))
    one = h.e.const(1.0, F64)
    updated = h.e.update(own, one, spec=(("slice", 1, 3, None), ("slice", None, None, 2)))
    again = h.e.update(updated, one, spec=(("int", 0), ("int", 0)))
    got = h.run(again, own, updated, h.e.update(a, one, spec=(("int", -1),)), a)
    want = (x + 0.0).copy()
    want[1:3, ::2] = 1
    first = want.copy()
    want[0, 0] = 1
    last = x.copy()
    last[-1] = 1
    assert all(map(same, got, (want, x + 0.0, first, last, x)))


def test_repeated_places_add_up_in_order_or_the_last_one_counts() -> None:
    h = Hand()
    x, v, i = numbers(4, 5), numbers(3, 5), np.array([1, 1, 3])
    a, b, c = h.feed(x), h.feed(v), h.feed(i)
    got = h.run(h.e.index_add(a, b, c, spec=(("tensor",),)), h.e.update(a, b, c, spec=(("tensor",),)))
    added, put = x.copy(), x.copy()
    np.add.at(added, i, v)
    put[i] = v
    assert same(got[0], added)
    assert same(got[1], put)


def test_assignment_in_a_loop_takes_no_copy() -> None:
    size = 100_000
    h = Hand()
    (x,) = h.loop(
        h.e.const(200, I64),
        [h.e.zeros(sizes=(size,), dtype=F64)],
        lambda e, i, x: (e.update(x, e.const(1.0, F64), e.mod(i, e.const(50, I64)), spec=(("int",),)),),
    )
    compiled = h.compile(h.e.sum(x, axes=(0,), keepdims=False))
    assert compiled.run(Runtime()) == [50.0]
    assert compiled.peak_bytes < 1.5 * size * 8  # the tensor, and no other one beside it


def test_loops_keep_no_memory() -> None:
    h = Hand()
    x = h.feed(numbers(1000))
    (y,) = h.loop(h.e.const(200, I64), [x], lambda e, i, y: (e.add(e.mul(y, x), e.transpose(y, perm=(0,))),))
    compiled = h.compile(y)
    compiled.run(Runtime(), h.feeds)
    assert compiled.peak_bytes < 10 * 8_192
    first = len(list(compiled._memory._blocks()))
    for _ in range(3):
        compiled.run(Runtime(), h.feeds)
    assert len(list(compiled._memory._blocks())) <= first + 1
    assert compiled._memory[Word.USED] <= 8_192


def test_what_is_free_goes_back_before_it_is_too_much() -> None:
    h = Hand()
    one = h.e.const(1, I64)

    def grow(e: Any, i: Value, total: Value) -> Any:
        long = e.zeros(e.mul(e.add(i, one), e.const(200_000, I64)), sizes=(None,), dtype=F64)
        return (e.add(total, e.index(e.add(long, long), spec=(("int", -1),))),)

    (total,) = h.loop(h.e.const(60, I64), [h.e.const(0.0, F64)], grow)
    compiled = h.compile(total)
    assert compiled.run(Runtime()) == [0.0]
    assert compiled._memory[Word.TOTAL] <= 2 * compiled.peak_bytes + 2**26


def test_a_program_runs_beside_itself() -> None:
    h = Hand()
    x = h.feed(np.arange(3.0))
    h.print(x)
    compiled = h.compile(h.e.add(x, x))
    inner: list[Any] = []

    class Within(Recorded):
        def values(self, line: int, items: Any) -> None:
            inner.extend(compiled.run(Runtime(), {"x0": np.ones(3)}))

    assert same(compiled.run(Runtime(sink=Within()), h.feeds)[0], np.arange(3.0) * 2)
    assert same(inner[0], np.full(3, 2.0))


def test_results_stay_as_they_are() -> None:
    h = Hand()
    x = h.feed(numbers(5_000))
    compiled = h.compile(h.e.add(x, x), x)
    first = compiled.run(Runtime(), h.feeds)
    kept = first[0].copy()
    other = {"x0": numbers(5_000)}
    compiled.run(Runtime(), other)
    assert same(first[0], kept)
    assert same(first[1], h.feeds["x0"])


def test_a_limit_on_memory_is_kept() -> None:
    h = Hand()
    n = h.feed(np.int64(10**6))
    y = h.e.zeros(n, sizes=(None,), dtype=F64)
    with pytest.raises(ProgramError, match="limit"):
        h.run(h.e.add(y, y), runtime=Runtime(limits=Limits(memory=10**6)))
    h.feeds["x0"] = 2**62
    with pytest.raises(ProgramError, match="too large"):
        h.run(h.e.add(y, y))
    h.feeds["x0"] = -1
    with pytest.raises(ProgramError, match="size of -1"):
        h.run(h.e.add(y, y))


# ---- saved values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trips", [0, 1, 5, 5_000])
def test_saved_values_are_read_back(trips: int) -> None:
    """Sums `i * x_i` backwards, where `x_i` grows from trip to trip."""
    h = Hand()
    e = h.e
    tape = Value(Type(I64))
    h.block.body.append(NewTape(SPAN, tape))
    record = Record([Type(I64), Type(I64), Type(F64, (2,)), Type(DType.BOOL)])

    def forward(e: Any, i: Value, x: Value, last: Value) -> Any:
        place = Value(Type(I64))
        even = e.eq(e.mod(i, e.const(2, I64)), e.const(0, I64))
        e.block.body.append(Push(SPAN, tape, record, (last, i, x, even), place))
        return e.add(x, e.const(1.0, F64)), place

    def backward(e: Any, _: Value, total: Value, place: Value) -> Any:
        last, i, x, even = (Value(t) for t in record.types)
        e.block.body.append(Read(SPAN, tape, record, place, (0, 1, 2, 3), (last, i, x, even)))
        scaled = e.mul(x, e.cast(i, dtype=F64))
        return e.add(total, e.where(even, scaled, e.neg(scaled))), last

    count = e.const(trips, I64)
    _, place = h.loop(count, [h.feed(np.zeros(2)), e.const(0, I64)], forward)
    total, _ = h.loop(count, [h.feed(np.zeros(2)), place], backward)
    want = sum((1 if i % 2 == 0 else -1) * i * float(i) for i in reversed(range(trips)))
    got = h.run(total)[0]
    assert same(got, np.array([want, want], "f8"))


# ---- effects and faults -----------------------------------------------------------------------------


def test_what_is_said_before_a_fault_is_out() -> None:
    h = Hand()
    x = h.feed(np.arange(10))
    y = h.feed(np.array([1, 2, 3, 4, 5, 6, 0, 1, 0, 1]))
    h.print(x)
    h.print(h.e.floordiv(x, y))
    sink = Recorded()
    with pytest.raises(ProgramError, match="division by zero"):
        h.run(runtime=Runtime(sink=sink))
    assert len(sink.events) == 1


def test_the_first_element_that_fails_counts() -> None:
    h = Hand()
    x = h.feed(numbers(5))
    i = h.feed(np.array([0, 1, 9, 2, -7]))
    with pytest.raises(ProgramError, match="index 9 is out of range for axis 0, which has size 5"):
        h.run(h.e.index(x, i, spec=(("tensor",),)))


def test_a_failure_says_its_text_and_its_place() -> None:
    h = Hand()
    kind = FaultKind("E0799", "{0} of {1}")
    h.block.body.append(Fail(SPAN, kind, (h.feed(np.int64(3)),), ("things",)))
    with pytest.raises(ProgramError, match="3 of things") as caught:
        h.run()
    assert caught.value.diagnostics[0].span is SPAN


def test_failing_programs_leave_nothing_behind() -> None:
    h = Hand()
    x = h.feed(numbers(100))
    n = h.feed(np.int64(0))
    y = h.e.add(x, x)
    h.e.floordiv(h.e.const(1, I64), n)
    compiled = h.compile(h.e.mul(y, x))
    for _ in range(200):
        with pytest.raises(ProgramError):
            compiled.run(Runtime(), h.feeds)
    assert len(list(compiled._memory._blocks())) < 5
    assert compiled._memory[Word.USED] == 0
    h.feeds["x1"] = 1
    assert same(compiled.run(Runtime(), h.feeds)[0], (h.feeds["x0"] * 2) * h.feeds["x0"])


@pytest.mark.parametrize("worker", [False, True])
@pytest.mark.parametrize("tensor", [False, True])
def test_an_endless_loop_can_be_interrupted(worker: bool, tensor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if worker:
        monkeypatch.setattr("graphdsl.native.program.direct.possible", lambda: False)
    h = Hand()
    start = h.e.zeros(sizes=(1000,), dtype=F64) if tensor else h.e.const(0.0, F64)
    (x,) = h.while_(
        [start],
        lambda e, x: e.ge(e.max(x, axes=(0,), keepdims=False) if tensor else x, e.const(0.0, F64)),
        lambda e, x: (e.abs(x),),
    )
    compiled = h.compile(x)
    for _ in range(3):
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            compiled.run(Runtime())
        assert compiled._memory[Word.USED] == 0
    quick = Hand()
    assert quick.run(quick.e.const(7, I64)) == [7]
    assert signal.set_wakeup_fd(-1) == -1


def test_more_calls_than_are_allowed_are_a_fault() -> None:
    n = Value(Type(I64))
    body = Block([n])
    func = Func("f", body, SPAN)
    out = Value(Type(I64))
    body.body.append(Call(SPAN, func, (n,), (out,)))
    body.yields = [out]
    h = Hand()
    got = Value(Type(I64))
    h.block.body.append(Call(SPAN, func, (h.e.const(1, I64),), (got,)))
    with pytest.raises(ProgramError, match="10000 calls"):
        h.run(got)


def test_draws_move_the_stream() -> None:
    h = Hand()
    a, b, c = (
        h.e.uniform(sizes=(3,), dtype=F64),
        h.e.uniform(sizes=(), dtype=F64),
        h.e.uniform(sizes=(2, 5), dtype=DType.F32),
    )
    runtime = Runtime()
    runtime.random.seed(5)
    first = h.run(a, b, c, runtime=runtime)
    assert runtime.random.counter == 14
    assert all(np.all((x >= 0) & (x < 1)) for x in map(np.asarray, first))
    runtime.random.seed(5)
    assert all(map(same, first, h.run(a, b, c, runtime=runtime)))


def test_feeds_and_leaves_are_passed_through() -> None:
    h = Hand()
    x = h.feed(numbers(3)[::-1])
    leaf = Value(x.type)
    h.block.body.append(Leaf(SPAN, "w", x, leaf))
    assert same(h.run(leaf)[0], h.feeds["x0"])


def test_code_from_the_cache_is_the_same(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHDSL_CACHE_DIR", str(tmp_path))
    got = []
    for constant in (2.0, 2.0, 3.0):
        h = Hand()
        x = h.feed(np.arange(4.0))
        compiled = h.compile(h.e.mul(x, h.e.const(constant, F64)), cache=True)
        got.append((compiled.cache_hit, compiled.run(Runtime(), h.feeds)[0][1]))
    assert got == [(False, 2.0), (True, 2.0), (False, 3.0)]


def test_our_own_loader_takes_all_objects() -> None:
    """Code from the cache must not need LLVM: nothing in it calls what only a linker would find."""
    if not usable():
        pytest.skip("another kind of object")
    support = Object(support_object(), SUPPORT, {})
    assert set(support.addresses) == set(SUPPORT)

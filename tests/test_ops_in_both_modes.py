"""Every entry in eager mode's kernels and in compiled code: the same bits, and the plain interpreter's values.

Many cases are one program, so that there are few modules to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Const, Feed, Func, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.native.program.compiled import compile_graph
from graphdsl.ops.op import Draw, Elementwise, Host, Op, TypeProblem
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Size, Type
from graphdsl.runtime.kernels import kernel
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Fault, ProgramError
from tests import plain_ops
from tests.bits import without_faults
from tests.test_op_derivatives import CASES, Program
from tests.test_ops import ATTRS, ELEMENTWISE, SETTING, SPECIAL, arity

MATH = {*plain_ops.KNOWN, "sigmoid", "sigmoid_slope", "tanh_slope", "bell", "one_minus_square", "pow"}
SCALARS = {BOOL: bool, I32: int, I64: int, F64: float, F32: np.float32}


class Both:
    """A program that grows by uses of ops on arrays, and is run in both modes."""

    def __init__(self) -> None:
        self.emit = Emit(Block(), SETTING, NOWHERE)
        self.feeds: dict[Value, Any] = {}
        self.outs: list[tuple[str, Value]] = []

    def feed(self, array: Any, unknown: bool = False) -> Value:
        a = np.asarray(array)
        dtype = DType.of(a)
        made = Value(Type(dtype, tuple(Size() if unknown else d for d in a.shape)))
        self.emit.block.body.append(Feed(NOWHERE, f"x{len(self.feeds)}", made))
        self.feeds[made] = a if a.ndim else SCALARS[dtype](a)
        return made

    def use(self, name: str, arrays: list[Any], attrs: Any, unknown: bool = False, gradients: bool = False) -> None:
        body = self.emit.block.body
        before = len(body)
        xs = [self.feed(a, unknown) for a in arrays]
        try:
            out = self.emit.apply(OPS[name], *xs, **attrs)
        except TypeProblem:
            del body[before:]
            for x in xs:
                del self.feeds[x]
            return
        self.outs.append((f"{name} {attrs}", out))
        if gradients:
            self._gradients(name, xs, out)

    def _gradients(self, name: str, xs: list[Value], out: Value) -> None:
        e = self.emit
        program = Program.__new__(Program)
        program.emit, program.inputs, program.out = e, xs, out
        seed = e.add(e.cast(e.numbers_like(out), dtype=out.type.dtype), e.like(1.0, out))
        floats = [x for x in xs if x.type.dtype.is_float]
        self.outs.extend((f"gradient of {name}", g) for g in program.gradient(seed, floats, out).values())

    def compare(self, tolerance: float | None) -> None:
        """Eager and compiled results have the same bits, and are near the plain ones (None: equal, but for functions)."""
        block = self.emit.block
        block.yields = [v for _, v in self.outs]
        fed = {f.name: self.feeds[f.out] for f in block.body if isinstance(f, Feed)}
        compiled = compile_graph(Func("main", block, NOWHERE)).run(Runtime(), fed)
        eager = self.eager()
        for (what, _), a, b in zip(self.outs, eager, compiled, strict=True):
            assert bits(a) == bits(b), (what, a, b)
        plain = Block([], [i for i in block.body if not isinstance(i, Feed)], block.yields)
        expected = plain_ops.run(plain, {v: np.asarray(x, v.type.dtype.numpy) for v, x in self.feeds.items()})
        for (what, _), a, b in zip(self.outs, eager, expected, strict=True):
            if tolerance is not None:
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
            elif what.split()[0] not in MATH:
                assert bits(np.asarray(a, b.dtype)) == bits(b), (what, a, b)

    def eager(self) -> list[Any]:
        values = dict(self.feeds)
        runtime = Runtime()
        with np.errstate(all="ignore"):
            for instr in self.emit.block.body:
                match instr:
                    case Const(value=int() | float() as number, out=out):
                        values[out] = SCALARS[out.type.dtype](number)
                    case Apply(op=op, args=args, attrs=attrs, outs=outs):
                        first = {Draw: [runtime.random], Host: [runtime]}.get(type(op.compute), [])
                        made = kernel(op, tuple(a.type for a in args), attrs)(*first, *(values[a] for a in args))
                        for out, value in zip(outs, made if len(outs) > 1 else (made,), strict=True):
                            holds_its_type(op.name, value, out.type)
                            values[out] = value
        return [values[v] for v in self.emit.block.yields]


def holds_its_type(name: str, value: Any, type: Type) -> None:
    if type.rank:
        assert isinstance(value, np.ndarray), name
        assert (value.dtype.name, value.ndim) == (type.dtype.numpy, type.rank), name
    else:
        assert value.__class__ is SCALARS[type.dtype], name


def bits(x: Any) -> Any:
    """What must be equal; there is one NaN."""
    a = np.asarray(x)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return a.shape, a.tobytes()


PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("dtype", "unknown"), [(F64, True), (F32, False)])
def test_cases_with_their_gradients(dtype: DType, unknown: bool, part: int) -> None:
    both = Both()
    for name in list(CASES)[part::PARTS]:
        for arrays, attrs in CASES[name]:
            given = [np.asarray(a) for a in arrays]
            cast = [a.astype(dtype.numpy) if a.dtype.kind == "f" else a for a in given]
            both.use(name, cast, attrs, unknown and name != "squeeze", gradients=True)
    both.compare(1e-12 if dtype is F64 else 1e-4)


def converted(op: Op, args: list[Any]) -> list[Any]:
    """What an op gets of these arrays, where its rule converts them."""
    types = tuple(Type(DType.of(a)) for a in args)
    operands = op.typing(SETTING, types, ATTRS.get(op.name, {})).operands
    return [a.astype(d.numpy) for a, d in zip(args, operands, strict=True)]


@pytest.mark.parametrize("dtype", [F64, F32, I64, I32, BOOL])
def test_special_values(dtype: DType) -> None:
    both = Both()
    x = SPECIAL[dtype]
    for name in ELEMENTWISE:
        op = OPS[name]
        assert isinstance(op.compute, Elementwise)
        shapes = [(-1, 1), (1, -1), (-1, 1)][: arity(op)] if arity(op) > 1 else [(-1,)]
        args = [x.reshape(s) for s in shapes]
        if name == "where":
            args[0] = args[0] > 0
        if op.faults:
            try:
                args = converted(op, [a.reshape(-1) for a in np.broadcast_arrays(*args)])
            except TypeProblem:
                continue
            args = without_faults(op, ATTRS.get(name, {}), args)
        both.use(name, args, ATTRS.get(name, {}))
        both.use(name, [a.reshape(-1)[0] for a in args], ATTRS.get(name, {}))
    for to in DType:
        both.use("cast", [x], {"dtype": to})
    both.compare(None)


def failure(both: Both, compiled: bool) -> str:
    block = both.emit.block
    block.yields = [v for _, v in both.outs]
    fed = {f.name: both.feeds[f.out] for f in block.body if isinstance(f, Feed)}
    try:
        compile_graph(Func("main", block, NOWHERE)).run(Runtime(), fed) if compiled else both.eager()
    except Fault as fault:
        return fault.kind.diagnostic(NOWHERE, fault.numbers).message
    except ProgramError as error:
        return error.diagnostics[0].message
    return "nothing failed"


FAULTS: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("index", [np.ones(3), 5], {"spec": (("int",),)}, "index 5 is out of range for axis 0, which has size 3"),
    (
        "index",
        [np.ones((0, 3)), np.array([5])],
        {"spec": (("full",), ("tensor",))},
        "index 5 is out of range for axis 1",
    ),
    ("index", [np.ones(3), np.array([0, -4, 9])], {"spec": (("tensor",),)}, "index -4 is out of range"),
    ("index", [np.ones(3), 0], {"spec": (("slice", None, None, "v"),)}, "a step of 0"),
    (
        "index",
        [np.ones((3, 3)), np.zeros(2, int), np.zeros(4, int)],
        {"spec": (("tensor",),) * 2},
        "sizes 2 and 4 on axis 0",
    ),
    ("index", [np.ones(3), np.ones(2) > 0], {"spec": (("mask",),)}, "a mask of size 2 on an axis of size 3"),
    ("update", [np.ones(3), np.ones(2)], {"spec": (("full",),)}, "the sizes 2 and 3 on axis 0"),
    ("add", [np.ones((2, 3)), np.ones((4, 3))], {}, "the sizes 2 and 4 on axis 0"),
    ("matmul", [np.ones((2, 3)), np.ones((4, 3))], {}, "cannot multiply matrices: 3 columns against 4 rows"),
    ("matmul", [np.ones(3), np.ones((4, 3))], {}, "cannot multiply: a vector of 3 elements against 4 rows"),
    ("matmul", [np.ones((2, 2, 3)), np.ones((5, 3, 1))], {}, "the sizes 2 and 5 on axis 0"),
    ("reshape", [np.ones(6), 4], {"sizes": (None,)}, "cannot reshape 6 elements into a shape of 4"),
    ("reshape", [np.ones(6), 4], {"sizes": (None, -1)}, "cannot reshape 6 elements into a shape of 4"),
    ("reshape", [np.ones(6), -2], {"sizes": (None,)}, "a size of -2"),
    ("broadcast_to", [np.ones(3), 4], {"sizes": (None,)}, "cannot broadcast axis 0 of size 3 to 4"),
    ("zeros", [-1], {"sizes": (None,)}, "a size of -1"),
    ("range", [0, -3, 1], {}, "a size of -3"),
    ("concat", [np.ones((2, 3)), np.ones((2, 4))], {}, "the sizes 3 and 4 on axis 1 differ"),
    ("stack", [np.ones(2), np.ones(3)], {}, "the sizes 2 and 3 on axis 0 differ"),
    ("max", [np.ones((2, 0))], {"axis": 1}, "axis 1 has size 0"),
    ("argmin", [np.ones(0)], {}, "axis 0 has size 0"),
    ("floordiv", [np.array([3, 4]), np.array([1, 0])], {}, "integer division by zero"),
    ("mod", [4, 0], {}, "integer division by zero"),
    ("pow", [np.array([2, 3]), np.array([1, -2])], {}, "to the negative power -2"),
    ("powi", [np.array([2, 3])], {"k": -1}, "to the negative power -1"),
    ("cast", [2**40], {"dtype": I32, "checked": True}, f"the number {2**40} does not fit i32"),
]


@pytest.mark.parametrize(("name", "arrays", "attrs", "message"), FAULTS)
def test_faults(name: str, arrays: list[Any], attrs: dict[str, Any], message: str) -> None:
    both = Both()
    both.use(name, arrays, attrs, unknown=True)
    assert message in failure(both, False)
    assert failure(both, True) == failure(both, False)

"""The kinds of reduction: what they start from, how one element goes into a lane, how two lanes become one.

Each has three pieces of native code: a block of 32 lanes, rows that go into rows of partial results, and the merging
of such rows. `reductions` puts them together, the same way for all. Sums, products and dots of ints wrap; extremes of
floats propagate nan and hold -0.0 below +0.0. Bools are bytes here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, Carried, at, int64, intrinsic, loop, slot
from graphdsl.native.scalar import Llvm, memory_type
from graphdsl.native.target import Target, function
from graphdsl.ops.types import BOOL, F32, F64, DType
from graphdsl.ops.types import I32 as INT32
from graphdsl.ops.types import I64 as INT64

BLOCK, LANES = 4096, 32
STRIP = 256  # bytes of adjoining columns that are reduced together
_ROWS_AHEAD = 8  # that are fetched early: no CPU foresees steps from row to row by itself

# Which dtypes each kind has. Others are converted first, by the ops' type rules.
KINDS: dict[str, tuple[DType, ...]] = {
    "sum": (F32, F64, INT64),
    "prod": (F32, F64, INT64),
    "max": (F32, F64, INT32, INT64, BOOL),
    "min": (F32, F64, INT32, INT64, BOOL),
    "dot": (F32, F64, INT32, INT64),
}

# block(x, y, n, out): at most 4,096 adjoining elements; y only for dots
BLOCK_CODE = ir.FunctionType(VOID, [POINTER, POINTER, I64, POINTER])
# rows(lanes, first, x, x_step, y, y_step, n, vectors): n rows of so many vectors into the rows `first`, `first` + 1,
# … mod 32
ROWS_CODE = ir.FunctionType(VOID, [POINTER, I64, POINTER, I64, POINTER, I64, I64, I64])
# merge(to, x, vectors)
MERGE_CODE = ir.FunctionType(VOID, [POINTER, POINTER, I64])

# words of a fold's description
RANK, SOURCES, SIZE, IDENTITY, BLOCK_WORD, COMBINE_WORD, ROWS_WORD, MERGE_WORD, SEARCH_WORD = range(9)


@dataclass(frozen=True)
class Fold:
    """One kind of reduction over one dtype."""

    kind: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.dtype.value}"

    @property
    def type(self) -> Any:
        """The LLVM type of an element."""
        return memory_type(self.dtype)

    @property
    def sources(self) -> int:
        """How many arrays are read together."""
        return 2 if self.kind == "dot" else 1

    @property
    def combining(self) -> Fold:
        """The fold of what blocks and lanes have given."""
        return Fold("sum", self.dtype) if self.kind == "dot" else self

    def identity(self, type: Any) -> ir.Constant:
        """Where a lane starts, as an element or a vector."""
        value = self.start
        return ir.Constant(type, [value] * type.count if isinstance(type, ir.VectorType) else value)

    @property
    def start(self) -> float | int:
        """Where a lane starts."""
        if self.kind in ("sum", "dot"):
            return 0.0 if self.dtype.is_float else 0
        if self.kind == "prod":
            return 1.0 if self.dtype.is_float else 1
        low = self.kind == "max"
        if self.dtype.is_float:
            return -math.inf if low else math.inf
        if self.dtype is BOOL:
            return 0 if low else 1
        half = 1 << (self.dtype.bytes * 8 - 1)
        return -half if low else half - 1

    def step(self, b: ir.IRBuilder, target: Target, lane: ir.Value, *xs: ir.Value) -> ir.Value:
        """The lane after one more element."""
        if self.kind != "dot":
            return self.combine(b, lane, xs[0])
        if not self.dtype.is_float:
            return b.add(b.mul(xs[0], xs[1]), lane)
        code = Llvm(b, target, getattr(lane.type, "count", 1))
        x, y, z = (code.value(self.dtype, v) for v in (*xs, lane))
        return code.fma(x, y, z).ref

    def combine(self, b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        """One lane from two."""
        match self.kind:
            case "sum" | "dot":
                return b.fadd(x, y) if self.dtype.is_float else b.add(x, y)
            case "prod":
                return b.fmul(x, y) if self.dtype.is_float else b.mul(x, y)
        if self.dtype is BOOL:
            return b.or_(x, y) if self.kind == "max" else b.and_(x, y)
        if self.dtype.is_float:
            name = f"llvm.{self.kind}imum.{_mangled(x.type)}"
            return b.call(intrinsic(b.module, name, x.type, x.type, x.type), [x, y])
        return b.select(b.icmp_signed(">" if self.kind == "max" else "<", x, y), x, y)


def _mangled(type: Any) -> str:
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{type.element.intrinsic_name}"
    return str(type.intrinsic_name)


# ---- a block ----------------------------------------------------------------------------------------


def define_block(module: ir.Module, target: Target, fold: Fold) -> ir.Function:
    """The code for one block: the 32 lanes are one vector, which LLVM splits into registers."""
    name = f"gdl.block.{fold.name}"
    if name in module.globals:
        return module.globals[name]
    made = function(module, target, name, BLOCK_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    x, y, n, out = made.args
    arrays = [x, y][: fold.sources]
    vector = ir.VectorType(fold.type, LANES)
    whole = b.and_(n, int64(-LANES))
    with Carried(b, whole, [fold.identity(vector)], LANES) as turn:
        xs = [b.load(at(b, a, turn.index, fold.type), typ=vector, align=fold.dtype.bytes) for a in arrays]
        turn.next = [fold.step(b, target, turn.values[0], *xs)]
    lanes = turn.out[0]
    rest = b.sub(n, whole)
    before = b.block
    with b.if_then(b.icmp_signed(">", rest, int64(0))):
        xs = [_padded(b, fold, at(b, a, whole, fold.type), rest, vector) for a in arrays]
        stepped = b.select(_first_lanes(b, rest), fold.step(b, target, lanes, *xs), lanes)
        last = b.block
    merged = b.phi(vector)
    merged.add_incoming(lanes, before)
    merged.add_incoming(stepped, last)
    b.store(_halved(b, fold.combining, merged), out, align=fold.dtype.bytes)
    b.ret_void()
    return made


def _padded(b: ir.IRBuilder, fold: Fold, source: ir.Value, n: ir.Value, vector: Any) -> ir.Value:
    """A vector of fewer elements than it has lanes."""
    buffer = slot(b, vector, align=64)
    b.store(fold.identity(vector), buffer, align=64)
    with loop(b, n) as i:
        element = b.load(at(b, source, i, fold.type), typ=fold.type, align=fold.dtype.bytes)
        b.store(element, at(b, buffer, i, fold.type))
    return b.load(buffer, typ=vector, align=64)


def splat(b: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector of the same element throughout."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    single = b.insert_element(undefined, value, ir.Constant(I32, 0))
    return b.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def _first_lanes(b: ir.IRBuilder, n: ir.Value) -> ir.Value:
    """The mask of the lanes below `n`."""
    numbers = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
    return b.icmp_signed("<", numbers, splat(b, b.trunc(n, I32), LANES))


def _halved(b: ir.IRBuilder, fold: Fold, lanes: ir.Value) -> ir.Value:
    """One element from a vector: lane `i` with lane `i + 16`, then 8, 4, 2, 1 apart."""
    width = lanes.type.count
    while width > 1:
        width //= 2
        undefined = ir.Constant(lanes.type, ir.Undefined)
        low, high = (
            b.shuffle_vector(
                lanes, undefined, ir.Constant(ir.VectorType(I32, width), list(range(start, start + width)))
            )
            for start in (0, width)
        )
        lanes = fold.combine(b, low, high)
    return b.extract_element(lanes, ir.Constant(I32, 0))


# ---- rows of lanes ----------------------------------------------------------------------------------


def vector_of(fold: Fold, target: Target) -> Any:
    """One register of elements."""
    return ir.VectorType(fold.type, target.lanes(8 * fold.dtype.bytes))


def define_rows(module: ir.Module, target: Target, fold: Fold) -> ir.Function:
    """The code that takes rows of many columns into 32 rows of partial results."""
    made = function(module, target, f"gdl.rows.{fold.name}", ROWS_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    vectors = made.args[-1]
    usual = STRIP // (target.vector_bits // 8)
    with b.if_else(b.icmp_signed("==", vectors, int64(usual)), likely=True) as (then, otherwise):
        with then:
            _rows(b, target, fold, made.args, usual)
        with otherwise:
            _rows(b, target, fold, made.args, None)
    b.ret_void()
    return made


def _rows(b: ir.IRBuilder, target: Target, fold: Fold, args: Any, usual: int | None) -> None:
    lanes, first, x, x_step, y, y_step, n, vectors = args
    vector, align = vector_of(fold, target), fold.dtype.bytes
    ahead = b.mul(x_step, int64(_ROWS_AHEAD))
    with loop(b, n) as i:
        row = at(b, x, b.mul(i, x_step))
        into = at(b, lanes, b.mul(b.and_(b.add(first, i), int64(LANES - 1)), vectors), vector)
        second = []
        if fold.sources == 2:
            element = b.load(at(b, y, b.mul(i, y_step)), typ=fold.type, align=align)
            second = [splat(b, element, vector.count)]

        def step(j: ir.Value | int) -> None:
            lane, place = at(b, into, j, vector), at(b, row, j, vector)
            prefetch(b, at(b, place, ahead))
            xs = [b.load(place, typ=vector, align=align), *second]
            b.store(fold.step(b, target, b.load(lane, typ=vector, align=64), *xs), lane, align=64)

        if usual is None:
            with loop(b, vectors) as j:
                step(j)
        else:
            for j in range(usual):
                step(j)


def prefetch(b: ir.IRBuilder, place: ir.Value, write: bool = False) -> None:
    """A hint that this line will be wanted soon."""
    callee = intrinsic(b.module, "llvm.prefetch.p0", VOID, POINTER, I32, I32, I32)
    b.call(callee, [place, *(ir.Constant(I32, word) for word in (int(write), 3, 1))])


def define_merge(module: ir.Module, target: Target, fold: Fold) -> ir.Function:
    """The code that combines rows of partial results."""
    name = f"gdl.merge.{fold.name}"
    if name in module.globals:
        return module.globals[name]
    made = function(module, target, name, MERGE_CODE, private=True)
    b = ir.IRBuilder(made.append_basic_block())
    to, x, vectors = made.args
    vector = vector_of(fold, target)
    with loop(b, vectors) as i:
        lane = at(b, to, i, vector)
        pair = [b.load(p, typ=vector, align=64) for p in (lane, at(b, x, i, vector))]
        b.store(fold.combine(b, *pair), lane, align=64)
    b.ret_void()
    return made

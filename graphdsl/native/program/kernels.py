"""Kernels: one native function for each region, over a part of its iteration space.

`kernel(context, words, begin, end)` does elements `begin` to `end` of a flat space (from a block's border), or rows.
All work is done on whole vectors: reading beyond an array's end is allowed by its padding, and so is writing where a
buffer has one owner; at the end of a row that is not the last a vector is cut. Sums go by grammars/README.md,
"Numbers": 32 lanes (in memory that stays in L1), blocks of 4,096, one partial result for each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, Value
from graphdsl.native.flow import I32, I64, POINTER, at, field, int64, intrinsic, loop, minimum, slot
from graphdsl.native.folds import BLOCK, LANES
from graphdsl.native.program.evaluate import Evaluator, Place
from graphdsl.native.program.places import Affine, Uniform, VectorCode, folded, is_int
from graphdsl.native.program.space import Lies, Region, Space, arrange
from graphdsl.native.program.unit import Unit
from graphdsl.native.scalar import I1, Llvm, load, memory_type, register_type
from graphdsl.native.support.team import KERNEL
from graphdsl.native.support.words import Status, Word
from graphdsl.ops.scalar import S
from graphdsl.ops.types import BOOL, Type
from graphdsl.ops.types import I64 as INT
from graphdsl.source.diagnostic import FaultKind


@dataclass(frozen=True, eq=False)
class Shape:
    """A region with the way it is walked."""

    region: Region
    space: Space
    lanes: int
    shaped: tuple[Value, ...]  # values whose sizes the kernel is told, beside those of the space and of params

    @staticmethod
    def of(unit: Unit, region: Region, coordinates: bool) -> Shape:
        values = {*region.params, *(o for a in region.body for o in a.outs)}
        # a register of the narrowest elements; wider ones take two. Bools are as wide as what goes with them.
        narrowest = min((v.type.dtype.bytes for v in values if v.type.shape and v.type.dtype is not BOOL), default=1)
        lanes = min(unit.target.lanes(8 * narrowest), LANES)
        shaped = tuple(o for a in region.body for o in a.outs if o.type.shape and o in region.place_readers)
        return Shape(region, arrange(region, coordinates), lanes, shaped)


class Writer:
    """Writes one kernel."""

    def __init__(self, unit: Unit, made: ir.Function, shape: Shape) -> None:
        self.unit = unit
        self.b = ir.IRBuilder(made.append_basic_block("entry"))
        self.code = VectorCode(self.b, unit.target, shape.lanes, self._fail)
        self.context, self.begin, self.end, *self._words = made.args
        self._direct = made.function_type is not KERNEL
        self.shape, self.region, self.space = shape, shape.region, shape.space
        self._next = 0
        self._scalars: dict[Value, Uniform] = {}
        self._pointers: dict[Value, ir.Value] = {}
        self._sizes: dict[Value, tuple[ir.Value, ...]] = {}
        self._steps: dict[Value, list[ir.Value]] = {}
        self._fixed: dict[Value, Uniform] = {}
        self._row: dict[Value, ir.Value] = {}
        self._index: ir.Value = int64(0)  # of the first lane along the innermost group
        self._limit: ir.Value = int64(0)  # where that group ends
        self._evaluator: Evaluator
        self._read_words()

    def write(self) -> None:
        """The whole function."""
        if self.space.flat:
            self._flat()
        else:
            self._rows()
        self.b.ret(ir.Constant(I32, Status.DONE))

    # ---- what the caller hands over ----

    def _read_words(self) -> None:
        for value in self.region.params:
            if value.type.shape:
                self._pointers[value] = self._word(POINTER)
                self._sizes[value] = self._read_sizes(value.type)
            else:
                one = self._word(register_type(value.type.dtype))
                self._scalars[value] = self.code.uniform(value.type.dtype, one)
                _ = self._scalars[value].ref
        for value in self.region.outs:
            self._pointers[value] = self._word(POINTER)
        for value in self.shape.shaped:
            self._sizes[value] = self._read_sizes(value.type)
        self._space_sizes = self._read_sizes(Type(INT, self.region.space))
        self.cols = self._product(self.space.groups[-1])
        self._steps = {v: self._group_steps(v) for v in self.space.lies}

    def _word(self, type: Any) -> ir.Value:
        """The next of the words, which are arguments or lie in memory."""
        self._next += 1
        if self._direct:
            return self._words[self._next - 1]
        if type == I1:
            return self.b.trunc(field(self.b, self._words[0], self._next - 1), I1)
        return field(self.b, self._words[0], self._next - 1, type)

    def _read_sizes(self, type: Type) -> tuple[ir.Value, ...]:
        return tuple(int64(d) if isinstance(d, int) else self._word(I64) for d in type.shape)

    def _product(self, axes: Sequence[int]) -> ir.Value:
        total: ir.Value = int64(1)
        for axis in axes:
            total = folded(self.b, "mul", total, self._space_sizes[axis])
        return total

    def _group_steps(self, value: Value) -> list[ir.Value]:
        """How far apart a param's elements are along each group."""
        sizes = self._sizes[value]
        own: dict[int, ir.Value] = {}
        step: ir.Value = int64(1)
        skipped = len(self.region.space) - len(sizes)
        for axis in reversed(range(len(sizes))):
            own[skipped + axis] = step
            step = folded(self.b, "mul", step, sizes[axis])
        steps = []
        for group, lies in zip(self.space.groups, self.space.lies[value], strict=True):
            last = own.get(group[-1], int64(0))
            if lies is Lies.EITHER:
                one = self.b.icmp_signed("==", sizes[group[-1] - skipped], int64(1))
                last = self.b.select(one, int64(0), last)
            steps.append(int64(0) if lies is Lies.ONE else last)
        return steps

    # ---- loops ----

    def _flat(self) -> None:
        self._limit = self.cols
        self._row = dict.fromkeys(self.space.lies, int64(0))
        if not self.region.reduces:
            self._line(self.begin, self.end)
            return
        sums = [(a, slot(self.b, register_type(a.outs[0].type.dtype), LANES, align=64)) for a in self.region.reduces]
        with loop(self.b, self.end, BLOCK, self.begin) as start:
            for apply, lanes in sums:
                for i in range(0, LANES, self.shape.lanes):
                    zero = self.code.const(apply.outs[0].type.dtype, 0)
                    self.code.store(zero, at(self.b, lanes, i, register_type(zero.dtype)))
            self._line(start, minimum(self.b, self.b.add(start, int64(BLOCK)), self.end), dict(sums))
            for apply, lanes in sums:
                self._store_block(apply, lanes, self.b.udiv(start, int64(BLOCK)))

    def _rows(self) -> None:
        self._limit = self.cols
        with loop(self.b, self.end, 1, self.begin) as row:
            outer = self._coordinates(row)
            for value in self.space.lies:
                offset: ir.Value = int64(0)
                for i, step in zip(outer, self._steps[value], strict=False):
                    offset = folded(self.b, "add", offset, folded(self.b, "mul", i, step))
                self._row[value] = offset
            self._line(int64(0), self.cols, outer=outer, first=self.b.mul(row, self.cols))

    def _coordinates(self, row: ir.Value) -> list[ir.Value]:
        """The indices along all groups but the innermost."""
        found: list[ir.Value] = []
        for group in reversed(self.space.groups[1:-1]):
            size = self._product(group)
            found.append(self.b.urem(row, size))
            row = self.b.udiv(row, size)
        return [row, *reversed(found)]

    def _line(
        self,
        start: ir.Value,
        end: ir.Value,
        sums: dict[Apply, ir.Value] | None = None,
        outer: Sequence[ir.Value] = (),
        first: ir.Value | None = None,
    ) -> None:
        """The innermost loop; `first` is the number of the row's first element (None: there is one row)."""
        self._fix()
        with loop(self.b, end, self.shape.lanes, start) as j:
            self._index = j
            self._evaluator = Evaluator(self.code, self.region, self, self._place(j, outer))
            self._evaluator.run(self.region)
            for apply, lanes in (sums or {}).items():
                self._add(apply, lanes, j)
            for value in self.region.outs:
                if not any(value in a.outs for a in self.region.reduces):
                    self._store(value, j, first)

    def _place(self, j: ir.Value, outer: Sequence[ir.Value]) -> Place | None:
        if any(len(g) > 1 for g in self.space.groups):
            return None
        return (*(self.code.uniform(INT, i) for i in outer), Affine(self.code, j, int64(1)))

    def _fix(self) -> None:
        """Read, before the innermost loop, what does not change in it."""
        for value, lies in self.space.lies.items():
            if lies[-1] is not Lies.FULL:
                dtype = value.type.dtype
                place = at(self.b, self._pointers[value], self._row[value], memory_type(dtype))
                self._fixed[value] = self.code.uniform(dtype, load(self.b, place, dtype))
                _ = self._fixed[value].ref

    # ---- reading (what `Evaluator` asks) ----

    def home(self, value: Value) -> S:
        if not value.type.shape:
            return self._scalars[value]
        lies = self.space.lies[value][-1]
        if lies is Lies.ONE:
            return self._fixed[value]
        place = self.b.add(self._row[value], self._index) if not is_int(self._row[value], 0) else self._index
        found = self.code.load(
            value.type.dtype, at(self.b, self._pointers[value], place, memory_type(value.type.dtype))
        )
        if lies is Lies.FULL:
            return found
        one = self.b.icmp_signed("==", self._steps[value][-1], int64(0))
        return S(self.code, value.type.dtype, self.b.select(one, self._fixed[value].ref, found.ref))

    def pointer(self, value: Value) -> ir.Value:
        return self._pointers[value]

    def sizes(self, value: Value) -> tuple[S, ...]:
        known = self._sizes.get(value, self._space_sizes)
        return tuple(self.code.uniform(INT, s) for s in known)

    def inside(self) -> S | None:
        if self.shape.lanes == 1 or self._whole():
            return None
        return self.code.compare("lt", Affine(self.code, self._index, int64(1)), self.code.uniform(INT, self._limit))

    def _whole(self) -> bool:
        """Whether rows are whole vectors."""
        return isinstance(self.cols, ir.Constant) and self.cols.constant % self.shape.lanes == 0

    def _cut(self) -> ir.Value:
        """Whether the vector reaches beyond the row's end."""
        return self.b.icmp_signed(">", self.b.add(self._index, int64(self.shape.lanes)), self._limit)

    # ---- writing ----

    def _store(self, value: Value, j: ir.Value, first: ir.Value | None) -> None:
        x = self._evaluator.home(value)
        type = memory_type(value.type.dtype)
        place = at(self.b, self._pointers[value], j if first is None else self.b.add(first, j), type)
        ref = x.ref
        x = S(self.code, x.dtype, ref)
        if first is None or self._whole():
            self.code.store(x, place)
            return
        with self.b.if_else(self._cut(), likely=False) as (cut, whole):
            with cut:
                aside = slot(self.b, type, self.shape.lanes, align=64)
                self.code.store(x, aside)
                with loop(self.b, self.b.sub(self._limit, j)) as k:
                    self.b.store(self.b.load(at(self.b, aside, k, type), typ=type), at(self.b, place, k, type))
            with whole:
                self.code.store(x, place)

    def _add(self, apply: Apply, lanes: ir.Value, j: ir.Value) -> None:
        """Adds to the lanes of a sum; beyond the end +0.0, which changes no lane (they are never -0.0)."""
        x = self._evaluator.home(apply.args[0])
        whole: Any = x.ref
        if not self._whole():
            before = self.b.block
            with self.b.if_then(self._cut(), likely=False):
                inside = self.inside()
                assert inside is not None
                cut = Llvm.select(self.code, inside, x, self.code.const(x.dtype, 0)).ref
                end = self.b.block
            merged = self.b.phi(whole.type)
            merged.add_incoming(whole, before)
            merged.add_incoming(cut, end)
            whole = merged
        place = at(self.b, lanes, self.b.and_(j, int64(LANES - 1)), register_type(x.dtype))
        total = self.code.op2("add", self.code.load(x.dtype, place), S(self.code, x.dtype, whole))
        self.code.store(total, place)

    def _store_block(self, apply: Apply, lanes: ir.Value, number: ir.Value) -> None:
        """Combines the lanes by halves."""
        dtype = apply.outs[0].type.dtype
        element = register_type(dtype)
        total = self.b.load(lanes, typ=ir.VectorType(element, LANES), align=64)
        half = LANES // 2
        while half:
            low, high = (
                self.b.shuffle_vector(total, total, ir.Constant(ir.VectorType(I32, half), list(range(n, n + half))))
                for n in (0, half)
            )
            wide = VectorCode(self.b, self.unit.target, half)
            total = Llvm.op2(wide, "add", S(wide, dtype, low), S(wide, dtype, high)).ref
            half //= 2
        one = self.b.extract_element(total, ir.Constant(I32, 0))
        self.b.store(one, at(self.b, self._pointers[apply.outs[0]], number, element))

    # ---- faults ----

    def _fail(self, condition: S, kind: FaultKind, numbers: tuple[S, ...]) -> None:
        """The first lane that fails ends the kernel; elements come in row-major order, so it is the first of all."""
        b, apply = self.b, self._evaluator.applying
        assert apply is not None
        if not apply.fails:
            return  # the checker knows that it never does
        inside = self.inside()
        failing = condition.ref if inside is None else b.and_(condition.ref, inside.ref)
        vectors = [n.ref for n in numbers]
        bits: Any = ir.IntType(self.shape.lanes)
        mask = b.bitcast(failing, bits)
        with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(bits, 0)), likely=False):
            zeros = intrinsic(b.module, f"llvm.cttz.i{self.shape.lanes}", bits, bits, I1)
            lane = b.call(zeros, [mask, ir.Constant(I1, 1)])
            self._note(Word.SITE, int64(self.unit.sites.site(apply, kind)))
            self._note(Word.COUNT, int64(len(vectors)))
            for i, (vector, number) in enumerate(zip(vectors, numbers, strict=True)):
                one = b.extract_element(vector, lane) if self.shape.lanes > 1 else vector
                code = Llvm(b, self.unit.target)
                b.store(
                    code.convert(code.value(number.dtype, one), INT).ref, at(b, self.context, Word.NUMBERS + i, I64)
                )
            b.ret(ir.Constant(I32, Status.FAULT))

    def _note(self, word: Word, value: ir.Value) -> None:
        self.b.store(value, at(self.b, self.context, word, I64))

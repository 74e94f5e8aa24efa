"""One native function while it is written: its values, how it fails, and how it holds buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from llvmlite import ir

from graphdsl.core.ir import Apply, For, Value, While
from graphdsl.native.flow import I32, I64, POINTER, at, field, int64, intrinsic, slot
from graphdsl.native.program.unit import Unit
from graphdsl.native.program.usage import Instr
from graphdsl.native.program.values import Native, Tensor, part_types, parts, whole
from graphdsl.native.scalar import I1, Llvm
from graphdsl.native.support import buffers
from graphdsl.native.support.words import HEADER_BYTES, Header, Status, Word
from graphdsl.ops.scalar import S
from graphdsl.ops.types import DType, Type
from graphdsl.runtime.faults import MOST_ACTIVE_CALLS
from graphdsl.source.diagnostic import FaultKind


class Frame:
    """Writes at `b`. `instr` is the instruction being written, `dying` the tensors that it uses last, `around` are the
    loops around it, the innermost last, each with how many trips it has made.
    """

    def __init__(self, unit: Unit, made: ir.Function, depth: ir.Value) -> None:
        self.unit = unit
        self.made = made
        self.b = ir.IRBuilder(made.append_basic_block("entry"))
        self.code = Llvm(self.b, unit.target, fail=self.fail)
        self.context = made.args[0]
        self.depth = depth
        self.values: dict[Value, Native] = {}
        self.instr: Instr
        self.dying: dict[Value, None] = {}
        self.around: tuple[tuple[While | For, ir.Value], ...] = ()
        self._exits: dict[Any, tuple[ir.Block, Any]] = {}

    # ---- values ----

    def scalar(self, value: Value) -> S:
        """A scalar of the graph, for bodies."""
        return self.code.value(value.type.dtype, self.values[value])

    def tensor(self, value: Value) -> Tensor:
        """A tensor of the graph."""
        found = self.values[value]
        assert isinstance(found, Tensor)
        return found

    def take(self, value: Value) -> bool:
        """Whether this is the last use of an owned tensor, whose reference is now the caller's."""
        if value not in self.dying:
            return False
        del self.dying[value]
        return True

    def hand_on(self, value: Value) -> Native:
        """`value` with a reference of its own, for whoever gets it."""
        native = self.values[value]
        if isinstance(native, Tensor) and not self.take(value):
            self.retain(native.owner)
        return native

    def release_dying(self) -> None:
        """Give back what was used last and not taken."""
        for value in self.dying:
            self.release(self.tensor(value).owner)
        self.dying = {}

    # ---- leaving ----

    def leave(self, status: ir.Value | int) -> None:
        """Return at once, with a status other than done."""
        if isinstance(status, int):
            status = ir.Constant(I32, status)
        exit, (phi,) = self._exit("left", self._left, I32)
        phi.add_incoming(status, self.b.block)
        self.b.branch(exit)

    def check(self, status: ir.Value) -> None:
        """Leave if `status`, that of a kernel, is not done."""
        exit, (ended, site) = self._exit("checked", self._checked, I32, I64)
        ended.add_incoming(status, self.b.block)
        site.add_incoming(int64(self.unit.sites.site(self.instr)), self.b.block)
        self._go_on(self.b.icmp_unsigned("==", status, ir.Constant(I32, Status.DONE)), exit)

    def memory_unless(self, there_was: ir.Value) -> None:
        """Leave where there was no memory (how much was asked for has been noted)."""
        exit, (phi,) = self._exit("memory", self._no_memory, I64)
        phi.add_incoming(int64(self.unit.sites.site(self.instr)), self.b.block)
        self._go_on(there_was, exit)

    def _go_on(self, condition: ir.Value, exit: ir.Block) -> None:
        """Go on where `condition` holds."""
        following = self.b.append_basic_block()
        self.b.cbranch(condition, following, exit).set_weights([99, 1])
        self.b.position_at_end(following)

    def _exit(self, name: str, write: Callable[..., None], *types: Any) -> tuple[ir.Block, Any]:
        """The one block where the innermost loop, or the function, ends in some way, and what it is given."""
        key = (name, self.around[-1][0] if self.around else None)
        if key not in self._exits:
            block = self.b.append_basic_block(name)
            with self.b.goto_block(block):
                phis = [self.b.phi(type) for type in types]
                self._exits[key] = block, phis
                write(*phis)
        return self._exits[key]

    def _no_memory(self, site: ir.Value) -> None:
        self.put(Word.SITE, site)
        self.leave(Status.MEMORY)

    def _checked(self, status: ir.Value, site: ir.Value) -> None:
        """A kernel that fails has said where; one that was stopped has not."""
        stopped = self.b.icmp_unsigned("==", status, ir.Constant(I32, Status.STOPPED))
        self.put(Word.SITE, self.b.select(stopped, site, self.get(Word.SITE)))
        self.leave(status)

    def _left(self, status: ir.Value) -> None:
        """Out of the loops that are around, each of which is noted in the trail."""
        if not self.around:
            self._return(status)
            return
        *outer, (loop, trips) = self.around
        status = self._note_left(loop, self.b.add(trips, int64(1)), status)
        with self.within(*outer):
            self.leave(status)

    @contextmanager
    def within(self, *loops: tuple[While | For, ir.Value]) -> Iterator[None]:
        """Write with these loops around, instead of those that were."""
        before, self.around = self.around, loops
        yield
        self.around = before

    def _note_left(self, instr: Instr, trip: ir.Value, status: ir.Value) -> ir.Value:
        site = int64(self.unit.sites.site(instr))
        return self.b.call(self.unit.outside("run.left"), [self.context, site, trip, status])

    def _return(self, status: ir.Value) -> None:
        type = self.made.function_type.return_type
        if isinstance(type, ir.LiteralStructType):
            self.b.ret(self.b.insert_value(ir.Constant(type, ir.Undefined), status, 0))
        else:
            self.b.ret(status)

    def check_call(self, status: ir.Value) -> None:
        """Leave if `status`, that of a call, is not done; the call is noted in the trail."""
        b = self.b
        with b.if_then(b.icmp_unsigned("!=", status, ir.Constant(status.type, 0)), likely=False):
            if not self.instr.func.derived:
                status = self._note_left(self.instr, int64(0), status)
            self.leave(status)

    def fail(self, condition: S, kind: FaultKind, numbers: Sequence[S]) -> None:
        """Where `condition` holds, this instruction fails: note the site and the numbers, and leave."""
        if isinstance(self.instr, Apply) and not self.instr.fails:
            return  # the checker knows that it never does
        with self.b.if_then(condition.ref, likely=False):
            self.note(kind, [self.code.convert(n, DType.I64).ref for n in numbers])
            self.leave(Status.FAULT)

    def note(self, kind: FaultKind | None, numbers: Iterable[ir.Value] = ()) -> None:
        """Write into the context what fails."""
        given = list(numbers)
        self.put(Word.SITE, int64(self.unit.sites.site(self.instr, kind)))
        self.put(Word.COUNT, int64(len(given)))
        for i, number in enumerate(given):
            self.b.store(number, at(self.b, self.context, Word.NUMBERS + i, I64))

    def deep_enough(self, depth: ir.Value) -> None:
        """Leave where calls are nested too deep."""
        with self.b.if_then(self.b.icmp_signed(">", depth, int64(MOST_ACTIVE_CALLS)), likely=False):
            self.note(None, [int64(MOST_ACTIVE_CALLS)])
            self.leave(Status.DEPTH)

    def test_stop(self) -> None:
        """Leave if somebody wants the run to end."""
        flag = self.b.load_atomic(self.context, "monotonic", 8, typ=I64)
        stop = self.b.icmp_unsigned("!=", flag, int64(0))
        with self.b.if_then(stop, likely=False):
            self.put(Word.SITE, int64(self.unit.sites.site(self.instr)))
            self.leave(Status.STOPPED)

    # ---- the context ----

    def get(self, word: Word, type: Any = I64) -> ir.Value:
        """A word of the context."""
        return field(self.b, self.context, word, type)

    def put(self, word: Word, value: ir.Value) -> None:
        """Write a word of the context."""
        self.b.store(value, at(self.b, self.context, word, I64))

    def spill(self, values: Iterable[Value]) -> ir.Value:
        """The words of values one after the other, in this function's frame."""
        return self.spill_parts([(p, part) for v in values for p, part in self.typed_parts(v)])

    def spill_parts(self, given: list[tuple[ir.Value, DType | None]]) -> ir.Value:
        """Parts as words in the frame; each scalar comes with its dtype."""
        memory = slot(self.b, I64, max(len(given), 1))
        for i, (part, dtype) in enumerate(given):
            value = self.b.zext(part, I64) if dtype is DType.BOOL else part
            self.b.store(value, at(self.b, memory, i, I64))
        return memory

    def typed_parts(self, value: Value) -> list[tuple[ir.Value, DType | None]]:
        """The parts of a value, a scalar with its dtype."""
        scalar = None if value.type.shape else value.type.dtype
        return [(p, scalar) for p in parts(self.values[value])]

    def read_words(self, type: Type, memory: ir.Value, first: int) -> Native:
        """The value that lies at word `first`."""
        if not type.shape and type.dtype is DType.BOOL:
            return self.b.trunc(field(self.b, memory, first), I1)
        return whole(type, [field(self.b, memory, first + i, t) for i, t in enumerate(part_types(type))])

    # ---- buffers ----

    def new(self, dtype: DType, sizes: Sequence[ir.Value]) -> Tensor:
        """A tensor of these sizes (none negative), with undefined elements; leaves where there is no memory, or where
        the sizes that are not 0 are too many places to count."""
        known = dtype.bytes
        dynamic = []
        for size in sizes:
            # a 0 has `run.new` ask for none, once all else is counted
            if isinstance(size, ir.Constant) and size.constant:
                known = min(known * size.constant, (1 << 63) - 1)
            else:
                dynamic.append(size)
        if len(dynamic) > buffers.MOST_SIZES:
            dynamic = self._extent(dynamic)
        name = f"run.new.{len(dynamic)}" if dynamic else "run.new"
        owner = self.b.call(self.unit.outside(name), [self.context, int64(known), *dynamic])
        self.memory_unless(self.b.icmp_unsigned("!=", owner, ir.Constant(POINTER, None)))
        return Tensor(dtype, at(self.b, owner, HEADER_BYTES), owner, tuple(sizes))

    def countable(self, dtype: DType, sizes: Sequence[ir.Value]) -> None:
        """Leave where a tensor that is not made would have more places than can be counted (see `new`)."""
        total = self.product([int64(dtype.bytes), self._extent(sizes)[0]])
        few = self.b.icmp_unsigned("<", total, int64((1 << 63) - 1))
        with self.b.if_then(self.b.not_(few), likely=False):
            self.b.store(total, at(self.b, self.context, Word.NUMBERS, I64))
            self.put(Word.COUNT, int64(1))
        self.memory_unless(few)

    def _extent(self, sizes: Sequence[ir.Value]) -> list[ir.Value]:
        """Two sizes in place of many: the product of those that are not 0, and 0 if there is one that is, else 1."""
        b = self.b
        none = [b.icmp_signed("==", size, int64(0)) for size in sizes]
        empty = reduce(b.or_, none)
        some = [b.select(n, int64(1), size) for n, size in zip(none, sizes, strict=True)]
        return [self.product(some), b.select(empty, int64(0), int64(1))]

    def own(self, tensor: Tensor, dtype: DType, sizes: tuple[ir.Value, ...]) -> Tensor:
        """A tensor in the buffer of one that has as many bytes and whose reference is given up here, if nobody else has
        that buffer; else in a new one."""
        b = self.b
        bytes = b.mul(self.count(tensor), int64(dtype.bytes))
        owner = b.call(self.unit.outside("run.own"), [self.context, tensor.owner, bytes])
        self.memory_unless(b.icmp_unsigned("!=", owner, ir.Constant(POINTER, None)))
        same = b.icmp_unsigned("==", owner, tensor.owner)
        return Tensor(dtype, b.select(same, tensor.data, at(b, owner, HEADER_BYTES)), owner, sizes)

    def zeros(self, dtype: DType, sizes: Sequence[ir.Value]) -> Tensor:
        """A tensor of zeros."""
        made = self.new(dtype, sizes)
        bytes = self.b.mul(self.count(made), int64(dtype.bytes))
        self.b.call(self.unit.outside("run.zero"), [made.data, bytes])
        return made

    def product(self, sizes: Sequence[ir.Value]) -> ir.Value:
        """The product of sizes; the largest i64 where it would not fit."""
        total = int64(1)
        for size in sizes:
            if isinstance(total, ir.Constant) and isinstance(size, ir.Constant):
                total = int64(min(total.constant * size.constant, (1 << 63) - 1))
            elif isinstance(total, ir.Constant) and total.constant == 1:
                total = size
            else:
                total = self._product2(total, size)
        return total

    def count(self, tensor: Tensor) -> ir.Value:
        """How many elements a tensor that exists has."""
        return self.times(tensor.sizes)

    def times(self, sizes: Iterable[ir.Value]) -> ir.Value:
        """The product of the sizes of something that exists."""
        known, total = 1, None
        for size in sizes:
            if isinstance(size, ir.Constant):
                known *= size.constant
            else:
                total = size if total is None else self.b.mul(total, size, flags=["nsw"])
        if total is None:
            return int64(known)
        return total if known == 1 else self.b.mul(total, int64(known), flags=["nsw"])

    def retain(self, owner: ir.Value) -> None:
        """One more reference."""
        place = at(self.b, owner, Header.COUNT, I64)
        self.b.store(self.b.add(self.b.load(place, typ=I64), int64(1)), place)

    def release(self, owner: ir.Value) -> None:
        """One reference less."""
        self.b.call(self.unit.outside("run.release"), [self.context, owner])

    def alone(self, owner: ir.Value) -> ir.Value:
        """Whether there is one reference only."""
        return self.b.icmp_signed("==", field(self.b, owner, Header.COUNT), int64(1))

    def nothing(self, type: Type) -> Native:
        """What stands for a value that is never read."""
        if not type.shape:
            return self.code.const(type.dtype, 0).ref
        owner = at(self.b, self.context, Word.NOTHING, I64)
        return whole(type, [at(self.b, owner, HEADER_BYTES), owner, *[int64(0)] * type.rank])

    def _product2(self, x: ir.Value, y: ir.Value) -> ir.Value:
        pair = ir.LiteralStructType([I64, I1])
        multiply = intrinsic(self.unit.module, "llvm.smul.with.overflow.i64", pair, I64, I64)
        both = self.b.call(multiply, [x, y])
        return self.b.select(self.b.extract_value(both, 1), int64((1 << 63) - 1), self.b.extract_value(both, 0))

"""How native threads wait for each other: they look for a while, then sleep on a lock of Python's.

Such a lock needs no interpreter and is there on every platform. Whoever wants to sleep says so, looks once more, and only then
waits; whoever wakes takes that word back, so a lock is released exactly as often as somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from llvmlite import ir

from graphdsl.native.flow import I32, I64, POINTER, VOID, at, call_address, int64, intrinsic
from graphdsl.native.target import Target

SPINS = 4000  # turns of looking: some 100 µs

ACQUIRE = ir.FunctionType(I32, [POINTER, I32])
RELEASE = ir.FunctionType(VOID, [POINTER])

Word: TypeAlias = "int | ir.Value"


def get(b: ir.IRBuilder, record: ir.Value, word: int | ir.Value) -> ir.Value:
    return b.load_atomic(at(b, record, word, I64), "seq_cst", 8, typ=I64)


def put(b: ir.IRBuilder, value: ir.Value | int, record: ir.Value, word: int | ir.Value) -> None:
    number = int64(value) if isinstance(value, int) else value
    b.atomic_rmw("xchg", at(b, record, word, I64), number, "seq_cst")  # llvmlite's store wants typed pointers


def add(b: ir.IRBuilder, record: ir.Value, word: int, value: ir.Value | int) -> ir.Value:
    number = int64(value) if isinstance(value, int) else value
    return b.atomic_rmw("add", at(b, record, word, I64), number, "seq_cst")


def holds(b: ir.IRBuilder, sign: str, x: ir.Value, y: ir.Value | int) -> ir.Value:
    return b.icmp_signed(sign, x, int64(y) if isinstance(y, int) else y)


@contextmanager
def forever(b: ir.IRBuilder) -> Iterator[ir.Block]:
    """A loop that only a branch to the block given ends."""
    head, done = b.append_basic_block("again"), b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)
    yield done
    b.branch(head)
    b.position_at_end(done)


@dataclass(frozen=True)
class Waiting:
    """Waiting until a word of a record changes; `asleep` says that somebody sleeps on the lock in `lock`."""

    record: ir.Value
    watched: Word
    asleep: Word
    lock: Word
    acquire: Word

    def another(self, b: ir.IRBuilder, target: Target, seen: ir.Value) -> ir.Value:
        """The first value that is not `seen`."""
        before = b.block
        spin, sleep, again, found = (b.append_basic_block(name) for name in ("spin", "sleep", "again", "found"))
        b.branch(spin)
        b.position_at_end(spin)
        turn = b.phi(I64)
        turn.add_incoming(int64(0), before)
        pause(b, target)
        latest = get(b, self.record, self.watched)
        b.cbranch(holds(b, "!=", latest, seen), found, again)
        b.position_at_end(again)
        turn.add_incoming(b.add(turn, int64(1)), again)
        b.cbranch(holds(b, "<", turn, SPINS), spin, sleep)
        b.position_at_end(sleep)
        put(b, 1, self.record, self.asleep)
        with b.if_else(holds(b, "==", get(b, self.record, self.watched), seen)) as (same, changed):
            with same:
                self.take(b)
            with changed:
                self.take_back(b)
        turn.add_incoming(int64(0), b.block)
        b.branch(spin)
        b.position_at_end(found)
        return latest

    def take(self, b: ir.IRBuilder) -> None:
        """Sleep until the lock is released."""
        call_address(b, _pointer(b, self.record, self.acquire), ACQUIRE, [self.place(b), ir.Constant(I32, 1)])

    def take_back(self, b: ir.IRBuilder) -> None:
        """Not going to sleep after all; if somebody has released the lock already, take it."""
        slept = b.atomic_rmw("xchg", at(b, self.record, _index(self.asleep), I64), int64(0), "seq_cst")
        with b.if_then(holds(b, "==", slept, 0)):
            self.take(b)

    def place(self, b: ir.IRBuilder) -> ir.Value:
        """The lock."""
        return _pointer(b, self.record, self.lock)


def wake(b: ir.IRBuilder, record: ir.Value, asleep: Word, lock: Word, release: Word) -> None:
    """Release the lock if somebody sleeps on it."""
    slept = b.atomic_rmw("xchg", at(b, record, _index(asleep), I64), int64(0), "seq_cst")
    with b.if_then(holds(b, "!=", slept, 0)):
        call_address(b, _pointer(b, record, release), RELEASE, [_pointer(b, record, lock)])


def _index(word: Word) -> Word:
    return int(word) if isinstance(word, int) else word


def _pointer(b: ir.IRBuilder, record: ir.Value, word: Word) -> ir.Value:
    return b.load(at(b, record, _index(word), I64), typ=POINTER)


def pause(b: ir.IRBuilder, target: Target) -> None:
    if "x86" in target.triple:
        b.call(intrinsic(b.module, "llvm.x86.sse2.pause", VOID), [])
    elif target.triple.startswith(("aarch64", "arm64")):
        b.call(intrinsic(b.module, "llvm.aarch64.hint", VOID, I32), [ir.Constant(I32, 1)])

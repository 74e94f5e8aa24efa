"""What is known of where an op reads: whether its elements depend on their place (what does not can be computed in any
order of elements), and whether it picks elements that adjoin in memory.
"""

from __future__ import annotations

from graphdsl.core.ir import Apply, Value
from graphdsl.ops.op import Op, Pointwise
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, DType
from graphdsl.ops.types import I64 as INT
from graphdsl.source.diagnostic import FaultKind
from graphdsl.source.record import dataclass


class _Dry(Code):
    """An access pattern run dry: writes nothing, and notes whether a place was computed with."""

    def __init__(self) -> None:
        self.asked = False
        self.places: set[int] = set()

    def made(self, dtype: DType, *given: S) -> S:
        self.asked |= any(id(x) in self.places for x in given)
        return S(self, dtype, None)

    def const(self, dtype: DType, value: float | int | bool) -> S:
        return self.made(dtype)

    def op2(self, name: str, x: S, y: S) -> S:
        return self.made(x.dtype, x, y)

    def compare(self, name: str, x: S, y: S) -> S:
        return self.made(BOOL, x, y)

    def op1(self, name: str, x: S) -> S:
        return self.made(x.dtype, x)

    def fma(self, x: S, y: S, z: S) -> S:
        return self.made(x.dtype, x, y, z)

    def select(self, condition: S, x: S, y: S) -> S:
        return self.made(x.dtype, condition, x, y)

    def convert(self, x: S, dtype: DType) -> S:
        return self.made(dtype, x)

    def bits(self, x: S) -> S:
        return self.made(INT, x)

    def from_bits(self, x: S) -> S:
        return self.made(x.dtype, x)

    def mul_high(self, x: S, y: S) -> S:
        return self.made(x.dtype, x, y)

    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        self.made(BOOL, condition, *numbers)


class OfValue:
    """What a `Reader` of a value knows by its type."""

    value: Value

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    @property
    def rank(self) -> int:
        return self.value.type.rank


@dataclass
class _Reader(OfValue):
    code: _Dry
    value: Value

    def at(self, place: tuple[S, ...]) -> S:
        return self.code.made(self.dtype, *place)

    def size(self, axis: int) -> S:
        return self.code.made(INT)


def asks_for_place(instr: Apply) -> bool:
    """Whether a pointwise op's elements depend on where they are."""
    compute = instr.op.compute
    assert isinstance(compute, Pointwise)
    code = _Dry()
    rank = instr.outs[0].type.rank
    place = tuple(S(code, INT, None) for _ in range(rank))
    code.places.update(map(id, place))
    sizes = tuple(S(code, INT, None) for _ in range(rank))
    readers = tuple(_Reader(code, a) for a in instr.args)
    result = compute.at(code, place, readers, sizes, instr.attrs)
    return code.asked or id(result) in code.places


def rearranges_nothing(op: Op) -> bool:
    """Whether a result of `op` is its operand's elements in the same order: the buffer is shared, and nothing computed."""
    return op.name in ("reshape", "reshape_like")


def adjoining(instr: Apply) -> bool:
    """Whether an op is an index that picks adjoining elements: ints first, then at most one slice by steps of 1, the
    rest whole.
    """
    if instr.op.name != "index":
        return False
    cut = False
    for kind, *words in instr.attrs["spec"]:
        if kind in ("new", "full"):
            cut = cut or kind == "full"
        elif cut or not (kind == "at" or (kind == "slice" and words[2] in (None, 1))):
            return False
        else:
            cut = kind == "slice"
    return True

"""A compiled program's memory between runs, and values on their way between Python and native code.

Buffers that a run gave back stay for the next one. Large results are handed out where they lie: their buffer comes
back when the last array that sees it is gone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdsl.native.support.words import CONTEXT_WORDS, FOREIGN, HEADER_BYTES, PADDING, Header, Word, words
from graphdsl.ops.types import BOOL, F32, F64, DType, Type

_COPIED = 1 << 14  # bytes up to which a result is copied
_PAGE = 4096
_ALLOCATE = ctypes.cast(ctypes.pythonapi.PyMem_RawMalloc, ctypes.c_void_p).value
_free = ctypes.pythonapi.PyMem_RawFree
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


class Memory:
    """The context of a program, and all buffers it ever made."""

    def __init__(self) -> None:
        self.context = (ctypes.c_int64 * CONTEXT_WORDS)()
        self.address = ctypes.addressof(self.context)
        self.returned: list[int] = []  # blocks whose arrays are gone; list.append is safe from any thread
        self.context[Word.MALLOC] = _ALLOCATE or 0
        self.context[Word.FREE_FUNCTION] = ctypes.cast(_free, ctypes.c_void_p).value or 0
        self.context[Word.NOTHING + Header.COUNT] = FOREIGN

    def __getitem__(self, word: int) -> int:
        return self.context[word]

    def __setitem__(self, word: int, value: int) -> None:
        self.context[word] = value

    def collect(self) -> None:
        """Take back what came back since the last run."""
        while self.returned:
            self.release(self.returned.pop())

    def release(self, block: int) -> None:
        """One reference to a block less (what `run.release` does)."""
        header = _header(block)
        header[Header.COUNT] -= 1
        if header[Header.COUNT] == 0:
            self._to_list(block, header)

    def place(self, address: int, type: Type, value: Any) -> None:
        """Write a value's words at an address; a tensor goes into a buffer of its own."""
        if not type.shape:
            ctypes.c_int64.from_address(address).value = scalar_word(value, type.dtype)
            return
        array = np.ascontiguousarray(value, type.dtype.numpy)
        block = new_block(self.address, array.nbytes)
        if not block:
            raise MemoryError
        ctypes.memmove(block + HEADER_BYTES, array.ctypes.data, array.nbytes)
        (ctypes.c_int64 * words(type)).from_address(address)[:] = [block + HEADER_BYTES, block, *array.shape]

    def sweep(self, lent: Sequence[int] = ()) -> None:
        """After a run that failed: every block that no array holds is free."""
        held = set(lent)
        for block in self._blocks():
            header = _header(block)
            if header[Header.COUNT] > 0 and block not in held:
                header[Header.COUNT] = 0
                self._to_list(block, header)

    def _to_list(self, block: int, header: Any) -> None:
        word = Word.FREE + header[Header.CLASS]
        header[Header.NEXT_FREE] = self.context[word]
        self.context[word] = block
        self.context[Word.USED] -= header[Header.CAPACITY]

    def _blocks(self) -> Any:
        block = self.context[Word.BLOCKS]
        while block:
            following = _header(block)[Header.NEXT_BLOCK]
            yield block
            block = following

    def __del__(self) -> None:
        for block in list(self._blocks()):
            _free(_header(block)[Header.RAW])


def new_block(context: int, bytes: int) -> int:
    """`run.new`."""
    from graphdsl.native.support.library import support_library

    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(support_library()["run.new"])
    return int(call(context, bytes))


def _header(block: int) -> Any:
    return (ctypes.c_int64 * (HEADER_BYTES // 8)).from_address(block)


class _Lent:
    """A result's buffer, for NumPy: it goes back when this dies. It keeps the memory alive that it is part of."""

    def __init__(self, memory: Memory, block: int, data: int, shape: tuple[int, ...], dtype: DType) -> None:
        self._memory, self._block = memory, block
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(dtype.numpy).str,
            "data": (data, False),
        }

    def __del__(self) -> None:
        self._memory.returned.append(self._block)


class Fed:
    """An array from outside, as native code sees it."""

    def __init__(self, value: Any, type: Type) -> None:
        array = np.ascontiguousarray(value, type.dtype.numpy)
        end = array.ctypes.data + array.nbytes
        if not array.nbytes or -end % _PAGE < PADDING:
            # vector loops read a little beyond the end: that must not be the end of what the process has
            room = np.empty(array.nbytes + PADDING, np.uint8)
            padded = room[: array.nbytes].view(type.dtype.numpy).reshape(array.shape)
            padded[...] = array
            array = padded
        self.array = array
        self._header = (ctypes.c_int64 * (HEADER_BYTES // 8))(FOREIGN)
        self.owner = ctypes.addressof(self._header)

    def words(self) -> list[int]:
        return [self.array.ctypes.data, self.owner, *self.array.shape]


def scalar_word(value: Any, dtype: DType) -> int:
    """A scalar's bits."""
    if dtype is F64:
        return int(np.float64(value).view(np.int64))
    if dtype is F32:
        return int(np.float32(value).view(np.int32))
    return int(value)


def scalar_from(address: int, dtype: DType) -> Any:
    """The scalar at an address, as eager code holds it."""
    if dtype is F64:
        return ctypes.c_double.from_address(address).value
    if dtype is F32:
        return np.float32(ctypes.c_float.from_address(address).value)
    if dtype is BOOL:
        return bool(ctypes.c_uint8.from_address(address).value)
    kind = ctypes.c_int32 if dtype is DType.I32 else ctypes.c_int64
    return kind.from_address(address).value


def copied(address: int, type: Type) -> Any:
    """The value whose words lie at an address; of a tensor a copy."""
    if not type.shape:
        return scalar_from(address, type.dtype)
    data, _, *shape = (ctypes.c_int64 * words(type)).from_address(address)
    array = np.empty(shape, type.dtype.numpy)
    ctypes.memmove(array.ctypes.data, data, array.nbytes)
    return array


def result(memory: Memory, address: int, type: Type, fed: dict[int, Fed], lent: list[int]) -> Any:
    """A result of a run, whose reference is the caller's now."""
    if not type.shape:
        return scalar_from(address, type.dtype)
    data, owner, *shape = (ctypes.c_int64 * words(type)).from_address(address)
    if owner == memory.address + 8 * Word.NOTHING:
        return np.zeros([d if isinstance(d, int) else 0 for d in type.shape], type.dtype.numpy)
    bytes = int(np.prod(shape, dtype=np.int64)) * type.dtype.bytes
    foreign = _header(owner)[Header.COUNT] >= FOREIGN // 2
    if owner in fed:
        source = fed[owner].array
        offset = data - source.ctypes.data
        return source.reshape(-1).view(np.uint8)[offset : offset + bytes].view(type.dtype.numpy).reshape(shape)
    if foreign or bytes <= _COPIED:
        array = copied(address, type)
        if not foreign:
            memory.release(owner)
        return array
    lent.append(owner)
    return np.asarray(_Lent(memory, owner, data, tuple(shape), type.dtype))

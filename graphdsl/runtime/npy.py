"""The .npy format: header and data, read with care: nothing is unpickled, no size is believed before it is checked.

The format is described in numpy/lib/_format_impl.py.
"""

from __future__ import annotations

import ast
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np

from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType
from graphdsl.runtime import file_faults
from graphdsl.runtime.limits import MOST_BYTES, Limits
from graphdsl.source.diagnostic import Fault

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 2**16
_MOST_AXES = 32
# NumPy's kind and size: smaller ints and halves are widened
DTYPES = {
    "b1": BOOL,
    "i1": I32,
    "u1": I32,
    "i2": I32,
    "u2": I32,
    "i4": I32,
    "u4": I64,
    "i8": I64,
    "f2": F32,
    "f4": F32,
    "f8": F64,
}


class Header(NamedTuple):
    """What a file says of its array: `stored` is NumPy's dtype in the file, `dtype` ours."""

    dtype: DType
    shape: tuple[int, ...]
    stored: np.dtype[Any]
    fortran: bool

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.stored.itemsize


def read_header(file: IO[bytes], name: str) -> Header:
    """The header of the .npy data that begins here."""
    start = file.read(8)
    if start[:6] != _MAGIC or len(start) < 8:
        raise _damaged(name, "it does not begin as one")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        raise _damaged(name, "its header is too long")
    text = file.read(length)
    try:
        fields = ast.literal_eval(text.decode("utf-8" if start[6] >= 3 else "latin-1").strip())
        stored, fortran, shape = np.dtype(fields["descr"]), fields["fortran_order"], fields["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise _damaged(name, "its header cannot be read") from None
    if not (
        len(text) == length
        and isinstance(shape, tuple)
        and len(shape) <= _MOST_AXES
        and all(type(d) is int and 0 <= d < 2**62 for d in shape)
        and type(fortran) is bool
    ):
        raise _damaged(name, "its header cannot be read")
    if stored.hasobject:
        raise Fault(file_faults.PICKLE, name)
    dtype = DTYPES.get(f"{stored.kind}{stored.itemsize}")
    if dtype is None:
        raise Fault(file_faults.NO_DTYPE, name, stored.name)
    return Header(dtype, shape, stored, fortran)


def read_data(file: IO[bytes], header: Header, name: str, limits: Limits, most: int) -> np.ndarray[Any, Any]:
    """The array behind the header, in our dtype and row-major. The file has `most` bytes, or fewer."""
    if header.bytes > most:
        raise _damaged(name, "it ends too early")
    bytes_each = max(header.stored.itemsize, header.dtype.bytes)
    limits.check(f"`{name}`", header.shape, bytes_each)
    if prod(d for d in header.shape if d) * bytes_each > MOST_BYTES:  # NumPy refuses it, although it holds nothing
        raise limits.exceeded(f"`{name}`", MOST_BYTES)
    array = np.empty(prod(header.shape), header.stored)
    left = array.data.cast("B") if array.size else memoryview(b"")
    while left:
        count = file.readinto(left[: 2**24])  # type: ignore[attr-defined]
        if not count:
            raise _damaged(name, "it ends too early")
        left = left[count:]
    shaped = array.reshape(header.shape, order="F" if header.fortran else "C")
    return np.ascontiguousarray(shaped, header.dtype.numpy).reshape(header.shape)


def write(file: IO[bytes], value: Any, dtype: DType) -> None:
    """One value, as a .npy of version 1; there is one NaN."""
    array = np.ascontiguousarray(value, dtype.numpy).reshape(np.shape(value))
    if dtype.is_float:
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.reshape(-1).view(np.uint8).data)  # NumPy's own writing says no more than that it failed


def _damaged(name: str, why: str) -> Fault:
    return Fault(file_faults.DAMAGED, name, ".npy", why)

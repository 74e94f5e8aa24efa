"""Loading and saving values: .npy, .npz and .csv, relative to the program's folder. Faults are of the kind E06xx.

Whatever a file holds, reading it takes no more memory than the limit, and unpickles nothing. What is saved is written
aside and renamed: after any failure the old file is there, whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops.types import DType, Size, Type, converts_freely
from graphdsl.runtime import file_faults, npy
from graphdsl.runtime.format import type_text
from graphdsl.runtime.limits import Limits
from graphdsl.source.diagnostic import Fault

if TYPE_CHECKING:
    from zipfile import ZipFile

_READABLE = ".npy, .npz or .csv"
_WRITABLE = ".npy or .npz"


def type_of(folder: str, path: str, entry: Any, limits: Limits | None = None) -> tuple[DType, tuple[int, ...]]:
    """Dtype and shape of what a `load` would give, from the header where there is one."""
    with _opened(folder, path) as file:
        match _suffix(path):
            case ".npy":
                header = _single(file, path, entry)
            case ".npz":
                with _member(file, path, entry) as (member, _):
                    header = npy.read_header(member, _entry_name(path, entry))
            case _:
                array = _csv(file, path, entry, limits or Limits())
                return DType.of(array), array.shape
    return header.dtype, header.shape


def read(folder: str, path: str, entry: Any, limits: Limits) -> np.ndarray[Any, Any]:
    """The array that a file (or its entry, or its columns) holds, in the dtype that `type_of` gives."""
    with _opened(folder, path) as file:
        match _suffix(path):
            case ".npy":
                header = _single(file, path, entry)
                return npy.read_data(file, header, path, limits, os.fstat(file.fileno()).st_size)
            case ".npz":
                name = _entry_name(path, entry)
                with _member(file, path, entry) as (member, size):
                    return npy.read_data(member, npy.read_header(member, name), name, limits, size)
            case _:
                return _csv(file, path, entry, limits)


def load(folder: str, path: str, entry: Any, type: Type, limits: Limits) -> Any:
    """A value of the type that the program was checked with; a fault if the file has turned out otherwise."""
    array = read(folder, path, entry, limits)
    return fitted(array, type, path)


def fitted(array: np.ndarray[Any, Any], type: Type, name: str) -> Any:
    """An array in its run-time form, in the dtype of `type`, if that loses nothing and the shape agrees."""
    dtype = DType.of(array)
    sizes: dict[Size, int] = {}
    fits = len(type.shape) == array.ndim and converts_freely(Type(dtype), type.dtype)
    if not fits or any(
        d != (sizes.setdefault(want, d) if isinstance(want, Size) else want)
        for want, d in zip(type.shape, array.shape, strict=True)
    ):
        raise Fault(file_faults.OTHER_TYPE, name, type_text(dtype, array.shape), str(type))
    array = array.astype(type.dtype.numpy, copy=False)
    if array.ndim:
        return array
    return array[()] if type.dtype is DType.F32 else array.item()


def save(folder: str, path: str, items: Sequence[tuple[str, DType, Any]]) -> None:
    """Write named values: one to a .npy, any number to a .npz."""
    suffix = _suffix(path)
    if suffix not in (".npy", ".npz"):
        raise Fault(file_faults.SUFFIX, path, "save", _WRITABLE)
    if suffix == ".npy" and len(items) != 1:
        raise Fault(file_faults.ONE_VALUE, path, len(items))
    try:
        with _replaced(os.path.join(folder, path)) as file:
            if suffix == ".npy":
                npy.write(file, items[0][2], items[0][1])
            else:
                _write_entries(file, items)
    except (OSError, ValueError) as error:
        raise Fault(file_faults.CANNOT_WRITE, path, _reason(error)) from None


# ---- reading ----------------------------------------------------------------------------------


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


@contextmanager
def _opened(folder: str, path: str) -> Iterator[IO[bytes]]:
    """The file, if it is a plain one and has a known suffix."""
    if _suffix(path) not in (".npy", ".npz", ".csv"):
        raise Fault(file_faults.SUFFIX, path, "load", _READABLE)
    with _plain(os.path.join(folder, path), path) as file:
        yield file


@contextmanager
def _plain(full: str, path: str) -> Iterator[IO[bytes]]:
    try:
        if not stat.S_ISREG(os.stat(full).st_mode):
            raise Fault(file_faults.CANNOT_READ, path, "it is not a plain file")
        with open(full, "rb") as file:
            yield file
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise Fault(file_faults.CANNOT_READ, path, _reason(error)) from None


def _single(file: IO[bytes], path: str, entry: Any) -> npy.Header:
    if entry is not None:
        raise Fault(file_faults.NO_ENTRIES, path, str(entry))
    return npy.read_header(file, path)


def _entry_name(path: str, entry: Any) -> str:
    return f"{path}:{entry}"


def entries(path: str) -> list[str]:
    """The names of the values in an .npz. Raises a `Fault` if it cannot be read."""
    with _plain(path, path) as file, _archive(file, path) as archive:
        return _entries(archive)


def _entries(archive: ZipFile) -> list[str]:
    return [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]


@contextmanager
def _member(file: IO[bytes], path: str, entry: Any) -> Iterator[tuple[IO[bytes], int]]:
    """The data of one entry of an .npz, unpacked as it is read, and how many bytes they will be at most."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    from graphdsl.runtime.csv_files import listed

    with _archive(file, path) as archive:
        names = _entries(archive)
        if not isinstance(entry, str):
            raise Fault(file_faults.NAME_ENTRY, path, "entry", listed(names))
        if entry not in names:
            raise Fault(file_faults.NO_ENTRY, path, "entry", entry, listed(names))
        info = archive.getinfo(f"{entry}.npy")
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise Fault(file_faults.DAMAGED, path, ".npz", "its compression is none that .npz files have")
        with archive.open(info) as member:
            yield member, info.file_size


@contextmanager
def _archive(file: IO[bytes], path: str) -> Iterator[ZipFile]:
    from zipfile import ZipFile

    try:
        with ZipFile(file) as archive:
            yield archive
    except Fault:
        raise
    except Exception as error:  # a damaged archive makes zipfile raise almost anything
        raise Fault(file_faults.DAMAGED, path, ".npz", _reason(error) or "it ends too early") from None


def _csv(file: IO[bytes], path: str, entry: Any, limits: Limits) -> np.ndarray[Any, Any]:
    from graphdsl.runtime.csv_files import read_columns

    return read_columns(file.name, path, entry, limits)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


# ---- writing ----------------------------------------------------------------------------------


@contextmanager
def _replaced(path: str) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place, and its mode, once it is whole."""
    mode = _mode_of_old(path)
    target = os.path.realpath(path)
    aside = f"{target}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(aside, "xb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(aside, mode)
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def _mode_of_old(path: str) -> int | None:
    """The mode of the file that a save replaces, if there is one; only a plain file that may be written is replaced."""
    try:
        old = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old):
        raise OSError("it is a folder" if stat.S_ISDIR(old) else "it is not a plain file")
    if not os.access(path, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES))
    return stat.S_IMODE(old)


def _write_entries(file: IO[bytes], items: Sequence[tuple[str, DType, Any]]) -> None:
    import zipfile

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, dtype, value in items:
            # a fixed date: the same values make the same file
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write(member, value, dtype)

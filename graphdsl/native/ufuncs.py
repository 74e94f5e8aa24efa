"""NumPy ufuncs and gufuncs made from the addresses of native loops, through NumPy's C interface.

A ufunc here has one signature, so that no call searches for one and nothing is converted behind one's back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from graphdsl.ops.types import DType

_alive: list[Any] = []  # NumPy keeps only addresses of what it is given, and never frees a ufunc's parts itself
_NO_IDENTITY = -1
# places in `_UFUNC_API`
_FROM_FUNC_AND_DATA, _WITH_SIGNATURE = 1, 31


@cache
def _api() -> Any:
    _multiarray_umath: Any = import_module("numpy._core._multiarray_umath")

    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = ctypes.pythonapi.PyCapsule_GetPointer(_multiarray_umath._UFUNC_API, None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


def ufunc(
    name: str,
    loop: int,
    data: int,
    operands: Sequence[DType],
    results: Sequence[DType],
    signature: str | None = None,
    keep: object = None,
) -> Any:
    """The ufunc whose inner loop stands at address `loop` and gets `data`; a gufunc with a `signature`.

    `keep` (what holds the code) lives as long as the process, as ufuncs do.
    """
    numbers = [np.dtype(d.numpy).num for d in (*operands, *results)]
    loops, datas = (ctypes.c_void_p * 1)(loop), (ctypes.c_void_p * 1)(data)
    types = (ctypes.c_char * len(numbers))(*[bytes([n]) for n in numbers])
    words = [name.encode(), b"", (signature or "").encode()]
    _alive.append((loops, datas, types, words, keep))
    start = [loops, datas, types, 1, len(operands), len(results), _NO_IDENTITY, words[0], words[1], 0]
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 4 + [ctypes.c_char_p] * 2 + [ctypes.c_int]
    place = _FROM_FUNC_AND_DATA
    if signature is not None:
        place = _WITH_SIGNATURE
        start.append(words[2])
        kinds.append(ctypes.c_char_p)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(_api()[place])
    return make(*start)

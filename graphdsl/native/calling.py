"""Python functions whose code is native (`calls` writes it): `PyCFunction`s made through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_METH_FASTCALL = 0x80


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_alive: list[Any] = []


def callable_for(name: str, code: int, info: int, keep: object) -> Any:
    """The Python function that runs `code` (one of `define_call`) on the kernel described at `info`."""
    api = ctypes.pythonapi
    capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", api)
    )
    set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(("PyCapsule_SetContext", api))
    function_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api)
    )
    capsule = capsule_new(info, None, None)
    set_context(capsule, np.float32)
    definition = _MethodDef(name.encode(), code, _METH_FASTCALL, None)
    _alive.append((definition, keep))
    return function_new(ctypes.addressof(definition), capsule, None)

"""The kernel library: one object with every kernel, built once for each CPU and version, and linked when first needed.

What builds it (`assembly`) is imported only where the cache does not have it.
"""

from __future__ import annotations

from functools import cache

from graphdsl.native import cache as objects
from graphdsl.native.building import on_build
from graphdsl.native.linked import Linked, process_symbols
from graphdsl.native.sources import kernels_made_by
from graphdsl.native.target import host

# Functions of Python's C interface that kernels on single numbers call.
IMPORTS = (
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyObject_IsTrue",
    "PyBool_FromLong",
    "PyCapsule_GetPointer",
    "PyCapsule_GetContext",
    "PyObject_CallFunctionObjArgs",
    "Py_DecRef",
)
_END_OF_NAMES = b"\0"


@cache
def library() -> Linked:
    """The library for this machine, from the cache where it is there."""
    names, code = objects.obtain(_name(), _built).split(_END_OF_NAMES, 1)
    return Linked(code, names.decode().split("\n"), process_symbols(*IMPORTS))


def _built() -> bytes:
    from graphdsl.native.assembly import assemble

    for call in on_build:
        call()
    names, code = assemble(host())
    return "\n".join(names).encode() + _END_OF_NAMES + code


def _name() -> str:
    return objects.key("kernels", host().key, kernels_made_by())

"""The kernel library: one object with every kernel, built once for each CPU and version, and linked when first needed.

What builds it (`assembly`) is imported only where the cache does not have it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from graphdsl.native import cache as objects
from graphdsl.native.building import on_build
from graphdsl.native.linked import Linked, process_symbols
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
_PACKAGES = ("graphdsl.native", "graphdsl.ops", "graphdsl.ops.math")
_END_OF_NAMES = b"\0"


@cache
def library() -> Linked:
    """The library for this machine, from the cache where it is there."""
    names, code = objects.obtain(_name(), _built).split(_END_OF_NAMES, 1)
    return Linked(code, names.decode().split("\n"), process_symbols(*IMPORTS))


def is_cached() -> bool:
    """Whether the library can be had without building it."""
    return objects.read(_name()) is not None


def _built() -> bytes:
    from graphdsl.native.assembly import assemble

    for call in on_build:
        call()
    names, code = assemble(host())
    return "\n".join(names).encode() + _END_OF_NAMES + code


def _name() -> str:
    return objects.key("kernels", host().key, sources())


@cache
def sources() -> str:
    """A digest of every file that decides what the kernels compute."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted(resources.files(package).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()

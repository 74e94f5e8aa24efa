"""Kernels that the library does not hold, because attrs change their body: each an object of its own, cached like any
other.
"""

from __future__ import annotations

from graphdsl.native import cache as objects
from graphdsl.native.inventory import Entry
from graphdsl.native.library import IMPORTS
from graphdsl.native.linked import Linked, process_symbols
from graphdsl.native.names import ELEMENTWISE_LOOP, RECORD, call_name, kernel, kernel_description
from graphdsl.native.sources import kernels_made_by
from graphdsl.native.target import host


def single(entry: Entry) -> Linked:
    """The object of one kernel, with the same names in it as in the library."""
    name = objects.key("kernel", host().key, kernels_made_by(), entry.name, repr(entry.attrs))
    code = objects.obtain(name, lambda: _assembled(entry))
    call = call_name(entry.operands, entry.measure.dtype)
    exports = [ELEMENTWISE_LOOP, RECORD, kernel_description(entry.name), call]
    return Linked(code, exports, process_symbols(*IMPORTS))


def _assembled(entry: Entry) -> bytes:
    from graphdsl.native.calls import define_call
    from graphdsl.native.elementwise import define_kernel, define_loops

    target = host()
    module = target.module(entry.name)
    define_loops(module, target)
    name = kernel(entry.name)
    result = define_kernel(module, target, name, entry.body, entry.operands, entry.op.faults)
    define_call(module, target, entry.operands, result)
    return target.object_code(str(module), loops=False)

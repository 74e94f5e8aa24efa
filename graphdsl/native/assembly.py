"""What stands in the kernel library, put together."""

from __future__ import annotations

from graphdsl.native.calls import define_call
from graphdsl.native.draws import define_block, define_draw
from graphdsl.native.elementwise import define_kernel, define_loops
from graphdsl.native.gemm import define_gemm
from graphdsl.native.inventory import draw_entries, elementwise_entries
from graphdsl.native.names import (
    ELEMENTWISE_LOOP,
    GUARDED_PRODUCT_LOOP,
    PRODUCT_LOOP,
    RECORD,
    REDUCE_LOOP,
    SEARCH_LOOP,
    call_name,
    kernel,
    kernel_description,
)
from graphdsl.native.reductions import define_reductions
from graphdsl.native.target import Target

_LOOPS = (ELEMENTWISE_LOOP, RECORD, REDUCE_LOOP, SEARCH_LOOP, PRODUCT_LOOP, GUARDED_PRODUCT_LOOP)


def assemble(target: Target) -> tuple[list[str], bytes]:
    """The names that the library exports, and its object."""
    module = target.module("graphdsl kernels")
    define_loops(module, target)
    names = list(_LOOPS)
    calls: dict[str, None] = {}
    for entry in elementwise_entries():
        result = define_kernel(module, target, kernel(entry.name), entry.body, entry.operands, entry.op.faults)
        define_call(module, target, entry.operands, result)
        names.append(kernel_description(entry.name))
        calls[call_name(entry.operands, result)] = None
    names += calls
    names += define_reductions(module, target)
    names += define_gemm(module, target)
    names.append(define_block(module, target))
    names += [define_draw(module, target, entry) for entry in draw_entries()]
    # the loops that count are written as vectors already; unrolled ones would double the time this takes
    return names, target.object_code(str(module), loops=False)

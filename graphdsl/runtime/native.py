"""The kernel library as eager mode sees it: ufuncs, gufuncs and functions of numbers, made when first asked for.

llvmlite is imported with the first of them, so that programs that need none start without it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from graphdsl.native import names
from graphdsl.native.inventory import Entry, draw_name, is_held
from graphdsl.ops.op import Op, Reduce
from graphdsl.ops.types import I64, DType


@cache
def _library() -> Any:
    from graphdsl.native.library import library

    return library()


def ready() -> None:
    """Loads the library, building it if need be."""
    _library()


# Kernels by their kind and key. Attrs may hold anything, so they are told apart by their text.
_made: dict[tuple[str, str, str], Any] = {}


def _holder(entry: Entry) -> Any:
    """What holds the code of an elementwise kernel."""
    if is_held(entry.op, dict(entry.attrs)):
        return _library()
    key = ("code", entry.name, repr(entry.attrs))
    if key not in _made:
        from graphdsl.native.single import single

        _made[key] = single(entry)
    return _made[key]


def faults_seen(entry: Entry) -> Any:
    """A counter whose `.value` goes up with every element that fails in this kernel (or in some other)."""
    return ctypes.c_int64.from_address(_holder(entry)[names.RECORD])


def over_arrays(entry: Entry) -> Any:
    """The ufunc of a kernel."""
    from graphdsl.native.ufuncs import ufunc

    key = ("arrays", entry.name, repr(entry.attrs))
    if key not in _made:
        code, operands, result = _holder(entry), entry.operands, entry.measure.dtype
        data = code[names.kernel_description(entry.name)]
        _made[key] = ufunc(entry.op.name, code[names.ELEMENTWISE_LOOP], data, operands, [result], keep=code)
    return _made[key]


def over_numbers(entry: Entry) -> Callable[..., Any]:
    """The function of numbers of a kernel."""
    from graphdsl.native.calling import callable_for

    key = ("numbers", entry.name, repr(entry.attrs))
    if key not in _made:
        code = _holder(entry)
        address = code[names.call_name(entry.operands, entry.measure.dtype)]
        _made[key] = callable_for(entry.op.name, address, code[names.kernel_description(entry.name)], code)
    made: Callable[..., Any] = _made[key]
    return made


_SIGNATURES = {1: "(a)->()", 2: "(a,b)->()", 3: "(a,b,c)->()"}


@cache
def reduction(compute: Reduce, dtype: DType, rank: int) -> Any:
    """The gufunc that reduces the last `rank` axes."""
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    data = code[names.description(compute.fold, dtype, rank)]
    loop = code[names.SEARCH_LOOP if compute.search else names.REDUCE_LOOP]
    return ufunc(compute.fold, loop, data, [dtype], [I64 if compute.search else dtype], _SIGNATURES[rank], keep=code)


@cache
def dot(dtype: DType) -> Any:
    """The gufunc of products of vectors."""
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    return ufunc(
        "dot",
        code[names.REDUCE_LOOP],
        code[names.description("dot", dtype, 1)],
        [dtype] * 2,
        [dtype],
        "(n),(n)->()",
        keep=code,
    )


@cache
def matmul(dtype: DType, guard: tuple[int, ...], threads: int) -> Any:
    """The gufunc of products of matrices. Guards are looked at where there is one product."""
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    record = (ctypes.c_int64 * len(names.ProductRecord))()
    record[names.ProductRecord.DESCRIPTION] = code[names.product(dtype)]
    record[names.ProductRecord.GUARD] = sum(1 << i for i in guard)
    if threads > 1:
        from graphdsl.native.support.helpers import context
        from graphdsl.native.support.library import support_library

        record[names.ProductRecord.SHARE] = support_library()["run.product"]
        record[names.ProductRecord.CONTEXT] = context(threads)
    loop, data = code[names.GUARDED_PRODUCT_LOOP], ctypes.addressof(record)
    return ufunc("matmul", loop, data, [dtype] * 2, [dtype], "(m,k),(k,n)->(m,n)", keep=(code, record))


@cache
def draw(op: Op, dtype: DType) -> Any:
    """The gufunc of a distribution: key, counter, result."""
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    loop = code[names.draw(draw_name(op, dtype))]
    return ufunc(op.name, loop, 0, [I64, I64], [dtype], "(),()->(n)", keep=code)

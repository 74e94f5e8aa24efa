"""The kernel library as eager mode sees it: ufuncs, gufuncs and functions of numbers, made when first asked for.

llvmlite is imported with the first of them, so that programs that need none start without it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.types import I64, DType


@cache
def _library() -> Any:
    from graphdsl.native.library import library

    return library()


def ready() -> None:
    """Loads the library, building it if need be."""
    _library()


@cache
def faults_seen() -> Any:
    """A counter whose `.value` goes up with every element that fails in a native kernel."""
    return ctypes.c_int64.from_address(_library()["gdl.record"])


def entry_name(op: Op, operands: tuple[DType, ...], attrs: Attrs) -> str | None:
    """The name under which the library has an elementwise op, if it has."""
    from graphdsl.native.inventory import elementwise_entries, elementwise_name

    name = elementwise_name(op, operands, attrs)
    return name if name in elementwise_entries() else None


@cache
def over_arrays(name: str) -> Any:
    """The ufunc of a kernel."""
    from graphdsl.native.inventory import elementwise_entries
    from graphdsl.native.ufuncs import ufunc

    entry, code = elementwise_entries()[name], _library()
    data = code[f"gdl.kernel.{name}.info"]
    return ufunc(entry.op.name, code["gdl.loop"], data, entry.operands, [entry.result], keep=code)


@cache
def over_numbers(name: str) -> Callable[..., Any]:
    """The function of numbers of a kernel."""
    from graphdsl.native.calls import call_name, callable_for
    from graphdsl.native.inventory import elementwise_entries

    entry, code = elementwise_entries()[name], _library()
    address = code[call_name(entry.operands, entry.result)]
    made: Callable[..., Any] = callable_for(entry.op.name, address, code[f"gdl.kernel.{name}.info"], code)
    return made


_SIGNATURES = {1: "(a)->()", 2: "(a,b)->()", 3: "(a,b,c)->()"}
_SAME = {"any": "max", "all": "min", "argmax": "max", "argmin": "min"}


@cache
def reduction(kind: str, dtype: DType, rank: int) -> Any:
    """The gufunc that reduces the last `rank` axes."""
    from graphdsl.native.reductions import description
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    data = code[description(_SAME.get(kind, kind), dtype, rank)]
    searches = kind.startswith("arg")
    loop = code["gdl.search_loop" if searches else "gdl.reduce_loop"]
    return ufunc(kind, loop, data, [dtype], [I64 if searches else dtype], _SIGNATURES[rank], keep=code)


@cache
def dot(dtype: DType) -> Any:
    """The gufunc of products of vectors."""
    from graphdsl.native.reductions import description
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    return ufunc(
        "dot",
        code["gdl.reduce_loop"],
        code[description("dot", dtype, 1)],
        [dtype] * 2,
        [dtype],
        "(n),(n)->()",
        keep=code,
    )


@cache
def matmul(dtype: DType, guard: int | None) -> Any:
    """The gufunc of products of matrices."""
    from graphdsl.native.gemm import description
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    data = code[description(dtype, guard)]
    return ufunc("matmul", code["gdl.gemm_loop"], data, [dtype] * 2, [dtype], "(m,k),(k,n)->(m,n)", keep=code)


@cache
def draw(op: Op, dtype: DType) -> Any:
    """The gufunc of a distribution: key, counter, result."""
    from graphdsl.native.inventory import draw_name
    from graphdsl.native.ufuncs import ufunc

    code = _library()
    loop = code[f"gdl.draw.{draw_name(op, dtype)}"]
    return ufunc(op.name, loop, 0, [I64, I64], [dtype], "(),()->(n)", keep=code)

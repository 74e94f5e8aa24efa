"""Attrs as keys: what differs to the bit must differ as a key too."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphdsl.core.ir import Apply, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.eager.applied import _bind
from graphdsl.eager.module import Module
from graphdsl.ops.attrs import frozen
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F64, Size, Type


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (1, 1.0), (1, True), (0, False), ((0.0,), (-0.0,)), (2, 2.5)])
def test_numbers_that_python_takes_for_equal_are_told_apart(a: Any, b: Any) -> None:
    assert frozen(a) != frozen(b)
    assert frozen({"fill": a}) != frozen({"fill": b})


def test_nan_is_itself() -> None:
    assert frozen(math.nan) == frozen(float("nan"))


def test_sizes_are_told_apart_unless_they_are_numbered() -> None:
    n, m = Size("n"), Size("m")
    assert frozen((n, m)) != frozen((m, n))

    def numbered(value: Any) -> Any:
        found: dict[Size, int] = {}
        return frozen(value, lambda size: found.setdefault(size, len(found)))

    assert numbered((n, Type(F64, (m,)))) == numbered((m, Type(F64, (n,))))
    assert numbered((n, m)) != numbered((n, n))
    assert numbered((n, 0)) != numbered((0, n))


def test_eager_binds_a_kernel_for_each_zero() -> None:
    module, x = Module(), Value(Type(F64, (2,)))

    def shifted(fill: float) -> Any:
        attrs = {"axis": 0, "by": 1, "fill": fill}
        instr = Apply(NOWHERE, OPS["shifted"], (x,), attrs, (Value(x.type),))
        return module.globals[_bind(module, instr)]

    assert shifted(0.0) is shifted(0.0)
    assert shifted(0.0) is not shifted(-0.0)

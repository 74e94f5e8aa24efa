"""Templates: traced once, read by both modes. What the rules themselves compute is tested in test_ops."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Const, Value
from graphdsl.core.rules import NOWHERE, Use, inline, jvp_template, vjp_template
from graphdsl.ops.op import Elementwise, Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F32, F64, I64, Size, Type
from tests.test_ops import ATTRS, ELEMENTWISE, arity

SETTING = Setting(F64)
N = Size("n")


def ops_of(block: Block) -> list[str]:
    return [i.op.name for i in block.body if isinstance(i, Apply)]


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if OPS[n].vjp is not None])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_rules_trace_for_every_dtype_and_shape(name: str, dtype: Any) -> None:
    op = OPS[name]
    for shapes in itertools.product([(), (3,), (N, 3), (1, 3)], repeat=arity(op)):
        e = Emit(Block(), SETTING, NOWHERE)
        types = [Type(dtype, s) for s in shapes]
        if name == "where":
            types[0] = Type(next(iter(type(dtype))), shapes[0])
        out = e.apply(op, *(Value(t) for t in types), **ATTRS.get(name, {}))
        instr = e.block.body[-1]
        assert isinstance(instr, Apply)
        ins = [a.type for a in instr.args]
        for i, first in itertools.product(range(len(ins)), [True, False]):
            made = vjp_template(op, instr.attrs, ins, [out.type], i, first, SETTING)
            if made is None:
                continue
            assert made.out.type == Type(
                ins[i].dtype, made.block.params[len(made.block.params) - 1 - len(ins) + i].type.shape
            )
            assert len(made.uses) == len(made.block.params) == len(ins) + 2 + (not first)
        jvp_template(op, instr.attrs, ins, [out.type], [t.dtype.is_float for t in ins], SETTING)


def mul(a: Type, b: Type, operand: int, first: bool = True) -> Any:
    out = a if a.rank >= b.rank else b
    return vjp_template(OPS["mul"], {}, [a, b], [out], operand, first, SETTING)


def test_what_is_read() -> None:
    made = mul(Type(F64, (N,)), Type(F64, (N,)), 0)
    assert made.uses == (Use.VALUE, Use.NONE, Use.VALUE, Use.NONE)
    made = mul(Type(F64, (N,)), Type(F64), 1)
    assert made.uses == (Use.VALUE, Use.VALUE, Use.SHAPE, Use.NONE)


def test_a_broadcast_operand_gets_a_sum() -> None:
    assert ops_of(mul(Type(F64, (N,)), Type(F64), 1).block) == ["scale", "sum_to"]
    assert ops_of(mul(Type(F64, (N,)), Type(F64), 0).block) == ["scale"]
    assert ops_of(mul(Type(F64, (N,)), Type(F64), 0, first=False).block) == ["scale", "add"]


def test_templates_are_shared_between_types_that_differ_in_sizes_only() -> None:
    m = Size()
    assert mul(Type(F64, (N,)), Type(F64, (N,)), 0) is mul(Type(F64, (m,)), Type(F64, (m,)), 0)
    assert mul(Type(F64, (N,)), Type(F64, (N,)), 0) is not mul(Type(F64, (N,)), Type(F64, (m,)), 0)
    assert mul(Type(F64, (3,)), Type(F64), 0) is not mul(Type(F64, (N,)), Type(F64), 0)


def test_zero_is_added_only_where_it_can_matter() -> None:
    x = [Type(F64, (N,))] * 2
    made = vjp_template(OPS["add"], {}, x, x[:1], 0, True, SETTING)
    assert made is not None
    assert ops_of(made.block) == []
    assert made.out is made.block.params[0]
    assert not made.owned
    matmul = vjp_template(OPS["matmul"], {"guard": ()}, [Type(F64, (2, 2))] * 2, [Type(F64, (2, 2))], 0, True, SETTING)
    assert matmul is not None
    assert ops_of(matmul.block) == ["transpose", "matmul", "add"]
    assert matmul.owned


def test_an_index_adds_into_the_sum() -> None:
    types = [Type(F64, (N,)), Type(I64)]
    attrs = {"spec": (("at",),)}
    first = vjp_template(OPS["index"], attrs, types, [Type(F64)], 0, True, SETTING)
    later = vjp_template(OPS["index"], attrs, types, [Type(F64)], 0, False, SETTING)
    assert first is not None
    assert later is not None
    assert ops_of(first.block) == ["zeros_like", "index_add"]
    assert ops_of(later.block) == ["index_add"]
    assert first.uses == (Use.VALUE, Use.SHAPE, Use.VALUE, Use.NONE)


def test_no_derivative() -> None:
    assert vjp_template(OPS["round"], {}, [Type(F64)], [Type(F64)], 0, True, SETTING) is None
    assert (
        vjp_template(OPS["index"], {"spec": (("at",),)}, [Type(F64, (N,)), Type(I64)], [Type(F64)], 1, True, SETTING)
        is None
    )
    assert vjp_template(OPS["powi"], {"k": 0}, [Type(F64)], [Type(F64)], 0, True, SETTING) is None
    assert jvp_template(OPS["sign"], {}, [Type(F64)], [Type(F64)], [True], SETTING) is None


def test_inline_writes_for_the_actual_sizes() -> None:
    template = vjp_template(
        OPS["reshape"], {"sizes": (3, N)}, [Type(F64, (N, 3)), Type(I64)], [Type(F64, (3, N))], 0, True, SETTING
    )
    assert template is not None
    m = Size("m")
    e = Emit(Block(), SETTING, NOWHERE)
    values = [
        Value(Type(p.type.dtype, tuple(m if isinstance(d, Size) else d for d in p.type.shape)))
        for p in template.block.params
    ]
    assert inline(template, e, *values).type.shape == (m, 3)


def test_tangents_add_from_left_to_right() -> None:
    x = [Type(F64, (N,))] * 2
    made = jvp_template(OPS["mul"], {}, x, x[:1], [True, True], SETTING)
    assert made is not None
    assert ops_of(made.block) == ["scale", "scale", "add"]
    half = jvp_template(OPS["mul"], {}, [Type(F64), Type(F64, (N,))], x[:1], [True, False], SETTING)
    assert half is not None
    assert ops_of(half.block) == ["scale"]
    spread = jvp_template(OPS["add"], {}, [Type(F64), Type(F64, (N,))], x[:1], [True, False], SETTING)
    assert spread is not None
    assert ops_of(spread.block) == ["add", "broadcast_like"]


def test_templates_hold_only_ops_and_literals() -> None:
    for name in ELEMENTWISE:
        types = [Type(F64, (N,))] * arity(OPS[name])
        assert isinstance(OPS[name].compute, Elementwise)
        if name in ("where", "and_", "or_", "xor_", "not_", "in_range", "same_size"):
            continue
        e = Emit(Block(), SETTING, NOWHERE)
        e.apply(OPS[name], *(Value(t) for t in types), **ATTRS.get(name, {}))
        instr = e.block.body[-1]
        assert isinstance(instr, Apply)
        made = vjp_template(OPS[name], instr.attrs, types, [o.type for o in instr.outs], 0, True, SETTING)
        assert made is None or all(isinstance(i, Apply | Const) for i in made.block.body)

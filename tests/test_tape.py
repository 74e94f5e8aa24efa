"""The tape by itself: nodes made by hand, the walk back, and how long histories live."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.eager.rules import leaf_rule, op_rule, pass_rule
from graphdsl.eager.tape import Node, Rule, backward, between, last_leaf, origin, tick
from graphdsl.ops.op import Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F64, Type
from graphdsl.runtime.garbage import fewer_collections

SCALAR = Type(F64)
SETTING = Setting(F64)


def leaf(param: str | None = None) -> Node:
    return (tick(), leaf_rule(param))


def product(a: Node, b: Node, x: float, y: float) -> Node:
    """`x * y`, where `a` and `b` are the nodes of `x` and `y`."""
    rule = op_rule(OPS["mul"], {}, [SCALAR, SCALAR], [SCALAR], [0, 1], False, SETTING)
    assert rule is not None
    return (tick(), rule, a, b, x, y)


def total(a: Node, b: Node) -> Node:
    rule = op_rule(OPS["add"], {}, [SCALAR, SCALAR], [SCALAR], [0, 1], False, SETTING)
    assert rule is not None
    return (tick(), rule, a, b)


def live_nodes() -> int:
    gc.collect()
    return sum(type(o) is tuple and len(o) > 1 and isinstance(o[1], Rule) for o in gc.get_objects())


def test_two_paths_to_one_leaf_add_up() -> None:
    w, c = leaf(), leaf()
    left, right = total(w, c), total(w, c)
    y = product(left, right, 5.0, 3.0)
    assert backward(y, 1.0, {w[0], c[0]}) == {w[0]: 8.0, c[0]: 8.0}


def test_contributions_are_added_in_reverse_order_of_evaluation() -> None:
    # 1e16 + 1 - 1e16 depends on the order: the last use comes first
    w = leaf()
    uses = [product(w, leaf(), 1.0, factor) for factor in (1e16, 1.0, -1e16)]
    y = total(total(uses[0], uses[1]), uses[2])
    assert backward(y, 1.0, {w[0]}) == {w[0]: (-1e16 + 1.0) + 1e16}


def test_only_what_leads_to_a_target_is_walked() -> None:
    w, b = leaf(), leaf()
    long_way = total(b, b)
    y = total(total(w, w), long_way)
    assert long_way[0] not in between(y, {w[0]})
    assert backward(y, 1.0, {w[0]}) == {w[0]: 2.0}
    assert backward(y, 1.0, {leaf()[0]}) == {}
    assert backward(y, 1.0, set()) == {}


def test_a_target_may_be_what_is_differentiated() -> None:
    w = leaf()
    assert backward(w, 1.0, {w[0]}) == {w[0]: 1.0}


def test_origin_looks_through_joins_but_not_into_calls() -> None:
    w = leaf()
    inner = (tick(), pass_rule(SCALAR), w)
    joined = (tick(), pass_rule(SCALAR), inner)
    entered = (tick(), pass_rule(SCALAR, passes=False), joined)
    assert origin(joined) is w
    assert origin(entered) is entered
    y = product(joined, joined, 3.0, 3.0)
    assert backward(y, 1.0, {w[0]}) == {w[0]: 6.0}


def test_a_join_hands_its_whole_sum_on() -> None:
    # (1e16 + 1) + (-1e16) within the join, then 1.0: not the same as one after the other
    w = leaf()
    kept = product(w, leaf(), 1.0, 3.0)
    joined = (tick(), pass_rule(SCALAR), w)
    uses = [product(joined, leaf(), 1.0, f) for f in (-1e16, 1.0, 1e16)]
    after = product(w, leaf(), 1.0, 0.5)
    y = total(total(total(total(kept, uses[0]), uses[1]), uses[2]), after)
    assert backward(y, 1.0, {w[0]}) == {w[0]: (0.5 + ((1e16 + 1.0) - 1e16)) + 3.0}


def test_the_latest_leaf_of_a_param() -> None:
    old, new = leaf("w"), leaf("w")
    y = total(total(old, new), leaf("b"))
    assert last_leaf(y, "w") == new[0]
    assert last_leaf(y, "c") is None
    assert last_leaf(None, "w") is None


def test_running_sums_of_arrays_are_changed_in_place_but_what_was_handed_out_is_not() -> None:
    x = Type(F64, (3,))
    attrs = {"spec": (("at",),)}
    index = Type(OPS["dim"].typing(SETTING, (x,), {"axis": 0}).outs[0].dtype)
    rule = op_rule(OPS["index"], attrs, [x, index], [SCALAR], [0], False, SETTING)
    assert rule is not None
    w = leaf()
    first, second = ((tick(), rule, w, (3,), place) for place in (0, 2))
    found = backward(total(first, second), 1.0, {w[0]})
    assert found[w[0]].tolist() == [1.0, 0.0, 1.0]
    seed = np.ones(3)
    through = (tick(), pass_rule(x), w)
    again = backward(through, seed, {w[0]})
    assert again[w[0]].tolist() == seed.tolist() == [1.0, 1.0, 1.0]


def test_histories_die_with_the_last_value_that_leads_to_them() -> None:
    before = live_nodes()
    w = leaf()
    y = w
    for _ in range(100):
        y = total(y, w)
    assert live_nodes() == before + 101
    y = w
    assert live_nodes() == before + 1


def test_a_long_history_is_freed_without_the_c_stack() -> None:
    w = leaf()
    node: Any = w
    with fewer_collections():
        for _ in range(300_000):
            node = (tick(), pass_rule(SCALAR), node)
    assert origin(node) is w
    del node


def test_what_is_recorded_in_the_walk_can_be_walked() -> None:
    w = leaf()
    rule = op_rule(OPS["mul"], {}, [SCALAR, SCALAR], [SCALAR], [0, 1], True, SETTING)
    square = (tick(), rule, w, w, 3.0, 3.0)
    cube = (tick(), rule, square, w, 9.0, 3.0)
    value, slope = backward(cube, (1.0, None), {w[0]}, record=True)[w[0]]
    assert value == 27.0
    second, curvature = backward(slope, (1.0, None), {w[0]}, record=True)[w[0]]
    assert second == 18.0
    assert backward(curvature, 1.0, {w[0]}) == {w[0]: 6.0}


def test_an_op_without_derivative_records_nothing() -> None:
    assert op_rule(OPS["floor"], {}, [SCALAR], [SCALAR], [0], False, SETTING) is None
    block = Block([Value(SCALAR)])
    assert Emit(block, SETTING, NOWHERE).floor(block.params[0]).type == SCALAR

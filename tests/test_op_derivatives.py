"""Derivative rules of every entry: against finite differences, forward against reverse, to second order.

Gradients are made as graph mode makes them (templates inlined) and run by the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Value
from graphdsl.core.rules import inline, jvp_template, vjp_template
from graphdsl.ops.table import OPS
from graphdsl.ops.types import F64, Type
from tests import plain_ops
from tests.test_ops import SETTING, emitter, value_of

A, B = np.array([[0.3, -1.2, 2.0], [0.7, 1.1, -0.4]]), np.array([1.5, -0.8, 0.6])
P = np.abs(A) + 0.1
INT = np.array([1, 0, 1])
CASES: dict[str, list[tuple[list[Any], dict[str, Any]]]] = {
    "add": [([A, B], {}), ([A[0, 0], A], {})],
    "sub": [([A, B], {})],
    "mul": [([A, B], {}), ([A[:, :1], A], {})],
    "div": [([A, B], {})],
    "scale": [([A, B], {})],
    "scale_both": [([A, B], {})],
    "vanish": [([A], {})],
    "neg": [([A], {})],
    "mod": [([A, B], {})],
    "pow": [([P, B], {}), ([P, np.array(2.0)], {})],
    "powi": [([A], {"k": k}) for k in range(-8, 9)],
    "abs": [([A], {})],
    "where": [([A > 0, A, B], {})],
    "maximum": [([A, B], {})],
    "minimum": [([A, B], {})],
    "at_least": [([A, B], {})],
    "at_most": [([A, B], {})],
    "cast": [([A], {"dtype": F64})],
    "sqrt": [([P], {})],
    "exp": [([A], {})],
    "log": [([P], {})],
    "sin": [([A], {})],
    "cos": [([A], {})],
    "tanh": [([A], {})],
    "tan": [([A], {})],
    "one_minus_square": [([A], {})],
    "sigmoid": [([A], {})],
    "sigmoid_slope": [([A], {})],
    "tanh_slope": [([A], {})],
    "bell": [([A], {"half": False}), ([A], {"half": True})],
    "relu": [([A], {})],
    "sum": [([A], {"axis": 0}), ([A], {"axis": (0, 1), "keepdims": True}), ([A], {})],
    "sum_to": [([A, B], {}), ([A, A[:, :1]], {})],
    "prod": [
        ([np.linspace(-1.2, 1.3, 40) + 0.0], {}),
        ([A], {"axis": 1}),
        ([A], {}),
        ([A * (A > 0)], {"axis": 0, "keepdims": True}),
    ],
    "max": [([A], {"axis": 1}), ([A], {})],
    "min": [([A], {"axis": 0, "keepdims": True})],
    "matmul": [
        ([A, A.T], {}),
        ([A, B], {}),
        ([B[:2], A], {}),
        ([B, B], {}),
        ([np.stack([A, A + 1]), A.T], {}),
        ([np.stack([A, A + 1]), B], {}),
        ([B, np.stack([A.T, A.T - 1])], {}),
        ([A, np.stack([A.T, A.T * 2])], {}),
    ],
    "reshape": [([A], {"sizes": (3, 2)})],
    "reshape_like": [([A, A.T], {})],
    "transpose": [([A], {})],
    "broadcast_to": [([B], {"sizes": (4, 3)})],
    "broadcast_like": [([B, A], {}), ([A[:, 0], A], {"axes": (1,)}), ([A[:, :1], A], {})],
    "concat": [([A, A[:1], B[None]], {"axis": 0}), ([A, A[:, :1]], {"axis": 1})],
    "part": [([A, A[:, :2], np.array(1)], {"axis": 1})],
    "stack": [([A, A + 1], {"axis": 1})],
    "index": [
        ([A, np.array(-1)], {"spec": (("full",), ("int",))}),
        ([A, INT], {"spec": (("tensor",),)}),
        ([A], {"spec": (("slice", None, None, -1), ("slice", 1, None, None))}),
        ([A, A > 0], {"spec": (("mask",),)}),
    ],
    "update": [
        ([A, B], {"spec": (("int", 0),)}),
        ([A, np.array(2.0)], {"spec": (("full",), ("slice", 1, None, None))}),
        ([A, np.stack([B, B + 1, B - 1]), INT], {"spec": (("tensor",),)}),
        ([A, B, INT], {"spec": (("tensor",),)}),
    ],
    "index_add": [
        ([A, np.stack([B, B + 1, B - 1]), INT], {"spec": (("tensor",),)}),
        ([A, np.array(2.0)], {"spec": (("int", 1),)}),
    ],
    "full": [([np.array(2.0)], {"sizes": (2, 3)})],
    # composites: through their ops
    "mean": [([A], {"axis": 1})],
    "var": [([A], {"axis": 1, "ddof": 1})],
    "std": [([A], {})],
    "clamp": [([A, np.array(-0.5), np.array(0.9)], {})],
    "dot": [([A, A.T], {})],
    "outer": [([A, B], {})],
    "flatten": [([A], {})],
    "squeeze": [([A[:, None]], {})],
    "expand_dims": [([A], {"axis": 1})],
    "swapaxes": [([A], {"axis1": 0, "axis2": 1})],
    "flip": [([A], {})],
    "square": [([A], {})],
    "shifted": [([A], {"axis": 1, "by": 1, "fill": 1.0}), ([A], {"axis": 0, "by": -1, "fill": 0.0})],
    "recurrence": [
        ([A, A + 1], {"axis": axis, "back": back, "late": late})
        for axis, back, late in ((1, False, False), (1, True, False), (0, False, True), (1, True, True))
    ],
    "cumsum": [([A], {}), ([A], {"axis": 0})],
    "cumprod": [([A], {}), ([A * (A > 0)], {}), ([A * (A > 0)], {"axis": 0})],
    "sort": [([A], {}), ([A], {"axis": 0})],
    "norm": [([A], {}), ([A], {"axis": 1}), ([A], {"ord": 1, "axis": 0})],
    "logsumexp": [([A], {"axis": 1}), ([A], {}), ([A * 0], {"axis": 0, "keepdims": True})],
    "softplus": [([A], {})],
    "silu": [([A], {})],
    "leaky_relu": [([A, np.array(0.1)], {})],
    "softmax": [([A], {}), ([A * 0], {"axis": 0})],
    "log_softmax": [([A], {"axis": 0})],
    "mse_loss": [([A, B], {})],
    "huber_loss": [([A, B, np.array(0.9)], {})],
    "cross_entropy": [([A, np.array([2, 0])], {}), ([A, np.abs(A)], {})],
    "lerp": [([A, B, np.array(0.3)], {})],
    "tril": [([A], {"k": 1})],
    "triu": [([A], {})],
    "diag": [([A], {"k": 1}), ([B], {"k": -1}), ([B], {})],
    "trace": [([A], {})],
    "roll": [([A, np.array(2)], {}), ([A, np.array(-1)], {"axis": 1})],
    "take": [([A, np.array([4, 0, 4])], {}), ([A, np.array(1)], {"axis": -1})],
    "rsqrt": [([P], {})],
    "cbrt": [([P], {})],
    "exp2": [([A], {})],
    "expm1": [([A], {})],
    "log1p": [([P], {})],
    "log2": [([P], {})],
    "log10": [([P], {})],
    "asin": [([A / 3], {})],
    "acos": [([A / 3], {})],
    "atan": [([A], {})],
    "sinh": [([A], {})],
    "cosh": [([A], {})],
    "asinh": [([A], {})],
    "acosh": [([P + 1], {})],
    "atanh": [([A / 3], {})],
    "hypot": [([A, B], {})],
    "atan2": [([A, B], {})],
    "logaddexp": [([A, B], {}), ([B, B], {})],
    "erf": [([A], {})],
    "erfc": [([A], {})],
    "gelu": [([A], {})],
    "lgamma": [([P], {})],
    "digamma": [([P], {})],
    "polygamma": [([P], {"order": 2}), ([A], {"order": 1})],
    "elu": [([A, np.array(1.2)], {})],
    "layer_norm": [([A], {}), ([A], {"axis": 0})],
    "embedding": [([np.array([1, 0, 1]), A], {})],
    "binary_cross_entropy": [([P / 3, np.array([0.0, 1.0, 0.5])], {})],
    "scatter_add": [([A, INT, np.stack([B, B, B])], {})],
    "full_like": [([A, np.array(2.0)], {})],
    "linspace": [([np.array(0.5), np.array(2.0), np.array(4)], {})],
    "arange": [([np.array(0.5), np.array(3.0), np.array(0.7)], {})],
}
FLAT = {"stop_gradient", "mod", "vanish"}  # no derivative, or not that of the function


def test_every_differentiable_entry_has_a_case() -> None:
    for name, op in OPS.items():
        if op.vjp is not None and op.group not in ("made", "indexing") and name != "seeded":  # which begins walks
            assert name in CASES, name


class Program:
    """A block as a function of its float inputs, from which derivatives are made as graph mode does."""

    def __init__(self, arrays: list[Any], write: Callable[[Emit, list[Value]], Value], sizes: bool) -> None:
        self.emit = emitter()
        self.arrays = arrays
        self.inputs = [value_of(a, sizes=sizes) for a in arrays]
        self.out = write(self.emit, self.inputs)

    def gradient(self, seed: Value, wanted: list[Value], out: Value) -> dict[Value, Value]:
        """Sums of cotangents, walking what has been emitted so far backwards."""
        sums: dict[Value, Value] = {out: seed}
        e = self.emit
        for instr in reversed(list(e.block.body)):
            if not isinstance(instr, Apply) or instr.outs[0] not in sums:
                continue
            types = [a.type for a in instr.args]
            for i, arg in enumerate(instr.args):
                outs = [o.type for o in instr.outs]
                t = vjp_template(instr.op, instr.attrs, types, outs, i, arg not in sums, SETTING)
                if t is not None:
                    acc = [sums[arg]] if arg in sums else []
                    sums[arg] = inline(t, e, *acc, sums[instr.outs[0]], *instr.args, *instr.outs)
        return {w: sums[w] if w in sums else e.zeros_like(w) for w in wanted}

    def tangent(self, tangents: dict[Value, Value], out: Value) -> Value:
        e = self.emit
        known = dict(tangents)
        for instr in list(e.block.body):
            if not isinstance(instr, Apply) or any(o in known for o in instr.outs):
                continue
            active = [a in known for a in instr.args]
            types = [a.type for a in instr.args]
            t = jvp_template(instr.op, instr.attrs, types, [o.type for o in instr.outs], active, SETTING)
            if t is not None:
                known[instr.outs[0]] = inline(
                    t, e, *(known[a] for a in instr.args if a in known), *instr.args, *instr.outs
                )
        return known[out] if out in known else e.zeros_like(out)

    def run(self, *values: Value, inputs: dict[Value, Any] | None = None) -> list[Any]:
        self.emit.block.yields = list(values)
        given = dict(zip(self.inputs, self.arrays, strict=True))
        return plain_ops.run(self.emit.block, {**given, **(inputs or {})})


EXAMPLES = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize(("name", "number"), EXAMPLES)
def test_derivatives(name: str, number: int, sizes: bool) -> None:
    arrays, attrs = CASES[name][number]
    arrays = [np.asarray(a) for a in arrays]
    program = Program(arrays, lambda e, xs: e.apply(OPS[name], *xs, **attrs), sizes and name != "squeeze")
    generator = np.random.default_rng(1)
    floats = [v for v, a in zip(program.inputs, arrays, strict=True) if a.dtype.kind == "f"]
    (out,) = program.run(program.out)
    weights = generator.normal(size=out.shape)
    seed = value_of(weights, sizes=False)
    seed.type = Type(F64, program.out.type.shape)
    directions = {v: generator.normal(size=a.shape) for v, a in zip(program.inputs, arrays, strict=True) if v in floats}
    ways = {v: Value(v.type) for v in floats}
    given = {seed: weights, **{ways[v]: d for v, d in directions.items()}}

    def moved(step: float, *values: Value) -> list[Any]:
        return program.run(*values, inputs={**given, **{v: a + step * directions[v] for v, a in at.items()}})

    at = {v: a for v, a in zip(program.inputs, arrays, strict=True) if v in floats}
    first = program.gradient(seed, floats, program.out)
    forward = program.tangent(ways, program.out)
    # the derivative along the directions of the sum of the gradients' squares, by reverse over reverse
    e = program.emit
    energy = None
    for v in floats:
        part = e.sum(e.mul(first[v], first[v]))
        energy = part if energy is None else e.add(energy, part)
    assert energy is not None
    second = program.gradient(e.const(1.0, F64), floats, energy)
    energy_forward = program.tangent(ways, energy)

    h = 1e-6
    made = moved(0.0, *(first[v] for v in floats), forward, *(second[v] for v in floats), energy_forward, energy)
    k = len(floats)
    reverse = sum(np.sum(made[i] * directions[v]) for i, v in enumerate(floats))
    ahead = np.sum(made[k] * weights)
    assert reverse == pytest.approx(ahead, rel=1e-10, abs=1e-10)
    for i, v in enumerate(floats):
        assert made[i].shape == at[v].shape
    if name not in FLAT:
        plus, minus = moved(h, program.out)[0], moved(-h, program.out)[0]
        assert reverse == pytest.approx(np.sum((plus - minus) * weights) / (2 * h), rel=1e-5, abs=1e-6)
    reverse2 = sum(np.sum(made[k + 1 + i] * directions[v]) for i, v in enumerate(floats))
    assert reverse2 == pytest.approx(made[-2], rel=1e-9, abs=1e-9)
    plus, minus = moved(h, energy)[0], moved(-h, energy)[0]
    assert reverse2 == pytest.approx((plus - minus) / (2 * h), rel=1e-4, abs=1e-5)


# ---- conventions at singular points, and tiny second derivatives -------------------------------------------


def gradients(name: str, *args: Any, order: int = 1, **attrs: Any) -> list[Any]:
    """The gradients of the sum of an op's elements, `order` times, with respect to its float operands."""
    program = Program([np.asarray(a) for a in args], lambda e, xs: e.apply(OPS[name], *xs, **attrs), False)
    e = program.emit
    wanted = [v for v in program.inputs if v.type.dtype.is_float]
    out, found = program.out, dict[Value, Value]()
    for _ in range(order):
        found = program.gradient(e.ones_like(out), wanted, out)
        out = found[wanted[0]]
    return program.run(*(found[v] for v in wanted))


def test_gradients_at_kinks() -> None:
    x = np.array([0.0, -0.0, -2.0, 3.0])
    assert gradients("abs", x)[0].tolist() == [0, 0, -1, 1]
    assert gradients("relu", x)[0].tolist() == [0, 0, 0, 1]
    assert [g.tolist() for g in gradients("maximum", x, np.zeros(4))] == [[0.5, 0.5, 0, 1], [0.5, 0.5, 1, 0]]
    assert [g.tolist() for g in gradients("minimum", x, np.zeros(4))] == [[0.5, 0.5, 1, 0], [0.5, 0.5, 0, 1]]
    assert gradients("clamp", x, np.array(0.0), np.array(3.0))[0].tolist() == [1, 1, 0, 1]
    assert gradients("max", np.array([2.0, 5.0, 5.0]))[0].tolist() == [0, 0.5, 0.5]
    assert gradients("prod", np.array([0.0, 2.0, 4.0]))[0].tolist() == [8, 0, 0]
    assert gradients("prod", np.array([0.0, 0.0, 4.0]), order=2)[0].tolist() == [4, 4, 0]
    assert gradients("std", np.array([2.0, 2.0]))[0].tolist() == [0, 0]
    assert [g.tolist() for g in gradients("hypot", np.zeros(1), np.zeros(1))] == [[0], [0]]
    assert [g.tolist() for g in gradients("atan2", np.zeros(1), np.zeros(1))] == [[0], [0]]
    assert gradients("logaddexp", np.array(-np.inf), np.array(-np.inf)) == [0.5, 0.5]
    assert gradients("norm", np.zeros(2))[0].tolist() == [0, 0]
    assert gradients("logsumexp", np.full(2, -np.inf))[0].tolist() == [0.5, 0.5]
    assert gradients("round", np.array([0.5]))[0].tolist() == [0]
    x, k = gradients("mod", np.array(7.5), np.array(-2.0))
    assert (x, k) == (1, 4)


def test_gradients_of_powers() -> None:
    x, k = gradients("pow", np.array([0.0, 0.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.0, 0.0]))
    assert x.tolist() == [0, 1, 0, 0]
    assert k.tolist() == [0, 0, 0, np.log(2)]
    for exponent, expected in ((0, 0), (1, 1), (2, 0)):
        assert gradients("powi", np.array(0.0), k=exponent)[0] == expected
    # the mixed derivative of x ** k at k = 0 is 1 / x, though the derivative itself is 0 there
    program = Program([np.array(4.0), np.array(0.0)], lambda e, xs: e.pow(*xs), False)
    x_, k_ = program.inputs
    by_x = program.gradient(program.emit.const(1.0, F64), [x_], program.out)[x_]
    mixed = program.gradient(program.emit.const(1.0, F64), [k_], by_x)[k_]
    assert program.run(by_x, mixed) == [0.0, 0.25]


def test_a_zero_cotangent_contributes_nothing() -> None:
    for name, x in (("sqrt", 0.0), ("log", 0.0), ("div", 0.0)):
        args = [np.array([x, 4.0])] * (2 if name == "div" else 1)
        program = Program(args, lambda e, xs, name=name: e.apply(OPS[name], *xs), False)
        e = program.emit
        seed = Value(Type(F64, (2,)))
        found = program.gradient(seed, program.inputs, program.out)
        made = program.run(*(found[v] for v in program.inputs), inputs={seed: np.array([0.0, 1.0])})
        assert all(m[0] == 0 and not np.signbit(m[0]) for m in made)
        assert e is program.emit
    inf = np.full((2, 2), np.inf)
    program = Program([inf, inf], lambda e, xs: e.matmul(*xs), False)
    seed = Value(Type(F64, (2, 2)))
    found = program.gradient(seed, program.inputs, program.out)
    assert not any(np.any(m) for m in program.run(*found.values(), inputs={seed: np.zeros((2, 2))}))


@pytest.mark.parametrize(("name", "number"), [example for example in EXAMPLES if example[0] != "arange"])
def test_a_zero_cotangent_is_nothing(name: str, number: int) -> None:
    """Also to what the derivative is differentiated by, whatever its own cotangent: a path that was not taken gives a
    cotangent of 0 in one mode, and none in the other.
    """
    given, attrs = CASES[name][number]
    arrays = [np.asarray(a) for a in given]
    program = Program(arrays, lambda e, xs: e.apply(OPS[name], *xs, **attrs), False)
    floats = [v for v in program.inputs if v.type.dtype.is_float]
    seed = Value(program.out.type)
    inputs = {seed: np.zeros(program.run(program.out)[0].shape)}
    inputs.update((v, np.full(a.shape, np.nan)) for v, a in zip(program.inputs, arrays, strict=True) if v in floats)
    first = program.gradient(seed, floats, program.out)
    assert not any(np.any(made) for made in program.run(*first.values(), inputs=inputs))
    ways = {v: Value(v.type) for v in floats}
    second = [made for v in floats for made in program.gradient(ways[v], floats, first[v]).values()]
    finite = dict(zip(program.inputs, arrays, strict=True)) | {seed: inputs[seed]}
    for infinite in (np.inf, np.nan):
        upon = {ways[v]: np.full(np.shape(finite[v]), infinite) for v in floats}
        assert not any(np.any(made) for made in program.run(*second, inputs=finite | upon))


def test_second_derivatives_that_are_tiny() -> None:
    x = np.array(1e-300)
    assert gradients("tanh", x, order=2)[0] == -2e-300
    assert gradients("asin", x, order=2)[0] == 1e-300
    assert gradients("atan", x, order=2)[0] == -2e-300
    assert gradients("asinh", x, order=2)[0] == -1e-300
    assert gradients("atanh", x, order=2)[0] == 2e-300
    assert gradients("tan", x, order=2)[0] == 2e-300
    assert gradients("sinh", x, order=2)[0] == 1e-300
    assert gradients("softplus", np.array(-40.0), order=2)[0] == pytest.approx(np.exp(-40), rel=1e-12)
    assert gradients("sigmoid", x, order=2)[0] == pytest.approx(-1.25e-301, rel=1e-12)
    assert gradients("cos", x, order=1)[0] == -1e-300
    assert gradients("sigmoid", np.array(-40.0))[0] == pytest.approx(np.exp(-40), rel=1e-12)
    assert gradients("sigmoid", np.array(40.0))[0] == pytest.approx(np.exp(-40), rel=1e-12)
    # at the optimum of a square
    assert gradients("powi", np.array(0.0), order=2, k=2)[0] == 2


def test_the_last_of_repeated_assignments_gets_the_derivative() -> None:
    v = np.array([1.0, 2.0, 3.0])
    x, by_v = gradients("update", np.zeros(3), v, np.array([1, 0, 1]), spec=(("tensor",),))
    assert x.tolist() == [0, 0, 1]
    assert by_v.tolist() == [0, 1, 1]

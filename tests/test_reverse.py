"""Reverse mode on graphs: values and gradients by hand, and to the bit as in eager mode."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.graphs import agree

# name: (program, what it prints; None: only that the modes agree)
PROGRAMS: dict[str, tuple[str, list[Any] | None]] = {
    "two paths": ("param w = 2.0\nx = 3.0\ny = (w + x) * (w + 1)\nprint y, grad(y, w)", [15.0, 8.0]),
    "a tensor": ("param v = [1.0, 2.0]\ny = sum(v * v * [3.0, 4.0])\nprint grad(y, v)", None),
    "a branch taken and one not": (
        "param w = 2.0\nif w > 1.0 { y = w * w } else { y = w * 5.0 }\n"
        "if w > 3.0 { z = y } else { z = y * y }\nprint grad(z, w)",
        [32.0],
    ),
    "a loop": ("param w = 1.5\ny = w\nfor i in 0..3 { y = y * w }\nprint grad(y, w)", [13.5]),
    "a loop without a trip": ("param w = 1.5\ny = w\nfor i in 0..0 { y = y * w }\nprint grad(y, w)", [1.0]),
    "a while whose trips depend on data": (
        "param x = 3.0\ny = x\nwhile y < 100.0 { y = y * y }\nprint y, grad(y, x)",
        [6561.0, 17496.0],
    ),
    "a branch in a loop in a loop": (
        "param w = 1.1\nh = 1.0\nfor i in 0..4 {\n for j in 0..3 {\n"
        "  if j == 1 { continue }\n  h = h * w\n }\n}\nprint grad(h, w)",
        None,
    ),
    "a tensor that grows": (
        "param r = 2.0\nxs = [1.0]\nwhile xs[-1] < 50.0 { xs = concat([xs, [xs[-1] * r]]) }\nprint grad(sum(xs), r)",
        [321.0],
    ),
    "elements set in a loop": (
        "param w = 0.5\nx = zeros(4)\nx[0] = w\nfor i in 1..4 { x[i] = x[i - 1] * w + sum(x) }\nprint grad(sum(x), w)",
        None,
    ),
    "inside a loop, through earlier trips": (
        "param w = 0.5\nh = 1.0\nfor t in 0..3 { h = h * w + 1.0; print grad(h, w) }",
        [1.0, 2.0, 2.75],
    ),
    "Newton: set in the trip before": (
        "x = 2.0\nfx = x * x - 2\nwhile abs(fx) > 1e-12 { x = x - fx / grad(fx, x); fx = x * x - 2 }\nprint x",
        None,
    ),
    "the condition of a loop is a derivative": (
        "w = 5.0\nl = w * w\nn = 0\nwhile grad(l, w) > 0.1 { w = w * 0.5; l = w * w; n += 1 }\nprint n, w",
        [7, 0.0390625],
    ),
    "training by `:=`": (
        "x = [1.0, 2.0, 3.0]\nt = 3.0 * x - 1.0\nparam w = 0.0\n"
        "param b = 0.0\nfor step in 0..50 {\n loss = mean((w * x + b - t) ** 2)\n"
        " gw, gb = grad(loss, w, b)\n w := w - 0.05 * gw\n b := b - 0.05 * gb\n}\nprint w, b, loss",
        None,
    ),
    "training by `=`, several variables": (
        "w = 0.3\nb = 0.1\nfor i in 0..20 {\n loss = (w * 2.0 + b - 1.0) ** 2\n gw, gb = grad(loss, w, b)\n"
        " w = w - 0.05 * gw\n b = b - 0.05 * gb\n}\nprint w, b",
        None,
    ),
    "the loss of a learning rate": (
        "param lr = 0.1\nw = 0.0\nfor s in 0..3 { loss = (w - 3.0) ** 2; w = w - lr * grad(loss, w) }\n"
        "final = (w - 3.0) ** 2\nprint grad(final, lr)",
        None,
    ),
    "functions in functions": (
        "fn sq(x) = x * x\nfn both(x, y) { a = sq(x) * y; return (a, sq(a)) }\nparam w = 1.5\np, q = both(w, sq(w))\n"
        "print grad(p * q, w)",
        None,
    ),
    "a derivative of a function that differentiates": (
        "fn square(x) = x * x\nfn twice(x) { return square(x) + square(x) }\n"
        "fn slope(x) { y = twice(x); return grad(y, x) }\n"
        "param w = 3.0\nprint slope(w), grad(slope(w), w)",
        [12.0, 4.0],
    ),
    "an outer name read two calls down": (
        "param w = 2.0\nfn loss(x) = (w * x) ** 2\nfn step(x) = grad(loss(x), w)\nprint step(3.0)",
        [36.0],
    ),
    "sums of one value's uses run through": (
        "param a = 0.1\ns = 0.3\n"
        "for i in 0..5 { s = s * a + a * a; if i % 2 == 0 { s = s + a } }\nprint grad(s * a + a, a)",
        None,
    ),
}

TARGETS: dict[str, tuple[str, list[Any]]] = {
    "what came out of a branch": (
        "param w = 3.0\nh = w\nif w > 0 { k = h } else { k = h * 2 }\nprint grad(h * k, k)",
        [6.0],
    ),
    "a loop that made no trip": (
        "param w = 3.0\nh = w\nz = h * h\nn = 0\nfor i in 0..n { h = h * 2 }\nprint grad(z, h)",
        [6.0],
    ),
    "set by one of several trips": (
        "param w = 3.0\nh = w\nk = w * 1\nfor i in 0..4 { if i == 2 { k = h * 2 } }\n"
        "print grad(k * k + h, k), grad(k * k + h, h)",
        [12.0, 25.0],
    ),
    "what a function returned": (
        "fn f(x) { q = x * 2; return (q, q * 3) }\nparam w = 1.0\na, b = f(w)\nprint grad(a * b, a)",
        [12.0],
    ),
    "one value under two names": ("param w = 3.0\nh = w\nprint grad(w * h, w, h)", [6.0, 6.0]),
    "y itself": ("param w = 3.0\ny = w * 2\nprint grad(y, y), grad(w, w)", [1.0, 1.0]),
    "a derivative": ("param w = 3.0\ny = w ** 3\nd = grad(y, w)\nprint grad(d * d, d), grad(d * d, w)", [54.0, 972.0]),
    "equal, and not the same": ("param w = 3.0\na = w * 2\nb = w * 2\nprint grad(a * a, a, b)", [12.0, 0.0]),
    "an alias set in an earlier trip": (
        "param w = 0.5\nparam b = 0.8\nt = w\nfor i in 0..2 { p, q = grad(t, b, t); print p, q; t = b }",
        [0.0, 1.0, 1.0, 1.0],
    ),
}

HIGHER: dict[str, tuple[str, list[Any] | None]] = {
    "a power": (
        "param x = 2.0\ny = x ** 4\na = grad(y, x)\nb = grad(a, x)\nprint a, b, grad(b, x)",
        [32.0, 48.0, 48.0],
    ),
    "through a loop, four times": (
        "param x = 0.7\ny = x\nfor i in 0..3 { y = y * y + x }\n"
        "a = grad(y, x)\nb = grad(a, x)\nc = grad(b, x)\nprint a, b, c, grad(c, x)",
        None,
    ),
    "through calls, three times": (
        "fn f(x) = x * x * x\nfn g(x) = f(x) * f(x * x)\nparam x = 0.7\n"
        "y = g(x)\na = grad(y, x)\nb = grad(a, x)\nprint a, b, grad(b, x)",
        None,
    ),
    "two derivatives of one loop": (
        "param x = 0.7\ny = x\nfor i in 0..3 { y = y * y + sin(x) }\n"
        "a = grad(y, x)\nb = grad(y * y, x)\nprint grad(a * b, x)",
        None,
    ),
    "in a loop, of what a loop computed": (
        "param x = 0.7\ny = x\nwhile y < 5.0 { y = y * y + x }\ns = 0.0\n"
        "for i in 0..3 { a = grad(y, x); s = s + grad(a * a + a * i, x) * 0.1 }\nprint s",
        None,
    ),
    "at an optimum": ("param w = 2.0\nl = (w * 3.0 - 6.0) ** 2\na = grad(l, w)\nprint a, grad(a, w)", [0.0, 18.0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_order(name: str) -> None:
    text, expected = PROGRAMS[name]
    found = agree(text)
    assert expected is None or found == expected


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_a_value(name: str) -> None:
    text, expected = TARGETS[name]
    assert agree(text) == expected


@pytest.mark.parametrize("name", HIGHER)
def test_higher_order(name: str) -> None:
    text, expected = HIGHER[name]
    found = agree(text)
    assert expected is None or found == expected


def test_the_hypergradient_is_what_it_should_be() -> None:
    text, _ = PROGRAMS["the loss of a learning rate"]
    assert math.isclose(agree(text)[0], -35.38944, rel_tol=1e-12)


def test_a_deep_chain_of_branches() -> None:
    """`else if` chains may be 10,000 long; nothing here may need Python's stack for them."""
    n = 2000
    chain = " else ".join(f"if i == {k} {{ y = w * {k}.0 }}" for k in range(n))
    text = f"param w = 2.0\ni = {n - 1}\ny = w\n{chain}\nprint grad(y, w)"
    assert agree(text) == [float(n - 1)]

"""What a trip of a loop costs: writing and reading a few elements takes as much of a large tensor as of a small one.

Counted, not timed: the elements that kernels go over, make or copy. `python -m tests.benchmarks` has times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphdsl.api.program import Given, Prepared, Program
from graphdsl.core.ir import Apply
from graphdsl.eager import applied, rules
from graphdsl.native.program import apply, launch, scatter
from graphdsl.native.program.frame import Frame
from graphdsl.native.support.words import Word
from graphdsl.ops.op import Attrs, Op, Pointwise, Scatter
from graphdsl.ops.types import Type
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.modes import MODES
from graphdsl.source.span import Source

# Each is a loop of `{t}` trips over tensors of `{n}` elements, or of `{n}` rows of 4.
FORWARD = {
    "write": "x = zeros({n})\nfor i in 0..{t} {{ x[i % 9] = 1.0 }}",
    "write from the end": "x = zeros({n})\nfor i in 0..{t} {{ x[-1 - i % 9] = 1.0 }}",
    "read": "x = ones({n})\ns = 0.0\nfor i in 0..{t} {{ s += x[i % 9] }}\nprint s",
    "read and write": "x = ones({n})\nfor i in 0..{t} {{ x[i % 9] = 0.5 * x[(i + 1) % 9] + x[i % 9] }}",
    "add": "x = ones({n})\nfor i in 0..{t} {{ x[i % 9] += 0.5 }}",
    "swap": "x = ones({n})\nfor i in 0..{t} {{ a = x[0]\nx[0] = x[i % 9]\nx[i % 9] = a }}",
    "while": "x = zeros({n})\ni = 0\nwhile i < {t} {{ x[i % 9] = x[0] + 1.0; i += 1 }}",
    "row": "x = zeros({n}, 4)\nr = ones(4)\nfor i in 0..{t} {{ x[i % 9, :] = r }}",
    "row read": "x = ones({n}, 4)\ns = 0.0\nfor i in 0..{t} {{ s += sum(x[i % 9]) }}\nprint s",
    "row from a row": "x = ones({n}, 4)\nfor i in 0..{t} {{ x[i % 9] = x[0] * 2.0 }}",
    "rows swapped": "x = ones({n}, 4)\nfor i in 0..{t} {{ r = x[i % 9]\nx[i % 9] = x[0]\nx[0] = r }}",
    "element of a row": "x = zeros({n}, 4)\nfor i in 0..{t} {{ x[i % 9][i % 4] = x[0][1] + 1.0 }}",
    "two indices": "x = zeros({n}, 4)\nfor i in 0..{t} {{ x[i % 9, i % 4] += x[0, 1] }}",
    "slice": "x = zeros({n})\nfor i in 0..{t} {{ x[i % 9:i % 9 + 2] = 1.0 }}",
    "slice read": "x = ones({n})\ns = 0.0\nfor i in 0..{t} {{ s += sum(x[i % 9:i % 9 + 2]) }}\nprint s",
    "slice from a slice": "x = ones({n})\nfor i in 0..{t} {{ x[i % 9:i % 9 + 2] = x[1:3] + 1.0 }}",
    "places": "x = ones({n})\nk = 0..4\nfor i in 0..{t} {{ x[k + i % 9] = x[k] + 1.0 }}",
    "scatter_add": "x = ones({n})\nk = 0..4\nfor i in 0..{t} {{ x = scatter_add(x, k + i % 9, x[k]) }}",
    "two tensors": "x = ones({n})\nm = zeros({n})\nfor i in 0..{t} {{ k = i % 9\nm[k] = 0.9 * m[k] + x[k]\nx[k] -= m[k] }}",
    "tensors that change places": "x = ones({n})\nm = zeros({n})\nfor i in 0..{t} {{ m[i % 9] = x[0]\nx, m = m, x }}",
    "tuple": "p = (ones({n}), 1.0)\nfor i in 0..{t} {{ x, s = p\nx[i % 9] = s\np = (x, x[0]) }}",
    "nested": "x = zeros({n})\nfor i in 0..{t} {{ for j in 0..3 {{ x[(i + j) % 9] = x[j] }} }}",
    "branch": "x = zeros({n})\nfor i in 0..{t} {{ if i % 3 == 0 {{ x[i % 9] = 1.0 }} else {{ x[0] += 2.0 }} }}",
    "break": "x = zeros({n})\nfor i in 0..99 {{ x[i % 9] = 1.0\nif i == {t} {{ break }} }}",
    "continue": "x = zeros({n})\nfor i in 0..{t} {{ if i % 3 == 0 {{ continue }}\nx[i % 9] = 1.0 }}",
    "in a function": "fn f(x, t) {{\nfor i in 0..t {{ x[i % 9] = x[0] + 1.0 }}\nreturn x\n}}\nprint sum(f(zeros({n}), {t}))",
    "by a function": "fn put(x, i) {{\nx[i % 9] = 1.0\nreturn x\n}}\nx = zeros({n})\nfor i in 0..{t} {{ x = put(x, i) }}",
    "by a function of two results": "fn put(x, i) {{\nx[i % 9] = 1.0\nreturn x, x[0]\n}}\nx = zeros({n})\n"
    "for i in 0..{t} {{ x, a = put(x, i)\nx[0] = a }}",
    "fold": "fn put(x, i) {{\nx[i % 9] = 1.0\nreturn x\n}}\nprint sum(fold(put, zeros({n}), 0..{t}))",
    "scan": "fn put(x, i) {{\nx[i % 9] = 1.0\nreturn x, i\n}}\nx, k = scan(put, zeros({n}), 0..{t})\nprint sum(x), k",
}
BACKWARD = {
    "read": "s = 0.0\nfor i in 0..{t} {{ s += x[i % 9] ** 2 }}",
    "read, one after the other": "s = 1.0\nfor i in 0..{t} {{ s = sin(s) * x[i % 9] }}",
    "write": "for i in 0..{t} {{ x[i % 9] = w[0] * i }}\ns = sum(x)",
    "write of a constant": "for i in 0..{t} {{ x[i % 9] = 2.0 }}\ns = sum(x)",
    "read and write": "for i in 0..{t} {{ x[i % 9] = x[(i + 1) % 9] * x[i % 9] }}\ns = sum(x)",
    "multiply": "for i in 0..{t} {{ x[i % 9] *= 1.01 }}\ns = sum(x)",
    "while": "i = 0\nwhile i < {t} {{ x[i % 9] = sin(x[0]); i += 1 }}\ns = sum(x)",
    "slice read": "s = 0.0\nfor i in 0..{t} {{ s += sum(x[i % 9:i % 9 + 2] ** 2) }}",
    "slice": "for i in 0..{t} {{ x[i % 9:i % 9 + 2] = x[1:3] * 0.5 }}\ns = sum(x)",
    "places read": "k = 0..4\ns = 0.0\nfor i in 0..{t} {{ s += sum(x[k + i % 9] ** 2) }}",
    "scatter_add": "k = 0..4\nfor i in 0..{t} {{ x = scatter_add(x, k + i % 9, x[k] * 0.5) }}\ns = sum(x)",
    "two tensors": "m = zeros({n})\nfor i in 0..{t} {{ k = i % 9\nm[k] = 0.9 * m[k] + x[k]\nx[k] -= m[k] }}\ns = sum(x)",
    "nested": "for i in 0..{t} {{ for j in 0..3 {{ x[(i + j) % 9] = x[j] * 0.5 }} }}\ns = sum(x)",
    "nested read": "s = 0.0\nfor i in 0..{t} {{ for j in 0..3 {{ s += x[(i + j) % 9] ** 2 }} }}",
    "branch": "for i in 0..{t} {{ if i % 3 == 0 {{ x[i % 9] = x[0] * 0.5 }} else {{ x[1] += x[3] * 0.25 }} }}\ns = sum(x)",
    "branch read": "s = 0.0\nfor i in 0..{t} {{ if i % 3 == 0 {{ s += x[i % 9] ** 2 }} }}",
    "break": "for i in 0..99 {{ x[i % 9] = x[0] * 0.5\nif i == {t} {{ break }} }}\ns = sum(x)",
    "in a function": "s = f(x, {t})",
    "by a function": "for i in 0..{t} {{ x = put(x, i) }}\ns = sum(x)",
    "max": "s = 0.0\nfor i in 0..{t} {{ s = maximum(s, x[i % 9]) }}",
}
ROWS = {
    "read": "s = 0.0\nfor i in 0..{t} {{ s += sum(x[i % 9] * x[0]) }}",
    "elements of a row read": "s = 0.0\nfor i in 0..{t} {{ r = x[i % 9]\ns += r[0] * r[1] }}",
    "write": "for i in 0..{t} {{ x[i % 9, :] = x[0] * 0.5 }}\ns = sum(x)",
    "element": "for i in 0..{t} {{ x[i % 9][i % 4] = x[0][i % 4] * 0.5 }}\ns = sum(x)",
}
FUNCTIONS = """fn put(x, i) {{
x[i % 9] = x[0] * 0.5
return x
}}
fn f(x, t) {{
s = 0.0
for i in 0..t {{ x[i % 9] = x[0] * 0.5; s += x[i % 9] }}
return s
}}
"""
BEGIN = FUNCTIONS + "param w = ones({shape})\nx = w * 1.0\n"
END = "\nprint sum(grad(s, w))"
SECOND = "\ng = grad(s, w)\ns = sum(g)"
PROGRAMS = {
    **FORWARD,
    **{f"gradient: {k}": BEGIN.replace("{shape}", "{n}") + v + END for k, v in BACKWARD.items()},
    **{f"gradient of rows: {k}": BEGIN.replace("{shape}", "{n}, 4") + v + END for k, v in ROWS.items()},
    **{
        f"second derivative: {k}": BEGIN.replace("{shape}", "{n}") + BACKWARD[k] + SECOND + END
        for k in ("read", "read and write")
    },
    "tangent": BEGIN.replace("{shape}", "{n}") + BACKWARD["read and write"] + "\nprint sum(jvp(x, w, ones({n})))",
}


class Counting:
    """Counts what moves in both modes: kernels of eager mode are wrapped, graph mode's code counts as it runs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.moved = 0
        self.kernel = applied._kernel
        patch.setattr(applied, "_kernel", self.counted)
        patch.setattr(rules, "_rules", {})  # compiled by and by, with kernels as they are then
        patch.setattr(rules, "_steps", {})
        for owner, name, elements in (
            (launch, "_run", lambda frame, shape, words, extent, elements: elements),
            (apply, "reduce", lambda frame, instr: frame.count(frame.tensor(instr.args[0]))),
            (scatter, "_copy", lambda frame, to, source: frame.count(source)),
            (Frame, "new", lambda frame, dtype, sizes: frame.times(sizes)),
        ):
            patch.setattr(owner, name, self.counting(getattr(owner, name), elements))

    def counted(self, instr: Apply, types: tuple[Type, ...], own: bool) -> Callable[..., Any]:
        """A kernel of eager mode."""
        return self.wrapped(instr.op, instr.attrs, self.kernel(instr, types, own), own)

    def wrapped(self, op: Op, attrs: Attrs, run: Callable[..., Any], own: bool) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            before = id(args[0][0]) if own else None
            result = run(*args)
            made = isinstance(result, np.ndarray) and result.base is None and id(result) != before
            self.moved += result.size if made else 0
            if not isinstance(op.compute, Pointwise | Scatter):
                self.moved += sum(np.size(a) for a in args)
            return result

        return call

    def counting(self, write: Callable[..., Any], elements: Callable[..., Any]) -> Callable[..., Any]:
        """A function that writes native code; `elements` says what that goes over."""

        def call(frame: Frame, *args: Any) -> Any:
            frame.put(Word.OPS, frame.b.add(frame.get(Word.OPS), elements(frame, *args)))
            return write(frame, *args)

        return call

    def run(self, text: str, mode: str) -> int:
        program = Program(Source("x.gdl", text))
        prepared = Prepared(program, mode, Given(), program.check({}), use_cache=False)
        self.moved = 0
        runtime = prepared._runtime(Recorded())
        prepared.engine.run(runtime)
        return self.moved if mode == "eager" else runtime.ops


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def a_trip(counting: Counting, text: str, mode: str, n: int) -> int:
    """What 18 more trips take."""
    counting.run(text.format(n=n, t=9), mode)  # rules are compiled when they are first needed
    few, many = (counting.run(text.format(n=n, t=t), mode) for t in (18, 36))
    return many - few


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trip_costs_as_much_in_a_larger_tensor(counting: Counting, name: str, mode: str) -> None:
    text = PROGRAMS[name]
    assert a_trip(counting, text, mode, 1000) == a_trip(counting, text, mode, 250)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_counted(counting: Counting, mode: str) -> None:
    """What does go over the whole tensor shows."""
    for body in ("x = x * 1.5", "y = x\nx[0] = 1.0", "x[i] = x[i] + sum(x)"):
        text = f"x = ones({{n}})\nfor i in 0..{{t}} {{{{ {body} }}}}\nprint x" + ("" if "y" not in body else ", y")
        assert a_trip(counting, text, mode, 1000) - a_trip(counting, text, mode, 250) >= 18 * 750, body

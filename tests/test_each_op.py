"""Each op that can be called, on values of every kind, where the checker accepts it: no crash, and both modes alike."""

from __future__ import annotations

import pytest

from graphdsl.check.program import Request, check
from graphdsl.ops.table import OPS
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source
from graphdsl.syntax.parser import parse
from tests.fuzz.compare import compare

VALUES = (
    "1.5", "true", "3", "f32(1.5)", "[1.5, -0.5, 2.0]", "[true, false]", "[3, -1, 2]", "f32([1.5, 2.5])", "i32([1, 0])",
    "[[1.5, 0.5], [2.0, -1.0]]", "[[true, false], [false, false]]", "[[1, 2], [3, 4]]", "zeros(0)", "zeros(2, 0)",
)  # fmt: skip
CALLS = ("{op}({x})", "{op}({x}, {x})", "{op}({x}, 1)", "{op}({x}, axis=-1)", "{op}({x}, {x}, {x})", "{op}([{x}, {x}])")
GRADIENT = "fn g{n}(x) {{ y = {call}; d = grad(sum(y), x); return d, grad(sum(d * d), x) }}\nprint g{n}({x})"


def accepted(text: str) -> bool:
    try:
        check(parse(Source("each.gdl", text)), Request())
    except ProgramError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(name for name, op in OPS.items() if op.params is not None))
def test_values_of_every_kind(name: str) -> None:
    lines = []
    for n, (value, call) in enumerate((v, c) for v in VALUES for c in CALLS):
        for text in (
            f"print {call.format(op=name, x=value)}",
            GRADIENT.format(n=n, call=call.format(op=name, x="x"), x=value),
        ):
            if accepted(text):
                lines.append(text)
    found = compare("\n".join(lines) + "\n")
    assert not found.fault, f"{found}\n" + "\n".join(lines)

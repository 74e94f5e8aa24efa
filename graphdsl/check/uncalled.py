"""Functions that nobody calls: their bodies are checked once, with arguments of which only the annotations tell the type.

What is not known is as what came of an error: it causes no problem, and nor does what is made of it. So of such a body
all is reported that no call could mend. Bodies of lambdas are checked so where they are never called.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression
from graphdsl.check.functions import top_level
from graphdsl.check.instances import Callee, Instance, Passed, new_frame
from graphdsl.check.modules import is_standard
from graphdsl.check.results import check_body
from graphdsl.check.types import declared_type
from graphdsl.check.values import POISON, Binding, Named, Slot, Tensor
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.types import Dim, Size
from graphdsl.syntax import ast


def check_uncalled(f: Frame) -> Steps[None]:
    """Check what no call was checked for; the instructions are thrown away."""
    derives = f.shared.derives
    for callee in _uncalled(f):
        yield _check(f, callee)
    f.shared.derives = derives


def _uncalled(f: Frame) -> Iterator[Callee]:
    """One after another, as checking one may call others, and make lambdas."""
    for node in (*f.shared.outline.functions.values(), *f.shared.outline.rules.values()):
        if node not in f.shared.called and not is_standard(node.span.source):
            yield Named(node)
    done: set[ast.Lambda] = set()
    while left := [c for c in f.shared.closures.values() if c.node not in f.shared.called and c.node not in done]:
        done.update(c.node for c in left)
        yield from left


def _check(f: Frame, callee: Callee) -> Steps[None]:
    node = callee.node
    unknown = Slot(POISON, node.span)
    outer: list[tuple[str, Slot | None]] = [(name, unknown) for name in sorted(f.shared.outline.variables)]
    args: list[Binding] = _declared(callee.node) if isinstance(callee, Named) else [POISON for _ in callee.node.params]
    g = new_frame(f, Instance.begin(callee), Passed(callee, args, outer))
    if isinstance(callee, Named):
        for param in callee.node.params:
            if param.default is not None:
                view = top_level(g)
                with view.inside(param.default.span.source):
                    yield expression(view, param.default)
    yield check_body(g, callee)


def _declared(node: ast.FnDef) -> list[Binding]:
    """What the parameters are known to be."""
    sizes: dict[str, Size] = {}

    def dim(name: ast.Name | None) -> Dim:
        return Size() if name is None else sizes.setdefault(name.id, Size(name.id))

    return [POISON if p.type is None else Tensor(Value(declared_type(p.type, dim))) for p in node.params]

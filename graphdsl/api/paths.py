"""The chain rule written out, as `graphdsl grad --paths` shows it: every path from a result back to what it is differentiated
by, read from the tape that eager mode records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from graphdsl.api.engines import Eager
from graphdsl.api.program import Given, Prepared, Program, Result
from graphdsl.check.printing import source_text
from graphdsl.check.program import Checked
from graphdsl.check.reads import own_targets, statements
from graphdsl.core.ir import Apply, Custom
from graphdsl.core.ir import Program as Core
from graphdsl.eager.paths import Route, Routes, Tensor
from graphdsl.eager.traced import Traced, maker
from graphdsl.runtime.events import Recorded, Shown
from graphdsl.runtime.format import type_text
from graphdsl.source.diagnostic import Diagnostic, WrongRequest
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span

MOST = 20  # paths that are written out
_LONGEST = 32  # text of a value
_HEAD = re.compile(r"[\w.]*")


@dataclass(frozen=True)
class Step:
    """A value on a path: as it is called, and the line where it is made (None: not known)."""

    name: str
    line: int | None


@dataclass(frozen=True)
class Path:
    """One path, from the result to the target; `factors` are the local derivatives between its steps."""

    steps: tuple[Step, ...]
    factors: tuple[float, ...]
    product: float


@dataclass(frozen=True)
class Chain:
    """The paths by one name. `count`: how many there are in all; those that are not shown add up to `rest`."""

    wrt: str
    gradient: Shown
    paths: tuple[Path, ...]
    count: int
    rest: float
    formula: str | None = None  # of what is differentiated, where a path begins there


class _Tracing(Eager):
    """Eager mode, of which the tape is kept."""

    def __init__(self, program: Core, wanted: tuple[str, ...], limited: bool) -> None:
        super().__init__(program, wanted, limited=limited)
        self.compiled: Traced = Traced(program, wanted, limited=limited)


class _Prepared(Prepared):
    """A program whose tape is read: it must be that of the whole run."""

    engine: _Tracing

    def _make(self, checked: Checked) -> None:
        self.checked = checked
        self.engine = _Tracing(checked.program, self.wanted, self.given.limits.watched)

    def _recompute(self) -> bool:
        return False


def chains(
    program: Program, given: Given, checked: Checked, of: Callable[[Result], Shown], most: int = MOST
) -> tuple[Shown, list[Chain]]:
    """What is differentiated, as `of` finds it in the result of a run, and the paths of each derivative asked for.

    Raises `WrongRequest` where a tensor lies on one."""
    prepared = _Prepared(program, "eager", given, checked)
    result = prepared.run(Recorded())
    top, found, problems = of(result), [], []
    for name, ends in prepared.engine.compiled.ends.items():
        gradient = result.gradients[name]
        try:
            if gradient.shape:
                raise Tensor(None)
            with np.errstate(all="ignore"):
                found.append(_chain(top.name, name, gradient, Routes(ends), most))
        except Tensor as tensor:
            problems.append(_no_scalar(program, name, gradient, tensor))
    if problems:
        raise WrongRequest(*problems)
    return top, found


def _chain(of: str, name: str, gradient: Shown, routes: Routes, most: int) -> Chain:
    shown = [_path(of, name, route) for route in routes.first(most)]
    count = routes.count()
    rest = float(gradient.value) - sum(path.product for path in shown) if count > len(shown) else 0.0
    made = None if routes.top is None else maker(routes.top)
    formula = None if made is None else _text(made.span)
    return Chain(name, gradient, tuple(shown), count, rest, formula)


def _path(of: str, name: str, route: Route) -> Path:
    made = [maker(node) for node in route.nodes[:-1]]
    steps = [Step(of, None if m is None else m.span.line) for m in made[:1]]
    steps += [_step(m, before) for before, m in pairwise(made)]
    return Path((*steps, Step(name, None)), route.factors, route.product)


def _step(made: Apply | Custom | None, before: Apply | Custom | None) -> Step:
    """How a value is called: by its name, else by its text, or where that is what the one before it is called, by its op."""
    if made is None:
        return Step("(derivative)", None)  # made by the walk of another one
    if before is not None and before is not made and before.span == made.span and isinstance(made, Apply):
        return Step(made.op.name, made.span.line)
    if name := made.outs[0].name:
        return Step(name, made.span.line)
    text = _text(made.span)
    return Step(text if _is_one(text) else f"({text})", made.span.line)


def _is_one(text: str) -> bool:
    """Whether a text is a name, a call, a place in a tensor, or in brackets already."""
    head = _HEAD.match(text)
    depth = 0
    for i, char in enumerate(text[head.end() :] if head else text):
        depth += (char in "([") - (char in ")]")
        if not depth and (head is None or i + head.end() + 1 < len(text)):
            return False
    return True


def _text(span: Span) -> str:
    text = source_text(span)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _no_scalar(program: Program, name: str, gradient: Shown, tensor: Tensor) -> Diagnostic:
    made = None if tensor.node is None else maker(tensor.node)
    if made is None:
        place = next(n.span for s in statements(program.module.body) for n in own_targets(s) if n.id == name)
        what = f"`{name}` is {type_text(gradient.dtype, gradient.shape)}" if gradient.shape else "there is a tensor"
    else:
        place = made.span
        what = f"`{made.outs[0].name or _text(made.span)}` is {made.outs[0].type}"
    message = f"the paths to `{name}` are not written out: {what}, and only paths of scalars are"
    hint = "`--of` and `--wrt` name the ends of the paths; `--all` shows the gradients of tensors on the way"
    return Diagnostic("E0412", message, place, hint)

"""A program run for its tape: nodes say which op they are of, and the ends of derivatives are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

from graphdsl.core import ir
from graphdsl.core.rules import NOWHERE
from graphdsl.eager.custom import ResultRule
from graphdsl.eager.derive import Target
from graphdsl.eager.program import Compiled, Results
from graphdsl.eager.rules import OpRule
from graphdsl.eager.tape import Node
from graphdsl.runtime.state import Runtime


class Ends(NamedTuple):
    """What one derivative leads from, and to: nodes, or the name of a param (None: nothing was recorded)."""

    top: Node | None
    target: Target


class Traced(Compiled):
    """A program whose run keeps the ends of the derivatives asked for: `ends`, by their names."""

    tells = True

    def run(self, runtime: Runtime) -> Results:
        self._taken: list[list[Ends]] = []
        self._walking = False
        results = super().run(runtime)
        asked = self._taken[len(self._taken) - len(self.program.derivatives) :]  # these stand at the program's end
        self.ends = {name: ends[0] for name, ends in zip(self.program.derivatives, asked, strict=True)}
        return results

    def _forget(self, space: dict[str, Any]) -> None:
        """Who reads the tape may call the functions that rules are."""

    def _derivatives(self, runtime: Runtime) -> Mapping[str, Callable[..., Any]]:
        return {name: self._kept_of(function) for name, function in super()._derivatives(runtime).items()}

    def _kept_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def taken(top: Node | None, seed: Any, targets: Sequence[Target], *rest: Any, **named: Any) -> Any:
            if not self._walking:  # a rule may take derivatives too
                self._taken.append([Ends(top, target) for target in targets])
            before, self._walking = self._walking, True
            try:
                return function(top, seed, targets, *rest, **named)
            finally:
                self._walking = before

        return taken


def maker(node: Node) -> ir.Apply | ir.Custom | None:
    """The instruction of the program that made a node; None: it is part of a derivative's rule, or no op is known."""
    rule = node[1]
    if isinstance(rule, ResultRule):
        custom: ir.Custom = node[2][1].instr
        return custom
    if isinstance(rule, OpRule) and rule.told:
        made: ir.Apply = node[-1][0]
        return None if made.span is NOWHERE else made
    return None

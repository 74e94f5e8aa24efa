"""A program run for its tape: nodes of ops also hold the instruction that made them, and the ends of derivatives are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from graphdsl.core import ir
from graphdsl.core.ir import Value
from graphdsl.eager.derive import Target
from graphdsl.eager.program import Compiled, Results
from graphdsl.eager.records import Record, Recorder
from graphdsl.eager.tape import Node, Rule
from graphdsl.runtime.state import Runtime

if TYPE_CHECKING:
    from graphdsl.eager.function import FunctionWriter


class Ends(NamedTuple):
    """What one derivative leads from, and to: nodes, or the name of a param (None: nothing was recorded)."""

    top: Node | None
    target: Target


class TracedRecorder(Recorder):
    """Writes the instruction at the end of an op's node, where no rule looks."""

    made_by: ir.Apply | None = None

    def applied(self, w: FunctionWriter, instr: ir.Apply, out: Value) -> Record:
        self.made_by = instr
        record = super().applied(w, instr, out)
        self.made_by = None
        return record

    def _node(self, rule: Rule, rest: list[str]) -> str:
        made_by = [] if self.made_by is None else [self.module.constant(self.made_by)]
        return super()._node(rule, [*rest, *made_by])


class Traced(Compiled):
    """A program whose run keeps the ends of the derivatives asked for: `ends`, by their names."""

    recorder = TracedRecorder

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
    """The instruction that made a node, where that is known."""
    from graphdsl.eager.custom import ResultRule

    last = node[2][1].instr if isinstance(node[1], ResultRule) else node[-1]
    return last if isinstance(last, ir.Apply | ir.Custom) else None

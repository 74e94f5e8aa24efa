"""Reverse mode: the instructions that take the place of one derivative.

The walk goes from the derivative backwards, as `graphdsl.core.between` describes it, and writes as it goes.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Block, Derive, For, ParamTarget, Value, While
from graphdsl.core.steps import run
from graphdsl.graph import regions
from graphdsl.graph.between import GraphBetween
from graphdsl.graph.calls import Calling, Functions
from graphdsl.graph.frames import Frame
from graphdsl.graph.ir import NewShadow, Result
from graphdsl.graph.saving import PLACE, Saving, Tape
from graphdsl.graph.walking import Flag, State
from graphdsl.ops.types import Type


class Reverse(Calling):
    """The walk in the derivative's own function."""

    def __init__(self, derive: Derive, between: GraphBetween, saving: Saving, tape: Tape) -> None:
        super().__init__(derive, between, saving, tape)
        self._shadow: Value | None = None
        self.functions = Functions(self)
        for node in between.values:
            if isinstance(node, tuple) and node[0] == "saved":
                saving.unite_record(tape, node[1])

    def shadow(self) -> Value:
        if self._shadow is None:
            self._shadow = Value(PLACE, "shadow")
        return self._shadow

    def build(self) -> list[Any]:
        """The instructions that take the place of the derivative."""
        state = self.start()
        path = self.links.path(self.derive)
        for block, _ in path:
            self.frames.enter(Frame(block))
        self._along(path, state)
        self.functions.write()
        self.at(self.derive.span)
        for out, found in zip(self.derive.outs, state.found, strict=True):
            self.write(Result(self.derive.span, self.as_type(found, out.type), out))
        if self._shadow is not None:
            self.start_code.append(NewShadow(self.derive.span, self.tape.value, self._shadow))
        return [*self.start_code, *self.code.body]

    def start(self) -> State:
        """The state at the derivative itself."""
        derive = self.derive
        held: list[dict[Value, Flag] | None] = [{} if isinstance(t, ParamTarget) else {t: True} for t in derive.targets]
        found = [self._nothing(i) for i in range(len(derive.targets))]
        state = State({}, held, found, [False] * len(held))
        if self.wants(derive.y, state):
            if derive.seed is None:
                seed = self.emit.const(1.0, derive.y.type.dtype)
            else:
                seed = self.emit.add(derive.seed, self.emit.like(0.0, derive.seed))
            state.sums[derive.y] = self.as_type(seed, Type(derive.y.type.dtype, derive.y.type.shape))
        return state

    def _nothing(self, i: int) -> Value:
        """The derivative where `y` does not depend on the target."""
        target, out = self.derive.targets[i], self.derive.outs[i]

        def like() -> Value:
            assert isinstance(target, Value)
            return target

        return self.zeros_of(Type(out.type.dtype, out.type.shape), like)

    def _along(self, path: list[tuple[Block, int]], state: State) -> None:
        """Back through the blocks around the derivative, from the innermost outwards."""
        instr: Any = self.derive
        for k, (block, _) in enumerate(path):
            self.frames.home = block
            position = next(i for i, other in enumerate(block.body) if other is instr)
            run(self.block(block, position, state))
            if self.settle(state) or k + 1 == len(path):
                break
            instr = self.links.owner[block].instr
            if isinstance(instr, While | For):
                self.frames.home = path[k + 1][0]
                self.at(instr.span)
                run(regions.unfinished(self, instr, block, state))
                if state.finished:
                    break
        self.at_entry(self.links.func_of(self.derive), state)

"""A whole program: turned into Python once, run any number of times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.core.ir import Block, Func, Instr, Program, Value
from graphdsl.core.steps import run as run_steps
from graphdsl.core.structure import regions
from graphdsl.eager.function import FunctionWriter
from graphdsl.eager.liveness import analyse
from graphdsl.eager.module import Module
from graphdsl.eager.records import Recorder
from graphdsl.eager.support import SUPPORT
from graphdsl.ops.op import Setting
from graphdsl.runtime.state import Runtime


class Compiled:
    """The Python of one program. `fetch`: the names whose values `run` gives (None: all that are set at the end)."""

    def __init__(self, program: Program, fetch: Iterable[str] | None = None) -> None:
        self.program = program
        names = list(program.exports if fetch is None else fetch)
        self.fetched = {n: program.exports[n] for n in names}
        self.module = Module()
        functions = list(_functions(program.main))
        recorder = Recorder(self.module, Setting(program.default_float), _differentiates_derivatives(functions))
        for func in functions:
            keep = self._kept() if func is program.main else ()
            name = self.module.callee(func)
            run_steps(FunctionWriter(self.module, analyse(func, keep), recorder, name).write(func, keep))
        self.code: CodeType = self.module.compile()

    def _kept(self) -> list[Value]:
        """What the main function returns, in order."""
        kept: list[Value] = []
        for value, is_set in self.fetched.values():
            kept.append(value)
            if is_set is not None:
                kept.append(is_set)
        kept.extend(self.program.derivatives.values())
        return kept

    def run(self, runtime: Runtime) -> dict[str, Any]:
        """Run the program; the fetched values by name."""
        space: dict[str, Any] = {**SUPPORT, **self.module.globals, "rt": runtime}
        exec(self.code, space)
        with np.errstate(all="ignore"):
            results = iter(space[self.module.callee(self.program.main)]())
        found = {}
        for name, (_, is_set) in self.fetched.items():
            value = next(results)
            if is_set is None or next(results):
                found[name] = value
        return found


def _functions(main: Func) -> Iterator[Func]:
    """A function and all that it calls, itself first."""
    seen = {main}
    todo = [main]
    while todo:
        func = todo.pop()
        yield func
        for instr in _walk(func.body):
            if isinstance(instr, ir.Call) and instr.func not in seen:
                seen.add(instr.func)
                todo.append(instr.func)


def _walk(block: Block) -> Iterator[Instr]:
    stack = [block]
    while stack:
        for instr in stack.pop().body:
            yield instr
            stack.extend(regions(instr))


def _differentiates_derivatives(functions: list[Func]) -> bool:
    return any(
        isinstance(instr, ir.Derive) and any(out.tracked or out.leaf for out in instr.outs)
        for func in functions
        for instr in _walk(func.body)
    )

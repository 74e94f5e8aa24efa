"""The two ways to run a checked program, behind one form: made once, run any number of times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Protocol

from graphdsl.core.ir import Program
from graphdsl.runtime.modes import MODES
from graphdsl.runtime.state import Runtime
from graphdsl.source.record import dataclass, field


@dataclass
class Made:
    """What making a program ready took, in seconds. `cached`: its code was there already."""

    build: float = 0.0
    compile: float = 0.0
    cached: bool = False


@dataclass
class Values:
    """What a run leaves: run-time values by name, without the names that were never set."""

    exports: dict[str, Any] = field(default_factory=dict)
    derivatives: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """A program made ready."""

    made: Made

    def run(self, runtime: Runtime) -> Values:
        """Run it; raises `ProgramError` where it fails."""
        ...

    def counting(self) -> Engine:
        """The same, with code that counts the ops that run: `runtime.ops`. What is fused is one."""
        ...

    def peak_bytes(self, run: Callable[[], object]) -> int:
        """The most memory that values took at once in a run; `run` makes one more."""
        ...


def make(program: Program, mode: str, wanted: tuple[str, ...], use_cache: bool = True, limited: bool = False) -> Engine:
    """Make a program ready to run and to give the exports `wanted`. `limited`: also in eager mode the limits
    of time and of memory for all values together hold."""
    check_mode(mode)
    if mode == "eager":
        return Eager(program, wanted, limited=limited)
    return Graph(program, wanted, use_cache)


def check_mode(mode: str) -> None:
    """A `ValueError` for what is no mode."""
    if mode not in MODES:
        raise ValueError(f"there is no mode {mode!r}: it is {' or '.join(map(repr, MODES))}")


class Eager:
    """Computes as it goes."""

    def __init__(
        self, program: Program, wanted: tuple[str, ...], counts_ops: bool = False, limited: bool = False
    ) -> None:
        from graphdsl.eager.program import Compiled

        begin = time.perf_counter()
        self.program, self.wanted = program, wanted
        self.compiled = Compiled(program, wanted, counts_ops, limited)
        self.made = Made(build=time.perf_counter() - begin)

    def run(self, runtime: Runtime) -> Values:
        with self._tracing(runtime.limits.counted):
            results = self.compiled.run(runtime)
        return Values(results.exports, results.derivatives)

    @contextmanager
    def _tracing(self, counted: bool) -> Iterator[None]:
        """While code runs that asks how much memory is taken, that is counted."""
        if not counted:
            yield
            return
        import tracemalloc

        tracemalloc.start()
        try:
            yield
        finally:
            tracemalloc.stop()

    def counting(self) -> Eager:
        return Eager(self.program, self.wanted, counts_ops=True)

    def peak_bytes(self, run: Callable[[], object]) -> int:
        import tracemalloc

        tracemalloc.start()
        try:
            run()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


class Graph:
    """Builds the graph first, and runs what it is compiled to."""

    def __init__(self, program: Program, wanted: tuple[str, ...], use_cache: bool) -> None:
        from graphdsl.graph.build import DERIVATIVE, build
        from graphdsl.graph.passes import optimise
        from graphdsl.native.program.compiled import compile_graph

        begin = time.perf_counter()
        self.derivatives = {f"{DERIVATIVE}{name}": name for name in program.derivatives}
        self.graph = optimise(build(program, (*wanted, *self.derivatives)))
        built = time.perf_counter() - begin
        self.compiled = compile_graph(self.graph.main, cache=use_cache)
        self.made = Made(built + self.compiled.build_seconds, self.compiled.compile_seconds, self.compiled.cache_hit)

    def run(self, runtime: Runtime) -> Values:
        from graphdsl.runtime.feeds import fit_all

        runtime.fed.update(fit_all(self.compiled.sites.feeds, runtime.feeds, runtime.limits))
        try:
            results = dict(zip(self.graph.outputs, self.compiled.run(runtime), strict=True))
        finally:
            runtime.sink.flush()
        found = Values()
        for output, value in results.items():
            if output in self.derivatives:
                found.derivatives[self.derivatives[output]] = value
            elif not output.endswith("?") and results.get(f"{output}?", True):
                found.exports[output] = value
        return found

    def counting(self) -> Graph:
        from graphdsl.native.program.compiled import compile_graph

        made = copy(self)
        made.compiled = compile_graph(self.graph.main, counts=True)
        return made

    def peak_bytes(self, run: Callable[[], object]) -> int:
        return self.compiled.peak_bytes

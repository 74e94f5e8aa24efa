"""GDL from Python: `load(path).run(mode=…, feeds=…)`, `.grad(…)`, `.compile()(x=…)`. The command line uses the same.

Values are Python numbers for scalars (`numpy.float32` for f32) and NumPy arrays, which may be read-only. Problems of
a program are raised as `ProgramError`, whose `diagnostics` say all there is to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphdsl.api.engines import check_mode
from graphdsl.api.program import Given, Prepared, Program, Result, UnknownName
from graphdsl.runtime.events import Recorded, Sink
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.files import read_source
from graphdsl.source.span import Source

if TYPE_CHECKING:
    from graphdsl.check import Probe

__all__ = ["Compiled", "Loaded", "ProgramError", "Result", "UnknownName", "load", "loads"]


def load(path: str) -> Loaded:
    """The program in a file."""
    return Loaded(read_source(path))


def loads(text: str, name: str = "<text>", folder: str = ".") -> Loaded:
    """The program that a text is."""
    return Loaded(Source(name, text, folder))


class Loaded:
    """A program, for use from Python."""

    def __init__(self, source: Source) -> None:
        self.program = Program(source)

    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the checker warns of."""
        return self.program.warnings()

    def run(
        self,
        mode: str = "eager",
        feeds: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        sink: Sink | None = None,
        time_limit: float | None = None,
        probes: Sequence[str] = (),
        check_nan: bool = False,
    ) -> Result:
        """Run it; `result["y"]` is the value that `y` has at the end. What it prints goes to `sink`, and so does every
        value of the names in `probes`: `h`, `h:stats`, `h if i % 100 == 0`. After `time_limit` seconds it is stopped; with
        `check_nan`, where an op or a derivative's rule first makes a NaN or inf."""
        given = self.program.given(feeds or {}, params or {}, seed)
        given.limits = replace(given.limits, time=time_limit)
        checked = self.program.check(given.values, probes=self._probes(probes), check_nan=check_nan)
        return self.program.prepare(mode, given, checked).run(sink or Recorded())

    def _probes(self, texts: Sequence[str]) -> tuple[Probe, ...]:
        if not texts:
            return ()
        from graphdsl.api.probes import probes_of

        return probes_of(self.program, texts)

    def grad(
        self,
        of: str | None = None,
        wrt: str | Sequence[str] | None = None,
        mode: str = "eager",
        feeds: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        check_nan: bool = False,
    ) -> dict[str, Any]:
        """Gradients at the end of a run: of the last float scalar and for all params, where not said otherwise. `check_nan`
        as of `run`."""
        names = (wrt,) if isinstance(wrt, str) else tuple(wrt or ())
        given = self.program.given(feeds or {}, params or {}, seed)
        checked = self.program.check(given.values, (), of, names, check_nan=check_nan)
        result = self.program.prepare(mode, given, checked).run(Recorded())
        return {name: shown.value for name, shown in result.gradients.items()}

    def compile(self, mode: str = "graph") -> Compiled:
        """The program as a function of its inputs and params."""
        check_mode(mode)
        return Compiled(self.program, mode)


class Compiled:
    """A program made ready once for each set of names that are given, and run by calling it."""

    def __init__(self, program: Program, mode: str) -> None:
        self.program = program
        self.mode = mode
        self._ready: dict[frozenset[str], Prepared] = {}

    def __call__(self, **values: Any) -> Result:
        """Run it with these inputs and first values of params."""
        inputs = {n: v for n, v in values.items() if self.program.declared.get(n) != "param"}
        params = {n: v for n, v in values.items() if n not in inputs}
        given = self.program.given(inputs, params)
        key = frozenset(given.values)
        if key not in self._ready:
            self._ready[key] = self.program.prepare(self.mode, given)
        prepared = self._ready[key]
        prepared.given = Given(given.feeds, given.sets)
        return prepared.run(Recorded())

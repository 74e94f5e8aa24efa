"""Timing a program in both modes: what making it ready takes, its first run, and many runs in turn (A B A B …).

What is timed is the program's run. Reading, checking, and what `input`s and the first values of `param`s cost are
not part of it: these values are computed once, and fed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil

from graphdsl.api.engines import Made
from graphdsl.api.program import Given, Prepared, Program
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.modes import MODES
from graphdsl.source.record import dataclass, field
from graphdsl.syntax import ast

MOST_SECONDS = 10.0  # for all steady runs together, where nobody says how many
RUNS = 15
LONG = 5.0  # seconds of a first run, after which nobody waits for others that measure memory and count ops, which are slower


@dataclass
class Timing:
    """One mode. Seconds; `made` without the cache, `from_cache` what compiling takes with it (None: nothing is compiled).

    `first` is the first call of all: build, compile and run. `peak_bytes`: of Python's objects and arrays in eager mode,
    of buffers in graph mode. `ops`: each op that ran, what is fused as one. Both None where it would take too long."""

    mode: str
    made: Made = field(default_factory=Made)
    from_cache: float | None = None
    first: float = 0.0
    runs: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    ops: int | None = None

    @property
    def steady(self) -> float:
        return statistics.median(self.runs)

    @property
    def best(self) -> float:
        return min(self.runs)

    @property
    def iqr(self) -> float:
        """How far the middle half of the runs is spread."""
        return _quartiles(self.runs)[1] - _quartiles(self.runs)[0]


@dataclass(frozen=True)
class Ratio:
    """How many times faster the second of two modes is: the median of the ratios run by run, and their quartiles.

    `pays_back`: from which run on it has paid back what making it ready took longer (None: never)."""

    median: float
    low: float
    high: float
    pays_back: int | None


class Contest:
    """A program in both modes, made ready for timing.

    Seconds that are no part of a run: `checking` (with parsing), and `feeding` what is there before it begins (None: nothing).
    """

    def __init__(self, program: Program, given: Given) -> None:
        self.program = program
        self.checking = _seconds(lambda: Program(program.source).check(given.values))
        given = replace(given, limits=replace(given.limits, counted=False, time=None))  # to ask would be timed
        begin = time.perf_counter()
        self.given = fed_beforehand(program, given)
        self.feeding = time.perf_counter() - begin if self.given is not given else None
        self.timings = {mode: Timing(mode) for mode in MODES}
        self.prepared: dict[str, Prepared] = {}

    def start(self) -> None:
        """Make the program ready in each mode, run it once for the first time and once to warm up."""
        checked = self.program.check(self.given.values)
        for mode, timing in self.timings.items():
            begin = time.perf_counter()
            prepared = Prepared(self.program, mode, self.given, checked, use_cache=False)
            prepared.run(Recorded())
            timing.first = time.perf_counter() - begin
            timing.made = prepared.engine.made
            self.prepared[mode] = prepared
            if mode == "graph":
                Prepared(self.program, mode, self.given, checked)
                timing.from_cache = Prepared(self.program, mode, self.given, checked).engine.made.compile
        for mode, timing in self.timings.items():
            if timing.first < LONG:
                timing.peak_bytes = self.prepared[mode].peak_bytes()
                timing.ops = self.prepared[mode].ops()

    def rounds(self, repeat: int | None) -> int:
        """How many runs of each mode to time: as asked for, or as many as there is time for."""
        if repeat is not None:
            return repeat
        once = sum(t.first - t.made.build - t.made.compile for t in self.timings.values())
        return max(3, min(RUNS, int(MOST_SECONDS / max(once, 1e-9))))

    def play(self, rounds: int) -> Iterator[int]:
        """The timed runs, in turn; yields after each round."""
        for number in range(rounds):
            for mode, prepared in self.prepared.items():
                self.timings[mode].runs.append(_timed(prepared))
            yield number

    def ratio(self) -> Ratio:
        """Eager against graph."""
        eager, graph = (self.timings[mode] for mode in MODES)
        ratios = [e / g for e, g in zip(eager.runs, graph.runs, strict=True)]
        low, high = _quartiles(ratios)
        extra = graph.made.build + graph.made.compile - eager.made.build - eager.made.compile
        gain = eager.steady - graph.steady
        pays = max(1, ceil(extra / gain)) if gain > 0 else None
        return Ratio(statistics.median(ratios), low, high, pays)


def _timed(prepared: Prepared) -> float:
    sink = Recorded()
    begin = time.perf_counter()
    prepared.run(sink)
    return time.perf_counter() - begin


def _quartiles(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fed_beforehand(program: Program, given: Given) -> Given:
    """The same run with the values of inputs and the first values of params computed already and fed.

    They are computed by the program's own statements up to the last of these; literals are left as they are.
    """
    places = [i for i, s in enumerate(program.module.body) if _costs(s) and _name(s) not in given.values]
    if not places:
        return given
    head = Program(program.source)
    rest = head.module.body[places[-1] + 1 :]
    head.module.body[places[-1] + 1 :] = [s for s in rest if isinstance(s, ast.FnDef | ast.VjpDef)]
    values = head.prepare("eager", given).run(Recorded()).values
    feeds, sets = dict(given.feeds), dict(given.sets)
    for place in places:
        name = _name(program.module.body[place])
        if name in values:
            (feeds if program.declared[name] == "input" else sets)[name] = values[name].value
    return replace(given, feeds=feeds, sets=sets)


def _costs(stmt: ast.Stmt) -> bool:
    """Whether a statement is a declaration whose value is not just there."""
    return isinstance(stmt, ast.Declare) and stmt.kind != "const" and not isinstance(stmt.value, ast.Number | None)


def _name(stmt: ast.Stmt) -> str:
    return stmt.name.id if isinstance(stmt, ast.Declare) else ""

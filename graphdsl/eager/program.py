"""A whole program: turned into Python once, run any number of times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from graphdsl.core import ir
from graphdsl.core.call_graph import functions as called_functions
from graphdsl.core.call_graph import has_recursion
from graphdsl.core.ir import Program, Value
from graphdsl.core.steps import run as run_steps
from graphdsl.core.structure import walk
from graphdsl.eager.custom import called
from graphdsl.eager.derive import derive, derive_recorded
from graphdsl.eager.function import FunctionWriter
from graphdsl.eager.liveness import analyse
from graphdsl.eager.module import Module, Place
from graphdsl.eager.records import Recorder
from graphdsl.eager.room import watched
from graphdsl.eager.support import SUPPORT, within
from graphdsl.ops.op import Setting
from graphdsl.runtime.faults import MOST_ACTIVE_CALLS, NO_MEMORY, fault_diagnostic, trail_label
from graphdsl.runtime.garbage import fewer_collections
from graphdsl.runtime.limits import MOST_BYTES, Limits
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import MOST_TRAIL, Diagnostic, Fault, Label, ProgramError

# How NumPy refuses sizes whose product it cannot count, be the array empty or not.
_UNCOUNTABLE = ("array is too big", "iterator is too large", "Maximum allowed", "negative dimensions are not allowed")
_DERIVATIVES: dict[str, Callable[..., Any]] = {"derive": derive, "derive_recorded": derive_recorded}


class Results(NamedTuple):
    """What a run leaves, by name: the fetched values that are set, and the derivatives asked for."""

    exports: dict[str, Any]
    derivatives: dict[str, Any]


class Compiled:
    """The Python of one program. `fetch`: the names whose values `run` gives (None: all that are set at the end).
    `counts_ops`: that counts the ops that run, in the runtime. `limited`: that stays within the limits of memory and time."""

    tells = False  # whether nodes say which op they are of, for those who read the tape

    def __init__(
        self,
        program: Program,
        fetch: Iterable[str] | None = None,
        counts_ops: bool = False,
        limited: bool = False,
    ) -> None:
        self.program = program
        names = list(program.exports if fetch is None else fetch)
        self.fetched = {n: program.exports[n] for n in names}
        self.module = Module()
        self.module.counts_calls = has_recursion(program.main)
        self.module.counts_ops = counts_ops
        self.module.limited = limited
        functions = [program.main, *called_functions(program.main)]
        known = [instr for func in functions for instr in walk(func.body)]
        self.records = any(isinstance(instr, ir.Derive) for instr in known)
        self.feeds = [instr for instr in program.main.body.body if isinstance(instr, ir.Feed)]
        self.looks = any(isinstance(instr, ir.NanWalk) for instr in known)
        place = (lambda instr: self.module.constant(instr.span)) if self.looks or self.tells else None
        higher = _differentiates_derivatives(known)
        recorder = Recorder(self.module, Setting(program.default_float), higher, place=place)
        for instr in known:
            if isinstance(instr, ir.While | ir.For):
                recorder.carry(instr)
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

    def run(self, runtime: Runtime) -> Results:
        """Run the program. Raises `ProgramError` for what fails as it runs, after all that was printed before it."""
        if self.feeds:
            from graphdsl.runtime.feeds import fit_all

            runtime.fed.update(fit_all(self.feeds, runtime.feeds, runtime.limits))
        space: dict[str, Any] = {**SUPPORT, **self._derivatives(runtime), **self.module.globals, "rt": runtime}
        exec(self.code, space)
        main = space[self.module.callee(self.program.main)]
        with np.errstate(all="ignore"), fewer_collections(), _deep_calls():
            try:
                with watched(runtime.limits.memory) if self.records else nullcontext():
                    results = iter(main())
            except Fault as fault:
                raise ProgramError(self._diagnostic(fault, space)) from None
            except (MemoryError, ValueError) as error:
                full = _too_large(error, runtime.limits)
                if full is None:
                    raise
                raise ProgramError(self._diagnostic(full.with_traceback(error.__traceback__), space)) from None
            finally:
                runtime.sink.flush()
                self._forget(space)
        return self._results(results)

    def _forget(self, space: dict[str, Any]) -> None:
        """The run is over: the functions of the program refer to their globals, which refer to them."""
        space.clear()

    def _derivatives(self, runtime: Runtime) -> Mapping[str, Callable[..., Any]]:
        """What takes derivatives; where this program counts something, or looks for something, it does so in them too."""
        if self.looks:
            from graphdsl.eager.rule_checks import RuleChecks

            seen = RuleChecks(runtime)
        elif not (self.module.counts_ops or self.module.limited):
            return _DERIVATIVES
        else:
            seen = None

        def watch(ops: int) -> None:
            runtime.ops += ops
            if self.module.limited:
                within(runtime)

        return {name: partial(function, watch=watch, seen=seen) for name, function in _DERIVATIVES.items()}

    def _results(self, results: Iterator[Any]) -> Results:
        found = Results({}, {})
        for name, (_, is_set) in self.fetched.items():
            value = next(results)
            if is_set is None or next(results):
                found.exports[name] = value
        found.derivatives.update(zip(self.program.derivatives, results, strict=True))
        return found

    def _diagnostic(self, fault: Fault, space: dict[str, Any]) -> Diagnostic:
        """What to say of a fault: the lines that its traceback went through tell where it was, and by which calls and
        trips.
        """
        reached: list[tuple[Place, FrameType]] = []
        step = fault.__traceback__
        while step is not None:
            if step.tb_frame.f_globals is space and (place := self.module.places[step.tb_lineno]) is not None:
                reached.append((place, step.tb_frame))
            elif (call := called(step.tb_frame)) is not None:
                reached.append((Place(call, ()), step.tb_frame))
            step = step.tb_next
        trail: list[Label] = []
        for place, frame in reached[-MOST_TRAIL - 1 :]:  # the last one is no step of the way
            trail += [trail_label(loop, trip) for loop, trip in place.trips(frame.f_locals)]
            if isinstance(place.instr, ir.Call) and not place.instr.func.derived:
                trail.append(trail_label(place.instr, 0))
        failed = reached[-1][0].instr if reached else self.program.main.body.body[0]  # before the first line ran
        return fault_diagnostic(fault, failed, trail[:-1] if isinstance(failed, ir.Call) else trail)


def _too_large(error: MemoryError | ValueError, limits: Limits) -> Fault | None:
    """What it means that Python or NumPy cannot make something; None: something else is wrong."""
    if isinstance(error, MemoryError):
        size = getattr(error, "_total_size", None)  # NumPy's knows
        return Fault(NO_MEMORY) if size is None else limits.exceeded("a tensor", size)
    return limits.exceeded("a tensor", MOST_BYTES) if str(error).startswith(_UNCOUNTABLE) else None


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Calls of the program are calls of Python, which take none of the C stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 3 * MOST_ACTIVE_CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _differentiates_derivatives(known: Iterable[ir.Instr]) -> bool:
    return any(isinstance(instr, ir.Derive) and any(out.tracked or out.leaf for out in instr.outs) for instr in known)

"""A compiled graph: runs of it, on a thread of its own, and what Python does for it in between."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Any

from graphdsl.core import ir
from graphdsl.core.structure import operands
from graphdsl.native.program import direct, effects
from graphdsl.native.program.link import Built, build
from graphdsl.native.program.memory import Fed, Memory, copied, result, scalar_word
from graphdsl.native.program.sites import Sites, sites
from graphdsl.native.program.worker import perform
from graphdsl.native.support.words import LEFT, Status, Word, words
from graphdsl.runtime.faults import NO_MEMORY, fault_diagnostic, trail_label
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Fault, ProgramError

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


class Compiled:
    """`run` gives what `main` yields, as eager code holds values: Python numbers (`np.float32`), arrays."""

    def __init__(self, main: ir.Func, places: Sites, built: Built) -> None:
        self.main = main
        self.sites = places
        self.built = built
        self._memory = Memory()
        self._feeds = list(places.feeds)
        self._results = (ctypes.c_int64 * max(1, sum(words(v.type) for v in main.body.yields)))()
        self._lent: list[int] = []
        self._free = threading.Lock()
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(built.entry)
        self._calls = len(places.funcs) > 1

    @property
    def build_seconds(self) -> float:
        return self.built.build_seconds

    @property
    def compile_seconds(self) -> float:
        return self.built.compile_seconds

    @property
    def cache_hit(self) -> bool:
        return self.built.cached

    @property
    def peak_bytes(self) -> int:
        """The most that tensors took at once in the last run."""
        return self._memory[Word.PEAK]

    def llvm(self) -> str:
        """The LLVM IR as it was written."""
        from graphdsl.native.program.build import write
        from graphdsl.native.target import host

        return str(write(self.main, self.sites, host()).module)

    def assembly(self) -> str:
        """The machine code as text."""
        from graphdsl.native.target import host

        return host().assembly(self.llvm(), loops=False)

    def run(self, runtime: Runtime, feeds: Mapping[str, Any] | None = None) -> list[Any]:
        """One run from the start, with `feeds` (the runtime's own, unless given). Raises what the program's failures
        become.
        """
        if not self._free.acquire(blocking=False):
            # while it runs already, on another thread or within its own callback: with memory of its own
            return Compiled(self.main, self.sites, self.built).run(runtime, feeds)
        try:
            return self._run(runtime, feeds)
        finally:
            self._free.release()

    def _run(self, runtime: Runtime, feeds: Mapping[str, Any] | None) -> list[Any]:
        memory = self._memory
        memory.collect()
        fed: dict[int, Fed] = {}
        given = self._fed_words(runtime.fed if feeds is None else feeds, fed)
        raised: list[BaseException] = []

        def call_back(site: int, address: int) -> int:
            instr, _ = self.sites.place(site)
            try:
                values, after = self._operands(instr, address)
                results = effects.perform(runtime, instr, values)
                for out, value in zip(instr.outs if results else (), results, strict=True):
                    memory.place(after, out.type, value)
                    after += 8 * words(out.type)
            except BaseException as problem:
                raised.append(_placed(problem, instr))
                return 1
            return 0

        callback = _CALLBACK(call_back)
        memory[Word.STOP] = 0
        memory[Word.TRAIL] = 0
        memory[Word.OPS] = 0
        memory[Word.CALLBACK] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        memory[Word.FEEDS] = ctypes.addressof(given)
        memory[Word.RESULTS] = ctypes.addressof(self._results)
        memory[Word.LIMIT] = runtime.limits.memory
        memory[Word.PEAK] = memory[Word.USED]
        memory[Word.TEAM] = self._team()
        effects.seed_from(runtime, memory)
        try:
            with _stopped_at(runtime.deadline, memory):
                status = self._perform(memory)
            effects.seed_to(runtime, memory)
            runtime.ops = memory[Word.OPS]
            if status != Status.DONE:
                raise self._failure(status, raised, runtime)
        except BaseException:
            memory.sweep([b for b in self._lent if b not in memory.returned])
            raise
        return self._read_results(fed)

    def _perform(self, memory: Memory) -> int:
        """On this thread if it can be stopped here and the program calls no functions, else on one with a large stack."""
        if not self._calls and direct.possible():
            status = direct.perform(self._entry, memory)
            if status is not None:
                return status
        return perform(self.built.entry, memory)

    def _team(self) -> int:
        """The threads, if there is a kernel that may want them."""
        if not {"run.team.run", "run.rows", "run.product"}.intersection(self.built.imports):
            return 0
        from graphdsl.native.support.helpers import team
        from graphdsl.runtime.threads import count

        return team(count())

    def _fed_words(self, feeds: Mapping[str, Any], fed: dict[int, Fed]) -> Any:
        found: list[int] = []
        for feed in self._feeds:
            value = feeds[feed.name]
            if feed.out.type.shape:
                made = Fed(value, feed.out.type)
                fed[made.owner] = made
                found.extend(made.words())
            else:
                found.append(scalar_word(value, feed.out.type.dtype))
        return (ctypes.c_int64 * max(1, len(found)))(*found)

    def _operands(self, instr: Any, address: int) -> tuple[list[Any], int]:
        """The operands whose words begin at an address, and where they end."""
        values = []
        for operand in operands(instr):
            values.append(copied(address, operand.type))
            address += 8 * words(operand.type)
        return values, address

    def _read_results(self, fed: dict[int, Fed]) -> list[Any]:
        self._lent = [b for b in self._lent if b not in self._memory.returned]
        address = ctypes.addressof(self._results)
        found = []
        for value in self.main.body.yields:
            found.append(result(self._memory, address, value.type, fed, self._lent))
            address += 8 * words(value.type)
        return found

    def _failure(self, status: int, raised: list[BaseException], runtime: Runtime) -> BaseException:
        memory = self._memory
        numbers = tuple(memory[Word.NUMBERS + i] for i in range(memory[Word.COUNT]))
        match status:
            case Status.RAISED:
                return self._with_trail(raised[0])
            case Status.STOPPED if monotonic() < runtime.deadline:
                return KeyboardInterrupt()
        instr, kind = self.sites.place(memory[Word.SITE])
        if status == Status.STOPPED:
            return self._with_trail(ProgramError(fault_diagnostic(runtime.limits.too_long(), instr)))
        return self._with_trail(effects.failure(Status(status), instr, kind, numbers, memory))

    def _with_trail(self, problem: BaseException) -> BaseException:
        """An error of the program, with the calls and trips that led to it."""
        if not isinstance(problem, ProgramError):
            return problem
        memory = self._memory
        places = range(LEFT, LEFT + 2 * memory[Word.TRAIL], 2)
        trail = tuple(trail_label(self.sites.place(memory[i])[0], memory[i + 1]) for i in reversed(places))
        return ProgramError(*(replace(d, trail=trail) for d in problem.diagnostics))


@contextmanager
def _stopped_at(deadline: float, memory: Memory) -> Iterator[None]:
    """A program that runs when its time is over is stopped."""
    if deadline == inf:
        yield
        return

    def stop() -> None:
        memory[Word.STOP] = 1

    timer = threading.Timer(deadline - monotonic(), stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it must not stop the next run


def _placed(problem: BaseException, instr: Any) -> BaseException:
    """A fault of a function that Python carries out, as the error of its place."""
    if isinstance(problem, MemoryError):
        problem = Fault(NO_MEMORY)
    return ProgramError(fault_diagnostic(problem, instr)) if isinstance(problem, Fault) else problem


def compile_graph(main: ir.Func, *, cache: bool = True, counts: bool = False) -> Compiled:
    """Native code for a graph whose results are what `main` yields; `counts`: that counts the ops that run."""
    places = sites(main)
    return Compiled(main, places, build(main, places, cache, counts))

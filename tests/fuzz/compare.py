"""Runs programs in both modes, each in a process of its own kind, so that a crash or a hang is a finding like another."""

from __future__ import annotations

import json
import multiprocessing
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from graphdsl.eager.module import Module
from graphdsl.eager.records import Place, Recorder
from graphdsl.ops.op import Setting
from graphdsl.runtime.modes import MODES
from tests.fuzz import case as cases
from tests.fuzz.case import Case, Told, case
from tests.running import events

PATIENCE = 300.0
"""Seconds that a program may take in all: a third order through calls in a loop compiles for half a minute, and where the
processors are shared for minutes."""

_WATCHING = re.compile(r'\{"event":"(probe"|warning","code":"W0103)')  # what only a program that is watched says


@dataclass(frozen=True)
class Outcome:
    """What became of a program; `fault` is empty where both modes said the same."""

    kind: str  # "ran", "rejected: E0301", "failed as it ran: E0720"
    fault: str = ""  # what sort of fault it is: the same for programs that fail alike
    eager: str = ""
    graph: str = ""


def compare(text: str) -> Outcome:
    """Runs a case in both modes, and in eager mode once more with all recorded; then with what it watches, and with what
    it fetches, in both modes.
    """
    given = case(text)
    with TemporaryDirectory(prefix="graphdsl-fuzz-") as folder:
        place = Path(folder)
        plain = run(given.plain, "eager", place)
        found = unlike(pairs(given, plain, place))
        return (found and replace(found, kind=outcome(plain.lines))) or Outcome(outcome(plain.lines))


Pair = tuple[str, Sequence[str], Sequence[str]]
"""Who says the second, what should be said, and what is."""


def unlike(pairs: Iterator[Pair]) -> Outcome | None:
    """The first two lines that are not the same."""
    for name, one, other in pairs:
        for a, b in zip_longest(one, other):
            crashed = next((line for line in (a, b) if line and line.startswith("crash")), None)
            if crashed or a != b:
                fault = crashed or f"{sort(a)} in eager mode, {sort(b)} in {name}"
                return Outcome("", fault, str(a), str(b))
    return None


def pairs(given: Case, plain: Told, place: Path) -> Iterator[Pair]:
    """All that must be the same as in a plain run in eager mode."""
    graph = run(given.plain, "graph", place)
    yield "graph mode", plain.lines, graph.lines
    yield "graph mode at the end", list(plain.values.values()), list(graph.values.values())
    with everything_recorded():
        yield "eager mode with all recorded", plain.lines, run(given.plain, "eager", place).lines
    if given.probes:
        yield from watched(replace(given, fetch=()), plain, place)
    if given.fetch:
        yield from fetched(replace(given, probes=()), plain, place)


def watched(given: Case, plain: Told, place: Path) -> Iterator[Pair]:
    """Both modes show the same of what is watched, and all else is as if nothing was."""
    eager, graph = (run(given, mode, place).lines for mode in MODES)
    yield "graph mode, watched", eager, graph
    rest = [line for line in eager if not _WATCHING.match(line)]
    if not any('"file":"<probe>"' in line for line in rest):  # a probe that cannot be
        yield "eager mode, watched", plain.lines, rest


def fetched(given: Case, plain: Told, place: Path) -> Iterator[Pair]:
    """What is fetched has the value that it has in the whole program."""
    eager, graph = (run(given, mode, place) for mode in MODES)
    yield "graph mode, fetching", eager.lines, graph.lines
    yield "graph mode, fetching", list(eager.values.values()), list(graph.values.values())
    both = [name for name in eager.values if name in plain.values]  # the rest is not kept by the whole program
    yield "eager mode, fetching", [plain.values[name] for name in both], [eager.values[name] for name in both]


@contextmanager
def everything_recorded() -> Iterator[None]:
    """What the checker says of which values lie between a derivative's target and what is differentiated is not heard:
    a target that it overlooks gets its derivative all the same.
    """
    make = Recorder.__init__

    def made(
        self: Recorder,
        module: Module,
        setting: Setting,
        higher: bool,
        everything: bool | None = None,
        place: Place | None = None,
    ) -> None:
        if everything is None:  # of a program; rules say what they want, and are kept for other programs
            make(self, module, setting, higher=True, everything=True, place=place)
        else:
            make(self, module, setting, higher, everything, place)

    with patch.object(Recorder, "__init__", made):
        yield


def run(given: Case, mode: str, place: Path) -> Told:
    """What a case says; an exception that is no error of the program is a last line with the place of its origin."""
    try:
        return cases.run(given, mode, place)
    except Exception as error:
        return Told([crash(error)])


def crash(error: Exception) -> str:
    """What to say of an exception that is no error of a program: its kind and the place of its origin."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"crash: {type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {error}"


def outcome(lines: list[str]) -> str:
    """What became of a program, for the counts."""
    errors = [e for e in events([line for line in lines if line.startswith("{")]) if e["event"] == "error"]
    if not errors:
        return "ran"
    code = errors[0]["code"]
    return f"{'failed as it ran' if code.startswith('E07') else 'rejected'}: {code}"


def sort(line: str | None) -> str:
    """What a line is, without its numbers."""
    if line is None:
        return "nothing"
    event = json.loads(line)
    return " ".join(str(event[key]) for key in ("event", "code") if key in event)


class Runner:
    """Runs programs in another process, and starts a new one when that does not come back."""

    def __init__(self, judge: Callable[[Any], Outcome] = compare, patience: float = PATIENCE) -> None:
        self.judge = judge
        self.patience = patience
        self.start()

    def start(self) -> None:
        here, there = multiprocessing.Pipe()
        self.pipe = here
        self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, self.judge), daemon=True)
        self.process.start()
        there.close()

    def __call__(self, program: Any) -> Outcome:
        try:
            self.pipe.send(program)
            if self.pipe.poll(self.patience):
                found: Outcome = self.pipe.recv()
                return found
            fault = "hang"
        except (EOFError, OSError):
            fault = "death of the process"
        self.close()
        self.start()
        return Outcome("died", fault)

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def serve(pipe: Connection, judge: Callable[[Any], Outcome]) -> None:
    """Judges each program that comes in."""
    while True:
        try:
            program = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(judge(program))

"""Runs programs in both modes, each in a process of its own kind, so that a crash or a hang is a finding like another."""

from __future__ import annotations

import json
import multiprocessing
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graphdsl.eager.module import Module
from graphdsl.eager.records import Place, Recorder
from graphdsl.ops.op import Setting
from graphdsl.runtime.modes import MODES
from graphdsl.source.span import Source
from tests.running import events, said

PATIENCE = 120.0
"""Seconds that a program may take in both modes: the fifth order of a nest of loops compiles for half a minute."""


@dataclass(frozen=True)
class Outcome:
    """What became of a program; `fault` is empty where both modes said the same."""

    kind: str  # "ran", "rejected", "failed as it ran"
    fault: str = ""  # what sort of fault it is: the same for programs that fail alike
    eager: str = ""
    graph: str = ""


def compare(text: str) -> Outcome:
    """Runs a program in both modes, and in eager mode once more with all recorded; nothing is taken from the cache of
    compiled programs.
    """
    eager, graph = (run(text, mode) for mode in MODES)
    kind = outcome(eager)
    with everything_recorded():
        recorded = run(text, "eager")
    for name, other in (("graph mode", graph), ("eager mode with all recorded", recorded)):
        for a, b in zip_longest(eager, other):
            crashed = next((line for line in (a, b) if line and line.startswith("crash")), None)
            if crashed:
                return Outcome(kind, crashed, str(a), str(b))
            if a != b:
                return Outcome(kind, f"{sort(a)} in eager mode, {sort(b)} in {name}", str(a), str(b))
    return Outcome(kind)


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


def run(text: str, mode: str) -> list[str]:
    """What a program says; an exception that is no error of the program is a last line with the place of its origin."""
    try:
        return said(Source("random.gdl", text), mode, cache=False)
    except Exception as error:
        return [crash(error)]


def crash(error: Exception) -> str:
    """What to say of an exception that is no error of a program: its kind and the place of its origin."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"crash: {type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {error}"


def outcome(lines: list[str]) -> str:
    """What became of a program, for the counts."""
    errors = [e for e in events([line for line in lines if line.startswith("{")]) if e["event"] == "error"]
    if not errors:
        return "ran"
    return "failed as it ran" if errors[0]["code"].startswith("E07") else "rejected"


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

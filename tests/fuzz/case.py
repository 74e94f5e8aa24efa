"""A case: a program, the files beside it and the arguments that it is run with, all in one text.

`#: --feed x=3 --probe h` on a line gives arguments, as in `tests/programs`; a line `#file m.gdl` begins a file beside it.
"""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from graphdsl.api.probes import probes_of
from graphdsl.api.program import Prepared, Program, Result
from graphdsl.render import json as lines
from graphdsl.runtime import threads
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source
from tests.running import Lines

_ARGUMENTS = argparse.ArgumentParser(exit_on_error=False)
for _name in ("feed", "set", "probe"):
    _ARGUMENTS.add_argument(f"--{_name}", action="append", default=[])
_ARGUMENTS.add_argument("--fetch", default="")
_ARGUMENTS.add_argument("--seed", type=int, default=0)
_ARGUMENTS.add_argument("--threads", type=int, default=0)


@dataclass(frozen=True)
class Case:
    """A text taken apart."""

    text: str
    files: dict[str, str] = field(default_factory=dict)
    feeds: dict[str, str] = field(default_factory=dict)
    sets: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    threads: int = 0
    probes: tuple[str, ...] = ()
    fetch: tuple[str, ...] = ()

    @property
    def plain(self) -> Case:
        """The program alone, with nothing watched."""
        return Case(self.text, self.files, self.feeds, self.sets, self.seed, self.threads)


def case(text: str) -> Case:
    """The case that a text says."""
    main, *others = re.split(r"^#file ", text, flags=re.MULTILINE)
    files = dict(other.split("\n", 1) for other in others)
    words = [word for line in re.findall(r"^#: (.*)", main, re.MULTILINE) for word in shlex.split(line)]
    given = _ARGUMENTS.parse_args(words)
    feeds, sets = (dict(pair.split("=", 1) for pair in pairs) for pairs in (given.feed, given.set))
    fetch = tuple(given.fetch.split(",")) if given.fetch else ()
    return Case(main, files, feeds, sets, given.seed, given.threads, tuple(given.probe), fetch)


@dataclass
class Told:
    """What a run said, and the values of the top level at its end."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


def run(case: Case, mode: str, folder: Path) -> Told:
    """Runs a case in a folder that holds nothing but its files; nothing is taken from the cache of compiled programs.
    Graph mode has the threads, eager mode one.
    """
    for path in folder.iterdir():
        path.unlink()
    for name, text in case.files.items():
        (folder / name).write_text(text)
    threads.choose(case.threads if case.threads and mode == "graph" else 1)
    told, sink = Told(), Lines()
    try:
        prepared = _prepared(case, mode, folder)
        sink.said += [lines.problem(d) for d in prepared.warnings]
        told.values = _values(prepared.run(sink))
    except ProgramError as error:
        sink.said += [lines.problem(d) for d in error.diagnostics]
    told.lines = sink.said
    return told


def _prepared(case: Case, mode: str, folder: Path) -> Prepared:
    program = Program(Source("random.gdl", case.text, str(folder)))
    given = program.given(case.feeds, case.sets, case.seed)
    if case.fetch:
        return program.fetch(mode, given, case.fetch)
    checked = program.check(given.values, probes=probes_of(program, case.probes))
    return Prepared(program, mode, given, checked, use_cache=False)


def _values(result: Result) -> dict[str, str]:
    return {name: lines.printed(0, [shown]) for name, shown in result.values.items()}

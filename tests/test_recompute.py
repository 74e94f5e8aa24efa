"""Loops in segments, for programs whose derivatives would need too much memory: nobody can tell but by what it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from graphdsl.api.program import Prepared, Program
from graphdsl.check import Request, check, recomputing
from graphdsl.cli import status
from graphdsl.cli.main import run
from graphdsl.eager.room import taken, watched
from graphdsl.render import json as lines
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.files import read_source
from graphdsl.source.span import Source
from tests.running import Lines, said

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.gdl"))
GROWS = """
param w = 1.0
fn more(s) {
  print "asked"
  return s[0] > 0.0
}
s = ones(1000) * w
i = 0
while more(s) {
  s = s * s + exp(s) + 0.001 * sum(normal(3))
  s = s / 4.0
  i += 1
  if i % 300 == 0 { print i, s[0] }
  if i == 1000 { break }
}
print grad(sum(s), w), uniform()
"""


def in_segments(source: Source, mode: str) -> list[str] | None:
    """What a program says whose loops are in segments; None where they may not be."""
    program, sink = Program(source), Lines()
    if recomputing(program.check()) is None:
        return None
    checked = check(program.module, Request(recompute=True))
    sink.said += [lines.problem(d) for d in checked.warnings]
    try:
        Prepared(program, mode, program.given({}, {}), checked).run(sink)
    except ProgramError as error:
        sink.said += [lines.problem(d) for d in error.diagnostics]
    return sink.said


@pytest.mark.parametrize("mode", MODES)
def test_segments_change_no_bit(mode: str) -> None:
    tried = 0
    for path in PROGRAMS:
        source = read_source(str(path))
        try:
            found = in_segments(source, mode)
        except ProgramError:  # found when it is checked
            continue
        if found is not None:
            tried += 1
            assert found == said(source, mode), path.stem
    assert tried > 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "loop",
    [
        'for i in 0..50 { assert i < 37, "no {i}"; x = x * w }',
        'i = 0\nwhile true { assert i < 37, "no {i}"; x = x * w; i += 1 }',
        'fn f(x) { for i in 0..50 { assert i < 37, "no {i}"; x = x * w }; return x }\nx = f(x)',
    ],
)
def test_an_error_names_the_same_trip(mode: str, loop: str) -> None:
    source = Source("t.gdl", f"param w = 0.5\nx = w * 1\n{loop}\nprint grad(x, w)")
    found = in_segments(source, mode)
    assert found == said(source, mode)
    assert "in trip 38 of this loop" in found[-1]


@pytest.fixture
def graphdsl(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> tuple[int, str, str]:
        code = run([*args])
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_needs_too_much_begins_again(graphdsl: Any, mode: str) -> None:
    plain = graphdsl("run", "-e", GROWS, "--mode", mode)
    code, out, err = graphdsl("run", "-e", GROWS, "--mode", mode, "--memory-limit", "5MB")
    assert (code, out) == plain[:2]
    assert err.startswith("note: what derivatives need of the loops")
    assert out.count("asked") == 1000


def test_many_trips_in_little_memory(graphdsl: Any) -> None:
    code = "param w = 0.5; x = w * 1; for i in 0..1_000_000 { x = sin(x * w) + 0.3 }; print x, grad(x, w)"
    plain = graphdsl("run", "-e", code, "--mode", "graph")
    again = graphdsl("run", "-e", code, "--mode", "graph", "--memory-limit", "2MB")
    assert again[:2] == plain[:2]
    assert "begins again" in again[2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("then", ["d = grad(grad(sum(s), w), w)\nprint d", "save"])
def test_what_may_not_begin_again(graphdsl: Any, mode: str, then: str, tmp_path: Path) -> None:
    """Second derivatives would round otherwise; what was saved may have been loaded."""
    code = f'save "{(tmp_path / "a.npy").as_posix()}", 1\n{GROWS}' if then == "save" else f"{GROWS}\n{then}"
    result, _, err = graphdsl("run", "-e", code, "--mode", mode, "--memory-limit", "5MB", "--json")
    (error,) = map(json.loads, err.splitlines())
    assert (result, error["code"]) == (status.WRONG_PROGRAM, "E0734")


def test_the_limit_of_time_holds_for_both_runs_together(graphdsl: Any) -> None:
    code = f"{GROWS}\nwhile true {{}}"
    result, _, err = graphdsl(
        "run", "-e", code, "--mode", "graph", "--memory-limit", "5MB", "--time-limit", "1", "--json"
    )
    (error,) = map(json.loads, err.splitlines())
    assert (result, error["code"]) == (status.WRONG_PROGRAM, "E0733")


def test_eager_code_is_stopped_where_the_process_takes_too_much() -> None:
    told = iter([10, 20, 200])

    def endless() -> None:
        with watched(100, lambda: next(told, 200)):
            while True:
                sleep(0.001)

    with pytest.raises(MemoryError):
        endless()
    with watched(100, lambda: None):  # a system where nobody can tell
        pass


ALL_MEMORY = """
import sys
from graphdsl.api.program import Program
from graphdsl.eager.room import taken
from graphdsl.runtime.limits import Limits
from graphdsl.source.span import Source
from tests.running import Lines

program, said = Program(Source("t.gdl", sys.argv[1])), Lines()
given = program.given({}, {})
given.limits = Limits(memory=taken() // 2)
prepared = program.prepare("eager", given)
prepared.run(said)
print(*said.said, prepared.recomputes, sep="\\n")
"""


@pytest.mark.skipif(taken() is None, reason="the system refuses memory by itself")
def test_an_eager_run_that_takes_all_memory_begins_again() -> None:
    """In a process of its own: another one may have memory left that it took before."""
    code = "param w = 0.5; x = w * 1; for i in 0..300_000 { x = sin(x * w) + 0.3 }; print x, grad(x, w)"
    program, plain = Program(Source("t.gdl", code)), Lines()
    program.prepare("eager", program.given({}, {})).run(plain)
    done = subprocess.run(
        [sys.executable, "-c", ALL_MEMORY, code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    *again, recomputes = done.stdout.splitlines()
    assert again == plain.said
    assert recomputes == "True"

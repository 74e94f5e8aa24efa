"""The benchmarks can be run: what they name exists, and their programs run. How long it takes is no matter here."""

from __future__ import annotations

import inspect

import pytest

from graphdsl.runtime.modes import MODES
from graphdsl.source.span import Source
from tests.benchmarks.__main__ import CONTESTS
from tests.benchmarks.contest import Outcome
from tests.benchmarks.sides import PROGRAMS, SIDES
from tests.running import events, said


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda c: c.name)
def test_sides_exist(contest) -> None:  # type: ignore[no-untyped-def]
    for side in (contest.ours, contest.theirs):
        inspect.signature(SIDES[side.name]).bind(*side.arguments)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str) -> None:
    both = [said(Source(name, PROGRAMS[name]), mode) for mode in MODES]
    assert both[0] == both[1]
    assert [e["event"] for e in events(both[0])] == ["print"]


def test_a_row_is_of_medians() -> None:
    outcome = Outcome(CONTESTS[0], ((1.0, 2.0), (3.0, 2.0), (2.0, 2.0)))
    assert outcome.row()[1:5] == ["2 s", "2 s", "1 (0.5 to 1.5)", "+0 s"]

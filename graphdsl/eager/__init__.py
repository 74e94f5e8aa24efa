"""Eager mode: a checked program as Python code that computes as it goes and records what is differentiated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdsl.core.ir import Program
    from graphdsl.eager.program import Results
    from graphdsl.runtime.state import Runtime


def run(program: Program, runtime: Runtime, fetch: Iterable[str] | None = None) -> Results:
    """Run a program once. `fetch`: the names whose values are wanted (None: all that are set at the end)."""
    from graphdsl.eager.program import Compiled

    return Compiled(program, fetch).run(runtime)

"""`--stats`: what a run took, said on stderr after it.

Times are those of the run itself, whose code is what it always is. Ops, and in eager mode memory, are counted in another run
by code that is slower for it; that one prints nothing, and leaves no file.
"""

from __future__ import annotations

import time
from dataclasses import replace

from graphdsl.api.measure import LONG
from graphdsl.api.program import Prepared, Result
from graphdsl.cli.output import Output
from graphdsl.cli.seconds import seconds
from graphdsl.runtime.events import Sink
from graphdsl.runtime.rehearsal import Rehearsal
from graphdsl.source.diagnostic import ProgramError

MEMORY = {"eager": "Python objects and arrays", "graph": "buffers"}  # what is counted


def run(prepared: Prepared, mode: str, sink: Sink, output: Output) -> Result:
    """Run a program, and say what that took."""
    prepared.given = replace(prepared.given, files=Rehearsal())
    begin = time.perf_counter()
    result = prepared.run(sink)
    took = time.perf_counter() - begin
    peak = prepared.engine.peak_bytes(lambda: None) if mode == "graph" else None
    ops, counted = _counted(prepared, mode) if took < LONG else (None, None)
    _say(prepared, mode, took, ops, counted if peak is None else peak, output)
    return result


def _counted(prepared: Prepared, mode: str) -> tuple[int | None, int | None]:
    """The ops that run, and in eager mode the most bytes taken at once; None where a second run does not come to its end."""
    limits = replace(prepared.given.limits, counted=False, time=None)
    prepared.given = replace(prepared.given, limits=limits)
    try:
        return prepared.ops(), prepared.peak_bytes() if mode == "eager" else None
    except ProgramError:
        return None, None


def _say(prepared: Prepared, mode: str, took: float, ops: int | None, peak: int | None, output: Output) -> None:
    from graphdsl.source.words import counted

    made = prepared.engine.made
    if output.as_json:
        fields = {"mode": mode, "build_s": made.build, "compile_s": made.compile, "cached": made.cached}
        output.aside("stats", **fields, run_s=took, ops=ops, peak_bytes=peak)
        return
    parts = [f"build {seconds(made.build)}"]
    if mode == "graph":
        parts.append(f"compile {seconds(made.compile)}{' (from the cache)' if made.cached else ''}")
    parts.append(f"run {seconds(took)}")
    parts.append("ops not counted" if ops is None else counted(f"{ops:,}", "op") if ops != 1 else "1 op")
    parts.append(_memory(peak, mode))
    output.note(f"stats: {mode} mode, {', '.join(parts)}")


def _memory(peak: int | None, mode: str) -> str:
    """What was taken at most; scalars need no buffers."""
    from graphdsl.runtime.limits import size_text

    if peak is None:
        return "memory not counted"
    return f"at most {size_text(peak)} of {MEMORY[mode]}" if peak else f"no {MEMORY[mode]}"

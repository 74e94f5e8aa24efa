"""`graphdsl compare`: a program in both modes: whether they agree, and how long each takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from graphdsl.api.agreement import LIMITS, Difference, Outcome, first_difference
from graphdsl.api.program import Given, Prepared, Program
from graphdsl.cli import status
from graphdsl.cli.options import Inputs, input_options, names, one_name, output_options, program_options
from graphdsl.cli.output import Output
from graphdsl.cli.seconds import seconds
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import ProgramError, WrongRequest
from graphdsl.source.span import Source
from graphdsl.source.words import counted

if TYPE_CHECKING:
    from graphdsl.api.measure import Contest, Timing


@click.command("compare", short_help="run it in both modes: agreement, timing, memory")
@output_options
@program_options
@input_options
@click.option("--wrt", metavar="NAMES", help="Compare gradients with respect to these as well: w,b")
@click.option("--of", metavar="NAME", help="What is differentiated. Without it: the last float scalar.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Timed runs of each mode. [up to 15 in 10 s]")
def command(source: Source, inputs: Inputs, wrt: str | None, of: str | None, repeat: int | None, output: Output) -> int:
    """Run a program in both modes in turn: whether they agree to the bit, and how long each takes.

    \b
    Example:  graphdsl compare -e 'a = 0; while a < 1e6 { a += 1 }; print a'
    """
    from graphdsl.runtime.rehearsal import Rehearsal

    program = Program(source)
    given = inputs.given(program)
    y = one_name("--of", of, program) if of is not None else None
    targets = names("--wrt", wrt, program) if wrt is not None else () if of is not None else None
    given.files = Rehearsal()
    checked = program.check(given.values, (), y, targets)
    output.diagnostics(checked.warnings)
    first, second = (outcome(program.prepare(mode, given, checked)) for mode in MODES)
    for mode, found in zip(MODES, (first, second), strict=True):
        if found.error is not None and found.error.code in LIMITS:  # which strikes where it does
            output.diagnostics([found.error])
            output.note(f"that was in {mode} mode; the modes cannot be compared")
            return status.WRONG_PROGRAM
    difference = first_difference(first, second)
    if difference is None and first.error is None:
        _measure(program, given, repeat, output)
    _verdict(first, difference, output)
    if difference is not None:
        return status.DIFFERS
    if first.error is not None:
        output.diagnostics([first.error])
        return status.WRONG_PROGRAM
    return status.DONE


def outcome(prepared: Prepared) -> Outcome:
    """What a run leaves."""
    from graphdsl.runtime.events import Recorded

    sink = Recorded()
    try:
        result = prepared.run(sink)
    except WrongRequest:
        raise
    except ProgramError as error:
        return Outcome(sink.events, error.diagnostics[0], {}, {})
    return Outcome(sink.events, None, result.values, result.gradients)


def _verdict(outcome: Outcome, difference: Difference | None, output: Output) -> None:
    values, gradients = len(outcome.values), len(outcome.gradients)
    lines = sum(1 if isinstance(said, str) else len(said) for _, said in outcome.prints)
    if output.as_json:
        found = {} if difference is None else {"difference": vars(difference)}
        same = difference is None
        output.event("agreement", identical=same, values=values, gradients=gradients, prints=lines, **found)
    elif difference is None:
        parts = [counted(values, "value"), counted(gradients, "gradient"), counted(lines, "printed line")]
        if outcome.error is not None:
            parts.append(f"the error at line {outcome.error.span.line}")
        shown = ", ".join(p for p in parts if p[0] != "0") or "nothing to compare"
        output.sentence(f": {shown}", head="identical", style="good")
    else:
        output.sentence(f": {difference.where}", head="the modes differ", style="error")
        width = max(map(len, MODES))
        for mode, text in zip(MODES, (difference.first, difference.second), strict=True):
            output.line(f"  {mode:<{width}}  {text}")
        if difference.ulps is not None:
            output.line(f"  {difference.ulps:,} ulp{'s' * (difference.ulps != 1)} apart")


def _measure(program: Program, given: Given, repeat: int | None, output: Output) -> None:
    from graphdsl.api.measure import Contest

    contest = Contest(program, given)
    contest.start()
    rounds = contest.rounds(repeat)
    with _progress(rounds, output) as advance:
        for _ in contest.play(rounds):
            advance()
    if output.as_json:
        for timing in contest.timings.values():
            output.event("timing", **_fields(timing), check_s=contest.checking, feed_s=contest.feeding)
        output.event("ratio", **vars(contest.ratio()))
    else:
        _table(contest, output)


def _fields(timing: Timing) -> dict[str, Any]:
    return {
        "mode": timing.mode,
        "build_s": timing.made.build,
        "compile_s": timing.made.compile,
        "first_s": timing.first,
        "steady_s": timing.steady,
        "best_s": timing.best,
        "iqr_s": timing.iqr,
        "runs": len(timing.runs),
        "peak_bytes": timing.peak_bytes,
        "ops": timing.ops,
        "cached_s": timing.from_cache,
    }


def _table(contest: Contest, output: Output) -> None:
    from graphdsl.runtime.limits import size_text

    rows = [["", "check", "build", "compile", "cached", "first", "steady", "± iqr", "min", "memory", "ops"]]
    for timing in contest.timings.values():
        cells = [
            timing.mode,
            seconds(contest.checking),
            seconds(timing.made.build),
            seconds(timing.made.compile) if timing.from_cache is not None else "–",
            seconds(timing.from_cache) if timing.from_cache is not None else "–",
            seconds(timing.first),
            seconds(timing.steady),
            seconds(timing.iqr),
            seconds(timing.best),
            size_text(timing.peak_bytes) if timing.peak_bytes is not None else "–",
            f"{timing.ops:,}" if timing.ops is not None else "–",
        ]
        rows.append(cells)
    output.table(rows)
    output.line()
    output.sentence(_ratio(contest))
    output.sentence(
        "memory: the most at once, in eager mode of Python objects and arrays, in graph mode of buffers; "
        "ops: what is fused is one"
    )
    if contest.feeding is not None:
        output.sentence(f"not part of a run: inputs and first values, {seconds(contest.feeding)}")


def _ratio(contest: Contest) -> str:
    """Which mode is faster, the way round that gives a number above 1."""
    ratio = contest.ratio()
    runs = len(contest.timings["graph"].runs)
    faster = ratio.median >= 1
    median, low, high = (r if faster else 1 / r for r in (ratio.median, ratio.low, ratio.high))
    text = f"graph is {median:.3g} times {'faster' if faster else 'slower'} than eager"
    text += f" ({min(low, high):.3g} to {max(low, high):.3g}, {counted(runs, 'run')} each)"
    if ratio.pays_back is None:
        return f"{text}, and never pays back its compile time"
    return f"{text}, and has paid back its compile time from run {ratio.pays_back:,} on"


@contextmanager
def _progress(rounds: int, output: Output) -> Iterator[Any]:
    """A bar on a terminal while it works; gives what advances it."""
    if output.as_json or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("timing", total=rounds)
        yield lambda: bar.advance(task)

"""`graphdsl compare`: a program in both modes: whether they agree, and how long each takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from graphdsl.api.agreement import Difference, Outcome, first_difference
from graphdsl.api.engines import MODES
from graphdsl.api.program import Given, Program
from graphdsl.cli import status
from graphdsl.cli.options import Inputs, input_options, names, output_options, program_options
from graphdsl.cli.output import Output
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.span import Source

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
    program = Program(source)
    given = inputs.given(program)
    y = names("--of", of, program)[0] if of is not None else None
    targets = names("--wrt", wrt, program) if wrt is not None else () if of is not None else None
    first, second = (outcome(program, mode, given, y, targets) for mode in MODES)
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


def outcome(program: Program, mode: str, given: Given, of: str | None, wrt: tuple[str, ...] | None) -> Outcome:
    """What a run in a mode leaves."""
    from graphdsl.runtime.events import Recorded

    sink = Recorded()
    prepared = program.prepare(mode, given, program.check(given.values, (), of, wrt))
    try:
        result = prepared.run(sink)
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
        parts = [_counted(values, "value"), _counted(gradients, "gradient"), _counted(lines, "printed line")]
        if outcome.error is not None:
            parts.append(f"the error at line {outcome.error.span.line}")
        output.line(output.stdout_paint("identical", "good") + ": " + ", ".join(p for p in parts if p[0] != "0"))
    else:
        output.line(output.stdout_paint("the modes differ", "error") + f": {difference.where}")
        width = max(map(len, MODES))
        for mode, text in zip(MODES, (difference.first, difference.second), strict=True):
            output.line(f"  {mode:<{width}}  {text}")
        if difference.ulps is not None:
            output.line(f"  {_counted(difference.ulps, 'ulp')} apart")


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _measure(program: Program, given: Given, repeat: int | None, output: Output) -> None:
    from graphdsl.api.measure import Contest, check_seconds

    checking = check_seconds(program.source, given)
    contest = Contest(program, given)
    contest.start(with_cache=not output.as_json)
    rounds = contest.rounds(repeat)
    with _progress(rounds, output) as advance:
        for _ in contest.play(rounds):
            advance()
    if output.as_json:
        for timing in contest.timings.values():
            output.event("timing", **_fields(timing))
    else:
        _table(contest, checking, output)


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
    }


def _table(contest: Contest, checking: float, output: Output) -> None:
    from graphdsl.render.table import table
    from graphdsl.runtime.limits import size_text

    rows = [["", "build", "compile", "cached", "first", "steady", "± iqr", "min", "memory", "ops"]]
    for timing in contest.timings.values():
        compiled = timing.mode == "graph"
        cells = [
            timing.mode,
            seconds(timing.made.build),
            seconds(timing.made.compile) if compiled else "–",
            seconds(timing.from_cache) if timing.from_cache is not None else "–",
            seconds(timing.first),
            seconds(timing.steady),
            seconds(timing.iqr),
            seconds(timing.best),
            size_text(timing.peak_bytes) if timing.peak_bytes is not None else "–",
            f"{timing.ops:,}" if timing.ops is not None else "–",
        ]
        rows.append(cells)
    for line in table(rows):
        output.line(line)
    ratio = contest.ratio()
    runs = len(contest.timings["graph"].runs)
    text = f"graph is {ratio.median:.3g} times as fast as eager ({ratio.low:.3g} to {ratio.high:.3g}, {runs} runs each)"
    if ratio.pays_back is not None:
        text += f", and has paid back its compile time from run {ratio.pays_back:,} on"
    output.line(f"{text}; parsing and checking take {seconds(checking)}")


def seconds(time: float) -> str:
    """`1.23 ms`."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= factor:
            return f"{time / factor:.3g} {unit}" if time < 1000 * factor else f"{time / factor:.0f} {unit}"
    return f"{time * 1e9:.0f} ns"


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

"""`graphdsl run`: run a program, and print what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from graphdsl.api.program import Program, Result
from graphdsl.cli import status
from graphdsl.cli.options import (
    Inputs,
    check_nan_option,
    input_options,
    mode_option,
    names,
    output_options,
    probes,
    program_options,
)
from graphdsl.cli.output import Output
from graphdsl.source.diagnostic import Diagnostic, Fault, ProgramError
from graphdsl.source.span import Source, Span

if TYPE_CHECKING:
    from graphdsl.api.program import Given, Prepared
    from graphdsl.check import Probe
    from graphdsl.runtime.events import Sink


@click.command("run", short_help="run a program, print what it prints")
@output_options
@program_options
@mode_option
@input_options
@click.option("--fetch", metavar="NAMES", help="Print only these values, as they are at the end: y,z")
@click.option(
    "--probe",
    "probed",
    multiple=True,
    metavar="PROBE",
    help="Print every value that a name takes: h, 'h if i % 100 == 0', h:stats",
)
@check_nan_option
@click.option("--save", metavar="M.npz", help="Write all params to this file, as they are at the end.")
@click.option(
    "--stats", is_flag=True, help="Say what the run took: times, ops, bytes. Ops are counted in a second run."
)
def command(
    source: Source,
    mode: str,
    inputs: Inputs,
    fetch: str | None,
    probed: tuple[str, ...],
    check_nan: bool,
    save: str | None,
    stats: bool,
    output: Output,
) -> None:
    """Run a program, and print what it prints. Without FILE, piped input is read.

    \b
    Example:  graphdsl run -e 'param w = 2.0; y = w * 3; print y, grad(y, w)'
    """
    if save is not None and (fetch is not None or not save.lower().endswith(".npz")):
        wrong = "the name must end in .npz" if fetch is None else "not together with --fetch"
        raise click.BadParameter(f"{wrong}.", param_hint="--save")
    program = Program(source)
    given = inputs.given(program)
    watched = probes(probed, program)
    if fetch is None:
        prepared = program.prepare(mode, given, program.check(given.values, probes=watched, check_nan=check_nan))
        output.diagnostics(prepared.warnings)
        result = _run(prepared, mode, output.sink(), stats, output)
        if save is not None:
            _save(program, result, save)
    else:
        _fetch(program, mode, given, names("--fetch", fetch, program), watched, check_nan, stats, output)


def _run(prepared: Prepared, mode: str, sink: Sink, stats: bool, output: Output) -> Result:
    """Run it; with `--stats`, and say what that took."""
    prepared.notice = output.again
    if not stats:
        return prepared.run(sink)
    from graphdsl.cli.stats import run

    return run(prepared, mode, sink, output)


def _save(program: Program, result: Result, path: str) -> None:
    """Write the params, whole or not at all."""
    from graphdsl.runtime.files import save

    params = [result.values[name] for name, kind in program.declared.items() if kind == "param"]
    try:
        save(".", path, [(shown.name, shown.dtype, shown.value) for shown in params])
    except Fault as fault:
        raise status.Failed(fault) from None


def _fetch(
    program: Program,
    mode: str,
    given: Given,
    wanted: tuple[str, ...],
    watched: tuple[Probe, ...],
    check_nan: bool,
    stats: bool,
    output: Output,
) -> None:
    """Run, and print only the values of these names at the end, and what is watched."""
    from graphdsl.api.program import UnknownName

    try:
        prepared = program.fetch(mode, given, wanted, watched, check_nan)
    except UnknownName as error:
        raise click.BadParameter(f"{error}.", param_hint="--fetch") from None
    output.diagnostics(prepared.warnings)
    sink = output.sink()
    result = _run(prepared, mode, sink, stats, output)
    end = len(program.source.text)
    for name in prepared.wanted:
        if name not in result.values:
            raise ProgramError(Diagnostic("E0720", f"`{name}` was never set", Span(program.source, end, end)))
    sink.values(program.source.place(end)[0], [result.values[name] for name in prepared.wanted])

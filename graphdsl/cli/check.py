"""`graphdsl check`: parse and check only; every problem of every file."""

from __future__ import annotations

import click

from graphdsl.cli import status
from graphdsl.cli.options import open_source, output_options
from graphdsl.cli.output import Output
from graphdsl.source.diagnostic import ProgramError


@click.command("check", short_help="parse and check only; every problem, not just the first")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_options
def command(files: tuple[str, ...], output: Output) -> int:
    """Parse and check programs without running them; every problem is shown, not just the first.

    \b
    Example:  graphdsl check samples/*.gdl
    """
    failed = 0
    for file in files:
        errors, warnings = _check(file, output)
        failed += errors > 0
        if output.as_json:
            output.event("checked", file=file, errors=errors, warnings=warnings)
    if not output.as_json:
        output.note(f"{len(files) - failed} of {len(files)} right")
    return status.WRONG_PROGRAM if failed else status.DONE


def _check(file: str, output: Output) -> tuple[int, int]:
    """How many errors and warnings a file has; they are shown."""
    from graphdsl.api.program import Program

    try:
        warnings = Program(open_source(file)).warnings()
    except ProgramError as error:
        output.diagnostics(error.diagnostics)
        found = [d.severity for d in error.diagnostics]
        return found.count("error"), found.count("warning")
    output.diagnostics(warnings)
    return 0, len(warnings)

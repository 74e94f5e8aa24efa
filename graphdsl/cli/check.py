"""`graphdsl check`: parse and check only; every problem of every file."""

from __future__ import annotations

import click

from graphdsl.cli import status
from graphdsl.cli.options import find_source, output_options
from graphdsl.cli.output import Output
from graphdsl.source.diagnostic import ProgramError


@click.command("check", short_help="parse and check only; every problem, not just the first")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("-e", "code", metavar="CODE", help="A program on the command line, in place of files.")
@output_options
def command(files: tuple[str, ...], code: str | None, output: Output) -> int:
    """Parse and check programs without running them; every problem is shown, not just the first.

    \b
    Example:  graphdsl check samples/*.gdl
    """
    programs = [(file, None) for file in files] if files and code is None else [(files[0] if files else None, code)]
    failed = 0
    for file, text in programs:
        name, errors, warnings = _check(file, text, output)
        failed += errors > 0
        if output.as_json:
            output.event("checked", file=name, errors=errors, warnings=warnings)
    if not output.as_json:
        output.note(f"{len(programs) - failed} of {len(programs)} right")
    return status.WRONG_PROGRAM if failed else status.DONE


def _check(file: str | None, code: str | None, output: Output) -> tuple[str, int, int]:
    """A program's name, and how many errors and warnings it has; they are shown."""
    from graphdsl.api.program import Program

    name = file or ("<stdin>" if code is None else "<code>")
    try:
        warnings = Program(find_source(file, code)).warnings()
    except ProgramError as error:
        output.diagnostics(error.diagnostics)
        found = [d.severity for d in error.diagnostics]
        return name, found.count("error"), found.count("warning")
    output.diagnostics(warnings)
    return name, 0, len(warnings)

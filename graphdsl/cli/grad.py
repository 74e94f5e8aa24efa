"""`graphdsl grad`: run a program, then print derivatives of one value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from graphdsl.api.program import Given, Prepared, Program, Result
from graphdsl.cli import status
from graphdsl.cli.options import (
    Inputs,
    check_nan_option,
    input_options,
    mode_option,
    names,
    one_name,
    output_options,
    program_options,
)
from graphdsl.cli.output import Output
from graphdsl.source.span import Source

if TYPE_CHECKING:
    from graphdsl.check.nodes import Node
    from graphdsl.check.program import Checked
    from graphdsl.runtime.events import Shown

_NO_PARAM = "has no param of floats; `--wrt x` names what to differentiate by"


@click.command("grad", short_help="run it, then print derivatives of one value")
@output_options
@program_options
@click.option("--wrt", metavar="NAMES", help="With respect to these: w,b. Without it: every param.")
@click.option("--of", metavar="NAME", help="What is differentiated. Without it: the last float scalar.")
@click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="2: second derivatives, of each pair of names once: by w twice, by w and b, by b twice.",
)
@click.option(
    "--check",
    "checks",
    is_flag=True,
    help="Hold them against central differences, here and at a displaced point, second derivatives too. "
    "Status 3 where one differs.",
)
@click.option("--all", "every", is_flag=True, help="By every named value of the top level, each with what it is.")
@click.option(
    "--paths", "by_paths", is_flag=True, help="The chain rule written out: every path, and their sum. Of scalars."
)
@check_nan_option
@click.option("--why-nan", is_flag=True, help="Show the way of a NaN or inf to each gradient that is not finite.")
@mode_option
@input_options
def command(
    source: Source,
    wrt: str | None,
    of: str | None,
    order: int,
    checks: bool,
    every: bool,
    by_paths: bool,
    check_nan: bool,
    why_nan: bool,
    mode: str,
    inputs: Inputs,
    output: Output,
) -> int:
    """Run a program, then print derivatives of one value at its end.

    \b
    Example:  graphdsl grad -e 'param w = 2.0; y = w ** 3' --wrt w

    With --check the program runs again and again with a name displaced where it is
    set. Of a large tensor some elements are checked, and all of them along a line;
    second derivatives, by each pair of names, along lines only. Of a program that
    takes long, --mode graph does it sooner.

    With --paths the local derivatives are read from what eager mode records; the
    other mode has the same.

    A second derivative by w and b has the shape of w, then that of b, and the
    dtype of b.
    """
    from graphdsl.runtime.events import Recorded
    from graphdsl.runtime.rehearsal import Rehearsal

    if checks + every + by_paths + why_nan + (order > 1) > 1:
        only = "--order 2, --check, --all, --paths and --why-nan"
        raise click.UsageError(f"One of {only} (--check checks second derivatives too).")
    if check_nan and (checks or by_paths or why_nan):
        raise click.UsageError("--check-nan goes without --check, --paths and --why-nan.")
    if every and wrt is not None:
        raise click.UsageError("--all takes no --wrt: it is by every name.")
    program = Program(source)
    given = inputs.given(program)
    targets = names("--wrt", wrt, program) if wrt is not None else ()
    y = one_name("--of", of, program) if of is not None else None
    if checks:
        given.files = Rehearsal()
    checked = program.check(
        given.values, (), y, targets, order=order, every=every, check_nan=check_nan, why_nan=why_nan
    )
    if by_paths:
        output.diagnostics(checked.warnings)
        return paths(program, given, checked, output)
    prepared = program.prepare(mode, given, checked)
    prepared.notice = output.again
    output.diagnostics(prepared.warnings)
    result = prepared.run(Recorded())
    shown = differentiated(checked, result, source)
    if not result.gradients:
        lacks = "names no floats" if every else _NO_PARAM
        output.note(f"note: the program {lacks}")
    if checks:
        return check(program, prepared, result, shown, output)
    if every:
        show_all(output, shown, checked.nodes, result)
    else:
        show(output, shown, result)
    if why_nan:
        from graphdsl.api.why import ways
        from graphdsl.cli.why import explain

        explain(ways(prepared, result), lambda name: symbol(shown, [name]), source, output)
    return status.DONE


def paths(program: Program, given: Given, checked: Checked, output: Output) -> int:
    """Write the chain rule out; the exit status."""
    from graphdsl.api.paths import chains
    from graphdsl.cli import paths as shows

    of, found = chains(program, given, checked, lambda result: differentiated(checked, result, program.source))
    if not found:
        output.note(f"note: the program {_NO_PARAM}")
    shows.show(found, of, [symbol(of, [chain.wrt]) for chain in found], output)
    return status.DONE


def check(program: Program, prepared: Prepared, result: Result, of: Shown, output: Output) -> int:
    """Hold the gradients against central differences; the exit status."""
    from graphdsl.api.gradcheck import gradcheck
    from graphdsl.cli import gradcheck as shows
    from graphdsl.runtime.format import text

    if not output.as_json:
        output.line(f"{of.name} = {text(of.value, of.dtype)}")
    report = gradcheck(program, prepared, result)
    return shows.show(report, of.name, partial(symbol, of), output)


def differentiated(checked: Checked, result: Result, source: Source) -> Shown:
    """The value that was differentiated, under its name or its text in the program."""
    from graphdsl.check.context import PRINTED
    from graphdsl.check.printing import source_text
    from graphdsl.syntax import ast
    from graphdsl.syntax.parser import parse
    from graphdsl.syntax.walk import walk

    name = checked.of or ""
    value = result.values[name]
    if not name.startswith(PRINTED):
        return value
    start = int(name.removeprefix(PRINTED))
    prints = (node for node in walk(parse(source).body) if isinstance(node, ast.PrintStmt))
    item = next(item for node in prints for item in node.items if item.span.start == start)
    return value._replace(name=source_text(item.span))


def show(output: Output, of: Shown, result: Result) -> None:
    """The value and its gradients, as text or as events."""
    from graphdsl.render import json
    from graphdsl.runtime.format import text

    if not output.as_json:
        output.line(f"{of.name} = {text(of.value, of.dtype)}")
    for key, gradient in result.gradients.items():
        by = key.split(",")
        if not output.as_json:
            output.line(f"{symbol(of, by)} = {text(gradient.value, gradient.dtype)}")
            continue
        kind, wrt = ("grad", by[0]) if len(by) == 1 else ("hessian", by)
        output.event(kind, of=json.shown(of), wrt=wrt, **json.content(gradient))


def show_all(output: Output, of: Shown, nodes: Sequence[Node], result: Result) -> None:
    """Every node with its value, where it has one at the end, and its gradient."""
    from graphdsl.render import json
    from graphdsl.runtime.format import text

    if not output.as_json:
        output.line(f"{of.name} = {text(of.value, of.dtype)}")
    for node in nodes:
        gradient = result.gradients[node.key]
        if node.key not in result.values:
            continue  # no path has set it
        held = None if node.leaf else result.values[node.key]._replace(name=node.name)
        if output.as_json:
            at = None if held is None else json.shown(held)
            output.event("grad", of=json.shown(of), wrt=node.name, line=node.line, **json.content(gradient), node=at)
            continue
        parts = [] if held is None else [f"{node.name} = {text(held.value, held.dtype)}"]
        parts.append(f"{symbol(of, [node.name])} = {text(gradient.value, gradient.dtype)}")
        head = f"line {node.line}: "
        gap = ", " if not gradient.shape else "\n" + " " * len(head)
        output.line(output.stdout_paint(head, "faint") + gap.join(parts))


def symbol(of: Shown, by: Sequence[str]) -> str:
    """A derivative as it is written: `∂y/∂w`, `∂²y/∂w²`, `∂²y/∂w∂b`."""
    from graphdsl.syntax.lexer import continues_name

    y = of.name if all(map(continues_name, of.name)) else f"({of.name})"
    match by:
        case [name]:
            return f"∂{y}/∂{name}"
        case [name, other] if name == other:
            return f"∂²{y}/∂{name}²"
    return f"∂²{y}/" + "".join(f"∂{name}" for name in by)

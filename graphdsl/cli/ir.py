"""`graphdsl ir`: the checked program, the graph after each pass, and the machine code."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import click

from graphdsl.api.program import Program
from graphdsl.cli.options import Inputs, input_options, near, output_options, program_options
from graphdsl.cli.output import Output
from graphdsl.core.ir import Func
from graphdsl.core.ir import Program as Core
from graphdsl.source.span import Source

CORE, GRAPH = "core", "graph"  # what there is before the first pass


@click.command("ir", short_help="the graph after each pass, and the machine code")
@output_options
@program_options
@input_options
@click.option("--pass", "only", metavar="NAME", help="Only what is there after it; `core` and `graph` come first.")
@click.option("--without", multiple=True, metavar="PASS", help="Leave a pass out.")
@click.option("--llvm", is_flag=True, help="The LLVM IR in place of the graph.")
@click.option("--asm", is_flag=True, help="The machine code in place of the graph.")
def command(
    source: Source,
    inputs: Inputs,
    only: str | None,
    without: tuple[str, ...],
    llvm: bool,
    asm: bool,
    output: Output,
) -> None:
    """Show a program as it is compiled: checked, as a graph, after each pass, and as code.

    \b
    Example:  graphdsl ir -e 'param w = 2.0; print grad(w * w, w)' --pass fuse
    """
    from graphdsl.graph.passes import PASSES

    one = [option for option, given in (("--pass", only), ("--llvm", llvm), ("--asm", asm)) if given]
    if len(one) > 1:
        raise click.UsageError(f"{' and '.join(one)} show different things: give one of them.")
    for name in without:
        _known(name, PASSES)
    if only is not None:
        _known(only, (CORE, GRAPH, *PASSES))
        if only in without:
            raise click.UsageError(f"`{only}` is left out, so there is nothing after it.")
    program = Program(source)
    checked = program.check(inputs.given(program).values)
    output.diagnostics(checked.warnings)
    core = checked.program
    if llvm or asm:
        code = _code(core, without, asm)
        if output.as_json:
            output.event("code", form="asm" if asm else "llvm", text=code)
        else:
            output.line(code)
        return
    _stages(core, only, without, output)


def _known(name: str, passes: Collection[str]) -> None:
    """Passes that there are."""
    if name not in passes:
        raise click.UsageError(f"There is no pass `{name}`." + near(name, passes, f" They are {', '.join(passes)}."))


def _stages(core: Core, only: str | None, without: tuple[str, ...], output: Output) -> None:
    before = ""
    for name, text in stages(core, without):
        if only is None or name == only:
            if output.as_json:
                output.event("graph", **{"pass": name}, text=text)
            elif only is not None:
                output.line(text)
            else:
                output.line(output.stdout_paint(f"── {name} ", "label"))
                output.line(text if text != before else "unchanged")
                output.line()
        before = text


def stages(core: Core, without: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The program as text: checked, as a graph, and after each pass."""
    from graphdsl.core.printer import show_program
    from graphdsl.graph.build import Graph, build
    from graphdsl.graph.passes import optimise

    yield CORE, show_program(core)
    graph = build(core, core.exports)
    yield GRAPH, _text(graph.main)
    done: list[tuple[str, str]] = []

    def after(name: str, changed: Graph) -> None:
        done.append((name, _text(changed.main)))

    optimise(graph, without, after)
    yield from done


def _text(main: Func) -> str:
    from graphdsl.core.call_graph import functions
    from graphdsl.core.printer import show_func

    return "\n\n".join(show_func(f) for f in [*functions(main), main])


def _code(core: Core, without: tuple[str, ...], asm: bool) -> str:
    from graphdsl.graph.build import build
    from graphdsl.graph.passes import optimise
    from graphdsl.native.program.compiled import compile_graph

    compiled = compile_graph(optimise(build(core, core.exports), without).main)
    return compiled.assembly() if asm else compiled.llvm()

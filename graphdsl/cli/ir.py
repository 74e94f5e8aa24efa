"""`graphdsl ir`: the checked program, the graph after each pass, and the machine code."""

from __future__ import annotations

from collections.abc import Iterator

import click

from graphdsl.api.program import Program
from graphdsl.cli.options import Inputs, input_options, output_options, program_options
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
    Example:  graphdsl ir -e 'param w = 2.0; y = w * w; print grad(y, w)' --pass fuse
    """
    from graphdsl.graph.passes import PASSES

    known = (CORE, GRAPH, *PASSES)
    for name in (*without, *([only] if only else [])):
        if name not in known or (name in without and name not in PASSES):
            raise click.UsageError(f"There is no pass `{name}`. The passes are {', '.join(PASSES)}.")
    program = Program(source)
    core = program.check(inputs.given(program).values).program
    if llvm or asm:
        code = _code(core, without, asm)
        if output.as_json:
            output.event("code", form="asm" if asm else "llvm", text=code)
        else:
            output.line(code)
        return
    _stages(core, only, without, output)


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

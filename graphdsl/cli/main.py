"""The entry point: finds the command, and turns whatever happens into words and an exit status."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from graphdsl import __version__
from graphdsl.cli import status, streams

# In the order in which `--help` lists them. Each is `command` in the module of its name.
COMMANDS = ("run", "grad", "compare", "check", "ir", "ops")


class Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"graphdsl.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from graphdsl.cli.options import near

            if os.path.exists(args[0]):
                hint = f" To run a program: graphdsl run {args[0]}"
            else:
                hint = near(args[0], COMMANDS, " `graphdsl --help` lists the commands.")
            raise click.UsageError(f"There is no command `{args[0]}`.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="graphdsl")
def group() -> None:
    """GDL: one program for a computation over tensors, run eagerly or compiled, with the same bits.

    \b
    Try:  graphdsl run -e 'param w = 2.0; print grad(w ** 2, w)'
    """


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line, and end the process. `run` comes back."""
    gc.set_threshold(50_000, 20, 20)  # what importing makes is no garbage: looking for it takes 10 ms
    arguments = sys.argv[1:] if args is None else args
    streams.open_streams()
    code = run(arguments)
    try:
        sys.stdout.flush()
    except (streams.ClosedPipe, streams.NotWritten) as error:
        code = _output_lost(error, "--json" in arguments)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """Ends the process. All that was written is on its way and nothing waits for an exit, so the interpreter is not
    taken down object by object: that takes 30 ms.
    """
    sys.stderr.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """The exit status of one command line. Who names no command is shown them all."""
    try:
        code = group.main(arguments or ["--help"], prog_name="graphdsl", standalone_mode=False)
        return code if isinstance(code, int) else status.DONE
    except click.ClickException as error:
        return _usage(error, "--json" in arguments)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return status.INTERRUPTED
    except (streams.ClosedPipe, streams.NotWritten) as error:
        return _output_lost(error, "--json" in arguments)
    except status.Failed as error:
        kind = error.fault.kind
        return _nowhere(kind.code, str(error), "--json" in arguments, kind.hint)
    except MemoryError:
        return _no_memory("--json" in arguments)
    except Exception as error:
        return _fault(error, "--json" in arguments)


def _usage(error: click.ClickException, as_json: bool) -> int:
    """The command line is wrong."""
    if as_json:
        from graphdsl.render.json import object_text

        click.echo(object_text(event="error", code="usage", message=error.format_message()), err=True)
    else:
        from graphdsl.render.columns import wrapped

        if (context := getattr(error, "ctx", None)) is not None:
            hint = f"Try '{context.command_path} --help' for help.\n"
            click.echo(f"{context.get_usage()}\n{hint}", err=True)
        head = "Error: "
        text = wrapped(error.format_message(), streams.width(sys.stderr), len(head))
        click.echo(head + text, err=True)
    return status.WRONG_USAGE


def _output_lost(error: streams.ClosedPipe | streams.NotWritten, as_json: bool) -> int:
    """A closed pipe ends quietly; what cannot be written otherwise is an error."""
    streams.drop_output()
    if isinstance(error, streams.ClosedPipe):
        return status.DONE
    return _nowhere("E0614", f"cannot write the output: {error}", as_json)


def _no_memory(as_json: bool) -> int:
    """What the program asks for does not fit, and where it asks is not known."""
    from graphdsl.runtime.faults import NO_MEMORY

    return _nowhere(NO_MEMORY.code, NO_MEMORY.text(), as_json)


def _nowhere(code: str, message: str, as_json: bool, hint: str | None = None) -> int:
    """An error of the run that has no place in the program."""
    if as_json:
        from graphdsl.render.json import object_text

        hints = {} if hint is None else {"hint": hint}
        click.echo(object_text(event="error", code=code, message=message, **hints), err=True)
    else:
        click.echo(f"error[{code}]: {message}" + (f"\n = hint: {hint}" if hint else ""), err=True)
    return status.WRONG_PROGRAM


def _fault(error: Exception, as_json: bool) -> int:
    """Something in graphdsl itself failed: said loudly, and otherwise than an error of the program."""
    import traceback

    if os.environ.get("GRAPHDSL_TRACEBACK"):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if "graphdsl" in f.filename), frames[-1])
    place = f"{os.path.basename(os.path.dirname(frame.filename))}/{os.path.basename(frame.filename)}:{frame.lineno}"
    what = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    message = f"graphdsl itself failed, at {place}: {what}"
    hint = (
        "this is a fault of graphdsl, not of your program: please report it, with the program and the line above, "
        f"as the README says (graphdsl {__version__}; with GRAPHDSL_TRACEBACK=1 set, all of the way there is shown)"
    )
    if as_json:
        from graphdsl.render.json import object_text

        click.echo(object_text(event="error", code="internal", message=message, hint=hint), err=True)
    else:
        click.echo(f"{message}\n{hint}", err=True)
    return status.FAULT

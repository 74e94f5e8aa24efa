"""Options that several commands share, and the program that a command line names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

import click

from graphdsl.cli import status
from graphdsl.cli.output import Output
from graphdsl.native.building import on_build
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import Fault, ProgramError, WrongRequest
from graphdsl.source.files import MOST_BYTES, read_source, source_of
from graphdsl.source.record import dataclass
from graphdsl.source.span import Source

if TYPE_CHECKING:
    from graphdsl.api.program import Given, Program
    from graphdsl.check import Probe

MOST_NAMES = 8  # that an error lists
MOST_SECONDS = 1e9

F = TypeVar("F", bound=Callable[..., Any])


def output_options(command: F) -> F:
    """`--json` and `--color`; the command gets `output`, and what it raises about the program becomes status 1."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one object a line.")
    @click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to colour.")
    @functools.wraps(command)
    def wrapped(as_json: bool, color: str, **given: Any) -> int:
        output = Output(as_json, color)
        on_build[:] = [output.building]
        try:
            code = command(output=output, **given)
            return code if isinstance(code, int) else status.DONE
        except ProgramError as error:
            output.diagnostics(error.diagnostics)
            return status.WRONG_USAGE if isinstance(error, WrongRequest) else status.WRONG_PROGRAM

    return wrapped  # type: ignore[return-value]


def program_options(command: F) -> F:
    """`FILE`, `-`, `-e CODE` or piped input; the command gets `source`."""

    @click.argument("file", required=False)
    @click.option("-e", "code", metavar="CODE", help="A program on the command line, in place of FILE.")
    @functools.wraps(command)
    def wrapped(file: str | None, code: str | None, **given: Any) -> Any:
        return command(source=find_source(file, code), **given)

    return wrapped  # type: ignore[return-value]


@dataclass
class Inputs:
    """What a command line gives a program: texts by name, a file with params, the seed, limits in bytes and seconds."""

    feeds: dict[str, str]
    sets: dict[str, str]
    seed: int
    load: str | None = None
    memory: int | None = None
    time: float | None = None

    def given(self, program: Program) -> Given:
        """The same for a program; a name that it does not have is a wrong command line."""
        from graphdsl.api.program import UnknownName

        try:
            given = program.given(self.feeds, self._loaded(program) | self.sets, self.seed)
        except UnknownName as error:
            option = {"input": "--feed", "param": "--set"}.get(error.kind or "")
            raise click.UsageError(f"{error}{f': use {option}' if option else ''}.") from None
        if self.memory is not None:
            given.limits = replace(given.limits, memory=self.memory, counted=True)
        given.limits = replace(given.limits, time=self.time)
        return given

    def _loaded(self, program: Program) -> dict[str, str]:
        """A first value from the file for each param that is not set otherwise; each must be there."""
        if self.load is None:
            return {}
        from graphdsl.runtime.files import entries

        try:
            found = entries(self.load)
        except Fault as fault:
            raise click.BadParameter(f"{fault}.", param_hint="--load") from None
        wanted = [n for n, kind in program.declared.items() if kind == "param" and n not in self.sets]
        missing = [f"`{n}`" for n in wanted if n not in found]
        if missing:
            raise click.BadParameter(f"`{self.load}` has no {', '.join(missing)}.", param_hint="--load")
        return {n: f"@{self.load}:{n}" for n in wanted}


class Size(click.types.IntParamType):
    """So many bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from graphdsl.runtime.limits import size_of

        try:
            return size_of(str(value))
        except ValueError:
            self.fail(f"`{value}` is no size, as in `500MB` or `2GiB`.", param, ctx)


class Seconds(click.types.FloatParamType):
    """A time that ends."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not 0 < seconds <= MOST_SECONDS:
            self.fail(f"`{value}` is not a time of more than 0 seconds.", param, ctx)
        return seconds


class Seed(click.types.IntParamType):
    """An i64, as `seed` in a program takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        seed = int(super().convert(value, param, ctx))
        if not -(2**63) <= seed < 2**63:
            self.fail(f"{seed} does not fit 64 bits.", param, ctx)
        return seed


def input_options(command: F) -> F:
    """`--feed`, `--set`, `--load`, `--seed` and the limits; the command gets them as `inputs`. `--threads` holds for the
    process.
    """

    @click.option("--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="x=3, x=[1,2], x=@x.npy, x=@d.csv:price")
    @click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A param's first value.")
    @click.option("--load", metavar="M.npz", help="The first values of all params that are not set.")
    @click.option("--seed", type=Seed(), default=0, show_default=True, help="The first seed of the random numbers.")
    @click.option("--threads", type=click.IntRange(1, 1024), help="How many threads to use. They change no bit.")
    @click.option("--memory-limit", type=Size(), metavar="SIZE", help="The most that values may take: 500MB, 2GiB.")
    @click.option("--time-limit", type=Seconds(), metavar="S", help="The most seconds that the run may take.")
    @functools.wraps(command)
    def wrapped(
        feeds: tuple[str, ...],
        sets: tuple[str, ...],
        load: str | None,
        seed: int,
        threads: int | None,
        memory_limit: int | None,
        time_limit: float | None,
        **given: Any,
    ) -> Any:
        if threads is not None:
            from graphdsl.runtime.threads import choose

            choose(threads)
        inputs = Inputs(pairs("--feed", feeds), pairs("--set", sets), seed, load, memory_limit, time_limit)
        return command(inputs=inputs, **given)

    return wrapped  # type: ignore[return-value]


mode_option = click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True, help="How to run.")


check_nan_option = click.option(
    "--check-nan", is_flag=True, help="Stop at the op that first makes a NaN or inf, also in a derivative."
)


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` taken apart."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or not value.strip():
            raise click.BadParameter(f"`{text}` is not NAME=VALUE, as in `{option} x=3`.", param_hint=option)
        if name in found:
            raise click.BadParameter(f"`{name}` is given twice.", param_hint=option)
        found[name] = value.strip()
    return found


def names(option: str, given: str, program: Program) -> tuple[str, ...]:
    """`a,b` taken apart: names that the program binds."""
    found = tuple(normalize("NFC", name.strip()) for name in given.split(",") if name.strip())
    if not found:
        raise click.BadParameter("names are expected, as in `w,b`.", param_hint=option)
    for name in found:
        if name not in program.bound:
            raise click.BadParameter(_unbound(name, program), param_hint=option)
    return found


def one_name(option: str, given: str, program: Program) -> str:
    """One name that the program binds."""
    found = names(option, given, program)
    if len(found) > 1:
        raise click.BadParameter(f"one name is expected, not {len(found)}.", param_hint=option)
    return found[0]


def _unbound(name: str, program: Program) -> str:
    known = sorted(program.bound)
    shown = ", ".join(f"`{n}`" for n in known[:MOST_NAMES]) + ", …" * (len(known) > MOST_NAMES)
    return f"the program binds no `{name}`.{near(name, known, f' It binds {shown}.' if known else '')}"


def probes(texts: tuple[str, ...], program: Program) -> tuple[Probe, ...]:
    """What `--probe` asks for."""
    if not texts:
        return ()
    from graphdsl.api.probes import NoProbe, probes_of
    from graphdsl.api.program import UnknownName

    try:
        return probes_of(program, texts)
    except (NoProbe, UnknownName) as error:
        message = str(error)
        raise click.BadParameter(message if message[-1] == "?" else f"{message}.", param_hint="--probe") from None


def near(name: str, known: Collection[str], otherwise: str = "", most: int = 1) -> str:
    """The question whether a name that is much like this one was meant, else what to say instead."""
    from difflib import get_close_matches

    found = get_close_matches(name, sorted(known), most, 0.5)
    return f" Did you mean {' or '.join(f'`{n}`' for n in found)}?" if found else otherwise


def find_source(file: str | None, code: str | None) -> Source:
    """The program that a command line means."""
    if file is not None and code is not None:
        raise click.UsageError("Either FILE or -e CODE, not both.")
    if code is not None:
        return source_of("<code>", code.encode("utf-8", "surrogateescape"))
    if file is None and sys.stdin.isatty():
        raise click.UsageError("No program: give a FILE, `-e CODE`, or pipe one in.")
    if file in (None, "-"):
        return source_of("<stdin>", sys.stdin.buffer.read(MOST_BYTES + 1))
    return open_source(str(file))


def open_source(file: str) -> Source:
    """The program in a file; one that cannot be read is a wrong command line."""
    try:
        return read_source(file)
    except OSError as error:
        raise click.UsageError(f"Cannot read `{file}`: {error.strerror or error}.") from None

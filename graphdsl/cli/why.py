"""`graphdsl grad --why-nan`: the way of a NaN or inf to each gradient that is not finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdsl.cli.output import Output
from graphdsl.runtime.nan_trace import Step
from graphdsl.source.span import Source


def explain(
    ways: Mapping[str, list[Step] | None], symbol: Callable[[str], str], source: Source, output: Output
) -> None:
    """Say of each gradient how it comes not to be finite (None: it is), or that it is; `symbol` is how one is written."""
    for name, way in ways.items():
        if output.as_json:
            path = None if way is None else [_fields(step) for step in way]
            output.event("why", wrt=name, finite=way is None, path=path)
        elif way is None:
            output.line(f"{symbol(name)} is finite: no NaN or inf reaches it")
        else:
            _show(symbol(name), way, source, output)


def _show(gradient: str, way: list[Step], source: Source, output: Output) -> None:
    if not way:
        output.sentence(
            f"{gradient} is not finite by no single op: in a sum of contributions, or in the derivative of a derivative"
        )
        return
    output.line(f"how it comes to {gradient}:")
    places = [_place(step, source) for step in way]
    column = max(map(len, places)) + 4
    for step, place in zip(way, places, strict=True):
        output.sentence(_text(step), indent=column, head=f"  {place}".ljust(column))


def _place(step: Step, source: Source) -> str:
    """The line, and the file where it is another one."""
    file = "" if step.span.source is source else f"{step.span.source.name}, "
    return f"{file}line {step.span.line}{', backwards' * step.backward}:"


def _text(step: Step) -> str:
    return step.text + (f" (first of {step.times} times)" if step.times > 1 else "")


def _fields(step: Step) -> dict[str, object]:
    line, column = step.span.source.place(step.span.start)
    return {
        "file": step.span.source.name,
        "line": line,
        "column": column,
        "backward": step.backward,
        "times": step.times,
        "text": step.text,
    }

"""Which argument of a call goes to which parameter: positional, named, left out."""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.check.context import Frame
from graphdsl.check.problems import nearest
from graphdsl.source.diagnostic import Label
from graphdsl.source.span import Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast


def match_arguments(
    f: Frame,
    what: str,
    span: Span,
    args: Sequence[ast.Arg],
    params: Sequence[str],
    optional: frozenset[str] = frozenset(),
    rest: str | None = None,
    declared: Span | None = None,
) -> dict[str, list[ast.Arg]] | None:
    """The arguments for each parameter, in the order written. `rest` takes all positional ones that are left."""
    taken: dict[str, list[ast.Arg]] = {}
    free = list(params)
    good = True
    labels = () if declared is None else (Label(declared, "declared here"),)
    positional = sum(a.name is None for a in args)
    for arg in args:
        if arg.name is not None:
            good &= _named(f, what, arg, arg.name, params, taken, labels)
        elif free and free[0] not in taken:
            name = free[0]
            if name == rest:
                taken.setdefault(name, [])
            else:
                free.pop(0)
            taken.setdefault(name, []).append(arg)
        elif free and free[0] == rest:
            taken[rest].append(arg)
        else:
            message = f"{what} takes {counted(len(params), 'argument')}, and {positional} are given"
            if free:
                message = f"{what} has an argument `{free[0]}` already, named before"
            f.error("E0209", message, arg.span, labels=labels)
            return None
    missing = [p for p in params if p not in taken and p not in optional]
    if missing and good:
        listed = ", ".join(f"`{m}`" for m in missing)
        f.error(
            "E0209", f"{what} needs {'an argument' if len(missing) == 1 else 'arguments'} {listed}", span, labels=labels
        )
        good = False
    return taken if good else None


def _named(
    f: Frame,
    what: str,
    arg: ast.Arg,
    name: ast.Name,
    params: Sequence[str],
    taken: dict[str, list[ast.Arg]],
    labels: tuple[Label, ...],
) -> bool:
    if name.id not in params:
        close = nearest(name.id, params)
        hint = (
            f"did you mean `{close}`?"
            if close
            else f"it takes {', '.join(f'`{p}`' for p in params)}"
            if params
            else None
        )
        if name.id == "dim" and "axis" in params:
            hint = "did you mean `axis`?"
        if name.id == "dtype":
            hint = "cast the result: `f32(…)`"
        f.error("E0210", f"{what} has no argument `{name.id}`", name.span, hint, labels)
        return False
    if name.id in taken:
        f.error("E0209", f"`{name.id}` is given twice", arg.span, labels=labels)
        return False
    taken[name.id] = [arg]
    return True

"""`graphdsl ops`: what each built-in does, with its derivative."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from graphdsl.cli.options import near, output_options
from graphdsl.cli.output import Output
from graphdsl.cli.streams import width

if TYPE_CHECKING:
    from graphdsl.cli.reference import Form
    from graphdsl.ops.op import Op

_LABELS = 18  # columns that the labels of details take


@click.command("ops", short_help="what each built-in does, with its derivative")
@click.argument("name", required=False)
@output_options
def command(name: str | None, output: Output) -> None:
    """What each built-in does, with its derivative; also operators, as in `graphdsl ops @`.

    \b
    Example:  graphdsl ops sqrt
    """
    from graphdsl.cli import reference

    if name is None:
        _list(output)
        return
    entries = reference.found(name)
    if not entries:
        reason = reference.elsewhere(name)
        if reason is None:
            reason = f"There is no op `{name}`."
            reason += near(name, reference.names(), " `graphdsl ops` lists them.", most=3)
        raise click.UsageError(reason)
    for entry in entries:
        _explain(entry, output)


def _list(output: Output) -> None:
    from graphdsl.cli import reference
    from graphdsl.ops.table import OPS

    groups: dict[str, list[Op | Form]] = {}
    for op in OPS.values():
        groups.setdefault(reference.heading(op), []).append(op)
    groups[reference.LANGUAGE] = list(reference.forms())
    groups[reference.INNER] = groups.pop(reference.INNER)
    if output.as_json:
        for entry in (entry for group in groups.values() for entry in group):
            output.event("op", **_facts(entry))
        return
    for group, entries in groups.items():
        output.line(output.stdout_paint(group, "strong"))
        _rows([(_signature(entry), entry.doc) for entry in entries], output)
        output.line()


def _rows(rows: list[tuple[str, str]], output: Output) -> None:
    """Signatures and what they do: side by side, but a long signature on a line of its own."""
    terminal = width(sys.stdout)
    room = min(34, (terminal or 120) // 3)
    room = min(room, max(len(signature) for signature, _ in rows))
    for signature, doc in rows:
        start = 2 + max(room, len(signature)) + 2
        if len(signature) > room and terminal is not None:
            output.line(f"  {signature}")
            output.sentence(doc, indent=room + 4, head=" " * (room + 4))
        else:
            output.sentence(doc, indent=room + 4, head=f"  {signature}".ljust(start))


def _signature(entry: Op | Form) -> str:
    from graphdsl.cli import reference

    return entry.signature if isinstance(entry, reference.Form) else reference.signature(entry)


def _explain(entry: Op | Form, output: Output) -> None:
    from graphdsl.cli import reference

    if output.as_json:
        output.event("op", **_facts(entry))
        return
    output.line(output.stdout_paint(_signature(entry), "strong"))
    output.sentence(entry.doc, indent=4, head=" " * 4)
    for label, text in () if isinstance(entry, reference.Form) else reference.details(entry):
        output.sentence(text, indent=_LABELS, head=f"    {label}".ljust(_LABELS))


def _facts(entry: Op | Form) -> dict[str, Any]:
    from graphdsl.cli import reference

    if isinstance(entry, reference.Form):
        return {"name": entry.name, "signature": entry.signature, "group": reference.LANGUAGE, "doc": entry.doc}
    return {
        "name": entry.name,
        "signature": reference.signature(entry),
        "group": entry.group,
        "doc": entry.doc,
        "callable": entry.params is not None,
        "bound_ulps": None if math.isinf(entry.bound) else entry.bound,
        "faults": list(dict.fromkeys(fault.code for fault in entry.faults)),
        "effect": entry.effect.value,
        "differentiable": reference.differentiable(entry),
        "derivatives": dict(reference.derivatives(entry)),
    }

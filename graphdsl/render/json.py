"""Events as JSON lines: one object a line, floats as the shortest text that reads back in their dtype."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphdsl.source.diagnostic import Diagnostic, Label

if TYPE_CHECKING:
    from graphdsl.ops.types import DType
    from graphdsl.runtime.events import Shown, Summary

_SPECIAL = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


class Raw(str):
    """Text that is JSON already."""


def object_text(**fields: Any) -> str:
    """One JSON object, its keys in the order given."""
    return "{" + ",".join(f"{_string(key)}:{text(value)}" for key, value in fields.items()) + "}"


def text(value: Any) -> str:
    """A value as JSON; floats that are not finite as strings."""
    match value:
        case Raw():
            return value
        case str():
            return _string(value)
        case float() if not math.isfinite(value):
            return _string(_SPECIAL[repr(value)])
        case dict():
            return object_text(**value)
        case list() | tuple():
            return "[" + ",".join(text(v) for v in value) + "]"
        case _:
            return json.dumps(value)


def _string(value: str) -> str:
    # lone surrogates, as in a file's name that is not UTF-8, cannot be written otherwise
    return json.dumps(value, ensure_ascii=not value.isprintable())


def content(item: Shown) -> dict[str, Any]:
    """A value without its name: its dtype, its shape, and what it is."""
    from graphdsl.runtime.format import json_value

    value = Raw(json_value(item.value, item.dtype))
    return {"dtype": item.dtype.value, "shape": list(item.shape), "value": value}


def shown(item: Shown) -> Raw:
    """A value under its name."""
    return Raw(object_text(name=item.name, **content(item)))


def printed(line: int, items: Sequence[Shown]) -> str:
    """The event of values printed together."""
    return object_text(event="print", line=line, items=[shown(item) for item in items])


def printed_text(line: int, words: str) -> str:
    """The event of a printed text."""
    return object_text(event="print", line=line, text=words)


def probed(line: int, items: Sequence[Shown | Summary]) -> str:
    """The event of what a probe shows."""
    from graphdsl.runtime.events import Shown

    return object_text(
        event="probe", line=line, items=[shown(item) if isinstance(item, Shown) else _summary(item) for item in items]
    )


def _summary(item: Summary) -> Raw:
    """The statistics of a value."""
    from graphdsl.runtime.format import json_value

    def number(value: Any, dtype: DType) -> Any:
        return None if value is None else Raw(json_value(value, dtype))

    return Raw(
        object_text(
            name=item.name,
            dtype=item.dtype.value,
            shape=list(item.shape),
            min=number(item.low, item.dtype),
            max=number(item.high, item.dtype),
            mean=number(item.mean, item.mean_dtype),
            nans=item.nans,
        )
    )


def problem(diagnostic: Diagnostic) -> str:
    """An error or a warning as an event."""
    fields: dict[str, Any] = {
        "event": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        **_place(Label(diagnostic.span, "")),
    }
    if diagnostic.labels:
        fields["labels"] = [{"text": label.text, **_place(label)} for label in diagnostic.labels]
    if diagnostic.trail:
        fields["trail"] = [{"text": label.text, **_place(label)} for label in diagnostic.trail]
    return object_text(**fields)


def _place(label: Label) -> dict[str, Any]:
    source = label.span.source
    line, column = source.place(label.span.start)
    end_line, end_column = source.place(label.span.end)
    return {"file": source.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column}

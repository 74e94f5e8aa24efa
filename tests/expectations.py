"""Programs with their expectations beside the code, as in `tests/programs`.

`#> 15.0, 8.0` after a print: the values of its items; ` | ` between successive executions; `#> "text"` for a text;
`#! words`: the program fails at this line (at each such line, if found as it is checked) and says so; `#? words`: a
warning at this line, perhaps behind a `#>`; `#: --feed x=3`: arguments.
Numbers are JSON with nan, inf and -inf; `~1e-9` at the end is the relative tolerance (1e-12 for f64, 2e-6 for f32, else none).
"""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass
class Expected:
    """What stands in a program's comments, by line."""

    arguments: list[str] = field(default_factory=list)
    prints: dict[int, list[tuple[list[Any], float | None]]] = field(default_factory=dict)
    errors: list[tuple[int, list[str]]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)


def read(path: Path) -> Expected:
    expected = Expected()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := re.match(r"\s*#:\s*(.*)", line):
            expected.arguments += shlex.split(found[1])
        if found := re.search(r"#>\s*(.*?)\s*(?:#\?|$)", line):
            expected.prints[number] = [_values(part) for part in found[1].split(" | ")]
        if found := re.search(r"#!\s*(.*)$", line):
            expected.errors.append((number, [word.strip().lower() for word in found[1].split(" / ")]))
        if found := re.search(r"#\?\s*(.*)$", line):
            expected.warnings.append((number, found[1].strip().lower()))
    return expected


def _values(text: str) -> tuple[list[Any], float | None]:
    tolerance = None
    if found := re.search(r"~\s*([0-9.eE+-]+)\s*$", text):
        text, tolerance = text[: found.start()], float(found[1])
    if not text.lstrip().startswith('"'):
        for word, meant in (("-inf", "-Infinity"), ("inf", "Infinity"), ("nan", "NaN")):
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}\b", meant, text)
    return json.loads(f"[{text.strip()}]"), tolerance


def differences(expected: Expected, events: list[Event]) -> list[str]:
    """What the events of a run lack, one sentence each."""
    by_line: dict[int, list[Event]] = {}
    for event in events:
        if event["event"] == "print":
            by_line.setdefault(event["line"], []).append(event)
    found = []
    for line, wanted in expected.prints.items():
        seen = by_line.get(line, [])
        if len(seen) != len(wanted):
            found.append(f"line {line}: {len(seen)} prints, {len(wanted)} expected")
            continue
        for event, (values, tolerance) in zip(seen, wanted, strict=True):
            got = [event["text"]] if "text" in event else [i["value"] for i in event["items"]]
            dtypes = ["text"] if "text" in event else [i["dtype"] for i in event["items"]]
            if len(got) != len(values) or not all(map(_close, got, values, dtypes, [tolerance] * len(got))):
                found.append(f"line {line}: {got}, expected {values}")
    return found + _error_differences(expected, events) + _warning_differences(expected, events)


def unstated(expected: Expected, events: list[Event]) -> list[str]:
    """What a run said that nothing stands for, one sentence each."""
    stated = {"print": set(expected.prints), "warning": {line for line, _ in expected.warnings}}
    lines = sorted((e["line"], e["event"]) for e in events if e["line"] not in stated.get(e["event"], {e["line"]}))
    return [f"line {line}: a {event}, and no expectation" for line, event in dict.fromkeys(lines)]


def _error_differences(expected: Expected, events: list[Event]) -> list[str]:
    """Errors come in the order of their lines."""
    errors = [e for e in events if e["event"] == "error"]
    found = [f"line {line}: no error" for line, _ in expected.errors[len(errors) :]]
    found += [f"line {e['line']}: unexpected error: {e['message']}" for e in errors[len(expected.errors) :]]
    for (line, words), error in zip(expected.errors, errors, strict=False):
        said = f"{error['message']} {error.get('hint') or ''}".lower()
        if error["line"] != line or not any(word in said for word in words):
            found.append(f"line {line}: error at line {error['line']}: {said}")
    return found


def _warning_differences(expected: Expected, events: list[Event]) -> list[str]:
    said = {(e["line"], f"{e['message']} {e.get('hint') or ''}".lower()) for e in events if e["event"] == "warning"}
    return [
        f"line {line}: no warning with {words!r}"
        for line, words in expected.warnings
        if not any(at == line and words in text for at, text in said)
    ]


def _close(got: Any, wanted: Any, dtype: str, tolerance: float | None) -> bool:
    if isinstance(wanted, list):
        return (
            isinstance(got, list)
            and len(got) == len(wanted)
            and all(_close(g, w, dtype, tolerance) for g, w in zip(got, wanted, strict=True))
        )
    if dtype == "text":
        return bool(got == wanted)
    got = WORDS.get(got, got) if isinstance(got, str) else got
    if isinstance(wanted, bool) or isinstance(got, bool) or not isinstance(got, float):
        return type(got) is type(wanted) and bool(got == wanted)
    if math.isnan(wanted) or math.isinf(wanted) or wanted == 0:
        same = got == wanted or (math.isnan(got) and math.isnan(wanted))
        return same and math.copysign(1.0, got) == math.copysign(1.0, wanted) if wanted == 0 else same
    allowed = tolerance if tolerance is not None else {"f32": 2e-6}.get(dtype, 1e-12)
    return abs(got - wanted) <= allowed * abs(wanted)

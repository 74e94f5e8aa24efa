"""A diagnostic as text for people: code and sentence, the lines with the range underlined, hint, and the way there.

Excerpts are cut to the width, wide characters and tabs take the columns they take, and nothing that a
terminal would obey is written. The same as one JSON object stands in `render.json`.
"""

from __future__ import annotations

from graphdsl.render.columns import TAB, column, columns, wrapped
from graphdsl.render.paint import Paint
from graphdsl.source.diagnostic import MOST_TRAIL, Diagnostic, Label
from graphdsl.source.record import dataclass
from graphdsl.source.span import Source, Span

LONGEST_TRAIL = 8
PIPE_WIDTH = 100  # to which excerpts are cut where there is no terminal


@dataclass(frozen=True)
class Mark:
    """A range of one line to underline: columns from 0, `sign` repeated under it, then `text`."""

    line: int
    start: int
    end: int
    sign: str
    text: str
    style: str


def render(diagnostic: Diagnostic, width: int | None = None, paint: Paint | None = None) -> str:
    """The whole text, without a newline at its end. `width`: the terminal's; without one only excerpts are cut."""
    paint = paint or Paint(False)
    head = f"{diagnostic.severity}[{diagnostic.code}]"
    message = wrapped(f": {_visible(diagnostic.message)}", width, len(head), len(head) + 2)
    lines = [paint(head, diagnostic.severity) + paint(message, "strong")]
    groups = _by_source(diagnostic)
    gutter = max(len(str(mark.line)) for marks in groups.values() for mark in marks) + 2
    bar = f"{' ' * gutter}{paint('|', 'frame')}"
    for source, marks in groups.items():
        first = source is diagnostic.span.source
        line, column = source.place(diagnostic.span.start) if first else (marks[0].line, marks[0].start + 1)
        arrow = paint("-->" if first else ":::", "frame")
        lines += [
            *([] if first else [bar]),
            f"{' ' * (gutter - 1)}{arrow} {_visible(source.name)}:{line}:{column}",
            bar,
        ]
        lines += _excerpt(source, marks, gutter, width, paint)
    notes = [("hint", diagnostic.hint)] if diagnostic.hint else []
    notes += [("note", text) for text in _trail(diagnostic)]
    lines += [bar] if notes else []
    for head, text in notes:
        body = wrapped(_visible(text), width, gutter + 8)
        lines.append(f"{' ' * gutter}{paint('=', 'frame')} {paint(head + ':', 'strong')} {body}")
    return "\n".join(line.rstrip() for line in lines)


def _by_source(diagnostic: Diagnostic) -> dict[Source, list[Mark]]:
    """What to underline in which source, the place of the problem itself first among the sources.

    A label on the very range of the problem gives the text beside its underline.
    """
    span = diagnostic.span
    beside = [label for label in diagnostic.labels if label.span == span]
    groups: dict[Source, list[Mark]] = {span.source: []}
    groups[span.source] += _marks(span, "^", ", ".join(label.text for label in beside), diagnostic.severity)
    for label in diagnostic.labels:
        if label not in beside:
            groups.setdefault(label.span.source, []).extend(_marks(label.span, "-", label.text, "label"))
    for marks in groups.values():
        marks.sort(key=lambda mark: (mark.line, mark.sign != "^"))
    return groups


def _marks(span: Span, sign: str, text: str, style: str) -> list[Mark]:
    """The marks for a range: one, or for a range of several lines one on its first and one on its last."""
    source = span.source
    line, column = source.place(span.start)
    last, end = source.place(span.end)
    if last == line:
        return [Mark(line, column - 1, max(end - 1, column), sign, text, style)]
    first_end = len(source.line_text(line))
    marks = [Mark(line, column - 1, max(first_end, column), sign, "from here …", style)]
    body = source.line_text(last)[: end - 1]
    indent = len(body) - len(body.lstrip())
    if body.strip():
        marks.append(Mark(last, indent, end - 1, sign, f"… to here{': ' * bool(text)}{text}", style))
    else:
        marks[0] = Mark(line, column - 1, max(first_end, column), sign, text, style)
    return marks


def _excerpt(source: Source, marks: list[Mark], gutter: int, width: int | None, paint: Paint) -> list[str]:
    """The lines that are marked, each with its marks under it."""
    lines = []
    room = max((width or PIPE_WIDTH) - gutter - 2, 20)
    for number in dict.fromkeys(mark.line for mark in marks):
        here = [mark for mark in marks if mark.line == number]
        text = source.line_text(number)
        start, stop = _window(text, here[0], room)
        shown = ("…" if start else "") + _plain(text[start:stop]) + ("…" if stop < len(text) else "")
        lines.append(f"{paint(f'{number:>{gutter - 1}} |', 'frame')} {shown}")
        for mark in here:
            before = columns(text[start : max(mark.start, start)]) + bool(start)
            under = max(columns(text[max(mark.start, start) : min(mark.end, stop)]), 1)
            signs = " " * min(before, room) + mark.sign * min(under, room)
            for line in _underlined(signs, _visible(mark.text), None if width is None else room):
                indent = len(line) - len(line.lstrip())
                lines.append(f"{' ' * gutter}{paint('|', 'frame')} {' ' * indent}{paint(line[indent:], mark.style)}")
    return lines


def _underlined(signs: str, note: str, room: int | None) -> list[str]:
    """An underline with its note: beside it, or where that does not fit beneath it."""
    beside = f"{signs} {note}".rstrip()
    if room is None or columns(beside) <= room:
        return [beside]
    indent = max(0, min(len(signs) - len(signs.lstrip()), room - columns(note)))
    return [signs, *(" " * indent + line for line in wrapped(note, room - indent).split("\n"))]


def _window(text: str, mark: Mark, room: int) -> tuple[int, int]:
    """The part of a long line to show: as much as there is room for, with the mark in it."""
    if columns(text) <= room:
        return 0, len(text)
    room -= 2  # for the signs that something was cut
    start = mark.start
    lead = max((room - columns(text[mark.start : mark.end][:room])) // 2, 0)
    while start > 0 and lead > 0:
        start -= 1
        lead -= columns(text[start])
    stop = start
    while stop < len(text) and room > 0:
        room -= columns(text[stop])
        stop += 1
    while start > 0 and room > 0:
        start -= 1
        room -= columns(text[start])
    return start, stop


def _plain(text: str) -> str:
    """Source text as it is shown: tabs as blanks, control characters as `�`."""
    return "".join(" " * TAB if c == "\t" else c if c.isprintable() or column(c) == 0 else "\ufffd" for c in text)


def _visible(text: str) -> str:
    """A message without characters that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" or column(c) == 0 else "\ufffd" for c in text)


def _trail(diagnostic: Diagnostic) -> list[str]:
    """The calls and trips that led to the place, outermost first; of a long way its two ends."""
    trail = [_place(label) for label in diagnostic.trail]
    if len(trail) > LONGEST_TRAIL:
        half = LONGEST_TRAIL // 2
        known = len(trail) != MOST_TRAIL  # else there may be some further out that were not noted
        trail[half:-half] = [f"… {len(trail) - 2 * half} more …" if known else "…"]
    return trail


def _place(label: Label) -> str:
    return f"{label.text}, at {label.span.source.name}:{label.span.line}"

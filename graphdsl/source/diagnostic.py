"""What is said to the user about a program: errors and warnings as values.

Made where the knowledge is, rendered in `graphdsl.render`. Run-time failures start as a `Fault`
(a kind and its numbers, the same from eager code and from compiled code) and become a diagnostic
when the place is known.
"""

from __future__ import annotations

from typing import Literal

from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.source.words import filled

MOST_TRAIL = 64  # calls and trips noted with a fault of a run: the innermost ones


@dataclass(frozen=True)
class Label:
    """A related place: `W` has 32 rows."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One problem: a code, a plain sentence, the range, related places, a hint, and the way there.

    `trail` names the calls and trips that led to the place, outermost first.
    """

    code: str
    message: str
    span: Span
    hint: str | None = None
    labels: tuple[Label, ...] = ()
    trail: tuple[Label, ...] = ()
    severity: Literal["error", "warning"] = "error"


class ProgramError(Exception):
    """The program is wrong: one or more independent diagnostics, in source order."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].message)
        self.diagnostics = diagnostics


class WrongRequest(ProgramError):
    """Not the program is wrong, but what is asked of it: a value that cannot be read, a derivative by an int."""


@dataclass(frozen=True)
class FaultKind:
    """A way in which running code can fail. `{0}`, `{1:row}` … in the texts stand for the numbers given."""

    code: str
    message: str
    hint: str | None = None

    def diagnostic(self, span: Span, numbers: tuple[int | str, ...], trail: tuple[Label, ...] = ()) -> Diagnostic:
        """The diagnostic for one failure of this kind at `span`."""
        hint = filled(self.hint, numbers) if self.hint else None
        return Diagnostic(self.code, self.text(*numbers), span, hint, trail=trail)

    def text(self, *numbers: object) -> str:
        """The message for these numbers."""
        return filled(self.message, numbers)


class Fault(Exception):
    """Raised by eager kernels: a kind and the numbers for its text. The place is added by the caller, unless the fault has
    a `span` of its own.
    """

    span: Span | None = None
    labels: tuple[Label, ...] = ()

    def __init__(self, kind: FaultKind, *numbers: int | str) -> None:
        super().__init__(kind.message)
        self.kind = kind
        self.numbers = numbers

    def __str__(self) -> str:
        return self.kind.text(*self.numbers)

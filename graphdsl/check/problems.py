"""Collecting what is wrong with a program, and small helps for saying it well: nearest names, plurals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span


class Problems:
    """Diagnostics in the order found; what was found on trial can be taken back."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def error(
        self, code: str, message: str, span: Span, hint: str | None = None, labels: tuple[Label, ...] = ()
    ) -> None:
        self.found.append(Diagnostic(code, message, span, hint, labels))

    def add(self, found: list[Diagnostic], label: Label) -> None:
        """Add what was found in a function, reached by the call at `label`."""
        self.found += [replace(p, trail=(label, *p.trail)) for p in found]

    def mark(self) -> int:
        return len(self.found)

    def take(self, mark: int) -> list[Diagnostic]:
        """Take back what was found since `mark`."""
        taken = self.found[mark:]
        del self.found[mark:]
        return taken


def in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Without repetitions, in source order."""
    kept: dict[tuple[int, int, str], Diagnostic] = {}
    for problem in found:
        kept.setdefault((problem.span.start, problem.span.end, problem.message), problem)
    return tuple(sorted(kept.values(), key=lambda p: (p.span.start, p.span.end)))


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known name that `name` was probably meant to be."""
    from difflib import get_close_matches

    close = get_close_matches(name, [k for k in known if k[0] not in "%$"], 1, alike)
    return close[0] if close else None

"""A dict that can go back: branches are checked one after the other from the same start, at the cost of what they change."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Journal(Generic[V]):
    """Names and what they hold now. A name that holds nothing is not in it."""

    __slots__ = ("_changes", "_now")

    def __init__(self) -> None:
        self._now: dict[str, V] = {}
        self._changes: list[tuple[str, V | None]] = []

    def get(self, name: str) -> V | None:
        return self._now.get(name)

    def set(self, name: str, value: V | None) -> None:
        """Let `name` hold `value`, or nothing."""
        before = self._now.get(name)
        if before is value:
            return
        self._changes.append((name, before))
        if value is None:
            self._now.pop(name, None)
        else:
            self._now[name] = value

    def names(self) -> list[str]:
        """All names that hold something, in no order that matters."""
        return list(self._now)

    def mark(self) -> int:
        """A point to go back to."""
        return len(self._changes)

    def changed_since(self, mark: int) -> dict[str, V | None]:
        """What each name changed since then held at that point."""
        before: dict[str, V | None] = {}
        for name, value in self._changes[mark:]:
            before.setdefault(name, value)
        return before

    def rollback(self, mark: int) -> dict[str, V | None]:
        """Go back; returns what each name that had changed held until now."""
        now: dict[str, V | None] = {}
        while len(self._changes) > mark:
            name, before = self._changes.pop()
            now.setdefault(name, self._now.get(name))
            if before is None:
                self._now.pop(name, None)
            else:
                self._now[name] = before
        return now

"""Recursion without Python's stack: `else if` chains and brackets may be 10,000 levels deep.

Functions that would call each other are generators instead: `x = yield f(block)` stands for a call.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def run(start: Steps[T]) -> T:
    """Run a generator and all that it yields."""
    stack: list[Generator[Any, Any, Any]] = [start]
    result: Any = None
    while stack:
        try:
            step = stack[-1].send(result)
        except StopIteration as stop:
            stack.pop()
            result = stop.value
            continue
        assert type(step) is GeneratorType
        stack.append(step)
        result = None
    return result  # type: ignore[no-any-return]

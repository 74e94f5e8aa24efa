"""Running generators that call each other without a Python frame a level.

Functions that would call each other are generators instead: `left = yield expression(f, node.left)` stands for a call. So ten
thousand nested brackets need no deep stack.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def run(start: Steps[T]) -> T:
    """Run a generator and all that it yields; anything else that is yielded comes straight back."""
    stack: list[Generator[Any, Any, Any]] = [start]
    result: Any = None
    while stack:
        try:
            step = stack[-1].send(result)
        except StopIteration as stop:
            stack.pop()
            result = stop.value
            continue
        if type(step) is GeneratorType:
            stack.append(step)
            result = None
        else:
            result = step
    return result

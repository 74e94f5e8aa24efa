"""Which functions a program has, and how they call each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdsl.core.ir import Call, Custom, Func
from graphdsl.core.structure import walk


def functions(main: Func) -> list[Func]:
    """The functions that `main` calls, directly or not, each once, in order of first call; without `main`. A derivative rule
    is called where the function is whose rule it is.
    """
    found: dict[Func, None] = {}
    todo = [main]
    while todo:
        fresh = [f for f in _called(todo.pop()) if f not in found and f is not main]
        found.update(dict.fromkeys(fresh))
        todo.extend(reversed(fresh))
    return list(found)


def instructions(main: Func) -> Iterator[Any]:
    """Every instruction of `main`, and of the functions that it calls."""
    for func in (main, *functions(main)):
        yield from walk(func.body)


def callees_first(main: Func) -> dict[Func, int]:
    """`main` and all it calls, numbered: those called before those that call them, where that is not a circle."""
    numbers: dict[Func, int] = {}
    stack: list[tuple[Func, Iterator[Func]]] = [(main, iter(_called(main)))]
    seen = {main}
    while stack:
        func, rest = stack[-1]
        inner = next(rest, None)
        if inner is None:
            numbers[func] = len(numbers)
            stack.pop()
        elif inner not in seen:
            seen.add(inner)
            stack.append((inner, iter(_called(inner))))
    return numbers


def has_recursion(main: Func) -> bool:
    """Whether a function that `main` calls may come to call itself."""
    numbers = callees_first(main)
    return any(numbers[inner] >= numbers[func] for func in numbers for inner in _called(func))


def _called(func: Func) -> list[Func]:
    found: dict[Func, None] = {}
    for instr in walk(func.body):
        match instr:
            case Call(func=inner) | Custom(rule=inner):
                found[inner] = None
    return list(found)
